"""Clipped releases: their norm, their sensitivity, and the claims about all data of an agent that follow."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from played import begun
from values_env import ValuesEnv

from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.core.privacy import AGENT, Change, Sensitivity
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import ContinualPrivatizer, GaussianPrivatizer, LaplacePrivatizer, Privatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_delta, gaussian_epsilon
from fedbandit_envs.wrappers.privacy.mechanisms.additive import RandomizedResponse
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise

pytestmark = pytest.mark.filterwarnings("ignore:calibration is 'classic'")


def everyone(env) -> np.ndarray:
    return np.ones((1, env.max_num_agents), np.bool_)


def play(env, releases: int = 1, seed: int = 0):
    """Plays one round before each of some releases of everyone; returns the environment."""
    env.reset_batch([seed])
    env.single_action_space.seed(seed)
    for _ in range(releases):
        env.step_batch(np.array([[env.single_action_space.sample() for _ in env.possible_agents]]))
        env.release(everyone(env))
    return env


# The ledger clips.


def clipped(clip: float, *parts: np.ndarray) -> tuple[ReleaseLedger, list[np.ndarray]]:
    """The ledger and the clipped release of one agent that releases some arrays."""
    ledger = ReleaseLedger()
    ledger.begin((1, 1), "one-round")
    statistic = {str(i): part[np.newaxis, np.newaxis] for i, part in enumerate(parts)}
    result = ledger.clipped(statistic, np.ones((1, 1), np.bool_), clip)
    return ledger, [result[name][0, 0] for name in statistic]


def joint_norm(parts) -> float:
    return math.sqrt(math.fsum(float(x) ** 2 for part in parts for x in part.ravel()))


NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@settings(max_examples=60, derandomize=True)
@given(arrays(float, 4, elements=NUMBERS), arrays(float, (2, 3), elements=NUMBERS), st.floats(1e-3, 1e6))
def test_a_clipped_release_lies_in_the_ball_and_keeps_its_direction(first, second, clip):
    ledger, result = clipped(clip, first, second)
    norm = joint_norm([first, second])
    assert joint_norm(result) <= clip
    if norm <= clip * (1 - 1e-9):
        assert ledger.clipped_releases[0, 0] == 0
        for part, kept in zip((first, second), result, strict=True):
            assert part.tobytes() == kept.tobytes()
    elif norm > clip * (1 + 1e-9):
        assert ledger.clipped_releases[0, 0] == 1
        for part, cut in zip((first, second), result, strict=True):
            np.testing.assert_allclose(cut, part * (clip / norm), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_squares_of_huge_and_of_tiny_numbers_are_no_problem(size):
    _, (result,) = clipped(size, np.array([3.0, 4.0]) * size)
    np.testing.assert_allclose(result, np.array([0.6, 0.8]) * size, rtol=1e-11)
    _, (kept,) = clipped(5.1 * size, np.array([3.0, -0.0, 4.0]) * size)
    assert kept.tobytes() == (np.array([3.0, -0.0, 4.0]) * size).tobytes()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_release_that_is_not_finite_is_refused(wrong):
    ledger = ReleaseLedger()
    ledger.begin((1, 2), "one-round")
    statistic = {"good": np.zeros((1, 2, 3)), "sums": np.full((1, 2, 1), 5.0)}
    statistic["sums"][0, 1] = wrong
    with pytest.raises(ValueError, match="a release has numbers that are not finite"):
        ledger.clipped(statistic, np.array([[True, True]]), 1.0)
    assert not ledger.clipped_releases.any()
    # Of agents who do not send nothing is read.
    assert ledger.clipped(statistic, np.array([[True, False]]), 1.0)["sums"][0, 0] == pytest.approx(1.0)


# The sensitivity.


def test_the_sensitivity_of_clipped_releases():
    scale = {"a": np.full((1, 2, 3), 2.0), "b": np.array([[[4.0], [1.0]]])}
    changes = {"one-outcome": Change(1, 0.5), "one-round": Change(3, 3.0)}
    real = Sensitivity(scale, changes, symmetric=True).clipped(5.0)
    assert {name: set(array.ravel()) for name, array in real.scale.items()} == {"a": {5.0}, "b": {5.0}}
    assert {name: array.shape for name, array in real.scale.items()} == {"a": (1, 2, 3), "b": (1, 2, 1)}
    # In units of the clip: 0.5 x 4 / 5 below the largest possible distance of 2, and 3 x 4 / 5 above it.
    assert real.changes == {"one-outcome": Change(4, 0.4), "one-round": Change(4, 2.0), AGENT: Change(4, 2.0)}
    assert (real.symmetric, real.pair) == (True, None)


# Claims, in numbers.


@pytest.mark.parametrize("clip", [0.01, 1.0, 300.0])
def test_the_claim_does_not_depend_on_the_clip_and_the_noise_is_in_proportion_to_it(clip):
    env = begun(GaussianPrivatizer(LinearEnv(num_agents=1), noise_multiplier=20.0, releases=10, clip=clip))
    released = env.release(everyone(env))
    np.testing.assert_allclose(released["statistic_noise_variance"], (20.0 * clip) ** 2, rtol=1e-12)
    claim = env.accountant.epsilon(1e-3, composition="exact", adjacency=AGENT)
    assert claim.epsilon == pytest.approx(float(gaussian_epsilon(1e-3, 2 / 20)), rel=1e-9)


@pytest.mark.parametrize("numbers", [2, 3, 30])
def test_the_sum_of_guarantees_is_one_that_the_noise_keeps(numbers):
    """Basic composition at the agent's level, however few numbers a release has."""
    env = ValuesEnv([1.0] * numbers)
    env = play(GaussianPrivatizer(env, epsilon_per_release=0.5, calibration="analytic", clip=1.0, releases=1))
    claim = env.accountant.epsilon(adjacency=AGENT)
    assert (claim.epsilon, claim.delta) == (pytest.approx(4 * 0.5), pytest.approx(4 * 0.01))
    (event,) = env.accountant.events
    assert gaussian_delta(claim.epsilon, event.mu(AGENT)) <= claim.delta


