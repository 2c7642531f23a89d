"""Ratios, intervals, orders and bounds by which runs are compared, and when a page gives a verdict."""

from dataclasses import replace

import numpy as np
import pytest

from fedbandit_envs.experiments.measures import ratio_with_interval
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers import pfcb, stats
from fedbandit_envs.papers.experiment import Plan, Scale
from fedbandit_envs.papers.stats import FAILS, Ratio, final_regret, mean_of, ratio


def test_a_printed_number_is_judged_at_the_paper_s_horizon_alone():
    at_end, elsewhere = (Plan("uniform", Scale(*size)) for size in ((100_000, 2), (99_999, 20)))
    value = Ratio(np.nan, 0.6, 0.8, 20)
    assert [pfcb._consistent(number, value, at_end) for number in (0.7, 0.9)] == ["holds", FAILS]
    assert pfcb._consistent(0.7, value, elsewhere) == "not the paper's setting"


def test_regret_over_the_line_between_the_ends_and_what_fits_a_sweep():
    points = {2.0: played(np.ones(4)), 4.0: played(np.full(4, 3.0)), 10.0: played(np.full(4, 5.0))}
    # The line from 1 at 2 to 5 at 10 is at 2 there.
    assert pfcb.chords(points)[4.0].value == pytest.approx(3 / 2)
    sizes = np.array([2.0, 5, 10, 40])

    def explained(regrets):
        runs = {size: played(np.full(4, regret)) for size, regret in zip(sizes, regrets, strict=True)}
        return pfcb.explained(runs)

    assert explained(100 - 2 * sizes)[0] == pytest.approx(1)
    straight, power = explained(7 / np.sqrt(sizes))
    assert straight < 0.9
    assert power == pytest.approx(1)


def test_ratios_of_markets_and_without_one():
    regrets = np.array([[1.0, 10, 100], [3, 30, 300]]).ravel()
    above, below = played(2 * regrets, 3), played(regrets, 3)
    below = replace(below, regret=below.regret * np.tile([1.0, 2, 4], 2)[:, np.newaxis])
    np.testing.assert_allclose(stats.regret_by_instance(above), [4, 40, 400])
    np.testing.assert_allclose(stats.regret_by_instance(below), [2, 40, 800])
    assert pfcb._compared("ratio", above, below)["median market"] == "1.000"
    # Many seeds of three markets are three instances: an interval over seeds would not widen with their distance.
    assert ratio(above, below).instances == final_regret(above).instances == 3
    assert np.isnan(final_regret(above).low)
    assert final_regret(played(regrets)).low > 0


def test_measures_write_themselves():
    assert str(Ratio(0.7, 0.68, 0.72, 20)) == "0.700 [0.680, 0.720]"
    span = Ratio(np.nan, 0.6, 0.8, 20)
    assert str(span) == "[0.600, 0.800]"
    assert [span.contains(number) for number in (0.6, 0.8, 0.59, 0.81)] == [
        "holds", "holds", "does **not** hold", "does **not** hold",
    ]  # fmt: skip


def test_two_trials_make_no_interval():
    above, below = played([3.0, 5.0]), played([2.0, 2.0])
    value = ratio(above, below)
    assert str(value) == "2.000"
    assert (value.value, value.instances) == (2.0, 2)
    assert np.isnan([value.low, value.high]).all()
    mean = mean_of(np.array([3.0, 5.0]))
    assert str(mean) == "4"
    five = mean_of(np.array([3.0, 5.0, 4.0, 4.0, 4.0]), ".1f")
    assert str(five) == f"4.0 [{five.low:.1f}, {five.high:.1f}]"


def test_no_verdict_follows_from_fewer_than_twenty_instances():
    few, enough = (Ratio(0.7, 0.68, 0.72, count) for count in (19, 20))
    for verdict in (
        lambda value: value.at_most(100),
        lambda value: stats.verdict(value, low=0),
        lambda value: value.contains(0.7),
        lambda value: stats.all_within([enough, value]),
    ):
        assert verdict(few) == "exploratory"
        assert verdict(enough) == "holds"
    assert stats.pays_at({1.0: enough, 2.0: few}) == "exploratory"
    assert stats.lies_within(0.7, few) == "whether it is 0.7: exploratory"
    # Five markets are five instances, whatever the number of their runs.
    assert ratio(played(np.ones(100), 5), played(np.ones(100), 5)).at_most(2) == "exploratory"
    assert ratio(played(np.ones(100), 20), played(np.ones(100), 20)).at_most(2) == "holds"
    assert stats.falls({x: played(np.full(19, 1 / x)) for x in (1.0, 2.0)}) == "exploratory"


