"""Privatizers: what leaves and how noisy it is, what it costs, what is refused, and mechanisms that strangers write."""

import math
import re
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from played import begun

from fedbandit_envs.core.federated_env import BatchStep, FederatedEnv
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import GaussianPrivatizer, LaplacePrivatizer, RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism, decreasing
from fedbandit_envs.wrappers.privacy.privatizer import Budget, BudgetExhaustedError, Privatizer

VARIANTS = [
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
    partial(GaussianPrivatizer, pair="good_and_defective"),
]


def small(**kwargs) -> ProcurementEnv:
    return ProcurementEnv(num_agents=3, num_producers=4, instance_seed=1, **{"max_cycles": 50, **kwargs})


def play(env: FederatedEnv, rounds: int = 5) -> BatchStep:
    """Buys at capacity for some rounds; returns the last step."""
    for _ in range(rounds):
        action = env.sensitivity().scale["delivered"].astype(np.int64)
        step = env.step_batch(action)
    return step


def everyone(env: FederatedEnv) -> np.ndarray:
    return np.ones(env.sensitivity().scale["delivered"].shape[:2], np.bool_)


@pytest.mark.parametrize("privatize", VARIANTS)
def test_infinite_epsilon_is_the_unprivatised_run_bit_for_bit(privatize):
    raw, private = (begun(env, [0, 7]) for env in (small(), privatize(small(), np.inf)))
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
def test_the_silent_release_zero_and_keep_their_data(privatize):
    env = begun(privatize(small(), 0.5, releases=5))
    play(env)
    got = env.release(np.array([[True, False, False]]))
    for name, array in got.items():
        assert (array[0, 0] != 0).any() or "noise" in name
        assert not array[0, 1:].any()
    assert env.accountant.counts.sum(axis=0).tolist() == [[1, 0, 0]]
    assert env.unwrapped.release(everyone(env))["delivered"][0, 1:].all()


def announced(env, releases=1) -> list[np.ndarray]:
    """The variances of quantities and of good units in each release, in squared capacities, where all are alike."""
    capacity = env.reset_batch([3]).observation["capacity"]
    play(env)
    unit = capacity if isinstance(env, RandomizedResponsePrivatizer) else capacity**2
    rows = []
    for _ in range(releases):
        got = env.release(everyone(env))
        rows.append([got[variance_of(name)] / np.maximum(unit, 1) for name in ("delivered", "good")])
        assert all(np.allclose(array, array.max()) for array in rows[-1])
    return np.array([[array.max() for array in row] for row in rows])


@pytest.mark.parametrize("calibration", ["classic", "analytic"])
def test_gaussian_noise_has_the_papers_variance_in_each_release(calibration):
    env = GaussianPrivatizer(small(max_cycles=100_000), epsilon_per_release=1.0, calibration=calibration)
    for z, variances in enumerate(announced(env, 3), start=1):
        share = 1 / (2 * math.log2(100_000)) + 1 / 2 ** (z + 1)
        multiplier = math.sqrt(2 * math.log(1.25 / 0.01)) / share
        if calibration == "analytic":
            multiplier = analytic_noise_multiplier(share, 0.01)
        assert variances == pytest.approx(multiplier**2)


