"""Bernoulli arms: outcomes, superarms, sleeping arms and regret, each computed once more."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from arms_references import adjacent
from played import begun
from refusals import refusals
from scipy.stats import chisquare
from threefry_reference import threefry
from undrawn import undrawn

from fedbandit_envs.arms.ratings import packaged_means
from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.randomness.streams import Purpose, row_keys
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_federation
from fedbandit_envs.wrappers.participation import Participation

VARIANTS = {
    "superarms": {"slots": 3, "num_arms": 5},
    "sleeping": {"awake": 0.4, "num_arms": 3},
    "apart": {"spread": 0.3, "regret": "federation", "num_arms": 4},
    "mixed": {"spread": 0.3, "regret": 0.3, "num_arms": 2},
    "all": {"slots": 2, "awake": 0.6, "spread": 0.1, "num_arms": 6, "oracle": "arms_references:adjacent"},
}


def test_all_variants_together_conform():
    with undrawn():
        check_federation(partial(parallel_env, num_agents=3, **VARIANTS["all"]))


@pytest.fixture
def play(sample_actions):
    return partial(played, sample_actions)


def played(sample_actions, **kwargs):
    """Plays random actions; returns the environment, what was seen before, done and came of it, and the end."""
    env = parallel_env(max_cycles=200, **kwargs)
    actions = sample_actions(env, 2, seed=5, rounds=200)
    observation = env.reset_batch(range(2)).observation
    record = []
    for action in actions:
        before = {name: array.copy() for name, array in observation.items()}
        step = env.step_batch(action)
        observation = step.observation
        record.append((before, action, step.reward.copy(), {name: a.copy() for name, a in step.info.items()}))
    return env, record, observation


@pytest.mark.parametrize("variant", [{}, *VARIANTS.values()], ids=["plain", *VARIANTS])
def test_rounds_by_hand(variant, play):
    """Outcomes from the stream's own words; superarms as sets; regret against every set there is."""
    env, record, after = play(num_agents=3, **variant)
    means = env.hidden()["mean"]
    slots, arms = variant.get("slots", 1), means.shape[2]
    alpha = {"federation": 0.0}.get(variant.get("regret", 1.0), variant.get("regret", 1.0))
    values = alpha * means + (1 - alpha) * means.mean(axis=1, keepdims=True)
    keys = row_keys(range(2), 3, Purpose.OUTCOME).tolist()
    pulls, successes = np.zeros((2, *means.shape), np.int64)
    for t, (before, action, reward, info) in enumerate(record):
        for r, j in np.ndindex(2, 3):
            np.testing.assert_array_equal(before["total_pulls"][r, j], pulls[r, j])
            awake = before["awake"][r, j] if "awake" in before else np.ones(arms, bool)
            superarm = [k for k in {int(k) for k in np.ravel(action[r, j])} if awake[k]]
            good = [k for k in superarm if threefry(keys[r][j], (t, k))[0] < 2**32 * means[r, j, k]]
            pulls[r, j, superarm] += 1
            successes[r, j, good] += 1
            assert reward[r, j] == len(good)
            assert info["wasted"][r, j] == slots - len(superarm)
            there = np.where(awake, values[r, j], -np.inf)
            if "oracle" in variant:
                best = [k for k in adjacent(there, slots) if awake[k]]
            else:
                best = np.argsort(-there)[: min(slots, awake.sum())]
            expected = values[r, j, best].sum() - values[r, j, superarm].sum()
            assert info["regret"][r, j] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(after["total_pulls"], pulls)
    np.testing.assert_array_equal(after["total_successes"], successes)


def test_the_best_superarm_has_no_regret_however_it_is_said():
    env = begun(parallel_env(num_arms=9, slots=9, num_agents=4), range(50))
    generator = np.random.default_rng(0)
    for _ in range(5):
        order = generator.permuted(np.broadcast_to(np.arange(9), (50, 4, 9)), axis=-1)
        assert (env.step_batch(order).info["regret"] == 0.0).all()


