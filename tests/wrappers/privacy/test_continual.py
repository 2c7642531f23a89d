"""Continual release: what adds up to what, how noisy it is and says it is, and what it costs, plans and allows."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import begun
from prefix_factors import counted
from sums_env import SumsEnv

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

MECHANISMS = list(NOISES)


def everyone(env) -> np.ndarray:
    return np.ones(env.unwrapped.total.shape[:2], np.bool_)


def nothing_to_choose(env) -> np.ndarray:
    return np.zeros(env.unwrapped.total.shape[:2], np.int64)


def procurement(**kwargs) -> ProcurementEnv:
    return ProcurementEnv(num_agents=3, num_producers=4, instance_seed=1, **{"max_cycles": 20, **kwargs})


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=6, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 15)), min_size=1, max_size=30))
def test_without_noise_increments_add_up_to_the_truth(mechanism, chunks):
    """Any rounds between releases, any of the 2 x 2 agents sending."""
    env = begun(ContinualPrivatizer(SumsEnv(bound=2.0, max_cycles=100), math.inf, 0.1, mechanism), [0, 1])
    held = np.zeros_like(env.unwrapped.total)
    true = np.zeros_like(held)
    for rounds, senders in chunks:
        for _ in range(rounds):
            env.step_batch(nothing_to_choose(env))
        who = (senders >> np.arange(4) & 1).reshape(2, 2).astype(np.bool_)
        got = env.release(who)
        held += got["statistic"]
        true[who] = env.unwrapped.total[who]
        np.testing.assert_allclose(held, true, rtol=1e-12, atol=1e-12)
        assert not got["statistic_noise_variance"].any()
    assert env.privacy().epsilon in (0.0, math.inf)


def prefix_noise(env, seeds, releases: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise of the prefix sums (releases, replicas, agents, size, size), and its announced variances, likewise."""
    env.reset_batch(seeds)
    held, variance = np.zeros_like(env.unwrapped.total), np.zeros_like(env.unwrapped.total)
    noise, variances = [], []
    for _ in range(releases):
        env.step_batch(nothing_to_choose(env))
        got = env.release(everyone(env))
        held += got["statistic"]
        variance += got["statistic_noise_variance"]
        noise.append(held - env.unwrapped.total)
        variances.append(variance.copy())
    return np.array(noise), np.array(variances)


# Of 4,000 agents each diagonal has 3 values: 12,000 draws, so a variance errs by sqrt(2/12,000) = 1.3 %, and 6 in the
# triangle above it as well. Bounds of 5 of these have a false-alarm rate of 6e-7 a comparison, and seeds are fixed.
@pytest.mark.parametrize(
    ("mechanism", "sigma"), [*((name, "exact") for name in MECHANISMS), ("tree", "printed")]
)
def test_noise_has_the_variance_announced(mechanism, sigma):
    env = ContinualPrivatizer(SumsEnv(2000, bound=2.0, max_cycles=7), 1.0, 0.1, mechanism, sigma)
    noise, announced = prefix_noise(env, [0, 1], 7)
    assert np.array_equal(noise, noise.swapaxes(-1, -2))
    space = env.single_release_space["statistic_noise_variance"]
    assert announced.max() == pytest.approx(space.high[0, 0])
    diagonal = np.diagonal(noise, axis1=-2, axis2=-1)
    above = noise[..., *np.triu_indices(3, 1)]
    for z in range(7):
        assert (diagonal[z] ** 2).mean() == pytest.approx(announced[z, 0, 0, 0, 0], rel=5 * 0.013)
        assert (above[z] ** 2).mean() == pytest.approx(announced[z, 0, 0, 0, 1], rel=5 * 0.013)
        assert announced[z, 0, 0, 0, 1] == pytest.approx(announced[z, 0, 0, 0, 0] / 2)


class Lopsided(SumsEnv):
    def sensitivity(self):
        said = super().sensitivity()
        said.scale["statistic"][..., 0, 1] = 2.0
        return said


