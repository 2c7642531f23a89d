"""Batched LinUCB of Zhou and Chowdhury, its noise and claims, and DisLinUCB, each against plain numpy.

Standard deviations are compared with 6 standard errors, under fixed seeds.
"""

from itertools import pairwise
from math import inf, log, sqrt

import numpy as np
import pytest
from played import begun, played, refused
from scipy import optimize, stats
from zhou_reference import Program, noise_and_ridge

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.linear.batched import BatchedLinUCB, released_constants
from fedbandit_envs.core.privacy import AGENT
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers.transport.channel import Channel

SMALL = {"num_agents": 12, "num_arms": 20, "dim": 5}


def printed(**kwargs):
    return make_federation("FedLinearSpherePrinted-v0", **{**SMALL, **kwargs})


def small(name="FedLinearSphere-v0", **kwargs):
    return make_federation(name, **{"num_agents": 4, "num_arms": 6, "dim": 3, "max_cycles": 100, **kwargs})


# Constants


@pytest.mark.parametrize("noise", ["local", "amplified", "vector_sum"])
@pytest.mark.parametrize(("horizon", "gap"), [(10_000, 25), (2000, 25), (1600, 25), (30, 10), (7, 7)])
def test_constants_are_the_programs(noise, horizon, gap):
    sizes = {"horizon": horizon, "gap": gap, "agents": 30, "dim": 7}
    found = released_constants(noise, 0.7, 1e-3, failure=0.05, **sizes)
    assert found == pytest.approx(noise_and_ridge(noise, 0.7, 1e-3, alpha=0.05, **sizes), rel=1e-12)


# Decisions


def check_arms(arm, bounds):
    """Arms have the largest bounds: all arms are equal at first, but for rounding, so that few others are as good."""
    taken = np.take_along_axis(bounds, arm[..., np.newaxis], axis=-1)[..., 0]
    assert (taken >= bounds.max(axis=-1) * (1 - 1e-12)).all()


def test_without_noise_its_decisions_are_the_programs():
    env = printed(max_cycles=160)
    baseline = BASELINES["Batched-FedLinUCB"]
    policy = baseline.make_policy()
    twin = Program(None, 2, 12, 5, 160)
    for t, (arm, before, step) in enumerate(played(baseline.wrap(env), policy, (0, 1)), start=1):
        check_arms(arm, twin.bounds(t, before["contexts"]))
        after = step.observation
        twin.learn(t, after["pulled_context"], after["last_reward"][..., 0])


@pytest.mark.parametrize(("ridge", "scale"), [(None, 1.0), (None, 0.01), (400.0, 0.05), (1.0, 0.1)])
def test_with_noise_its_decisions_are_the_programs(ridge, scale):
    """With the noise that has arrived; with the ridge 1 the noise makes V indefinite."""
    env = printed(max_cycles=160)
    baseline = BASELINES["LDP-FedLinUCB-printed"]
    policy = baseline.make_policy(beta_scale=scale, **({} if ridge is None else {"ridge": ridge}))
    twin = Program("local", 2, 12, 5, 160, ridge=ridge, scale=scale)
    pool, negative = np.zeros((2, 5, 6)), False
    for t, (arm, before, step) in enumerate(played(baseline.wrap(env), policy, (0, 1)), start=1):
        check_arms(arm, twin.bounds(t, before["contexts"]))
        after = step.observation
        twin.learn(t, after["pulled_context"], after["last_reward"][..., 0])
        assert after["inbox_mask"].all() == after["inbox_mask"].any() == (t % 25 == 0)
        arrived = after["inbox_statistic"].sum(axis=2)
        # All agents receive the same.
        np.testing.assert_array_equal(arrived, np.broadcast_to(arrived[:, :1], arrived.shape))
        pool += arrived[:, 0, :5]
        twin.pool = pool
        negative |= bool((np.linalg.eigvalsh(pool[..., :5] + twin.ridge * np.eye(5)) < 0).any())
    assert negative == (ridge == 1.0)


@pytest.mark.parametrize(("name", "noise", "epsilon", "delta"), [
    ("LDP-FedLinUCB-printed", "local", 0.2, 0.1),
    ("SDP-FedLinUCB-amplified-printed", "amplified", 1e-3, 1e-4),
])  # fmt: skip
def test_the_printed_noise_is_that_of_the_programs_tree(name, noise, epsilon, delta):
    """After batches 1, 2, 4 and 8 one new node is alone: (N + N^T)/2 on the Gram matrix, N on the moment."""
    runs, dim = 200, 5
    env = BASELINES[name].wrap(printed(num_agents=3, max_cycles=200))
    private = begun(env.env, range(runs))
    sd, _ = noise_and_ridge(noise, epsilon, delta, 200, 25, 3, dim)
    released = np.zeros((runs, 3, dim + 1, dim + 1))
    kept = []
    for k in range(1, 9):
        # Nothing is played: released is noise alone.
        released += private.release(np.ones((runs, 3), np.bool_))["statistic"]
        assert (released[..., -1, -1] == 0).all()
        diagonal = released[..., range(dim), range(dim)]
        across = released[..., *np.triu_indices(dim, 1)]
        moment = released[..., :dim, dim]
        live = k.bit_count()
        for found, one in ((diagonal, sd), (across, sd / sqrt(2)), (moment, sd)):
            assert found.std() == pytest.approx(sqrt(live) * one, rel=6 / sqrt(2 * found.size))
        if live == 1:
            kept.append(released.copy())
    for one, two in pairwise(kept):
        found = np.corrcoef(one[..., :dim, dim].ravel(), two[..., :dim, dim].ravel())[0, 1]
        assert abs(found) < 6 / sqrt(runs * 3 * dim)


