"""A server: what it keeps, whom it answers, what that costs, and what faults do to it."""

import numpy as np
from channels import BYTES, NAMES, PRODUCERS, buying, small
from hypothesis import given, settings
from hypothesis import strategies as st
from played import begun
from refusals import refusals
from regression_env import Regression

from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.wrappers import Interleaved, Server


def asking(env, send, replicas=1):
    return {"action": buying(env, replicas), "send": np.broadcast_to(send, (replicas, env.max_num_agents))}


def test_whoever_uploads_gets_what_all_have_uploaded():
    """FedLinUCB's exchange by hand: two messages, and nobody else hears of it."""
    env = begun(Server(small(), "on_request"))
    first = env.step_batch(asking(env, [True, False, False, False]))
    np.testing.assert_array_equal(first.observation["inbox_mask"][0, :, 0], [True, False, False, False])
    assert first.observation["sent"][0, :, 0].tolist() == [True, False, False, False]
    assert first.info["messages"][0].tolist() == [2, 0, 0, 0]
    assert first.info["bytes"][0].tolist() == [2 * BYTES, 0, 0, 0]
    for name in NAMES:
        inbox, own = first.observation[f"inbox_{name}"], first.observation[f"total_{name}"]
        np.testing.assert_array_equal(inbox[0, 0, 0], own[0, 0])
        assert not inbox[0, 1:].any()
    # A round later agent 2 uploads two rounds of its own, and gets them with the one of agent 0.
    second = env.step_batch(asking(env, [False, False, True, False]))
    for name in NAMES:
        expected = first.observation[f"total_{name}"][0, 0] + second.observation[f"total_{name}"][0, 2]
        # The first observation is a view of buffers, which have moved on.
        expected = expected - second.observation[name][0, 0]
        np.testing.assert_array_equal(second.observation[f"inbox_{name}"][0, 2, 0], expected)
    assert env.traffic["messages"][0].tolist() == [2, 0, 2, 0]


def test_without_an_echo_ones_own_uploads_do_not_come_back():
    env = Server(small(), "on_request", echo=False)
    assert "sent" not in env.single_observation_space.spaces
    env.reset_batch([0])
    alone = env.step_batch(asking(env, [True, False, False, False]))
    # The server has nothing for the only one who has ever uploaded: it is not answered.
    assert not alone.observation["inbox_mask"].any()
    assert alone.info["messages"][0].tolist() == [1, 0, 0, 0]
    later = env.step_batch(asking(env, [False, True, False, False])).observation
    np.testing.assert_array_equal(later["inbox_delivered"][0, 1, 0], later["delivered"][0, 0])


def test_a_lost_upload_is_one_message_and_a_doubled_one_is_two():
    env = Server(small(), "every_round", {"name": "fixed_gap", "gap": 100}, loss=0.5, duplication=0.5)
    env.reset_batch(range(9))
    info = env.step_batch(buying(env, 9)).info
    lost = info["lost"] > 0
    assert (info["messages"][lost] == 1).all()
    assert set(info["messages"][~lost]) == {1, 2}


def test_everybody_is_answered_on_schedule():
    env = begun(Server(small(), "every_round", {"name": "fixed_gap", "gap": 3}), [0, 1])
    heard = np.zeros((2, 4, PRODUCERS))
    for t in range(1, 13):
        step = env.step_batch(buying(env, 2))
        assert step.observation["inbox_mask"].all() == (t % 3 == 0)
        assert (step.info["messages"] == (2 if t % 3 == 0 else 1)).all()
        heard += step.observation["inbox_delivered"][:, :, 0]
    together = step.observation["total_delivered"].sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(heard, np.broadcast_to(together, heard.shape))


def test_answers_by_determinant():
    """Who is told what: by hand, with numpy's determinants."""
    growth, ridge = 1.7, 0.5
    env = Server(
        parallel_env(num_agents=4, num_arms=3, dim=3, max_cycles=300),
        "on_request",
        {"name": "determinant", "growth": growth, "ridge": ridge},
        echo=False,
    )
    env.reset_batch([0])
    luck = np.random.default_rng(0)
    total, waiting = np.zeros((3, 3)), np.zeros((4, 3, 3))
    released, told = np.zeros((4, 3, 3)), 0
    for _ in range(200):
        send = luck.random((1, 4)) < 0.15
        action = {"action": luck.integers(0, 3, (1, 4)), "send": send}
        seen = env.step_batch(action).observation
        gram = seen["total_statistic"][0, :, :3, :3]
        for j in np.flatnonzero(send[0]):
            grown = gram[j] - released[j]
            released[j] = gram[j]
            total += grown
            waiting[np.arange(4) != j] += grown
        v = total + ridge * np.eye(3)
        expected = [
            send.any() and np.linalg.det(v) > growth * np.linalg.det(v - waiting[j]) for j in range(4)
        ]
        np.testing.assert_array_equal(seen["inbox_mask"][0, :, 0], expected)
        for j in np.flatnonzero(expected):
            np.testing.assert_allclose(seen["inbox_statistic"][0, j, 0, :3, :3], waiting[j], atol=1e-9)
            waiting[j] = 0
            told += 1
    assert told > 20