def test_who_sits_out_sees_the_arms_of_its_last_round():
    env = Participation(parallel_env(num_agents=2, num_arms=8, awake=0.5), "in_turn")
    observation = env.reset_batch([0]).observation
    seen = observation["awake"].copy()
    for _ in range(20):
        active = observation["active"][..., 0].copy()
        observation = env.step_batch(np.zeros((1, 2), np.int64)).observation
        # Drawn anew for who acts next, and for nobody else.
        same = (observation["awake"] == seen).all(axis=-1)
        assert same[~observation["active"][..., 0]].all()
        assert observation["total_pulls"].sum() <= 20
        assert active.sum() == 1
        seen = observation["awake"].copy()


def test_means_apart():
    apart = begun(parallel_env(num_agents=6, spread=0.2, num_arms=50), [3]).hidden()["mean"][0]
    centre = begun(parallel_env(num_agents=6, num_arms=50), [3]).hidden()["mean"][0]
    assert (centre == centre[0]).all()
    difference = apart - centre
    assert np.abs(difference).max() <= 0.2
    assert np.abs(difference).max() > 0.19
    assert ((apart >= 0) & (apart <= 1)).all()
    # Federations of another size meet the same first agents, and the same first arms where they are not apart.
    few = begun(parallel_env(num_agents=2, spread=0.2, num_arms=50), [3])
    np.testing.assert_array_equal(few.hidden()["mean"][0], apart[:2])


@pytest.mark.parametrize(("env_id", "users"), [("FedArmsMovieLens-v0", 943), ("FedArmsJester-v0", 24_983)])
def test_data_sets_are_shares_of_all_users(env_id, users):
    means = begun(make_federation(env_id), [0, 1]).hidden()["mean"]
    assert means.shape == (2, 10, 100)
    assert (means == means[0, 0]).all()
    counts = means[0, 0] * users
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    kept = begun(make_federation(env_id, num_arms=10)).hidden()["mean"][0, 0]
    assert sorted(kept) == sorted(means[0, 0])[-10:]
    # In the order that they had.
    assert [value for value in means[0, 0] if value in kept] == kept.tolist()


def test_permuted_arms_are_in_an_order_that_the_seed_draws_the_same_for_all_agents():
    """Places of the best of ten arms in 2,000 instances: a uniform place fails in 1 of 100,000 runs without a seed."""
    given = packaged_means("movielens")
    means = begun(make_federation("FedArmsMovieLens-v1", num_agents=2), range(50)).hidden()["mean"]
    assert (means == means[:, :1]).all()
    assert all(sorted(row) == sorted(given) for row in means[:, 0])
    assert len({tuple(row) for row in means[:, 0]}) == 50
    more = begun(make_federation("FedArmsMovieLens-v1", num_agents=3), [7])
    np.testing.assert_array_equal(more.hidden()["mean"][0, 0], means[7, 0])
    few = begun(make_federation("FedArmsMovieLens-v1", num_agents=1, num_arms=10), range(2000))
    places = np.bincount(few.hidden()["mean"][:, 0].argmax(axis=1), minlength=10)
    assert chisquare(places).pvalue > 1e-5


def test_each_agents_given_means_are_permuted_together():
    """So an arm's average over the federation stays that of one arm; the instance's seed fixes the order."""
    means = np.arange(8).reshape(2, 4) / 8
    drawn = begun(parallel_env(means=means, permuted=True, instance_seed=3), [0, 1]).hidden()["mean"]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_allclose(drawn[0, 1] - drawn[0, 0], 0.5)
    assert not np.array_equal(drawn[0], means)


def test_sums_of_packaged_means_are_those_of_the_data():
    """To notice an edit: added up from the files that came with the paper."""
    assert packaged_means("movielens").sum() == pytest.approx(10.080593849, abs=1e-9)
    assert packaged_means("jester").sum() == pytest.approx(20.889124605, abs=1e-9)


