"""Servers that compute: their answers by hand, conversations, and what both cost."""

import json
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from channels import assert_same
from played import begun
from refusals import refusals
from server_policies import ARRAYS, Gradients, Pooled, Rounds, pulls, small_arms, small_linear

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import WrapperSpec
from fedbandit_envs.baselines.linear import ServedLinUCB
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.wrappers import GaussianPrivatizer, Messages, Quota, Server
from fedbandit_envs.wrappers.transport import server
from fedbandit_envs.wrappers.transport.server_policy import Ask
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES


def counts(uploads, mask):
    """A function policy: bits, small integers and floats."""
    return {
        "alive": uploads["pulls"].sum(axis=1) > 0,
        "senders": mask.sum(axis=1).astype(np.int16),
        "most": uploads["pulls"].max(axis=(1, 2)).astype(np.float32),
    }


def test_ridge_by_hand():
    """The estimate on all uploads so far, a round after the server has sent it; between answers the last one stays."""
    policy = {"name": "ridge", "ridge": 0.5}
    env = Server(small_linear(), "every_round", {"name": "fixed_gap", "gap": 3}, delay=1, policy=policy)
    first = env.reset_batch([0, 1]).observation
    assert not any(first[name].any() for name in ("server_theta", "server_inverse", "server_mask"))
    assert "inbox_mask" not in env.single_observation_space.spaces
    totals = []
    for t in range(1, 14):
        seen = env.step_batch(pulls(env, t, 2)).observation
        totals.append(seen["total_statistic"].sum(axis=1))
        assert seen["server_mask"].all() == seen["server_mask"].any() == (t % 3 == 1 and t > 3)
        if t <= 3:
            assert not seen["server_theta"].any()
            continue
        # Uploads of round s reach the server in round s + 1; answers leave in rounds 3, 6, ... and arrive one later.
        known = totals[(t - 1) // 3 * 3 - 2]
        for r in range(2):
            v = known[r, :2, :2] + 0.5 * np.eye(2)
            expected = np.linalg.solve(v, known[r, :2, 2]), np.linalg.inv(v)
            for j in range(4):
                np.testing.assert_allclose(seen["server_theta"][r, j], expected[0], rtol=1e-10)
                np.testing.assert_allclose(seen["server_inverse"][r, j], expected[1], rtol=1e-10)


def test_ridge_on_noise_is_no_worse_than_its_ridge():
    """Noise makes Gram matrices with negative eigenvalues; V is at least ridge I all the same."""
    env = Server(GaussianPrivatizer(small_linear(), epsilon_per_release=0.1), "every_round", policy="ridge")
    env.reset_batch([0])
    negative = 0
    for t in range(20):
        seen = env.step_batch(pulls(env, t)).observation
        values = np.linalg.eigvalsh(seen["server_inverse"][0, 0])
        assert (values > 0).all()
        assert (values <= 1 + 1e-9).all()
        negative += values.max() > 0.99
    assert negative, "no Gram matrix had a negative eigenvalue"


def test_average_by_hand():
    env = begun(Server(small_arms(), "on_request", policy="average"))
    last, seen_from = np.zeros((4, 10)), np.zeros(4, bool)
    released = np.zeros((4, 10))
    luck = np.random.default_rng(0)
    expected = np.zeros((4, 10))
    for t in range(60):
        send = luck.random((1, 4)) < 0.3
        seen = env.step_batch({"action": pulls(env, t), "send": send}).observation
        for j in np.flatnonzero(send[0]):
            last[j] = seen["total_pulls"][0, j] - released[j]
            released[j] = seen["total_pulls"][0, j]
        seen_from |= send[0]
        if send.any():
            expected[send[0]] = last[seen_from].mean(axis=0)
        np.testing.assert_allclose(seen["server_pulls"][0], expected, rtol=1e-12)
        np.testing.assert_array_equal(seen["server_mask"][0, :, 0], send[0])


def test_models_are_not_averaged_where_some_are_lost():
    """A lost upload is added to the next one; the average of models that are all 1 was up to 4."""
    with pytest.raises(ValueError, match=r"loss is 0\.5; 0 is required with a policy whose uploads"):
        Server(Messages(small_arms(), {"model": {"shape": [2]}}), policy="average", loss=0.5)
    Server(small_arms(), policy="average", loss=0.5)


def test_the_mean_announces_its_noise():
    env = Server(GaussianPrivatizer(small_arms(), epsilon_per_release=1.0), "every_round", policy="average")
    alone = GaussianPrivatizer(small_arms(), epsilon_per_release=1.0)
    env.reset_batch([0])
    alone.reset_batch([0])
    alone.step_batch(pulls(alone, 0))
    single = alone.release(np.ones((1, 4), bool))["pulls_noise_variance"][0]
    found = env.step_batch(pulls(env, 0)).observation["server_pulls_noise_variance"][0]
    np.testing.assert_allclose(found[0], single.sum(axis=0) / 16)


def test_downloads_cost_what_is_declared():
    """Ten bits, an int16 and a float32: eight bytes and a header, instead of twenty numbers of eight bytes."""
    env = Server(small_arms(), "every_round", policy=counts)
    space = env.single_observation_space
    found = [space[f"server_{name}"].dtype for name in ("alive", "senders", "most")]
    assert found == [np.bool_, np.int16, np.float32]
    env.reset_batch([0])
    step = env.step_batch(pulls(env, 1))
    up, down = HEADER_BYTES + 8 * 20, HEADER_BYTES + 8
    assert step.info["messages"].tolist() == [[2] * 4]
    assert step.info["bytes"].tolist() == [[up + down] * 4]
    env.step_batch(pulls(env, 2))
    assert env.traffic["bytes"].tolist() == [[2 * (up + down)] * 4]
    assert step.observation["server_senders"].tolist() == [[4] * 4]


@pytest.mark.parametrize("stage", [None, "server", {"name": "aggregator", "honest": 3}])
def test_noise_comes_before_what_the_server_computes(stage):
    """Claims are those of the same federation without a policy, and the policy never sees the raw sums."""
    claims, given = [], []

    def recorded(uploads, mask):
        given.append(uploads["statistic"].sum(axis=1))
        return {"n": mask.sum(axis=1)}

    for policy in (None, recorded):
        private = GaussianPrivatizer(small_linear(), epsilon_per_release=1.0)
        env = begun(Server(private, "every_round", stage=stage, policy=policy))
        given.clear()
        for t in range(5):
            seen = env.step_batch(pulls(env, t)).observation
        claims.append(env.privacy_claims())
    assert claims[0] == claims[1]
    assert 0 < env.privacy().epsilon < np.inf
    raw, noisy = seen["total_statistic"].sum(axis=1), sum(given)
    assert len(given) == 5
    assert (np.abs(noisy - raw) > 1e-3).all()


def test_conversations_are_noised_and_booked_like_other_releases():
    """Clipped reports: as many events as releases, in each agent's books, and a finite claim about all its data."""
    env = talking(partial(GaussianPrivatizer, epsilon_per_release=1.0, clip=0.5), policy=Pooled(most=6))
    env.reset_batch([0, 1])
    for t in range(1, 9):
        step = env.step_batch(pulls(env, t, 2))
    released = env._ledger.left(env.env._height)[1]
    np.testing.assert_array_equal(released, 2 * 7)
    np.testing.assert_array_equal(env.env.accountant.counts.sum(axis=0), released)
    assert 0 < env.privacy().epsilon < np.inf
    assert step.observation["server_model"].any()


def test_lost_answers_leave_the_last_one_and_the_next_is_the_latest():
    """Each agent sees an answer of its own, never a later one than the server's, and the newest where one arrives."""
    env = begun(Server(small_arms(), "every_round", policy=Rounds(), loss=0.4, delay=2), [0, 5])
    known = np.zeros((2, 4), np.int64)
    arrived = missed = 0
    for t in range(1, 101):
        step = env.step_batch(pulls(env, t, 2))
        rounds, agent = np.divmod(step.observation["server_rounds"], 10)
        mask = step.observation["server_mask"][..., 0]
        np.testing.assert_array_equal(rounds[~mask], known[~mask])
        assert (agent == np.arange(4))[rounds > 0].all()
        assert (rounds >= known).all()
        # With four uploads a round, all but 1 in 39 rounds have one that arrives; two rounds up, two rounds down.
        assert (rounds <= max(t - 4 + 1, 0)).all()
        known = rounds.copy()
        arrived, missed = arrived + mask.sum(), missed + (~mask).sum()
        assert (step.info["lost"] >= 0).all()
    assert arrived > 200
    assert missed > 100
    assert (known > 70).all()


def talking(inside=lambda env: env, **server):
    env = inside(Messages(small_linear(), ARRAYS, reporter=Gradients()))
    return Server(env, **{"schedule": {"name": "fixed_gap", "gap": 4}, "policy": Pooled(), **server})


def test_a_conversation_finds_the_model_of_all_data():
    """Against the normal equations; agents' regularisers add up, one each."""
    env = begun(talking(), [0, 1, 2])
    total = np.zeros((3, 3, 3))
    for t in range(1, 13):
        step = env.step_batch(pulls(env, t, 3))
        rows = np.concatenate(
            [step.observation["pulled_context"], step.observation["last_reward"].reshape(3, 4, 1)], axis=-1
        )
        total += np.einsum("raj,rak->rjk", rows, rows)
        if t % 4:
            continue
        expected = np.linalg.solve(total[:, :2, :2] + 4 * np.eye(2), total[:, :2, 2:])[..., 0]
        for j in range(4):
            np.testing.assert_allclose(step.observation["server_model"][:, j], expected, atol=1e-9)


def test_a_conversation_is_counted_and_booked():
    """A question is a download, a report an upload of its own size; each report is a release."""
    env = begun(talking(), [0, 1])
    for t in range(1, 4):
        assert not env.step_batch(pulls(env, t, 2)).info["messages"].any()
    step = env.step_batch(pulls(env, 4, 2))
    released = env._ledger.left(env.env._height)[1]
    messages, size = step.info["messages"], step.info["bytes"]
    # Uploads and answers without a question, then a question for each of the further reports.
    np.testing.assert_array_equal(messages, 2 * released)
    upload, question = HEADER_BYTES + 8 * 2 + 4, HEADER_BYTES + 8 * 2
    np.testing.assert_array_equal(size, released * upload + released * question)
    assert (released > 20).all()
    assert len(set(released[:, 0])) == 2, "both replicas have stopped at the same time"
    assert env.privacy().epsilon == np.inf


def test_quotas_limit_conversations(monkeypatch):
    monkeypatch.setattr(server, "MOST_EXCHANGES", 100)
    env = begun(talking(lambda env: Quota(env, releases=6), schedule={"name": "fixed_gap", "gap": 1}))
    with pytest.raises(RuntimeError, match="policy asked 100 questions in one round and still has no answer"):
        env.step_batch(pulls(env, 1))
    assert (env._ledger.left(env.env._height)[1] == 6).all()


def test_conversations_in_one_replica_do_not_depend_on_others():
    def run(seeds):
        env = begun(talking(loss=0.3, duplication=0.2, policy=Pooled(most=4)), seeds)
        kept = []
        for t in range(12):
            step = env.step_batch(np.broadcast_to(pulls(env, t), (len(seeds), 4)))
            kept.append({name: array.copy() for name, array in (step.observation | step.info).items()})
        return kept

    found = 0
    for whole, alone in zip(run([4, 8, 9]), run([8]), strict=True):
        assert_same({name: array[1:2] for name, array in whole.items()}, alone)
        found += alone["server_mask"].any()
    assert found


@pytest.mark.parametrize(
    "make", [talking, lambda: Server(small_linear(), "every_round", policy="ridge", delay=1)]
)
def test_pickling_in_mid_episode(make):
    env = begun(make(), [1, 2])
    for t in range(5):
        env.step_batch(pulls(env, t, 2))
    twin = pickle.loads(pickle.dumps(env))
    for t in range(5, 12):
        first, second = (each.step_batch(pulls(env, t, 2)) for each in (env, twin))
        assert_same(first._asdict(), second._asdict())


def test_a_policy_of_another_package_is_part_of_the_run(monkeypatch):
    """Its source is digested with the run's settings, as an argument of a stack, of the user's or of a baseline."""
    wrappers = {"server": WrapperSpec(Server, {"schedule": "every_round", "policy": "ridge"})}
    served = replace(BASELINES["LinUCB"], policy=ServedLinUCB, policy_kwargs={}, wrappers=wrappers)
    elsewhere = {"server": WrapperSpec(Server, {"schedule": "every_round", "policy": "channels:Sums"})}
    monkeypatch.setitem(BASELINES, "served", served)
    monkeypatch.setitem(BASELINES, "served-elsewhere", replace(served, wrappers=elsewhere))
    assert list(RunSpec("served-elsewhere", "FedLinear-v0", rounds=5, seeds=1).packages) == ["channels"]
    stack = [["Server", {"schedule": "every_round", "policy": {"name": "channels:Sums", "ridge": 1}}]]
    in_stack = RunSpec("LinUCB", "FedLinear-v0", rounds=5, seeds=1, stack=stack)
    changes = {"server": {"policy": "channels:Sums"}}
    of_user = RunSpec("served", "FedLinear-v0", rounds=5, seeds=1, wrapper_kwargs=changes)
    assert list(in_stack.packages) == list(of_user.packages) == ["channels"]
    own = RunSpec("served", "FedLinear-v0", rounds=5, seeds=1, wrapper_kwargs={"server": {"policy": "ridge"}})
    assert own.packages == {}
    assert json.dumps(own.key)


class Broken(Rounds):
    """A policy with another answer."""

    def __init__(self, answer):
        self._answer = answer

    def answer(self, uploads, mask):
        return self._answer(super().answer(uploads, mask), mask)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda right, mask: None, ValueError, r"policy answers None; arrays \['rounds'\], as declared"),
        (lambda right, mask: {}, ValueError, r"policy answers \[\]; arrays"),
        (lambda right, mask: right | {"more": 1}, ValueError, r"policy answers \['more', 'rounds'\]"),
        (
            lambda right, mask: {"rounds": right["rounds"][:, :2]},
            ValueError,
            r"of shape \(1, 2\); \(1,\) for",
        ),
        (lambda right, mask: {"rounds": right["rounds"] * 1.0}, TypeError, "Cannot cast array data"),
        (lambda right, mask: Ask({"x": np.zeros((1, 4))}), TypeError, "Messages with a reporter"),
    ],
)
def test_wrong_answers_are_named(answer, error, message):
    env = begun(Server(small_arms(), "every_round", policy=Broken(answer)))
    with pytest.raises(error, match=message):
        env.step_batch(pulls(env, 0))


