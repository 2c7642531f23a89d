"""Privatizers: what leaves, how noisy it is, what it costs, and what is refused."""

import math

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.budget import Budget, BudgetExhaustedError, decreasing
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.laplace import LaplacePrivatizer
from fedbandit_envs.wrappers.privacy.randomized_response import RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.reveal import Reveal

PRIVATIZERS = [GaussianPrivatizer, LaplacePrivatizer, RandomizedResponsePrivatizer]
VARIANTS = [*PRIVATIZERS, lambda env, epsilon: GaussianPrivatizer(env, epsilon, pair="good_and_defective")]


def small(**kwargs) -> ProcurementEnv:
    return ProcurementEnv(num_agents=3, num_producers=4, instance_seed=1, **{"max_cycles": 50, **kwargs})


def play(env, rounds: int = 5):
    """Buys at capacity for some rounds; returns the last step."""
    step = None
    for _ in range(rounds):
        action = env.sensitivity().scale["delivered"].astype(np.int64)
        step = env.step_batch(action)
    return step


def everyone(env) -> np.ndarray:
    return np.ones(env.sensitivity().scale["delivered"].shape[:2], np.bool_)


@pytest.mark.parametrize("privatize", VARIANTS)
def test_a_privatized_environment_is_still_a_parallel_env(privatize):
    parallel_api_test(privatize(small(), 0.5), num_cycles=60)


def test_sensitivity_is_the_capacity():
    env = small()
    with pytest.raises(ResetNeeded):
        env.sensitivity()
    observation = env.reset_batch([3, 4]).observation
    scale = Reveal(env).sensitivity().scale
    assert scale.keys() == env.release(everyone(env)).keys()
    for array in scale.values():
        assert array.dtype == np.float64
        assert np.array_equal(array, observation["capacity"])


def test_without_a_privatizer_privacy_is_all_or_nothing():
    env = Reveal(small())
    env.reset_batch([0])
    assert env.privacy().epsilon == 0.0
    assert env.permit(everyone(env)).all()
    env.release(~everyone(env))
    assert env.privacy().epsilon == 0.0
    env.release(everyone(env))
    assert (env.privacy().epsilon, env.privacy().reason) == (np.inf, "released without noise")
    env.reset_batch([0])
    assert env.privacy().epsilon == 0.0


@pytest.mark.parametrize("privatize", VARIANTS)
def test_infinite_epsilon_is_the_unprivatised_run_bit_for_bit(privatize):
    raw, private = small(), privatize(small(), np.inf)
    raw.reset_batch([0, 7])
    private.reset_batch([0, 7])
    senders = np.array([[True, False, True], [False, True, True]])
    for who in (senders, ~senders, np.ones_like(senders)):
        play(raw)
        play(private)
        expected, got = raw.release(who), private.release(who)
        assert expected.keys() == {name for name in got if "noise" not in name}
        assert not any(array.any() for name, array in got.items() if "noise" in name)
        for name in expected:
            assert got[name].dtype == np.float64
            assert np.array_equal(expected[name], got[name])
    assert (private.privacy().epsilon, private.privacy().reason) == (np.inf, "released without noise")


@pytest.mark.parametrize("privatize", VARIANTS)
def test_noise_depends_on_the_replicas_seed_alone(privatize):
    """A replica alone, in a batch, and with other senders beside it."""

    def run(seeds, senders):
        env = privatize(small(), 0.5)
        env.reset_batch(seeds)
        sent = []
        for who in senders:
            play(env, 2)
            sent.append({name: array.copy() for name, array in env.release(np.array(who)).items()})
        return sent

    batch = run([5, 6], [[[1, 1, 1], [0, 0, 0]], [[0, 1, 0], [1, 0, 1]], [[1, 1, 1], [1, 1, 1]]])
    alone = run([5], [[[1, 1, 1]], [[0, 1, 0]], [[1, 1, 1]]])
    others = run([5], [[[0, 1, 0]], [[1, 1, 1]], [[0, 1, 1]]])
    for one, many in zip(alone, batch, strict=True):
        for name in one:
            assert np.array_equal(one[name][0], many[name][0])
    # Agent 1 sent each time in both.
    for one, other in zip(alone, others, strict=True):
        for name in one:
            assert np.array_equal(one[name][0, 1], other[name][0, 1])
    again = privatize(small(), 0.5)
    for _ in range(2):
        again.reset_batch([5])
        play(again, 2)
        for name, array in again.release(np.ones((1, 3), np.bool_)).items():
            assert np.array_equal(array, alone[0][name])


