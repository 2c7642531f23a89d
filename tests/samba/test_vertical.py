"""The vertical federation: picks among masked and permuted scores, and whole runs written once more."""

import numpy as np
import pytest
from refusals import refusals
from samba_runs import streams_of

from fedbandit_envs.arms.ratings import packaged_means
from fedbandit_envs.samba.keys import Keystream, derive_key, owner_keys
from fedbandit_envs.samba.owners import RULES, Algorithm, SambaPlan, choose, owner_rewards, run_vertical

ALGORITHMS = {
    "epsilon-greedy": {"epsilon": 0.2},
    "epsilon-decreasing": {},
    "ucb": {},
    "thompson": {},
    "softmax": {"temperature": 0.06},
    "pursuit": {"rate": 0.05},
}
MEANS = [0.3, 0.8, 0.55, 0.75, 0.1]


@pytest.mark.parametrize(
    ("choice", "scores", "uniform", "place"),
    [
        ("argmax", [0.1, 0.7, 0.7], 0.9, 1),
        ("argmax", [0.0, 0.0], 0.9, 0),
        ("proportional", [1.0, 2.0, 1.0], 0.2499, 0),
        ("proportional", [1.0, 2.0, 1.0], 0.25, 1),
        ("proportional", [1.0, 2.0, 1.0], 0.7501, 2),
        ("proportional", [0.0, 0.0, 5e-324, 0.0], 1 - 2.0**-53, 2),
        ("proportional", [0.0, 1.0, 0.0], 2.0**-53, 1),
    ],
)
def test_choices_by_hand(choice, scores, uniform, place):
    assert choose(choice, np.array(scores), uniform) == place


test_bad_scores_are_named = refusals(
    lambda choice, scores: choose(choice, np.array(scores), 0.5),
    ("argmax", [0.5, np.nan], r"scores are \[0.5 nan\]; finite numbers >= 0 are"),
    ("argmax", [0.5, np.inf], r"scores are \[0.5 inf\]"),
    ("proportional", [0.5, -1e-9], r"-1\.e-09"),
    ("proportional", [0.0, 0.0], "with a finite sum > 0"),
    ("proportional", [1e308, 1e308], "with a finite sum > 0"),
    error=ValueError,
)


def test_a_mask_may_make_scores_equal_and_the_permutation_then_decides():
    """One unit in the last place apart: many masks leave no difference."""
    selector = streams = streams_of(0, 2)
    scores = 2.0 - np.array([2.0**-51, 2.0**-52])
    merged = 0
    for t in range(200):
        masked = [streams.masks.uniform(t, 0) * score for score in scores]
        expected = 1 if masked[0] != masked[1] else streams.permutations.words(t, 0)[0]
        merged += masked[0] == masked[1]
        assert selector.select(scores, t, 0).argmax() == expected
    assert 20 < merged < 180


def twin(algorithm, budget, seed, **parameters):
    """A run in plain Python, from SAMBA's Figures 3, 4 and 6."""
    owners, keys, streams = len(MEANS), owner_keys(seed, len(MEANS)), streams_of(seed, len(MEANS))
    luck = [np.random.Generator(np.random.SFC64(int.from_bytes(own.reward, "little"))) for own in keys]
    coin = Keystream(keys[0].coin)
    n, s, p = [0] * owners, [0] * owners, [1 / owners] * owners

    def pull(i):
        n[i] += 1
        s[i] += luck[i].random() < MEANS[i]

    def pick(scores, t, iteration, proportional):
        order = streams.permutations.words(t, iteration).tolist()
        sent = [streams.masks.uniform(t, iteration) * scores[i] for i in order]
        if not proportional:
            return order[sent.index(max(sent))]
        reach, threshold = np.cumsum(sent), streams.draws.uniform(t, iteration) * np.cumsum(sent)[-1]
        return order[int(np.argmax(reach > threshold))]

    for i in range(owners):
        pull(i)
    for t in range(owners + 1, budget + 1):
        means = [si / ni for si, ni in zip(s, n, strict=True)]
        epsilon = {"epsilon-greedy": parameters.get("epsilon"), "epsilon-decreasing": 1 / np.log2(t)}.get(
            algorithm
        )
        if epsilon is not None and coin.uniform(t) <= epsilon:
            chosen = int(streams.permutations.words(t, 0)[0])
        elif algorithm == "ucb":
            scores = [m + np.sqrt(2 * np.log(t) / ni) for m, ni in zip(means, n, strict=True)]
            chosen = pick(scores, t, 0, False)
        elif algorithm == "softmax":
            chosen = pick([np.exp(m / parameters["temperature"]) for m in means], t, 0, True)
        elif algorithm == "pursuit":
            best = pick(means, t, 0, False)
            p = [pi + parameters["rate"] * ((i == best) - pi) for i, pi in enumerate(p)]
            chosen = pick(p, t, 1, True)
        else:
            chosen = pick(means, t, 0, False)
        pull(chosen)
    return sum(s), n, s