@pytest.mark.parametrize("numbers", [2, 9])
def test_laplace_noise_guarantees_its_l1_sensitivity(numbers):
    """A norm of 2 C is a sum of absolute differences of 2 C sqrt(n) at most, for which b = C/0.25 gives epsilon."""
    env = LaplacePrivatizer(ValuesEnv([1.0] * numbers), epsilon_per_release=0.25, releases=4, clip=3.0)
    play(env, 4)
    for adjacency in (AGENT, "one-round"):
        for composition in ("basic", "exact"):
            claim = env.accountant.epsilon(0.0, composition=composition, adjacency=adjacency)
            assert claim.epsilon == pytest.approx(4 * 0.25 * 2 * math.sqrt(numbers))


def test_numerical_composition_of_laplace_noise_covers_the_worst_direction():
    """All of the difference in one number, which is worst at most deltas, and spread over all, worst at delta 0.

    Both are computed by dp-accounting from releases of single numbers.
    """
    env = play(LaplacePrivatizer(ValuesEnv([1.0] * 4), epsilon_per_release=1.0 / 2, releases=2, clip=1.0), 2)
    for delta in (1e-6, 1e-3, 0.1):
        claim = env.accountant.epsilon(delta, composition="exact", adjacency=AGENT)
        for differing in (1, 2, 4):
            each = 2 / math.sqrt(differing)
            other = PLDAccountant(value_discretization_interval=1e-4)
            other.compose(dp_event.LaplaceDpEvent(1 / 0.5 / each), 2 * differing)
            assert other.get_epsilon(delta) <= claim.epsilon + 1e-3


def test_windows_are_not_disjoint_where_all_of_them_differ():
    env = play(GaussianPrivatizer(ValuesEnv(), noise_multiplier=20.0, releases=3, clip=1.0))
    alone = env.accountant.epsilon(1e-3, composition="parallel", adjacency=AGENT)
    assert alone.epsilon == pytest.approx(float(gaussian_epsilon(1e-3, 0.1)))
    env.release(everyone(env))
    claim = env.accountant.epsilon(1e-3, composition="parallel", adjacency=AGENT)
    assert (claim.epsilon, claim.reason) == (None, "all data of an agent differ, and not one window only")
    assert env.accountant.epsilon(1e-3, composition="parallel", adjacency="one-round").epsilon > 0