@pytest.mark.parametrize("privatize", VARIANTS)
def test_the_silent_release_zero_and_keep_their_data(privatize):
    env = privatize(small(), 0.5)
    env.reset_batch([0])
    play(env)
    got = env.release(np.array([[True, False, False]]))
    for name, array in got.items():
        assert (array[0, 0] != 0).any() or "noise" in name
        assert not array[0, 1:].any()
    assert env.accountant.counts.sum(axis=0).tolist() == [[1, 0, 0]]
    assert env.unwrapped.release(everyone(env))["delivered"][0, 1:].all()


def residuals(env, seeds, releases: int, names=("delivered", "good")) -> list[np.ndarray]:
    """Noise of each release in units of capacity, by array name: (releases) x (names, values)."""
    env.reset_batch(seeds)
    raw = small(max_cycles=env.max_cycles)
    raw.reset_batch(seeds)
    capacity = env.sensitivity().scale["delivered"]
    noise = []
    for _ in range(releases):
        play(raw, 1)
        play(env, 1)
        truth, got = raw.release(everyone(raw)), env.release(everyone(env))
        noise.append(np.stack([((got[name] - truth[name]) / capacity).ravel() for name in names]))
    return noise


# The deviation of n = 12,000 draws errs by 1/sqrt(2 n) (Gaussian) or sqrt(5/(4 n)) (Laplace), 0.65 % and
# 1.02 %; bounds of 5 of these have a false-alarm rate of 6e-7 a comparison, and seeds are fixed.
@pytest.mark.parametrize("calibration", ["classic", "analytic"])
def test_gaussian_noise_has_the_papers_deviation_in_each_release(calibration):
    env = GaussianPrivatizer(small(max_cycles=100_000), 1.0, 0.01, calibration)
    for z, noise in enumerate(residuals(env, range(1000), 3), start=1):
        share = 1 / (2 * math.log2(100_000)) + 1 / 2 ** (z + 1)
        multiplier = math.sqrt(2 * math.log(1.25 / 0.01)) / share
        if calibration == "analytic":
            multiplier = analytic_noise_multiplier(share, 0.01)
        assert noise.std(axis=1) == pytest.approx(multiplier, rel=5 * 0.0065)
        assert noise.mean(axis=1) == pytest.approx(0, abs=5 * multiplier / math.sqrt(12_000))
        assert np.corrcoef(noise)[0, 1] == pytest.approx(0, abs=5 / math.sqrt(12_000))


def test_good_and_defective_doubles_the_variance_of_what_was_delivered():
    env = GaussianPrivatizer(small(), 0.5, releases=1, pair="good_and_defective")
    (noise,) = residuals(env, range(1000), 1)
    multiplier = math.sqrt(2 * math.log(125)) / 0.5
    assert noise.std(axis=1) == pytest.approx([multiplier * math.sqrt(2), multiplier], rel=5 * 0.0065)
    assert np.corrcoef(noise)[0, 1] == pytest.approx(math.sqrt(0.5), abs=5 / math.sqrt(12_000))


def test_laplace_noise_has_the_scale_of_sensitivity_over_epsilon():
    (noise,) = residuals(LaplacePrivatizer(small(), 0.8, releases=1), range(1000), 1)
    assert noise.std(axis=1) == pytest.approx(math.sqrt(2) / 0.8, rel=5 * 0.0102)
    # A Laplace variable's absolute value is exponential: mean and deviation agree.
    assert np.abs(noise).mean() == pytest.approx(1 / 0.8, rel=5 / math.sqrt(24_000))