def test_it_needs_its_own_messages_at_times_fixed_in_advance():
    plain, gap = printed(), {"name": "fixed_gap", "gap": 25}
    for env in (plain, Channel(plain, schedule=gap), Channel(plain, schedule="on_request", echo=True)):
        refused(BatchedLinUCB(), env, "a Channel with echo=True and a schedule fixed in advance is")


# Claims


def delta_at(epsilon, mu):
    """Delta of a Gaussian mechanism (Balle and Wang 2018, Theorem 8), by scipy's normal distribution."""
    return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2))


def epsilon_at(delta, mu):
    if delta_at(0.0, mu) <= delta:
        return 0.0
    return optimize.brentq(lambda epsilon: delta_at(epsilon, mu) - delta, 0.0, 60.0 + 20 * mu**2, xtol=1e-14)


def mu_at(epsilon, delta):
    return optimize.brentq(lambda mu: delta_at(epsilon, mu) - delta, 1e-9, 100.0, xtol=1e-15)


def replaced_norm(bound):
    return (2 + bound**2) / sqrt(2) if bound**2 <= 2 else 2 * bound


def claims(name, env):
    """Claims after an episode with arms drawn at random, by trust and observer."""
    env = BASELINES[name].wrap(env)
    seen = env.reset_batch([0]).observation
    generator = np.random.default_rng(0)
    for _ in range(env.max_cycles):
        action = generator.integers(0, seen["contexts"].shape[2], seen["contexts"].shape[:2])
        env.step_batch(action)
    return {(claim.trust, claim.observer): claim for claim in env.privacy_claims()}


@pytest.mark.parametrize(("bound", "mu", "epsilon"), [
    (1.0, 0.2682, 0.0152), (2.5, 2 * 2.5 * 3 / 23.729, 0.483), (5.0, 2 * 5 * 3 / 23.729, None),
])  # fmt: skip
def test_what_the_printed_local_noise_protects(bound, mu, epsilon):
    """400 releases, of which an event is in 9 nodes: mu = norm sqrt(9) / sd; epsilon at the delta .1."""
    env = printed(
        num_agents=2, num_arms=10, max_cycles=10_000, **({} if bound == 5 else {"reward_bound": bound})
    )
    private = begun(BASELINES["LDP-FedLinUCB-printed"].wrap(env).env)
    for _ in range(400):
        private.release(np.ones((1, 2), np.bool_))
    claim = private.privacy()
    found = replaced_norm(bound) * 3 / noise_and_ridge("local", 0.2, 0.1, 10_000, 25, 2, 5)[0]
    assert found == pytest.approx(mu, rel=2e-4)
    assert claim.epsilon == pytest.approx(epsilon_at(0.1, found), rel=1e-6)
    assert epsilon is None or claim.epsilon == pytest.approx(epsilon, abs=6e-4)
    assert (claim.delta, claim.trust, claim.adjacency) == (0.1, "local", "one-observation")


def test_what_the_printed_noise_for_a_shuffler_protects_locally():
    """For rewards in [-1, 1] epsilon 1.13e-3 at the delta 1e-4, with 100 agents."""
    sd = released_constants("amplified", 1e-3, 1e-4)[0]
    assert epsilon_at(1e-4, replaced_norm(1.0) * 3 / sd) == pytest.approx(1.13e-3, rel=5e-3)
    found = claims("SDP-FedLinUCB-amplified-printed", small("FedLinearSpherePrinted-v0", reward_bound=1.0))
    sd, _ = noise_and_ridge("amplified", 1e-3, 1e-4, 100, 25, 4, 3)
    # Four releases: a window is in nodes of three levels at most.
    expected = epsilon_at(1e-4, replaced_norm(1.0) * sqrt(3) / sd)
    ((where, claim),) = found.items()
    assert where == ("local", "everybody")
    assert (claim.epsilon, claim.delta) == (pytest.approx(expected, rel=1e-6), 1e-4)


@pytest.mark.parametrize("max_cycles", [100, 250])
def test_corrected_local_noise_keeps_its_epsilon(max_cycles):
    found = claims("LDP-FedLinUCB", small(max_cycles=max_cycles))
    ((where, claim),) = found.items()
    assert where == ("local", "everybody")
    assert (claim.epsilon, claim.delta) == (pytest.approx(0.2, rel=1e-9), 0.1)
    assert claim.epsilon <= 0.2