def test_other_noise_has_the_variance_of_its_formula():
    pair = GaussianPrivatizer(small(), epsilon_per_release=0.5, releases=1, pair="good_and_defective")
    square = 2 * math.log(125) / 0.5**2
    assert announced(pair)[0] == pytest.approx([2 * square, square])
    assert announced(LaplacePrivatizer(small(), epsilon_per_release=0.8, releases=1))[0] == pytest.approx(
        2 / 0.8**2
    )
    # The sum of w flipped bits has the variance w p (1 - p), whatever they were; scaled by 1/(2 p - 1).
    p = math.exp(0.7) / (1 + math.exp(0.7))
    response = RandomizedResponsePrivatizer(small(), epsilon_per_release=0.7, releases=1)
    assert announced(response)[0] == pytest.approx([0.0, 5 * p * (1 - p) / (2 * p - 1) ** 2])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": -1.0}, ValueError, "epsilon is -1.0"),
        ({"releases": []}, ValueError, "len(releases) is 0"),
        ({"releases": [1, 0]}, ValueError, "releases[1] is 0"),
        ({"budget": {"epsilon": 0.0}}, ValueError, "budget epsilon is 0.0"),
        ({"budget": {"epsilon": 1.0}}, ValueError, "budget delta is None"),
        ({"budget": {"delta": 1.0}}, ValueError, "budget delta is 1.0"),
        ({"budget": {"composition": "best"}}, ValueError, "budget composition is 'best'"),
        ({"on_exhausted": "ignore"}, ValueError, "on_exhausted is 'ignore'"),
        ({"delta": 0.0}, ValueError, "delta is 0.0"),
        ({"calibration": "exact"}, ValueError, "calibration is 'exact'"),
        ({"pair": "good"}, ValueError, "pair is 'good'"),
        ({"noise_multiplier": 1.0}, ValueError, "exactly one of them is required"),
        ({"epsilon": None, "noise_multiplier": -1.0}, ValueError, "noise_multiplier is -1.0"),
        ({"epsilon": None, "noise_multiplier": 2.0, "releases": [1]}, ValueError, "without proportions"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        GaussianPrivatizer(small(), **{"epsilon": 1.0, "releases": 5, **arguments})


def test_a_budget_for_an_adjacency_that_the_environment_does_not_name_is_refused():
    env = GaussianPrivatizer(small(), epsilon_per_release=1.0, budget={"adjacency": "one-user"})
    with pytest.raises(ValueError, match="budget adjacency is 'one-user'; one of 'one-quantity'"):
        env.reset_batch([0])
    env = begun(GaussianPrivatizer(small(), epsilon_per_release=1.0))
    with pytest.raises(ValueError, match="adjacency is 'one-user'; one of 'one-quantity'"):
        env.accountant.epsilon(adjacency="one-user")


class Statistic(ProcurementEnv):
    """Procurement that says something else of what it releases."""

    def __init__(self, **says):
        super().__init__(num_agents=3, num_producers=4)
        self.says = says

    def sensitivity(self):
        real = super().sensitivity()
        shape = real.scale["good"].shape
        return real._replace(scale={name: np.full(shape, value) for name, value in self.says.items()})


PAIR = partial(GaussianPrivatizer, pair="good_and_defective")
USELESS = "sensitivity of 'good' lies between"


@pytest.mark.parametrize(
    ("privatizer", "says", "error"),
    [
        *(
            (GaussianPrivatizer, {"delivered": 1.0, "good": each}, USELESS)
            for each in (0.0, -1.0, np.inf, np.nan)
        ),
        (PAIR, {"delivered": 1.0, "good": 2.0}, "required by pair 'good_and_defective'"),
        (RandomizedResponsePrivatizer, {"gram": 1.0}, r"releases \['gram'\]; numbers of binary outcomes"),
    ],
)
def test_statistics_that_do_not_fit_are_refused(privatizer, says, error):
    with pytest.raises(ValueError, match=error):
        privatizer(Statistic(**says), epsilon_per_release=0.5).reset_batch([0])


def test_shares_of_epsilon():
    shares = decreasing(1.0, 100_000)
    assert (np.diff(shares) <= 0).all()
    assert shares[-1] == 1 / (2 * math.log2(100_000))
    assert shares[:8].sum() * 2 == pytest.approx(1.4777, abs=1e-4)
    # As many releases as doubling gaps make spend epsilon, which a natural logarithm would exceed by a fifth.
    assert shares[:16].sum() == pytest.approx(1, abs=0.02)
    assert decreasing(np.inf, 2)[0] == np.inf


def test_p_fcb_spends_what_the_paper_adds_up():
    env = begun(GaussianPrivatizer(small(max_cycles=100_000), epsilon_per_release=1.0))
    for _ in range(8):
        env.release(everyone(env))
    claim = env.privacy()
    assert round(claim.epsilon, 2) == 1.48
    assert claim.delta == pytest.approx(0.16)
    step = play(env, 1)
    assert step.info["epsilon_spent"].shape == (1, 3)
    assert step.info["epsilon_spent"] == pytest.approx(claim.epsilon)
    exact = env.accountant.epsilon(1e-5, composition="exact").epsilon
    half = {"epsilon_per_release": math.sqrt(2), "pair": "good_and_defective"}
    half = begun(GaussianPrivatizer(small(max_cycles=100_000), **half))
    for _ in range(8):
        half.release(everyone(half))
    assert half.accountant.epsilon(1e-5, composition="exact").epsilon == pytest.approx(exact)
    assert half.privacy().epsilon == pytest.approx(claim.epsilon / math.sqrt(2))
    assert half.privacy().delta == pytest.approx(0.08)


def test_adjacencies_of_both_pairs():
    """4 producers: how many values change, and their squared length, in sensitivities."""
    one, two, all_four = "one-quantity", "one-observation", "one-round"
    for pair, changes in (
        ("as_given", {one: 2, all_four: 8, two: 2, "one-outcome": 1}),
        ("good_and_defective", {one: 1, all_four: 4, two: 2, "one-outcome": 2}),
    ):
        env = begun(GaussianPrivatizer(small(), epsilon_per_release=0.5, pair=pair))
        env.release(everyone(env))
        (event,) = env.accountant.events
        for adjacency, values in changes.items():
            assert event.change(adjacency) == (values, pytest.approx(math.sqrt(values)))


def test_reset_starts_fresh_accounts():
    env = LaplacePrivatizer(small(), 0.5, releases=5)
    with pytest.raises(ResetNeeded):
        _ = env.accountant
    env.reset_batch([0])
    env.release(everyone(env))
    play(env, 1)
    env.reset_batch([0, 1])
    assert env.privacy().epsilon == 0.0
    assert env.accountant.counts.shape == (0, 2, 3)
    assert not play(env, 1).info["epsilon_spent"].any()


LIMITS = [
    Budget(0.95, 0.1, "basic"),
    Budget(0.5, 1e-4, "zcdp"),
    Budget(0.3, 1e-4, "exact"),
    Budget(1.0, 1e-4, "exact", "one-round"),
]


@pytest.mark.parametrize("budget", LIMITS)
def test_silence_ends_what_the_budget_does_not_allow(budget):
    env = GaussianPrivatizer(
        small(), epsilon_per_release=0.1, releases=50, budget=budget, on_exhausted="silence"
    )
    env.reset_batch([0, 1])
    ones = everyone(env)
    for _ in range(50):
        wants = ones.copy()
        wants[1, 2] = False
        play(env, 1)
        permitted = env.allowed_senders(wants)
        counts = env.accountant.counts.sum(axis=0)
        got = env.release(wants)
        assert np.array_equal((got["delivered"] != 0).any(axis=2), permitted)
        assert np.array_equal(env.accountant.counts.sum(axis=0), counts + permitted)
        assert env.privacy().epsilon <= budget.epsilon * (1 + 1e-9)
        if not permitted.any():
            break
    assert not permitted.any()
    assert env.allowed_senders(ones).tolist() == [[False] * 3, [False, False, True]]
    # Nothing was wasted: one more release would have been too much.
    (event,) = env.accountant.events
    more = env.accountant.after({event: ones})
    claim = more.epsilon(
        budget.delta, composition=budget.composition, adjacency=budget.adjacency or "one-quantity"
    )
    assert claim.epsilon is None or claim.epsilon > budget.epsilon
    # Data of the silent stays and could still be sent by somebody with a budget.
    assert env.unwrapped.release(ones)["delivered"].all()


def test_a_spent_budget_raises_and_releases_nothing():
    env = begun(LaplacePrivatizer(small(), 1.0, releases=2))
    first = np.array([[True, False, False]])
    env.release(first)
    env.release(first)
    play(env)
    counts, spent = env.accountant.counts.copy(), env.privacy()
    assert env.allowed_senders(everyone(env)).all()
    with pytest.raises(BudgetExhaustedError, match=r"agent_0 \(replica 0\) has spent .* in 2 releases"):
        env.release(everyone(env))
    assert np.array_equal(env.accountant.counts, counts)
    assert env.privacy() == spent
    assert env.unwrapped.release(everyone(env))["delivered"].all()


@pytest.mark.parametrize("privatizer", [GaussianPrivatizer, LaplacePrivatizer])
def test_shares_in_given_proportions_add_up_to_what_was_shared_out(privatizer):
    env = begun(privatizer(small(), 0.7, releases=[1, 2, 4]))
    spent, deviations = [], []
    for _ in range(3):
        deviations.append(np.sqrt(env.release(everyone(env))[variance_of("delivered")].max()))
        spent.append(env.privacy().epsilon)
    if privatizer is LaplacePrivatizer:
        assert np.diff(spent, prepend=0.0) == pytest.approx([0.1, 0.2, 0.4])
    assert 0.7 * (1 - 1e-9) <= spent[-1] <= 0.7
    assert deviations == pytest.approx([deviations[0], deviations[0] / 2, deviations[0] / 4])
    with pytest.raises(RuntimeError, match="3 releases"):
        env.release(everyone(env))


def test_the_classic_calibration_warns_beyond_its_proof_and_claims_what_is_true():
    with pytest.warns(
        UserWarning, match=r"largest share of a release, 10, its noise gives delta 0\.0\d+ where 0\.01 was"
    ):
        env = GaussianPrivatizer(small(), epsilon_per_release=10.0, releases=1)
    with pytest.warns(UserWarning, match="largest share of a release, 8, its noise"):
        GaussianPrivatizer(small(), epsilon_per_release=[2.0, 8.0])
    env.reset_batch([0])
    env.release(everyone(env))
    true = gaussian_delta(10.0, 10.0 / math.sqrt(2 * math.log(125)))
    assert true > 0.01
    assert env.privacy().delta == pytest.approx(2 * true)
    assert env.privacy().epsilon == pytest.approx(20)


@pytest.mark.filterwarnings("error")
def test_no_other_calibration_warns():
    for epsilon, calibration in ((0.99, "classic"), (10.0, "analytic"), (np.inf, "classic")):
        GaussianPrivatizer(small(), epsilon_per_release=epsilon, calibration=calibration)


class Told(AdditiveMechanism):
    """Takes down what it is told."""

    def __init__(self, **sizes):
        super().__init__(**sizes)
        self.drawn = []

    def noise_multiplier(self, share):
        return 1 / share

    def draw(self, generator, share, out):
        self.drawn.append(share)
        out[...] = 0.0

    def event(self, share, noise_multiplier, changes):
        assert noise_multiplier == 1 / share
        return Event("told", share, share, 0.0, tuple(changes.items()))


def test_every_agent_draws_for_its_own_share():
    """Agents that have released more often spend less, in one release."""
    env = begun(Privatizer(small(), Told(epsilon_per_release=1.0)))
    env.release([[True, False, False]])
    env.release([[True, True, False]])
    env.release([[True, True, True]])
    told = env.mechanism.drawn
    first, second, third = told[0], told[1], told[3]
    assert told == [first, second, first, third, second, first]
    assert first > second > third
    spent = [[2 * (first + second + third), 2 * (first + second), 2 * first]]
    np.testing.assert_allclose(env.accountant.epsilon_by_agent(), spent)


def test_privatizers_do_not_share_a_mechanism():
    mechanism = Told(epsilon_per_release=1.0)
    first, second = (begun(Privatizer(small(), mechanism), seeds) for seeds in ([0], [0, 1]))
    first.release(everyone(first))
    assert len(first.mechanism.drawn) == 3
    assert second.mechanism.drawn == mechanism.drawn == []


def test_a_noise_multiplier_is_the_noise_and_the_claim():
    """Its mu exactly, and the promise that follows at delta; 0 is no noise."""
    env = GaussianPrivatizer(small(), noise_multiplier=3.0, delta=1e-3, releases=2)
    assert announced(env)[0] == pytest.approx(9.0)
    (event,) = env.accountant.events
    assert event.loss == 1 / 3
    assert (event.epsilon, event.delta) == (gaussian_epsilon(1e-3, 1 / 3), 1e-3)
    exact = env.accountant.epsilon(1e-5, composition="exact", adjacency="one-outcome").epsilon
    assert exact == gaussian_epsilon(1e-5, 1 / 3)
    bare = GaussianPrivatizer(small(), noise_multiplier=0.0)
    assert not announced(bare, 5).any()
    assert bare.privacy().epsilon == np.inf
    assert bare.mechanism.max_releases is None
