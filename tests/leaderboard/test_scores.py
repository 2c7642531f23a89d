"""Scores and their intervals, against stored values of rliable and against brute force."""

import json
from itertools import product
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest

from fedbandit_envs.leaderboard.scores import (
    Estimate,
    interquartile_mean,
    normalised,
    paired_difference,
    performance_profile,
    probability_of_improvement,
    regret_ratio,
    rounded,
    with_interval,
)

SEEDS, TASKS = 12, 3
ENDS = 0.007
"""How far two bootstraps of 2000 and 20,000 resamples may be apart at an interval's end, over three standard errors."""


@pytest.fixture(scope="module")
def rliable():
    """What rliable 1.2.0 says, which ``rliable.json`` holds.

    It was made in an environment with rliable and pandas 2 by::

        rng = np.random.default_rng(0)
        scores = {
            "a": rng.normal([0.5, 0.7, 0.2], 0.2, (12, 3)).round(2),
            "b": rng.normal([0.4, 0.7, 0.3], 0.1, (12, 3)).round(2),
        }
        taus = np.array([0.0, 0.2, 0.4, 0.6, 0.8])
        iqm, iqm_ends = library.get_interval_estimates(
            scores, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=20000
        )
        profile, profile_ends = library.create_performance_profile(scores, taus, reps=20000)
        better = metrics.probability_of_improvement(scores["a"], scores["b"])

    with ``seeds`` on the first axis and tasks on the second, all written as lists.
    """
    return json.loads((Path(__file__).parent / "rliable.json").read_text())


def runs(scores):
    """Runs seed by seed, so that tasks alternate, and the task of each."""
    return np.ravel(scores), np.tile(np.arange(TASKS), SEEDS)


@pytest.mark.parametrize("name", ["a", "b"])
def test_interquartile_mean_is_rliable_s(rliable, name):
    value, low, high = with_interval(*runs(rliable["scores"][name]))
    assert value == pytest.approx(rliable["interquartile_mean"][name][0], abs=1e-12)
    assert [low, high] == pytest.approx(np.ravel(rliable["interquartile_mean_ends"][name]), abs=ENDS)
    assert low < value < high


@pytest.mark.parametrize("name", ["a", "b"])
def test_performance_profile_is_rliable_s(rliable, name):
    value, low, high = performance_profile(*runs(rliable["scores"][name]), np.array(rliable["thresholds"]))
    assert value == pytest.approx(rliable["profile"][name], abs=1e-12)
    # Steps of one run in 36.
    assert low == pytest.approx(np.array(rliable["profile_ends"][name])[0], abs=1 / 36 + 1e-9)
    assert high == pytest.approx(np.array(rliable["profile_ends"][name])[1], abs=1 / 36 + 1e-9)


def test_probability_of_improvement_is_rliable_s(rliable):
    mine, tasks = runs(rliable["scores"]["a"])
    other, _ = runs(rliable["scores"]["b"])
    value, low, high = probability_of_improvement(mine, other, tasks)
    assert value == pytest.approx(rliable["probability_of_improvement"], abs=1e-12)
    assert low < value < high
    assert probability_of_improvement(other, mine, tasks).value == pytest.approx(1 - value)


def test_probability_of_improvement_counts_pairs_and_half_of_ties():
    mine, other = np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.5, 0.2, 0.9, 0.9])
    tasks = np.zeros(4)
    counted = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(mine, other)]
    assert probability_of_improvement(mine, other, tasks).value == pytest.approx(np.mean(counted))


def test_pairs_are_resampled_together():
    """Randomness that both share widens each interval and not that of the difference."""
    generator = np.random.default_rng(1)
    luck = generator.normal(size=40)
    mine, tasks = luck + 0.1 + generator.normal(scale=0.001, size=40), np.repeat([0, 1], 20)
    value, low, high = paired_difference(mine, luck, tasks)
    assert value == pytest.approx(0.1, abs=0.01)
    assert high - low < 0.05
    alone = with_interval(mine, tasks)
    assert alone.high - alone.low > 0.3
    assert paired_difference(mine, mine, tasks) == (0, 0, 0)