def test_values_pull_the_largest_of_those_awake():
    env = parallel_env(num_agents=1, num_arms=4, slots=2, awake=0.5)
    choose = env.action_formats["values"].to_action
    values = np.array([[[0.1, 0.9, 0.9, 0.3]]], np.float32)
    awake = {"awake": np.array([[[True, False, True, True]]])}
    assert choose(values, awake).tolist() == [[[2, 3]]]
    assert choose(values, {}).tolist() == [[[1, 2]]]
    assert parallel_env(num_arms=4).action_formats["values"].to_action(values, {}).tolist() == [[1]]
    with pytest.raises(ValueError, match=r"action: values\[0, 0, 3\] is nan; numbers"):
        choose(np.array([[[0.1, 0.2, 0.3, np.nan]]]), {})


test_bad_arguments_are_named = refusals(
    lambda kwargs: parallel_env(**kwargs),
    ({"means": "netflix"}, ValueError, "means is 'netflix'"),
    ({"means": [0.5, 1.2]}, ValueError, r"means\[1\] is 1.2"),
    ({"means": [[0.5, 0.2], [0.5]]}, ValueError, r"means is \[\[0.5, 0.2\], \[0.5\]\] .* is required"),
    ({"means": [[0.5], [0.5]], "num_agents": 3}, ValueError, "num_agents is 3; None or 2"),
    ({"means": [[0.5], [0.5]], "spread": 0.1}, ValueError, "spread is 0.1; 0 is required"),
    ({"permuted": 1}, TypeError, "permuted is 1; True or False"),
    ({"means": "jester", "num_arms": 101}, ValueError, r"num_arms is 101; an integer in \[1, 100\]"),
    ({"slots": 11}, ValueError, "slots is 11; at most 10"),
    ({"regret": "mine"}, ValueError, "regret is 'mine'"),
    ({"oracle": "best"}, ValueError, "oracle is 'best'; one of 'largest'"),
    # NumPy would make numbers of texts, dates, complex numbers and what is masked.
    *(
        ({"means": m}, ValueError, r"means is [^;]*; \(arms,\) or \(agents, arms\) is required, of numbers")
        for m in (
            ["0.5", "0.2"],
            np.array(["1970-01-01", "1970-01-01"], "datetime64[s]"),
            np.array([0.5 + 1j, 0.2]),
            np.ma.masked_array([0.5, 0.2], [True, False]),
            [0.5, None],
        )
    ),
)


test_what_an_oracle_must_not_say_is_named = refusals(
    lambda oracle: begun(parallel_env(oracle=f"arms_references:{oracle}")),
    ("all_arms", r"oracle returns int64 of shape \(1, 10, 10\), .* = \(1, 10, 1\), are"),
    ("no_arm", r"oracle returns int64 .*, from 10 to 10; arms, integers in \[0, 9\]"),
    error=ValueError,
)


def test_sensitivity_by_enumeration():
    """One pull and outcome in place of any other, and one outcome in place of the other, as they leave."""
    left = {}
    for arm, good in product(range(3), (0, 1)):
        env = begun(parallel_env(means=[float(good)] * 3, num_agents=1))
        env.step_batch(np.array([[arm]]))
        left[arm, good] = np.array([array[0, 0] for array in env.release(np.ones((1, 1), bool)).values()])
    outcomes = {key: np.array([good, total - good]) for key, (total, good) in left.items()}
    told = env.sensitivity()
    for changes, values in ((told.changes, left), (told.pair.changes, outcomes)):
        for adjacency, same_arm in (("one-observation", False), ("one-outcome", True)):
            apart = [values[a] - values[b] for a in left for b in left if a[0] == b[0] or not same_arm]
            most, norm = changes[adjacency]
            assert max(np.count_nonzero(difference) for difference in apart) == most
            assert max(np.linalg.norm(difference) for difference in apart) == pytest.approx(norm)