def run(algorithm, budget, seed, **parameters):
    return run_vertical(MEANS, Algorithm(algorithm, parameters), budget, seed)


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS.keys() - {"thompson"}))
def test_a_run_is_its_twin(algorithm):
    """Thompson's is the same rule as an agent's, whose twin is elsewhere."""
    result = run(algorithm, 2000, seed=4, **ALGORITHMS[algorithm])
    reward, pulls, sums = twin(algorithm, 2000, 4, **ALGORITHMS[algorithm])
    assert (result.reward, result.pulls.tolist(), result.sums.tolist()) == (reward, pulls, sums)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_scores_of_a_hundred_owners_are_those_of_each_alone(algorithm):
    """Where compilers take several at a time, to the bit."""
    keys, generator = owner_keys(0, 100), np.random.default_rng(0)
    together = Algorithm(algorithm).bank(keys, 100, 1000)
    alone = [Algorithm(algorithm).bank([own], 100, 1000) for own in keys]
    for place in range(100):
        for _ in range(int(generator.integers(1, 50))):
            reward = int(generator.integers(2))
            together.observe(place, reward)
            alone[place].observe(0, reward)
    for t in range(101, 106):
        for iteration in range(together.rule.iterations):
            scores = together.scores(t, iteration).copy()
            assert scores.tolist() == [own.scores(t, iteration)[0] for own in alone]
            picked = np.arange(100) == scores.argmax()
            together.mark(iteration, picked)
            for place, own in enumerate(alone):
                own.mark(iteration, picked[place : place + 1])


def test_an_owners_rewards_are_counted_in_its_own_pulls():
    keys = owner_keys(3, 2)
    arms = [owner_rewards(0.5, own.reward) for own in keys]
    first = [next(arms[0]) for _ in range(600)]
    mixed = owner_rewards(0.5, keys[0].reward)
    assert [(next(arms[1]), next(mixed))[1] for _ in range(600)] == first
    assert [next(owner_rewards(mean, keys[0].reward)) for mean in (0.0, 1.0)] == [0, 1]
    # 600 fair coins: outside in 1 of 10,000 runs, were the seed not fixed.
    assert abs(sum(first) - 300) < 48


def test_a_users_own_rule_is_played():
    result = run("arms_references:LeastPulled", 1003, seed=0)
    assert sorted(result.pulls.tolist()) == [200, 200, 201, 201, 201]


def test_a_round_of_each_owner_is_the_least_budget():
    for algorithm, parameters in ALGORITHMS.items():
        assert run(algorithm, 5, seed=0, **parameters).pulls.tolist() == [1] * 5
    with pytest.raises(ValueError, match="budget is 4; an integer >= 5"):
        run("ucb", 4, seed=0)


test_what_owners_cannot_play_is_refused_with_a_reason = refusals(
    lambda algorithm, parameters: Algorithm(algorithm, parameters).bank(owner_keys(0, 3), 3, 100),
    ("reinforcement-comparison", {}, ValueError, "needs other owners' data for a score: preferences"),
    ("ucb2", {}, ValueError, "algorithm name is 'ucb2'; one of .*'softmax', .* is required"),
    ("ucb", {"temperature": 1}, TypeError, "unexpected keyword argument 'temperature'"),
    ("softmax", {"temperature": 0}, ValueError, "temperature is 0"),
    ("collections:Counter", {}, AttributeError, "'Counter' object has no attribute"),
)


test_mistakes_are_named = refusals(
    lambda make: make(),
    (lambda: SambaPlan(5, 100, Algorithm("ucb"), "largest", 1), "choice is 'largest'"),
    (lambda: SambaPlan(5, 100, Algorithm("ucb"), "argmax", 0), "iterations is 0"),
    (lambda: SambaPlan(0, 100, Algorithm("ucb"), "argmax", 1), "arms is 0"),
    (lambda: SambaPlan.make(Algorithm("ucb"), 0, 100), "arms is 0"),
    (lambda: owner_rewards(1.1, bytes(32)), "mean is 1.1"),
    (lambda: derive_key(-1, "mask"), "seed is -1"),
    error=ValueError,
)


PUBLISHED = {
    "epsilon-greedy": (48_172, 1_471),
    "epsilon-decreasing": (49_450, 1_918),
    "ucb": (47_952, 75),
    "thompson": (52_572, 194),
    "softmax": (47_737, 1_009),
    "pursuit": (45_119, 9_821),
}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", PUBLISHED)
def test_rewards_on_movielens_are_the_published_ones(algorithm):
    """Means of 50 runs of 1e5 rounds with 100 owners, beside mean and standard deviation of the authors' 150.

    UCB and Thompson within 1.5 %, the others, whose runs differ more, within two standard errors of the difference: of
    these four one is further off in 1 of 5 runs, were the seeds not fixed.
    """
    means, runs, budget = packaged_means("movielens"), 50, 100_000
    changed = {"epsilon-greedy": {"epsilon": 0.1}, "pursuit": {"rate": 0.1}}
    played = Algorithm(algorithm, changed.get(algorithm, ALGORITHMS[algorithm]))
    rewards = [run_vertical(means, played, budget, seed).reward for seed in range(runs)]
    mean, sd = np.mean(rewards), np.std(rewards, ddof=1)
    published, published_sd = PUBLISHED[algorithm]
    print(f"{algorithm}: {mean:.0f} (sd {sd:.0f}), published {published} ({published_sd})")
    tolerance = 2 * np.hypot(sd / runs**0.5, published_sd / 150**0.5)
    if algorithm in ("ucb", "thompson"):
        tolerance = 0.015 * published
    assert abs(mean - published) <= tolerance


def test_every_algorithm_is_tried():
    assert ALGORITHMS.keys() == RULES.keys()
