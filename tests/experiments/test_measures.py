"""Measures of regret: their values, and how often their intervals hold the true one."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap, t
from scipy.stats import norm as normal

from fedbandit_envs.experiments import measures

RNG = np.random.default_rng(0)
SKEWED, CONTROL = RNG.lognormal(size=(2, 40))
TASKS = np.repeat([0, 1], 20)


def test_intervals_are_those_of_another_bootstrap_at_the_levels_of_student():
    """Quantiles of 4,000 and of 20,000 resamples differ by 8 % of a width at most, about three sigma."""
    inside = 1 - 2 * normal.cdf(t.ppf(0.025, 39) * np.sqrt(40 / 39))
    options = {"paired": True, "confidence_level": inside, "n_resamples": 20_000, "random_state": 1}
    for found, runs, measure in (
        (measures.mean_with_interval(SKEWED), [SKEWED], np.mean),
        (measures.ratio_with_interval(SKEWED, CONTROL), [SKEWED, CONTROL], ratio),
    ):
        other = bootstrap(runs, measure, method="BCa", **options).confidence_interval
        np.testing.assert_allclose(found[1:], other, atol=0.08 * (other.high - other.low))
        assert found[0] == measure(*runs, axis=-1)


def ratio(above, below, axis):
    return above.mean(axis) / below.mean(axis)


def test_means_of_many_are_means_of_each_and_do_not_change():
    many = measures.mean_with_interval(np.stack([SKEWED, CONTROL, np.full(40, 0.1)]).reshape(3, 1, 40))
    for place, one in enumerate((SKEWED, CONTROL)):
        alone = measures.mean_with_interval(one)
        np.testing.assert_allclose([part[place, 0] for part in many], alone, rtol=1e-12)
        np.testing.assert_array_equal(alone, measures.mean_with_interval(one))
    np.testing.assert_allclose([part[2, 0] for part in many], 0.1, rtol=1e-12)
    assert [measures._counts(*runs).shape for runs in ((200, 0), (2000, 0, 4000))] == [
        (4000, 200),
        (1000, 2000),
    ]


def test_a_ratio_over_tasks_is_the_geometric_mean_and_its_runs_are_pairs():
    scaled = np.where(TASKS, 1000, 1) * SKEWED
    value, low, high = measures.ratio_with_interval(scaled, CONTROL, TASKS)
    halves = [(scaled[own], CONTROL[own]) for own in (TASKS == 0, TASKS == 1)]
    by_task = [measures.ratio_with_interval(*half) for half in halves]
    assert value == pytest.approx(np.sqrt(by_task[0][0] * by_task[1][0]))
    widths = [np.log(one[2] / one[1]) for one in by_task]
    # Logarithms of two independent tasks add up, at a weight of one half each.
    assert np.log(high / low) == pytest.approx(np.hypot(*widths) / 2, rel=0.15)
    assert measures.ratio_with_interval(3 * SKEWED, SKEWED, TASKS) == pytest.approx((3, 3, 3))
    assert measures.ratio_with_interval(SKEWED, SKEWED) == (1, 1, 1)
    assert measures.ratio_with_interval(np.zeros(40), SKEWED) == (0, 0, 0)
    few = measures.ratio_with_interval(SKEWED[:24], CONTROL[:24], TASKS[:24])
    np.testing.assert_array_equal(np.isnan(few), [False, True, True])
    np.testing.assert_array_equal(np.isnan(measures.mean_with_interval(SKEWED[:4])), [False, True, True])


def test_the_mean_of_one_row_of_runs_is_a_float():
    for runs in (40, 4):
        assert [type(one) for one in measures.mean_with_interval(SKEWED[:runs])] == [float] * 3
        assert [one.shape for one in measures.mean_with_interval(SKEWED[np.newaxis, :runs])] == [(1,)] * 3


def test_intervals_of_few_normal_values_cover_as_often_as_they_say():
    """2,000 samples of 6: 1,900 expected; 60 more or fewer are beyond four sigma (39) and what skewness costs."""
    values = np.random.default_rng(0).normal(3.0, 2.0, (2000, 6))
    _, low, high = measures.mean_with_interval(values)
    assert abs(((low <= 3.0) & (high >= 3.0)).sum() - 1900) < 60


def test_what_the_worst_runs_do():
    regret = np.ones(40)
    regret[[0, 25]] = 100, 50
    silent = np.full(40, 2.0)
    assert measures.median_ratio(regret, silent) == 0.5
    # Two runs of twenty are a tenth: 100 and 1, 50 and 1.
    assert measures.worst_tenth(regret, silent, TASKS) == pytest.approx(np.sqrt(50.5 / 2 * 25.5 / 2))
    assert measures.largest_share(regret, TASKS) == 100 / 119
    late = np.where(regret > 60, 4.1, np.where(regret > 1, 4.0, 0.0))
    assert measures.failures(late, silent, TASKS) == 1


@pytest.mark.parametrize(("failed", "runs"), [(0, 50), (1, 200), (7, 20), (20, 20)])
def test_the_bound_on_failures_is_clopper_and_pearson_s(failed, runs):
    exact = binomtest(failed, runs, alternative="less").proportion_ci(0.95).high
    assert measures.most_failures(failed, runs) == pytest.approx(exact)
