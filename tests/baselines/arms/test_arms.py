"""Policies for arms: against twins in plain Python, draws from posteriors, FAIR-LEARN, and what is shared.

Laws are tested at 1e-4 each, under fixed seeds: of 8 such tests one in 1,250 would raise a false alarm.
"""

import numpy as np
import pytest
from arms_references import TWINS, PosteriorLuck, UCBHorizon, adjacent, beta
from dp_accounting.pld import privacy_loss_distribution as pld
from numba import njit
from played import begun, played, refused
from scipy import stats
from scipy.special import binom

from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.arms import CUCB, LEARNERS, UCB1, FairLearn, Pursuit, UniformArms, kernels
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.participation import Participation
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server


@pytest.mark.parametrize(
    ("name", "constants", "twin"),
    [*((name, {}, twin) for name, twin in TWINS.items()), ("UCB1", {"logarithm": "horizon"}, UCBHorizon)],
)
@pytest.mark.parametrize(("agents", "arms"), [(2, 10), (4, 3)])
def test_a_policy_pulls_what_its_twin_does(name, constants, twin, agents, arms):
    """With fewer agents than arms, and with more: a loop over the one in place of the other is seen."""
    rounds = 250
    env = parallel_env(num_agents=agents, num_arms=arms, max_cycles=rounds)
    policy, seeds = BASELINES[name].make_policy(**constants), row_seeds([3], agents)
    twins = [twin(int(seed), arms, rounds) for seed in seeds[0]]
    for t, (pulled, _, step) in enumerate(played(env, policy, [3])):
        assert pulled[0].tolist() == [one.act() for one in twins], f"round {t + 1}"
        for one, arm, reward in zip(twins, pulled[0], step.reward[0], strict=True):
            one.learn(arm, reward)


@pytest.mark.parametrize("oracle", ["largest", "arms_references:adjacent"])
def test_cucb_follows_its_formula(oracle):
    rounds, slots = 500, 3
    env = parallel_env(num_agents=2, num_arms=7, max_cycles=rounds, slots=slots, oracle=oracle)
    policy = CUCB(oracle)
    for arms, observation, _ in played(env, policy):
        n, s = observation["total_pulls"], observation["total_successes"]
        with np.errstate(invalid="ignore", divide="ignore"):
            bounds = np.where(n > 0, s / n + np.sqrt(3 * np.log(rounds) / (2 * n)), np.inf)
        if (n > 0).all():
            largest = np.argsort(-bounds, kind="stable")[..., :slots]
            np.testing.assert_array_equal(arms, largest if oracle == "largest" else adjacent(bounds, slots))


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_superarms_of_arms_that_are_awake(name, slots):
    """Slots are wasted only where fewer arms are awake than there are slots."""
    env = parallel_env(num_agents=3, num_arms=6, max_cycles=100, slots=slots, awake=0.5)
    for _, before, step in played(env, LEARNERS[name](), range(3)):
        there = before["awake"].sum(axis=-1)
        np.testing.assert_array_equal(step.info["wasted"], np.maximum(slots - there, 0))


@pytest.mark.parametrize("make_policy", [Pursuit, UCB1])
def test_who_sits_out_goes_on_where_it_was(make_policy):
    """In turn agents do what they do alone, only slower: probabilities stand still, and t counts own rounds."""
    actions = []
    for env in (parallel_env(num_agents=2), Participation(parallel_env(num_agents=2), "in_turn")):
        policy, played = make_policy(), []
        observation = env.reset_batch([0]).observation
        policy.reset(env.policy_spec, row_seeds([0], 2))
        pulls = np.zeros((1, 2, 10), np.int64)
        for t in range(200):
            arms = policy.act(observation).copy()
            if t % 2 == 0 or "active" not in observation:
                played.append(arms[0, 0])
            # Outcomes of our own, that do not depend on the round.
            active = observation.get("active", np.ones((1, 2, 1), np.bool_))
            pulls += (np.arange(10) == arms[..., np.newaxis]) & active
            seen = {"total_pulls": pulls, "total_successes": np.minimum(pulls, np.arange(10))}
            observation = {
                **env.step_batch(arms).observation,
                **{name: array.copy() for name, array in seen.items()},
            }
        actions.append(played[:100])
    assert actions[0] == actions[1]


def test_uniform_arms_are_uniform():
    """Chi-square with 9 degrees of freedom: above 33.7 in 1 of 10,000 runs, were the seeds not fixed."""
    env = parallel_env(num_agents=10, max_cycles=500)
    *_, (_, _, last) = played(env, UniformArms(), range(4))
    counts = last.observation["total_pulls"].sum(axis=(0, 1))
    assert ((counts - 2000) ** 2 / 2000).sum() < 33.7


