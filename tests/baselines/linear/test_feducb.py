"""FedUCB: equalities with LinUCB and with one pooled agent, its bounds under noise, its trigger, and its regret.

Statistical statements use fixed seeds and hold with wide margins.
"""

from functools import partial

import numpy as np
import pytest
from played import played, refused

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.linear.regressions import floor_eigenvalues, is_due, regularise
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import ContinualPrivatizer, GaussianPrivatizer
from fedbandit_envs.wrappers.releases import Interleaved
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server

DOUBLING = {"name": "doubling", "start": 1, "stop": None}


def linear(**kwargs):
    return parallel_env(**{"num_agents": 4, "num_arms": 12, "dim": 4, "max_cycles": 300, **kwargs})


def arms(env, policy, seeds=(0, 1), rounds=300):
    return np.array([arm for arm, *_ in played(env, policy, seeds, rounds)])


@pytest.mark.parametrize(("num_agents", "combine", "wrap"), [
    (4, "min", lambda env: env),
    (4, "pooled", lambda env: Channel(env, schedule="silent")),
    (4, "pooled", lambda env: Channel(ContinualPrivatizer(env, np.inf, 0.1), schedule="silent")),
    (1, "pooled", lambda env: Channel(ContinualPrivatizer(env, 1.0, 0.1), schedule=DOUBLING)),
    (1, "min", lambda env: Channel(ContinualPrivatizer(env, 1.0, 0.1), schedule=DOUBLING)),
], ids=["no channel", "silence", "silence, no noise", "alone", "alone, two bounds"])  # fmt: skip
def test_without_data_of_others_it_is_linucb_bit_for_bit(num_agents, combine, wrap):
    """No part of the failure probability is set aside for data of others, or noise, that never come."""
    env = wrap(linear(num_agents=num_agents))
    fed, lin = FedUCB(failure=0.02, combine=combine), LinUCB(failure=0.02)
    np.testing.assert_array_equal(arms(env, fed), arms(linear(num_agents=num_agents), lin))
    for ours, theirs in zip(fed._ridges, lin._ridges, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_without_noise_the_private_form_is_the_one_without_privacy():
    env = linear(num_arms=20, max_cycles=200)
    names = {"FedUCB": {"privatizer": {"epsilon": np.inf}}, "FedUCB-nonprivate": {}}
    private, open_ = (
        arms(BASELINES[name].wrap(env, changes), BASELINES[name].make_policy(), rounds=200)
        for name, changes in names.items()
    )
    np.testing.assert_array_equal(private, open_)


def upper_bounds(x, y, offered, failure):
    """OFUL's bounds, written plainly in numpy."""
    gram = np.eye(4) + x.T @ x
    radius = 0.5 * np.sqrt(2 * np.log(1 / failure) + np.linalg.slogdet(gram)[1]) + 1
    width = np.sqrt(np.einsum("kd,dh,kh->k", offered, np.linalg.inv(gram), offered))
    return offered @ np.linalg.solve(gram, x.T @ y) + radius * width


@pytest.mark.parametrize("combine", ["pooled", "min"])
def test_every_round_sharing_makes_one_agent_that_sees_all(combine):
    """Each agent pulls what OFUL pulls that has all agents' observations, or by the smaller of two bounds."""
    env = Channel(linear(), schedule="every_round")
    x_all, y_all = [[] for _ in range(2)], [[] for _ in range(2)]
    for t, (arm, seen, _) in enumerate(played(env, FedUCB(combine=combine), (0, 1), 160)):
        for r in range(2):
            if t:
                x_all[r].extend(seen["pulled_context"][r])
                y_all[r].extend(seen["last_reward"][r, :, 0])
            x, y = np.reshape(x_all[r], (-1, 4)), np.array(y_all[r])
            for j in range(4):
                offered = seen["contexts"][r, j]
                bound = upper_bounds(x, y, offered, 0.01 if combine == "pooled" else 0.005)
                if combine == "min":
                    bound = np.minimum(bound, upper_bounds(x[j::4], y[j::4], offered, 0.005))
                assert bound[arm[r, j]] >= bound.max() - 1e-9


def test_with_an_echo_exact_data_counts_only_until_it_is_released():
    """V is the sum of everybody's releases, own ones included, and of what is not released yet."""
    env = Channel(ContinualPrivatizer(linear(), 2.0, 0.1, releases=DOUBLING), schedule=DOUBLING, echo=True)
    policy = FedUCB(ridge=3.0)
    pooled, recent = np.zeros((2, 2, 4, 5, 5))
    for t, (_, seen, _) in enumerate(played(env, policy, (0, 1), 200)):
        if t:
            pair = np.concatenate([seen["pulled_context"], seen["last_reward"]], axis=-1)
            recent += pair[..., np.newaxis] * pair[..., np.newaxis, :]
            recent[seen["sent"][..., 0]] = 0
            pooled += seen["inbox_statistic"].sum(axis=2)
        gram = np.linalg.inv(policy._ridges.inverse[:, :, 0])
        rest = gram - (pooled + recent)[..., :4, :4]
        shift = rest[..., 0, 0]
        np.testing.assert_allclose(rest, shift[..., np.newaxis, np.newaxis] * np.eye(4), atol=1e-6)
        np.testing.assert_allclose(policy._ridges.moment[:, :, 0], (pooled + recent)[..., :4, 4], atol=1e-9)
    assert t > 128
    assert (shift > 3).all()


def noise(sd, dim, samples, generator):
    """Symmetric noise, variance sd^2 on the diagonal, half of it elsewhere."""
    draws = sd * generator.standard_normal((samples, dim, dim))
    return (draws + draws.swapaxes(-1, -2)) / 2


def bounds(shift, bias, sd, worst, heads, dim):
    """Those that fail once in 100, for the ridge 1."""
    sd, heads, log_union = np.array([sd]), np.array([heads]), np.array([np.log(100.0)])
    return regularise(shift, bias, sd, worst, heads, log_union, dim, 1.0, 1.0)


@pytest.mark.parametrize(("shift", "bias"), [
    ("on_sum", "root_m"), ("on_sum", "euclidean"), ("per_agent", "printed"), ("per_agent", "root_m"),
])  # fmt: skip
@pytest.mark.parametrize("heads", [1.0, 7.0])
@pytest.mark.parametrize("size", [0.0, 30.0, 3000.0])
def test_bounds_of_the_noise_hold(shift, bias, heads, size):
    """V lies where it is said to, and the noise's part of the error keeps its bound, as often as promised.

    The promise is one failure in 100; in 2,000 samples more than 40 have a probability below 1e-5.
    """
    dim, generator = 6, np.random.default_rng(1)
    one = 2.0
    made = bounds(shift, bias, one * np.sqrt(heads), one, heads, dim)
    sample = noise(one * np.sqrt(heads), dim + 1, 2000, generator)
    across, column = sample[:, :dim, :dim], sample[:, :dim, dim]
    eigenvalues = np.linalg.eigvalsh(across + made.shift * np.eye(dim))
    assert ((eigenvalues[:, 0] < made.least) | (eigenvalues[:, -1] > made.most)).sum() <= 40
    root = generator.standard_normal((dim, dim))
    gram = size * root @ root.T / dim
    theta = np.eye(dim)[0]
    v = gram + across + made.shift * np.eye(dim)
    error = (across + made.shift * np.eye(dim)) @ theta - column
    if bias == "euclidean":
        assert (np.linalg.norm(error, axis=-1) > made.tilt).sum() <= 40
        assert made.bias == 0
    else:
        in_norm = np.sqrt(np.einsum("si,sij,sj->s", error, np.linalg.inv(v), error))
        assert (in_norm > made.bias).sum() <= 40
        assert made.tilt == 0


def test_lifted_eigenvalues_are_bounded_as_promised():
    dim, samples, sd, ridge = 5, 2000, 4.0, 1.0
    generator = np.random.default_rng(2)
    sample = noise(sd, dim + 1, samples, generator)
    across, column = sample[:, :dim, :dim], sample[:, :dim, dim]
    made = bounds("floor", "euclidean", sd, sd, 1.0, dim)
    assert made.shift == 0
    root = generator.standard_normal((dim, dim))
    gram = 20 * root @ root.T
    theta = np.eye(dim)[1]
    rows = np.full(samples, 1.0)
    inverse, log_det, confidence = floor_eigenvalues(
        gram + across, ridge, 1.0, made.reach * rows, made.error * rows, 0 * rows
    )
    v = np.linalg.inv(inverse)
    np.testing.assert_allclose(np.linalg.slogdet(v)[1], log_det, atol=1e-8)
    assert np.linalg.eigvalsh(v)[:, 0].min() >= ridge - 1e-8
    assert (np.linalg.eigvalsh(gram + across)[:, 0] < ridge).any()
    added = v - gram - across
    error = np.einsum("sij,j->si", across + added, theta) - column
    assert (np.linalg.norm(error, axis=-1) > confidence.tilt).sum() <= 40
    # G + ridge I <= inflation^2 V, and so are the determinants.
    inflation = confidence.inflation
    slack = inflation[:, np.newaxis, np.newaxis] ** 2 * v - gram - ridge * np.eye(dim)
    assert (np.linalg.eigvalsh(slack)[:, 0] < -1e-8).sum() <= 40
    grown = np.linalg.slogdet(gram + ridge * np.eye(dim))[1] - dim * np.log(ridge)
    assert (grown > log_det - confidence.log_floor + 1e-8).sum() <= 40


def test_noise_without_announced_bounds_is_lifted_too():
    """One-shot Gaussian noise says nothing of its size: V is made positive definite all the same."""
    private = GaussianPrivatizer(linear(), epsilon_per_release=0.5 / 9, releases=9, calibration="analytic")
    policy = FedUCB()
    for _ in played(Channel(private, schedule=DOUBLING), policy, range(3), 256):
        assert np.isfinite(policy._ridges.inverse).all()
        assert (np.linalg.eigvalsh(policy._ridges.inverse) > 0).all()


@pytest.mark.parametrize("constants", [{"shift": "per_agent"}, {"bias": "printed"}])
def test_a_server_s_sum_counts_as_the_messages_of_all_agents(constants):
    """The printed bounds grow with the number of agents, which a server's single message does not show.

    Over a complete graph with an echo all agents' messages arrive: the bounds are the same once all have sent.
    """
    learnt = []
    for transport in (partial(Channel, echo=True), partial(Server, echo=True)):
        noisy = ContinualPrivatizer(linear(), 1.0, 0.1, releases=9)
        policy = FedUCB(**constants)
        for _ in played(transport(noisy, schedule=DOUBLING), policy, (3,), 20):
            pass
        learnt.append(policy)
    graph, server = (np.array(policy._confidence) for policy in learnt)
    np.testing.assert_allclose(server, graph, rtol=1e-12)
    assert (graph[-2] > 0).all()


def test_the_trigger_follows_line_12():
    env = Channel(linear(num_agents=3), schedule="synchronise")
    policy = FedUCB(threshold=12.0)
    (base, waited), synchronisations = np.zeros((2, 2, 3)), 0
    for t, (arm, observation, _) in enumerate(played(env, policy, [0, 1])):
        if t:
            waited += 1
            news = observation["inbox_mask"].any(axis=-1)
            assert (news == news[:, :1]).all()
            waited[news] = 0
            base = np.where(news, policy._ridges.log_det[..., 0], base)
            synchronisations += news[:, 0].sum()
        gram = np.linalg.inv(policy._ridges.inverse[:, :, 0])
        x = np.take_along_axis(observation["contexts"], arm[..., None, None], axis=2)[:, :, 0]
        grown = np.linalg.slogdet(gram + x[..., None] * x[..., None, :])[1]
        due = 12.0 / (waited + 1)
        near = np.abs(grown - base - due) < 1e-9
        np.testing.assert_array_equal((policy._send == (grown - base >= due)) | near, True)
    assert 4 <= synchronisations <= 200
    assert env.privacy().epsilon == np.inf


@pytest.mark.parametrize("margin", [-1e-9, 1e-9])
def test_the_trigger_adds_the_spread_of_the_noise_to_the_gram_matrix(margin):
    """For three agents with spreads of 0, 0.3 and 2, whose thresholds are just met or just missed."""
    rng = np.random.default_rng(4)
    root, contexts = rng.standard_normal((1, 3, 1, 4, 8)), rng.standard_normal((1, 3, 5, 4))
    gram, arm, spread = root @ np.swapaxes(root, -1, -2), np.array([[0, 3, 4]]), np.array([[0.0, 0.3, 2.0]])
    x = np.take_along_axis(contexts, arm[..., None, None], axis=2)
    grown = gram + x[..., None] * x[..., None, :] + spread[..., None, None, None] * np.eye(4)
    waited, log_det = np.array([[0, 1, 5]]), np.linalg.slogdet(gram)[1]
    synchronised = np.linalg.slogdet(grown)[1] - 2.0 / (waited[..., None] + 1) + margin
    send, active = np.zeros((1, 3), np.bool_), np.ones((1, 3, 1), np.bool_)
    is_due(
        active, np.zeros((1, 3, 1), np.int64), contexts, arm, np.linalg.inv(gram), log_det, synchronised, waited,
        spread, 2.0, send,
    )  # fmt: skip
    np.testing.assert_array_equal(send, margin < 0)


def test_the_default_threshold_is_the_paper_s():
    """2 T d / (ln(rho_max / rho_min + T L^2 / (d rho_min)) + 1), with L^2 = 1; divided by 1 + L^2 in Algorithm 3."""
    policy = FedUCB(ridge=2.0)
    spaces = Channel(linear(), schedule="synchronise").policy_spec
    policy.reset(spaces, row_seeds([0], 4))
    paper = 2 * 300 * 4 / (np.log(1 + 300 / (4 * 2.0)) + 1)
    assert policy._due == pytest.approx(paper)
    policy.reset(Channel(Interleaved(linear(), 2), schedule="synchronise").policy_spec, row_seeds([0], 4))
    assert policy._due == pytest.approx(paper / 2)
    private = ContinualPrivatizer(linear(), 1.0, 0.1, "tree", "printed")
    spaces = Channel(private, schedule="synchronise", echo=True).policy_spec
    printed = FedUCB(shift="per_agent", bias="printed")
    printed.reset(spaces, row_seeds([0], 4))
    # Lambda of each of four agents, at the first release: rho_min = 4 Lambda and rho_max three times that.
    worst = np.sqrt(spaces.release["statistic_noise_variance"].high[0, 0])
    least = 4 * worst * (4 * 2 + 2 * np.log(2 * 4 * np.pi**2 / (6 * 0.01)))
    assert printed._due == pytest.approx(2 * 300 * 4 / (np.log(3 + 300 / (4 * least)) + 1))
    np.testing.assert_allclose(np.linalg.inv(printed._ridges.inverse[0, 0, 0]), least * np.eye(4))


def test_estimators_take_rounds_in_turn():
    """With a period of three, estimator t mod 3 has the rounds t mod 3, own ones at once and others' once released."""
    env = Channel(Interleaved(linear(), 3), schedule={"name": "fixed_gap", "gap": 4})
    policy = FedUCB()
    own, released = np.zeros((2, 2, 4, 3, 5, 5))
    for t, (_, seen, _) in enumerate(played(env, policy, (0, 1), 100)):
        if t:
            pair = np.concatenate([seen["pulled_context"], seen["last_reward"]], axis=-1)
            own[:, :, (t - 1) % 3] += pair[..., np.newaxis] * pair[..., np.newaxis, :]
        if t % 4 == 0:
            released = own.copy()
        expected = own + released.sum(axis=1, keepdims=True) - released
        gram = expected[..., :4, :4] + np.eye(4)
        np.testing.assert_allclose(np.linalg.inv(policy._ridges.inverse), gram, atol=1e-8)
        np.testing.assert_allclose(policy._ridges.moment, expected[..., :4, 4], atol=1e-9)
        # The one whose turn it is decides.
        used = np.linalg.solve(gram[:, :, t % 3], expected[:, :, t % 3, :4, 4:])[..., 0]
        np.testing.assert_allclose(policy._parameter, used, atol=1e-8)


def test_the_minimum_needs_one_estimator():
    env = Channel(Interleaved(linear(), 2))
    refused(FedUCB(combine="min"), env, "combine is 'min', for 2 statistics", ValueError)
