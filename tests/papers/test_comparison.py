"""Ratios, intervals, orders and bounds by which runs are compared, and when a page gives a verdict."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from fedbandit_envs.leaderboard.reproduction.comparison import (
    Ratio,
    all_hold,
    instance_ratios,
    ordered,
    over_seeds,
    ratio,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Scale
from fedbandit_envs.leaderboard.runs.result import ONE_STRATUM, RunResult, Strata
from fedbandit_envs.leaderboard.runs.statistics import (
    mean_and_half_width,
    ratio_in_other_strata,
    ratio_with_interval,
    stratum_means,
)
from fedbandit_envs.papers.pfcb import analysis


def test_verdicts_are_given_at_the_paper_s_horizon_alone():
    at_end, elsewhere = Scale(100_000, 2), Scale(99_999, 20)
    assert [analysis.verdict(s, at_end) for s in ("holds", "does **not** hold", "undecided")] == [
        "agrees", "**differs**", "undecided",
    ]  # fmt: skip
    assert analysis.verdict("holds", elsewhere) == "not the paper's setting"


def test_regret_over_the_line_between_the_ends_and_what_fits_a_sweep():
    points = {2.0: played(np.ones(4)), 4.0: played(np.full(4, 3.0)), 10.0: played(np.full(4, 5.0))}
    # The line from 1 at 2 to 5 at 10 is at 2 there.
    assert analysis.chords(points)[4.0].value == pytest.approx(3 / 2)
    sizes = np.array([2.0, 5, 10, 40])

    def explained(regrets):
        runs = {size: played(np.full(4, regret)) for size, regret in zip(sizes, regrets, strict=True)}
        return analysis.explained(runs)

    assert explained(100 - 2 * sizes)[0] == pytest.approx(1)
    straight, power = explained(7 / np.sqrt(sizes))
    assert straight < 0.9
    assert power == pytest.approx(1)


def test_ratios_of_markets_and_without_one():
    regrets = np.array([[1.0, 10, 100], [3, 30, 300]]).ravel()
    above, below = played(2 * regrets, Strata(3, "markets")), played(regrets, Strata(3, "markets"))
    below = replace(below, regret=below.regret * np.tile([1.0, 2, 4], 2)[:, np.newaxis])
    np.testing.assert_allclose(instance_ratios(above, below), [2, 1, 0.5])
    kept = [analysis.of_markets(run, [0, 1]) for run in (above, below)]
    np.testing.assert_allclose(instance_ratios(*kept), [2, 1])
    assert ratio(*kept).value == pytest.approx(2 * 11 / 21)
    assert analysis.compared("ratio", above, below)["median market"] == "1.000"


def test_ratio_intervals_cover():
    """400 paired experiments with a true ratio of 0.7: below 355 of 380 expected is a four-sigma event."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        luck = rng.gamma(9.0, size=40)
        below, above = luck + rng.normal(0, 0.3, 40), 0.7 * luck + rng.normal(0, 0.3, 40)
        _, low, high = ratio_with_interval(above, below, np.arange(40) % 5, resamples=300)
        covered += low <= 0.7 <= high
    assert covered >= 355