def test_order_of_runs_does_not_matter():
    generator = np.random.default_rng(2)
    mine, other, tasks = generator.normal(size=30), generator.normal(size=30), np.arange(30) % 3
    order = np.argsort(tasks, kind="stable")
    for statistic in (paired_difference, probability_of_improvement):
        assert statistic(mine, other, tasks) == pytest.approx(
            statistic(mine[order], other[order], tasks[order]), abs=1e-12
        )


def test_interval_holds_tasks_fixed():
    """Tasks that lie far apart, with seeds that agree, leave no uncertainty."""
    scores, tasks = np.repeat([0.0, 0.4, 0.9], 5), np.repeat([0, 1, 2], 5)
    assert with_interval(scores, tasks) == pytest.approx([interquartile_mean(scores)] * 3)


def test_middle_half_ignores_outliers():
    assert interquartile_mean(np.array([-1e9, 0.4, 0.6, 1e9])) == pytest.approx(0.5)


def test_too_few_seeds_have_no_interval():
    value, low, high = with_interval(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.array([0, 0, 0, 1, 1]))
    assert value == pytest.approx(0.3)
    assert isnan(low)
    assert isnan(high)


def test_normalised_score():
    assert normalised(np.array([0.0, 5.0, 20.0]), np.full(3, 10.0)).tolist() == [1.0, 0.5, -1.0]
    with pytest.raises(ValueError, match=r"reference has shape \(2,\)"):
        normalised(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match=r"0\.0 as its least regret"):
        normalised(np.ones(2), np.array([1.0, 0.0]))


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        ((0.93, 0.91, 0.95), "0.93 [0.91, 0.95]"),
        ((0.9212, 0.9142, 0.9281), "0.921 [0.914, 0.928]"),
        ((0.99749, 0.99632, 0.9981), "0.9975 [0.9963, 0.9981]"),
        ((33.0, 29.4, 36.7), "33 [29, 37]"),
        ((33.0, 22.4, 46.7), "33 [22, 47]"),
        ((8123.0, 8001.0, 8245.0), "8,120 [8,000, 8,240]"),
        ((25020.0, -16342.0, 66382.0), "30,000 [-20,000, 70,000]"),
        ((-0.0001, -0.01, 0.01), "0.000 [-0.010, 0.010]"),
        # An empty interval, or one that is empty but for rounding errors, gives no hint.
        ((0.5, 0.5, 0.5 + 1e-12), "0.50 [0.50, 0.50]"),
        ((0.5, 0.4999999, 0.5), "0.50 [0.50, 0.50]"),
        ((1e-300, 0.0, 1e-299), "0.00 [0.00, 0.00]"),
        ((1234.5, 1234.5, 1234.5), "1,234 [1,234, 1,234]"),
        ((12.345, nan, nan), "12.3"),
        ((0.5, nan, nan), "0.50"),
    ],
)
def test_the_interval_decides_the_digits(estimate, text):
    assert rounded(Estimate(*estimate)) == text


def test_ratios_of_regret_do_not_depend_on_units_and_have_no_favourite():
    generator = np.random.default_rng(5)
    tasks = np.repeat([0, 1], 20)
    mine, other = generator.lognormal(0, 1, (2, 40))
    there, back = regret_ratio(mine, other, tasks), regret_ratio(other, mine, tasks)
    assert there.value * back.value == pytest.approx(1)
    scale = np.where(tasks, 1e6, 1.0)
    assert regret_ratio(mine * scale, other * scale, tasks) == pytest.approx(there)
    assert regret_ratio(mine * 3, mine, tasks) == pytest.approx((3, 3, 3))
    assert regret_ratio(mine * 0, mine, tasks) == pytest.approx((0, 0, 0))