def test_randomised_response_is_unbiased_and_leaves_quantities_exact():
    epsilon = 0.7
    env = RandomizedResponsePrivatizer(small(), epsilon, releases=1)
    ((delivered, noise),) = residuals(env, range(1000), 1)
    assert not delivered.any()
    # The sum of w flipped bits has variance w p (1 - p), whatever they were; scaled by 1/(2 p - 1).
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    units = env.sensitivity().scale["delivered"].ravel()
    scaled = noise * np.sqrt(units) / (math.sqrt(p * (1 - p)) / (2 * p - 1))
    # 12,000 standardised values: mean errs by 0.0091, deviation by at most that; 5 of these, 6e-7.
    assert scaled.mean() == pytest.approx(0, abs=5 * 0.0091)
    assert scaled.std() == pytest.approx(1, abs=5 * 0.0091)


def test_shares_of_epsilon():
    shares = decreasing(1.0, 100_000)
    assert (np.diff(shares) <= 0).all()
    assert shares[-1] == 1 / (2 * math.log2(100_000))
    assert shares[:8].sum() * 2 == pytest.approx(1.4777, abs=1e-4)
    # As many releases as doubling gaps make spend epsilon, which a natural logarithm would exceed by a fifth.
    assert shares[:16].sum() == pytest.approx(1, abs=0.02)
    assert decreasing(np.inf, 2)[0] == np.inf


def test_p_fcb_spends_what_the_paper_adds_up():
    env = GaussianPrivatizer(small(max_cycles=100_000), 1.0)
    env.reset_batch([0])
    for _ in range(8):
        env.release(everyone(env))
    claim = env.privacy()
    assert round(claim.epsilon, 2) == 1.48
    assert claim.delta == pytest.approx(0.16)
    step = play(env, 1)
    assert step.info["epsilon_spent"].shape == (1, 3)
    assert step.info["epsilon_spent"] == pytest.approx(claim.epsilon)
    exact = env.accountant.epsilon(1e-5, composition="exact").epsilon
    half = GaussianPrivatizer(small(max_cycles=100_000), math.sqrt(2), pair="good_and_defective")
    half.reset_batch([0])
    for _ in range(8):
        half.release(everyone(half))
    assert half.accountant.epsilon(1e-5, composition="exact").epsilon == pytest.approx(exact)
    assert half.privacy().epsilon == pytest.approx(claim.epsilon / math.sqrt(2))
    assert half.privacy().delta == pytest.approx(0.08)


def test_adjacencies_of_both_pairs():
    """4 producers; lengths of the change in sensitivities, and how often the promise is needed."""
    expected = {
        "as_given": {
            "one-quantity": (2, 2),
            "one-round": (8, 8),
            "one-observation": (2, 2),
            "one-outcome": (1, 1),
        },
        "good_and_defective": {
            "one-quantity": (1, 1),
            "one-round": (4, 4),
            "one-observation": (2, 2),
            "one-outcome": (2, 2),
        },
    }
    for pair, changes in expected.items():
        env = GaussianPrivatizer(small(), 0.5, pair=pair)
        env.reset_batch([0])
        env.release(everyone(env))
        (event,) = env.accountant.events
        for adjacency, (values, square) in changes.items():
            assert event.change(adjacency).values == values
            assert event.change(adjacency).norm ** 2 == pytest.approx(square)


@pytest.mark.parametrize("privatize", PRIVATIZERS)
def test_reset_starts_fresh_accounts(privatize):
    env = privatize(small(), 0.5)
    with pytest.raises(ResetNeeded):
        env.accountant  # noqa: B018
    env.reset_batch([0])
    env.release(everyone(env))
    play(env, 1)
    env.reset_batch([0, 1])
    assert env.privacy().epsilon == 0.0
    assert env.accountant.counts.shape == (0, 2, 3)
    assert not play(env, 1).info["epsilon_spent"].any()