FAULTS = st.fixed_dictionaries(
    {
        "loss": st.floats(0, 0.6),
        "duplication": st.floats(0, 0.5),
        "delay": st.integers(0, 4),
        "echo": st.booleans(),
    }
)


@settings(max_examples=12, derandomize=True)
@given(FAULTS, st.integers(0, 100))
def test_faults_lose_nothing_for_good_and_count_nothing_twice(faults, seed):
    """What was lost comes with the next message: in the end everybody has all, or all but their own."""
    env = begun(Server(small(max_cycles=400), "on_request", **faults), [seed])
    luck = np.random.default_rng(seed)
    heard = {name: np.zeros((1, 4, PRODUCERS)) for name in NAMES}
    sent = lost = asked = 0
    for t in range(170):
        # At the end nothing new is bought, and everybody asks until all is through.
        send = luck.random((1, 4)) < 0.2 if t < 100 else np.ones((1, 4), bool)
        action = {"action": buying(env) * (t < 100), "send": send}
        step = env.step_batch(action)
        asked += send.sum()
        sent, lost = sent + step.info["messages"].sum(), lost + step.info["lost"].sum()
        for name in NAMES:
            told = step.observation[f"inbox_{name}"][:, :, 0]
            assert np.isfinite(told).all()
            assert (told >= 0).all()
            assert not told[~step.observation["inbox_mask"][..., 0]].any()
            heard[name] += told
            most = step.observation[f"total_{name}"].sum(axis=1, keepdims=True)
            assert (heard[name] <= most).all()
    for name in NAMES:
        own = step.observation[f"total_{name}"]
        everything = own.sum(axis=1, keepdims=True)
        expected = np.broadcast_to(everything, own.shape) - (0 if faults["echo"] else own)
        np.testing.assert_array_equal(heard[name], expected)
    if faults["echo"]:
        assert step.observation["sent"].all() or faults["loss"] or faults["delay"]
    assert sent >= asked
    assert bool(lost) == (faults["loss"] > 0.01) or faults["loss"] <= 0.05


def test_sent_says_that_all_uploads_are_in_what_was_downloaded():
    env = begun(Server(small(max_cycles=300), "on_request", loss=0.4, delay=1), [3])
    luck = np.random.default_rng(3)
    heard = np.zeros(PRODUCERS)
    uploaded = np.zeros(PRODUCERS)
    confirmed = 0
    env_alone = np.zeros((1, 4), bool)
    for _ in range(200):
        env_alone[0, 0] = luck.random() < 0.3
        step = env.step_batch({"action": buying(env), "send": env_alone})
        if env_alone[0, 0]:
            uploaded = step.observation["total_delivered"][0, 0].copy()
        heard += step.observation["inbox_delivered"][0, 0, 0]
        if step.observation["sent"][0, 0, 0]:
            confirmed += 1
            # Nobody else uploads, so what was heard is what the agent has uploaded.
            assert (heard <= uploaded).all()
    assert confirmed > 10
    env = begun(Server(small(), "every_round", delay=1))
    # An upload of the agent is always on its way.
    assert not any(env.step_batch(buying(env)).observation["sent"].any() for _ in range(9))


def test_statistics_of_any_shape_are_carried():
    env = begun(Server(Interleaved(Regression(3), 2), "every_round", "every_round", echo=False))
    heard = np.zeros((1, 3, 2, 2, 2))
    luck = np.random.default_rng(0)
    for _ in range(20):
        seen = env.step_batch(luck.normal(size=(1, 3, 2))).observation
        heard += seen["inbox_statistic"][:, :, 0]
    total = seen["total_statistic"]
    expected = total.sum(axis=1, keepdims=True) - total
    np.testing.assert_allclose(heard.sum(axis=2), expected, atol=1e-9)


test_bad_arguments_are_named = refusals(
    lambda arguments: Server(small(), **arguments),
    ({"schedule": "never"}, ValueError, "schedule name is 'never'"),
    ({"answers": "never"}, ValueError, "answers name is 'never'; one of .*, or a schedule's"),
    ({"answers": "on_request"}, ValueError, "answers is 'on_request'; a schedule fixed in advance"),
    ({"answers": {"name": "determinant", "growth": 0.5}}, ValueError, "growth is 0.5"),
    ({"answers": {"name": "determinant", "growth": 2}}, ValueError, r"of which \[\] are square matrices"),
)