def test_symmetric_statistics_of_lopsided_scales_are_refused():
    with pytest.raises(ValueError, match="sensitivity of 'statistic' is not symmetric"):
        ContinualPrivatizer(Lopsided(), 1.0, 0.1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("adjacency", ["one-observation", "one-observation-added"])
def test_exact_noise_is_as_large_as_the_formulas_say(mechanism, adjacency):
    n, epsilon, delta, bound = 13, 0.7, 1e-3, 3.0
    env = ContinualPrivatizer(
        SumsEnv(bound=bound), epsilon, delta, mechanism, releases=n, adjacency=adjacency
    )
    env.reset_batch([0])
    first = float(env.release(everyone(env))["statistic_noise_variance"][0, 0, 0, 0])
    norm = {"one-observation": math.sqrt(2), "one-observation-added": 1.0}[adjacency]
    sd = bound * norm * math.sqrt(counted(mechanism, n, n)) * analytic_noise_multiplier(epsilon, delta)
    # The first prefix sum has one draw; the diagonal of (Nhat + Nhat^T)/sqrt(2) has sqrt(2) sigma_N.
    assert math.sqrt(first) == pytest.approx(sd, rel=1e-9)


def test_wrapping_leaves_the_environment_as_it_is():
    env = begun(SumsEnv(1, max_cycles=5), [3])
    env.step_batch(nothing_to_choose(env))
    before = env.total.copy()
    ContinualPrivatizer(env, 1.0, 0.1)
    assert np.array_equal(env.total, before)
    assert not hasattr(SumsEnv(), "total")


@pytest.mark.parametrize("mechanism", ["tree", "sqrt_toeplitz"])
def test_procurement_gets_noise_in_proportion_to_capacity(mechanism):
    env = ContinualPrivatizer(procurement(), 1.0, 0.1, mechanism, releases=5, adjacency="one-round")
    env.reset_batch(range(800))
    capacity = env.sensitivity().scale["good"]
    got = env.release(np.ones((800, 3), np.bool_))
    sd = math.sqrt(8 * counted(mechanism, 5, 5)) * analytic_noise_multiplier(1.0, 0.1)
    # 9,600 draws of each name: the deviation errs by 0.73 %, 5 of these 6e-7. A node of the tree more or less is 15 %.
    for name in ("delivered", "good"):
        assert (got[name] / capacity).std() == pytest.approx(sd, rel=5 * 0.0073)
        np.testing.assert_allclose(got[f"{name}_noise_variance"], (sd * capacity) ** 2, rtol=1e-6)


@pytest.mark.parametrize(("planned", "named"), [(1, "sqrt_toeplitz"), (64, "sqrt_toeplitz"), (65, "blt")])
def test_few_releases_take_the_square_root_and_many_a_few_buffers(planned, named):
    """The same noise and claims, bit for bit, whether planned in numbers or as one a round."""
    released, claims = [], []
    for how in ({}, {"releases": planned}, {"mechanism": named}):
        env = begun(ContinualPrivatizer(SumsEnv(2, max_cycles=planned), 1.0, 0.1, **how), [3])
        released.append([env.release(everyone(env))["statistic"] for _ in range(min(planned, 5))])
        claims.append(env.privacy().epsilon)
    assert np.array_equal(released[0], released[1])
    assert np.array_equal(released[0], released[2])
    assert claims[0] == claims[1] == claims[2]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"delta": 1.0}, ValueError, "delta is 1.0"),
        ({"mechanism": "oak"}, ValueError, "mechanism is 'oak'; one of None, 'sqrt_toeplitz'"),
        ({"sigma": "printed", "mechanism": "blt"}, ValueError, "an epsilon and a mechanism that has a tree"),
        ({"sigma": "printed", "mechanism": "tree", "epsilon": 1e4}, ValueError, "gives delta"),
        ({"releases": 2.5}, TypeError, "releases is 2.5"),
        ({"releases": "on_request"}, ValueError, "releases is 'on_request', which leaves it to the agents"),
        ({"adjacency": "one-round"}, ValueError, "one of 'one-observation', 'one-observation-added' is"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ContinualPrivatizer(SumsEnv(), **{"epsilon": 1.0, "delta": 0.1, **arguments})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_all_planned_releases_cost_what_was_promised(mechanism):
    env = ContinualPrivatizer(SumsEnv(3), 1.5, 0.01, mechanism, releases=13, budget={"epsilon": 1.5, **EXACT})
    env.reset_batch([0, 1])
    ones = everyone(env)
    half = ones.copy()
    half[0, 0] = False
    spent = []
    for _ in range(12):
        env.release(half)
        spent.append(env.privacy().epsilon)
    env.release(ones)
    assert env.accountant.counts.sum(axis=0).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert len(env.accountant.events) <= 2
    assert env.privacy().epsilon == pytest.approx(1.5, rel=1e-9)
    assert env.privacy().epsilon <= 1.5
    assert spent == sorted(spent)
    # One window affects one release only if noise is independent.
    assert spent[0] < 0.8 * spent[-1] or mechanism == "independent"
    with pytest.raises(BudgetExhaustedError, match=r"agent_1 \(replica 0\) has spent .* in 13 releases"):
        env.release(ones)
    # The one who was silent may go on, for as long as the plan is.
    for _ in range(12):
        env.release(~half)
    with pytest.raises(BudgetExhaustedError, match="agent_0"):
        env.release(~half)


EXACT = {"delta": 0.01, "composition": "exact", "adjacency": "one-observation"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_compositions_after_any_number_of_releases(mechanism):
    env = begun(ContinualPrivatizer(SumsEnv(1), 1.0, 0.05, mechanism, releases=9))
    for z in range(1, 10):
        env.release(everyone(env))
        share = counted(mechanism, z, 9) / counted(mechanism, 9, 9)
        mu = math.sqrt(share) / analytic_noise_multiplier(1.0, 0.05)
        ask = env.accountant.epsilon
        for adjacency, factor in (("one-observation", 1.0), ("one-observation-added", math.sqrt(0.5))):
            zcdp = ask(1e-4, composition="zcdp", adjacency=adjacency).epsilon
            rho = (factor * mu) ** 2 / 2
            assert zcdp == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e4)))
            exact = ask(1e-4, composition="exact", adjacency=adjacency).epsilon
            assert 0 < exact < zcdp
        # Once and for all, however many releases; replacing is adding and removing.
        basic = ask(0.05, composition="basic", adjacency="one-observation")
        assert (basic.epsilon, basic.delta) == (1.0, 0.05)
        parallel = ask(1e-4, composition="parallel", adjacency="one-observation")
        assert (parallel.epsilon is None) == (z > 1)


def test_the_plan_follows_schedule_and_horizon():
    env = SumsEnv(1, max_cycles=30)
    private = ContinualPrivatizer(env, 1.0, 0.1, "tree", releases={"name": "fixed_gap", "gap": 10})
    wide = private.single_release_space["statistic_noise_variance"].high[0, 0]
    env.max_cycles = 150
    private.reset_batch([0])
    # 3 releases have 2 levels and 2 nodes at worst; 15 have 4 and 4.
    wider = private.single_release_space["statistic_noise_variance"].high[0, 0]
    assert wider == pytest.approx(wide * (4 * 4) / (2 * 2))
    for _ in range(15):
        private.release(everyone(private))
    with pytest.raises(BudgetExhaustedError, match="releases is 15"):
        private.release(everyone(private))
    silent = begun(ContinualPrivatizer(env, 1.0, 0.1, "tree", releases={"name": "fixed_gap", "gap": 1000}))
    with pytest.raises(BudgetExhaustedError, match="releases is 0"):
        silent.release(everyone(silent))