@pytest.mark.parametrize("privatize", PRIVATIZERS)
def test_the_pettingzoo_face_shows_what_was_spent(privatize):
    env = privatize(small(), 0.5, releases=2)
    env.reset(seed=0)
    env.release(np.array([[True, False, False]]))
    action = {agent: np.zeros(4, np.int64) for agent in env.agents}
    *_, infos = env.step(action)
    assert infos["agent_0"]["epsilon_spent"] > 0
    assert infos["agent_1"]["epsilon_spent"] == 0


LIMITS = [
    Budget(0.95, 0.1, "basic"),
    Budget(0.5, 1e-4, "zcdp"),
    Budget(0.3, 1e-4, "exact"),
    Budget(1.0, 1e-4, "exact", "one-round"),
]


@pytest.mark.parametrize("budget", LIMITS)
def test_silence_ends_what_the_budget_does_not_allow(budget):
    env = GaussianPrivatizer(small(), 0.1 * 50, 0.01, releases=50, budget=budget, on_exhausted="silence")
    env.reset_batch([0, 1])
    ones = everyone(env)
    for _ in range(50):
        wants = ones.copy()
        wants[1, 2] = False
        play(env, 1)
        permitted = env.permit(wants)
        counts = env.accountant.counts.sum(axis=0)
        got = env.release(wants)
        assert np.array_equal((got["delivered"] != 0).any(axis=2), permitted)
        assert np.array_equal(env.accountant.counts.sum(axis=0), counts + permitted)
        assert env.privacy().epsilon <= budget.epsilon * (1 + 1e-9)
        if not permitted.any():
            break
    assert not permitted.any()
    assert env.permit(ones).tolist() == [[False] * 3, [False, False, True]]
    # Nothing was wasted: one more release would have been too much.
    (event,) = env.accountant.events
    more = env.accountant.after({event: ones})
    claim = more.epsilon(
        budget.delta, composition=budget.composition, adjacency=budget.adjacency or "one-quantity"
    )
    assert claim.epsilon is None or claim.epsilon > budget.epsilon
    # Data of the silent stays and could still be sent by somebody with a budget.
    assert env.unwrapped.release(ones)["delivered"].all()


@pytest.mark.parametrize("privatize", PRIVATIZERS)
def test_a_spent_budget_raises_and_releases_nothing(privatize):
    env = privatize(small(), 1.0, releases=2)
    env.reset_batch([0])
    first = np.array([[True, False, False]])
    env.release(first)
    env.release(first)
    play(env)
    counts, spent = env.accountant.counts.copy(), env.privacy()
    assert env.permit(everyone(env)).all()
    with pytest.raises(BudgetExhaustedError, match=r"agent_0 \(replica 0\) has spent .* in 2 releases"):
        env.release(everyone(env))
    assert np.array_equal(env.accountant.counts, counts)
    assert env.privacy() == spent
    assert env.unwrapped.release(everyone(env))["delivered"].all()


def test_equal_shares_add_up_to_what_was_shared_out():
    env = LaplacePrivatizer(small(), 1.0, releases=10, budget=Budget(2.0, 0.0))
    env.reset_batch([0])
    for _ in range(10):
        env.release(everyone(env))
    assert env.privacy().epsilon == pytest.approx(2.0)


def test_the_classic_calibration_warns_beyond_its_proof_and_claims_what_is_true():
    with pytest.warns(
        UserWarning, match=r"first release's share 10 its noise gives delta 0\.0\d+ where 0\.01 was"
    ):
        env = GaussianPrivatizer(small(), 10.0, releases=1)
    env.reset_batch([0])
    env.release(everyone(env))
    true = gaussian_delta(10.0, 10.0 / math.sqrt(2 * math.log(125)))
    assert true > 0.01
    assert env.privacy().delta == pytest.approx(2 * true)
    assert env.privacy().epsilon == pytest.approx(20)


@pytest.mark.filterwarnings("error")
def test_no_other_calibration_warns():
    GaussianPrivatizer(small(), 0.99, releases=1)
    GaussianPrivatizer(small(), 10.0, calibration="analytic", releases=1)
    GaussianPrivatizer(small(), np.inf)