def test_a_secure_sum_divides_the_noise_among_all_but_one():
    found, mu = claims("SecureSum-FedLinUCB", small()), mu_at(0.2, 0.1)
    assert found["aggregator", "fellow"].epsilon == pytest.approx(0.2, rel=1e-9)
    assert found["aggregator", "server"].epsilon == pytest.approx(epsilon_at(0.1, mu * sqrt(3 / 4)), rel=1e-6)
    assert found["aggregator", "public"].epsilon == found["aggregator", "server"].epsilon
    assert found["local", "everybody"].epsilon == pytest.approx(epsilon_at(0.1, mu * sqrt(3)), rel=1e-6)
    assert found["cryptography", "wire"].epsilon == 0


def test_a_trusted_server_protects_against_fellows_alone():
    found = claims("Central-FedLinUCB", small())
    assert found["local", "wire"].epsilon == found["local", "server"].epsilon == inf
    assert found["server", "fellow"].epsilon == pytest.approx(0.2, rel=1e-9)
    assert found["server", "public"].epsilon == pytest.approx(0.2, rel=1e-9)


def test_the_corrected_form_for_a_shuffler_claims_what_is_asked_for_behind_one():
    """Three releases clipped to C = 20: locally mu = sqrt(3) 2 C / sd for all data of an agent, which is more."""
    env = small(max_cycles=300, num_agents=100)
    private = begun(BASELINES["SDP-FedLinUCB-amplified"].wrap(env).env, range(6))
    noise = private.release(np.ones((6, 100), np.bool_))["statistic"]
    found = claims("SDP-FedLinUCB-amplified", env)
    assert found["shuffler", "fellow"].epsilon == pytest.approx(0.2, rel=1e-3)
    assert found["shuffler", "fellow"].epsilon <= 0.2
    local = found["local", "everybody"]
    assert (local.adjacency, local.delta) == (AGENT, 0.1)
    diagonal = noise[..., range(3), range(3)]
    sd = sqrt(3) * 2 * 20 / mu_at(local.epsilon, 0.1)
    assert diagonal.std() == pytest.approx(sd, rel=6 / sqrt(2 * diagonal.size))


def test_a_constant_radius_replaces_the_formula():
    baseline = BASELINES["Batched-FedLinUCB"]
    none, no_scale, some = (
        [arm.tolist() for arm, *_ in played(baseline.wrap(small()), baseline.make_policy(**given))]
        for given in ({"alpha": 0.0}, {"beta_scale": 0.0}, {"alpha": 2.0})
    )
    assert none == no_scale != some


# DisLinUCB


def alone_and_shared(contexts, own, shared):
    """DisLinUCB's arms and log det V, for contexts ``(agents, arms, dim)`` and sums ``(agents, dim, dim + 1)``."""
    dim = contexts.shape[-1]
    total = own + shared
    V = total[..., :dim] + np.eye(dim)
    grown = np.linalg.slogdet(V)[1]
    theta = np.linalg.solve(V, total[..., dim:])
    width = np.sqrt(np.einsum("jkd,jdh,jkh->jk", contexts, np.linalg.inv(V), contexts))
    radius = 0.5 * np.sqrt(grown + 2 * log(1 / 0.01)) + 1
    return ((contexts @ theta)[..., 0] + radius[:, np.newaxis] * width).argmax(axis=1)


@pytest.mark.parametrize("threshold", ["wang", "li", 0.6])
def test_dislinucb_is_the_algorithm_of_the_paper(threshold):
    """Same arms and same synchronisations as the text's algorithm on the same contexts and rewards."""
    agents, dim, horizon = 4, 4, 400
    env = parallel_env(num_agents=agents, num_arms=8, dim=dim, max_cycles=horizon)
    baseline = BASELINES["DisLinUCB"]
    logarithm = log(agents * horizon)
    levels = {"wang": horizon * logarithm / (dim * agents), "li": horizon / (agents * dim * logarithm)}
    level = levels.get(threshold, threshold)
    own, shared = np.zeros((agents, dim, dim + 1)), np.zeros((dim, dim + 1))
    last, at_last, times = 0, 0.0, []
    policy = baseline.make_policy(threshold=threshold)
    for t, (arm, before, step) in enumerate(played(baseline.wrap(env), policy, [3]), start=1):
        contexts, after = before["contexts"][0], step.observation
        np.testing.assert_array_equal(arm[0], alone_and_shared(contexts, own, shared))
        x, y = contexts[np.arange(agents), arm[0]], after["last_reward"][0]
        own += x[..., np.newaxis] * np.concatenate([x, y], axis=-1)[:, np.newaxis]
        grown = np.linalg.slogdet((own + shared)[..., :dim] + np.eye(dim))[1] - at_last
        due = bool(((t - last) * grown >= level).any())
        # Everybody uploads and downloads, or nobody does.
        assert (after["inbox_mask"] == due).all()
        np.testing.assert_array_equal(step.info["messages"][0], 2 * due)
        if due:
            shared, own = shared + own.sum(axis=0), np.zeros_like(own)
            at_last, last = np.linalg.slogdet(shared[:, :dim] + np.eye(dim))[1], t
            times.append(t)
    assert len(times) >= {"wang": 2, "li": 5}.get(threshold, 10)
    assert len(times) < horizon / 2