def test_intervals_hold_strata_fixed_or_take_them_as_drawn():
    """400 experiments of 5 markets x 8 runs: of 380 expected, below 355 (runs) and 340 (markets) are beyond 4 sigma."""
    rng = np.random.default_rng(2)
    strata = np.arange(40) % 5
    covered = {"runs": 0, "markets": 0}
    for _ in range(400):
        markets, spread = rng.normal(10, 2, 5), rng.uniform(0.2, 1, 5)
        values = markets[strata] + spread[strata] * rng.normal(size=40)
        mean, half = mean_and_half_width(values, strata=strata)
        covered["runs"] += abs(mean - markets.mean()) <= half
        mean, half = mean_and_half_width(stratum_means(values, strata))
        covered["markets"] += abs(mean - 10) <= half
    assert covered["runs"] >= 355
    assert covered["markets"] >= 340
    # A single stratum is Student's interval; far strata do not widen the fixed one; a stratum of one has none.
    alone = mean_and_half_width(values[:8], strata=np.zeros(8))
    assert alone == mean_and_half_width(values[:8])
    assert alone[1] == pytest.approx(student.ppf(0.975, 7) * values[:8].std(ddof=1) / np.sqrt(8))
    near, far = (mean_and_half_width(values + s * strata, strata=strata)[1] for s in (0, 100))
    assert near == pytest.approx(far)
    assert np.isnan(mean_and_half_width(values[:9], strata=np.arange(9) // 8)[1])
    assert mean_and_half_width(np.ones(10), strata=strata[:10])[1] == 0


def test_ratios_elsewhere_are_predicted():
    """400 pairs of five markets: the others' ratio lies within for 380 expected; below 350 is beyond six sigma."""
    rng = np.random.default_rng(3)
    strata = np.arange(20) % 5

    def five():
        size, factor = rng.gamma(9.0, size=5), rng.uniform(0.5, 0.9, 5)
        below = (size[strata] + rng.normal(0, 0.3, 20)).clip(0.1)
        return factor[strata] * below, below

    within = 0
    for _ in range(400):
        low, high = ratio_in_other_strata(*five(), strata)
        above, below = five()
        within += low <= above.mean() / below.mean() <= high
    assert within >= 350
    assert np.isnan(ratio_in_other_strata(*five(), np.zeros(20))).all()


def test_measures_write_themselves():
    value = Ratio(0.7, 0.68, 0.72, 0.6, 0.8, "markets")
    assert str(value) == "0.700 [0.680, 0.720], markets 0.60 to 0.80"
    assert str(replace(value, instances="")) == "0.700 [0.680, 0.720]"
    span = Ratio(np.nan, 0.6, 0.8)
    assert str(span) == "[0.60, 0.80]"
    assert [span.holds(number) for number in (0.6, 0.8, 0.59, 0.81)] == [
        "holds", "holds", "does **not** hold", "does **not** hold",
    ]  # fmt: skip


def test_two_trials_make_no_interval():
    above, below = played([3.0, 5.0]), played([2.0, 2.0])
    value = ratio(above, below)
    assert (value.value, value.least, value.most) == (2.0, 1.5, 2.5)
    assert str(value) == "2.000, trials 1.50 to 2.50"
    assert value.at_most(100) == value.at_least(0) == "undecided"
    assert value.numbers() == {"value": 2.0, "least": 1.5, "most": 2.5}
    mean = over_seeds(np.array([3.0, 5.0]))
    assert str(mean) == "4, trials 3 to 5"
    assert mean.numbers() == {"value": 4.0, "least": 3.0, "most": 5.0}
    assert str(over_seeds(np.array([3.0, 5.0, 4.0]))) == "4 ± 2"


def test_bounds_hold_do_not_or_are_undecided():
    value = Ratio(0.7, 0.68, 0.72, 0.6, 0.8)
    assert [value.at_most(bound) for bound in (0.6, 0.7, 0.72, 0.8)] == [
        "does **not** hold", "undecided", "holds", "holds",
    ]  # fmt: skip
    assert [value.at_least(bound) for bound in (0.6, 0.68, 0.7, 0.8)] == [
        "holds", "holds", "undecided", "does **not** hold",
    ]  # fmt: skip
    assert all_hold(["holds", "holds"]) == "holds"
    assert all_hold(["holds", "undecided"]) == "undecided"
    assert all_hold(["undecided", "does **not** hold", "holds"]) == "does **not** hold"


def played(regret, strata=ONE_STRATUM):
    return RunResult(np.array([1]), np.asarray(regret)[np.newaxis, :, np.newaxis], strata=strata)


def test_orders_are_those_of_the_means():
    rng = np.random.default_rng(0)
    luck = rng.gamma(9.0, size=40)
    low, middle, high = (played(factor * luck + rng.normal(0, 0.1, 40)) for factor in (1.0, 1.5, 2.0))
    holds, ratios = ordered([low, middle, high])
    assert holds == "holds"
    assert [link.value for link in ratios] == pytest.approx([1 / 1.5, 1.5 / 2], abs=0.02)
    assert ordered([low, high, middle])[0] == "does **not** hold"
    assert ordered([low, low, high])[0] == "holds"  # at most means at most
    assert ordered([low, played(luck[::-1]), high])[0] != "holds"


def test_bounds_on_equal_runs_are_mostly_undecided():
    """400 pairs of a true ratio of 1: each side decides 10 of them by chance; beyond 30 is a six-sigma event."""
    rng = np.random.default_rng(1)
    decided = {"holds": 0, "does **not** hold": 0, "undecided": 0}
    for _ in range(400):
        luck = rng.gamma(9.0, size=40)
        link = ratio(played(luck + rng.normal(0, 0.3, 40)), played(luck + rng.normal(0, 0.3, 40)))
        decided[link.at_most(1)] += 1
    assert decided["holds"] <= 30
    assert decided["does **not** hold"] <= 30


def test_only_runs_of_the_same_instances_are_compared():
    with pytest.raises(ValueError, match="denominator has"):
        ratio(played(np.ones(4)), played(np.ones(6)))
    with pytest.raises(ValueError, match="denominator has"):
        ratio(played(np.ones(4)), played(np.ones(4), Strata(2, "markets")))