def test_bounds_hold_do_not_or_are_undecided():
    value = Ratio(0.7, 0.68, 0.72, 20)
    assert [value.at_most(bound) for bound in (0.6, 0.7, 0.72, 0.8)] == [
        "does **not** hold", "undecided", "holds", "holds",
    ]  # fmt: skip
    assert [stats.verdict(value, low=bound) for bound in (0.6, 0.68, 0.7, 0.8)] == [
        "holds", "holds", "undecided", "does **not** hold",
    ]  # fmt: skip
    above, below = Ratio(1.2, 1.1, 1.3, 20), Ratio(0.9, 0.8, 1.0, 20)
    assert list(stats.each_judged({"a": above, "b": below})) == [("a", above, FAILS), ("b", below, "holds")]
    assert stats.all_hold(["holds", "holds"]) == "holds"
    assert stats.all_hold(["holds", "undecided"]) == "undecided"
    assert stats.all_hold(["undecided", "does **not** hold", "holds"]) == "does **not** hold"
    assert stats.all_hold(["exploratory", "does **not** hold", "holds"]) == "exploratory"


def played(regret, instances=None):
    return RunResult(np.array([1]), np.asarray(regret)[np.newaxis, :, np.newaxis], instances=instances)


def test_orders_are_those_of_the_means():
    rng = np.random.default_rng(0)
    luck = rng.gamma(9.0, size=40)
    low, middle, high = (played(factor * luck + rng.normal(0, 0.1, 40)) for factor in (1.0, 1.5, 2.0))

    def order(*runs):
        return stats.judged("", stats.links(runs))[2]

    assert [link.value for link in stats.links([low, middle, high])] == pytest.approx(
        [1 / 1.5, 1.5 / 2], abs=0.02
    )
    assert order(low, middle, high) == "holds"
    assert order(low, high, middle) == "does **not** hold"
    assert order(low, low, high) == "holds"  # at most means at most
    assert order(low, played(luck[::-1]), high) != "holds"


@pytest.mark.parametrize("run", [0, 7, 19])
def test_every_run_counts_for_a_verdict(run):
    """A median or a trimmed mean would not see one run of twenty."""
    silent = np.linspace(80.0, 90.0, 20)
    lost = 0.5 * silent
    lost[run] = 1e6
    for mine, says, pays in (
        (0.5 * silent, "holds", "1, 2"),
        (lost, "undecided", "none of those tried"),
    ):
        value = ratio(played(mine), played(silent))
        assert value.at_most() == stats.compare(mine, silent).at_most() == says
        assert stats.pays_at({1.0: value, 2.0: value}) == pays
        assert stats.falls({1.0: played(silent), 2.0: played(mine)}) == says
        assert stats.least({"mine": played(mine), "": played(silent)}) == ("mine" if says == "holds" else "")
    assert final_regret(played(lost)).value > 1e4


def test_only_runs_of_the_same_instances_are_compared():
    with pytest.raises(ValueError, match="below has"):
        ratio(played(np.ones(4)), played(np.ones(6)))
    with pytest.raises(ValueError, match="below has"):
        ratio(played(np.ones(4)), played(np.ones(4), 2))


def test_five_other_markets_lie_in_a_prediction_interval():
    above, below = played(np.array([4.0, 5, 6, 9, 6])), played(np.array([2.0, 3, 3, 4, 3]))
    value, *ends = ratio_with_interval(above.regret[0, :, 0], below.regret[0, :, 0])
    found = pfcb.elsewhere(above, below)
    # The mean of five other markets varies as much as that of these five: sqrt(2) in their difference.
    further = value * (np.array(ends) / value) ** np.sqrt(2)
    np.testing.assert_allclose([found.low, found.high], further)
    assert found.contains(2.0) == "exploratory"