def test_answers_are_finite():
    def infinite(uploads, mask):
        return {"x": np.where(uploads["pulls"].any(), np.inf, 0.0) * mask[:, 0]}

    env = begun(Server(small_arms(), "every_round", policy=infinite))
    with pytest.raises(ValueError, match="policy answers 'x' that is not finite"):
        env.step_batch(pulls(env, 0))


def test_no_conversation_across_rounds():
    env = begun(talking(delay=1, schedule={"name": "fixed_gap", "gap": 1}))
    env.step_batch(pulls(env, 0))
    with pytest.raises(ValueError, match="delay is 1, and policy asks a question; 0 is required"):
        env.step_batch(pulls(env, 1))


class Declaring(Rounds):
    def __init__(self, downloads):
        self.downloads = downloads


test_bad_arguments_are_named = refusals(
    lambda arguments: Server(small_arms(), **arguments),
    ({"policy": "oracle"}, ValueError, "policy name is 'oracle'; one of .'average', .*'module:Class'"),
    ({"policy": 3}, TypeError, "policy is 3"),
    ({"policy": Rounds}, TypeError, "policy is <class"),
    ({"policy": Declaring({"x": {"shape": 3, "dtype": "int8"}})}, TypeError, r"\['x'\] is .* not iterable"),
    ({"policy": Declaring({"x": 4})}, TypeError, r"downloads\['x'\] is 4; a mapping of 'shape' and"),
    ({"policy": {"name": "ridge", "ridge": 0}}, ValueError, "ridge is 0"),
    ({"policy": {"name": "ridge", "rigde": 1}}, TypeError, "policy 'ridge' with arguments {'rigde': 1}"),
    ({"policy": "ridge"}, ValueError, r"\['statistic'\] are required"),
    ({"policy": "average", "echo": False}, ValueError, "echo is False; True is required with a policy"),
)