# Claims that cannot be made.


def test_without_a_clip_nothing_is_claimed_of_all_data_of_an_agent():
    env = begun(GaussianPrivatizer(ProcurementEnv(num_agents=2, num_producers=3), noise_multiplier=5.0))
    assert env.accountant.epsilon(adjacency=AGENT).epsilon == 0
    env.release(everyone(env))
    for composition in ("basic", "zcdp", "exact", "parallel"):
        claim = env.accountant.epsilon(0.5, composition=composition, adjacency=AGENT)
        assert (claim.epsilon, claim.adjacency) == (None, AGENT)
        assert "not clipped" in claim.reason
    assert np.isinf(env.accountant.epsilon_by_agent(0.5, adjacency=AGENT)).all()
    env.env.release(everyone(env))
    assert env.accountant.epsilon(0.5, adjacency=AGENT).epsilon == math.inf


def test_a_budget_or_noise_for_all_data_of_an_agent_needs_a_clip():
    with pytest.raises(ValueError, match="adjacency is 'agent'; one of 'one-round' is required"):
        ContinualPrivatizer(ValuesEnv(), 1.0, 1e-5, adjacency=AGENT)
    env = GaussianPrivatizer(ValuesEnv(), epsilon_per_release=1.0, budget={"adjacency": AGENT})
    with pytest.raises(ValueError, match="budget adjacency is 'agent'; one of 'one-round' is required"):
        env.reset_batch([0])
    env = GaussianPrivatizer(ValuesEnv(), epsilon_per_release=1.0, budget={"adjacency": AGENT}, clip=1.0)
    assert play(env).privacy().adjacency == AGENT
    # Independent noise is the default then.
    env = ContinualPrivatizer(ValuesEnv(), 2.0, 1e-5, adjacency=AGENT, clip=2.0)
    assert type(env.mechanism._noise) is PrefixNoise


# What is counted, and by whom it is seen.


def test_clipped_releases_are_counted_in_the_round_in_which_they_leave():
    """A round's release has the norm 13, and that of two rounds 26."""
    env = GaussianPrivatizer(ValuesEnv(), noise_multiplier=1.0, clip=20.0)
    info = env.reset_batch([0, 1]).info
    assert info["clipped_releases"].tolist() == [[0, 0], [0, 0]]
    assert info["clipped_releases"].dtype == np.int64
    action = np.zeros((2, 2), np.int64)
    info = env.step_batch(action).info
    env.release(np.array([[True, False], [False, False]]))
    assert info["clipped_releases"].tolist() == [[0, 0], [0, 0]]
    info = env.step_batch(action).info
    env.release(np.array([[True, True], [True, False]]))
    assert info["clipped_releases"].tolist() == [[0, 1], [1, 0]]
    assert env.step_batch(action).info["clipped_releases"].tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="read-only"):
        info["clipped_releases"][...] = 7


def test_what_is_cut_off_is_lost():
    env = play(GaussianPrivatizer(ValuesEnv(), epsilon_per_release=math.inf, clip=1.0), 3).env
    later = env.release(everyone(env))
    assert not later["first"].any()


# Arguments.


@pytest.mark.parametrize("clip", [0.0, math.nan, math.inf])
def test_bad_clips_are_named(clip):
    with pytest.raises(ValueError, match=f"clip is {clip!r}; a finite number > 0 is required"):
        LaplacePrivatizer(ValuesEnv(), epsilon_per_release=1.0, clip=clip)


def test_mechanisms_that_cannot_randomise_clipped_releases_are_refused():
    market = ProcurementEnv(num_agents=2, num_producers=3)
    with pytest.raises(
        ValueError, match=r"clip is 1.0 or env has Clip, and mechanism is a RandomizedResponse"
    ):
        Privatizer(market, RandomizedResponse(epsilon_per_release=1.0), clip=1.0)