def test_bounds_that_shrink_with_pulls_by_hand():
    env = parallel_env(num_agents=2, num_arms=4, max_cycles=60)
    for arm, seen, _ in played(env, UCB1(0.3, "horizon_per_pull"), [3]):
        pulls, good = seen["total_pulls"], seen["total_successes"]
        if pulls.min() > 0:
            bounds = good / pulls + np.sqrt(0.3 * np.log(60 / pulls) / pulls)
            np.testing.assert_array_equal(arm, bounds.argmax(-1))


def test_what_agents_hear_of_themselves_is_refused():
    env = Server(parallel_env(), schedule="every_round")
    for policy in (UCB1(), FairLearn()):
        refused(policy, env, "echo=False is required")


def _drawn(a, b):
    """Draws of Beta(a, b) in 5,000 rounds, of ten arms."""
    rounds, shape = 5_000, (5_000, 10)
    trials, successes, out = np.full(shape, a + b - 2), np.full(shape, a - 1), np.empty(shape)
    keys = np.ascontiguousarray(np.broadcast_to(kernels.arm_keys(row_seeds([1], 1), 10)[0], (*shape, 2)))
    kernels.draw_posteriors(keys, np.arange(rounds), trials, successes, out)
    return out


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 1.0), (1.0, 4.0), (2.0, 1.0), (30.0, 70.0), (1.0, 5000.0), (1.5, 2.25), (4e5, 6e5)]
)
def test_beta_numbers_have_their_law(a, b):
    """Kolmogorov-Smirnov, 50,000 draws."""
    assert stats.kstest(_drawn(a, b).ravel(), stats.beta(a, b).cdf).pvalue > 1e-4


def test_rounds_and_arms_do_not_know_of_each_other():
    """Correlations of uniform numbers across rounds and across arms, all at once by chi-square."""
    place = stats.beta(3, 2).cdf(_drawn(3.0, 2.0)) - 0.5
    pairs = [place[1:].ravel() * place[:-1].ravel(), (place * np.roll(place, 1, axis=1)).ravel()]
    z = [12 * pair.sum() / np.sqrt(pair.size) for pair in pairs]
    assert stats.chi2(2).sf(np.square(z).sum()) > 1e-4


def test_numbers_are_those_of_the_definition():
    """By plain Python with exact logarithms, sines and cosines: the same but for the 24 bits of normal numbers."""
    arms = kernels.arm_keys(row_seeds([3], 2), 4)
    luck = [PosteriorLuck(int(seed), k) for seed in row_seeds([3], 2)[0] for k in range(4)]
    trials = np.arange(8.0)
    successes = trials // 3
    for round_ in range(1, 60):
        out = np.empty((2, 4))
        kernels.draw_posteriors(
            arms[0], np.full(2, round_), trials.reshape(2, 4), successes.reshape(2, 4), out
        )
        expected = [
            beta(s + 1, n - s + 1, own, round_) for n, s, own in zip(trials, successes, luck, strict=True)
        ]
        np.testing.assert_allclose(out.ravel(), expected, rtol=1e-5, atol=1e-7)


def test_more_arms_leave_the_first_as_they_are():
    seeds = row_seeds([5, 6], 3)
    few, many = kernels.arm_keys(seeds, 2), kernels.arm_keys(seeds, 5)
    np.testing.assert_array_equal(many[:, :, :2], few)
    assert np.unique(many.view(np.uint64)).size == 2 * 3 * 5
    np.testing.assert_array_equal(kernels.arm_keys(seeds[1:, 1:2], 5)[0, 0], many[1, 1])


def test_the_shortcut_accepts_nothing_that_the_test_refuses():
    """On a grid of shapes and normal numbers, each with the largest uniform number that the shortcut lets through."""

    @njit
    def most(shape, normal):
        """The largest word that is let through, by bisection; -1 for none."""
        low, high = -1, 2**32
        while high - low > 1:
            middle = (low + high) // 2
            if kernels._first_attempt(shape, normal, np.uint32(middle)) > 0:
                low = middle
            else:
                high = middle
        return low

    accepted = 0
    for shape in [1, 1.01, 1.1, 1.5, 2, 3, 5, 10, 100, 1e4]:
        d = shape - 1 / 3
        for normal in np.linspace(-6.6, 6.6, 1321):
            low = most(float(shape), normal)
            if low < 0:
                continue
            v = (1 + normal / np.sqrt(9 * d)) ** 3
            accepted += 1
            # A hair of rounding where both are equalities, at 0.
            exact = 0.5 * normal**2 + d * (1 - v + np.log(v))
            assert np.log(((low >> 1) + 0.5) / 2**31) < exact + 1e-8
    assert accepted > 5000


@pytest.mark.parametrize("tolerance", [0.0, 2.5])
@pytest.mark.parametrize("learner", ["UCB1", "ThompsonSampling", {"name": "EpsilonGreedy", "epsilon": 0.2}])
def test_it_follows_algorithm_4_1(learner, tolerance):
    shares = [0.3, 0.05, 0.0, 0.1]
    env = parallel_env(num_agents=3, num_arms=4, max_cycles=300)
    fair, alone = FairLearn(learner, shares, tolerance), FairLearn(learner, 0.0)
    observation = env.reset_batch([0, 1]).observation
    for policy in (fair, alone):
        policy.reset(env.policy_spec, row_seeds([0, 1], 3))
    for t in range(1, 301):
        arms, learnt = fair.act(observation), alone.act(observation)
        for row in np.ndindex(2, 3):
            lack = (np.array(shares) * (t - 1) - observation["total_pulls"][row]).tolist()
            assert arms[row] == (lack.index(max(lack)) if max(lack) > tolerance else learnt[row])
        observation = env.step_batch(arms).observation
        # Patil et al., Theorem 1: at any time, not at the end alone.
        assert (np.floor(np.array(shares) * t) - observation["total_pulls"] <= tolerance + 1e-9).all()


def test_sleeping_arms_are_not_forced():
    env = parallel_env(num_agents=5, num_arms=4, max_cycles=500, awake=0.5)
    for _, before, step in played(env, FairLearn(shares=0.2)):
        np.testing.assert_array_equal(step.info["wasted"], ~before["awake"].any(axis=-1))
    assert (step.observation["total_pulls"] > 80).all()


@pytest.mark.parametrize(("env_kwargs", "shares", "message"), [
    ({"slots": 2}, 0.1, "FAIR-LEARN pulls one arm"),
    ({}, [0.1, 0.1], "shares has 2 entries; 10"),
    ({}, 0.11, "shares add up to 1.1"),
])  # fmt: skip
def test_promises_that_cannot_be_kept_are_refused(env_kwargs, shares, message):
    refused(FairLearn(UCB1(), shares), parallel_env(**env_kwargs), message)


@pytest.mark.parametrize(
    ("heard", "known"), [((-4.0, 3.0), (0, 0)), ((6.0, 9.0), (6, 6)), ((6.0, -1.0), (6, 0))]
)
def test_what_noise_makes_impossible_counts_as_what_could_be(heard, known):
    """Pulls below 0, more successes than pulls, successes below 0: by hand, against an arm of 20 pulls, 10 good."""
    env = Channel(parallel_env(num_agents=2, num_arms=2))
    policy = UCB1()
    inbox = np.zeros((2, 1, 2, 2, 2))
    inbox[:, 0, :, 0, 0] = np.array(heard)[:, np.newaxis]
    for good in range(11):
        policy.reset(env.policy_spec, row_seeds([0], 2))
        arms = policy.act({
            "round": np.full((1, 2, 1), 29),
            "total_pulls": np.broadcast_to([10, 20], (1, 2, 2)),
            "total_successes": np.broadcast_to([good, 10], (1, 2, 2)),
            "inbox_mask": np.array([[[True, False]] * 2]),
            "inbox_pulls": inbox[0],
            "inbox_successes": inbox[1],
        })  # fmt: skip
        n, s = np.array([10 + known[0], 20]), np.array([good + known[1], 10])
        assert (arms == (s / n + np.sqrt(2 * np.log(30) / n)).argmax()).all()


@pytest.mark.parametrize("rounds", [100, 1000])
def test_the_claim_of_private_ucb1_is_dp_accountings(rounds):
    """Noise on prefix sums is sigma B z, where B is the square root of summation.

    One observation replaced moves two pulls and two successes by 1, so the sums by 2 from its window on: a Gaussian
    mechanism whose sensitivity is 2 |B e_1|, if all of the planned releases are made.
    """
    env = BASELINES["Priv-UCB1"].wrap(parallel_env(max_cycles=rounds))
    for _ in played(env, UCB1()):
        pass
    releases = int(np.floor(np.log2(rounds))) + 1
    # Each goes to nine others.
    assert (env.traffic["messages"] == 9 * releases).all()
    first = begun(BASELINES["Priv-UCB1"].wrap(parallel_env(max_cycles=rounds)))
    observation = first.step_batch(np.zeros((1, 10), np.int64)).observation
    sigma = np.sqrt(observation["inbox_pulls_noise_variance"][0, 0, 1, 0])
    # (1 - x)^(-1/2) = sum_k binom(2k, k) / 4^k x^k.
    k = np.arange(releases)
    column = np.sqrt(((binom(2 * k, k) / 4.0**k) ** 2).sum())
    mechanism = pld.from_gaussian_mechanism(sigma, sensitivity=2 * column)
    claim = env.privacy()
    assert (claim.adjacency, claim.delta, claim.composition) == ("one-observation", 1e-5, "exact")
    assert claim.epsilon == pytest.approx(mechanism.get_epsilon_for_delta(1e-5), abs=1e-3)
    assert claim.epsilon == pytest.approx(1.0, abs=1e-3)
