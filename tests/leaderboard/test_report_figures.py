"""The report's figures, as data: curves, fronts, profiles, and what privacy buys."""

import re
from math import inf

import numpy as np
import pytest
from board_results import EPSILONS, PRIVATE, claim, federation_pays, named, only, result

from fedbandit_envs.baselines.comparison_lines import TRUE, TRUE_TUNED, TUNED
from fedbandit_envs.leaderboard.report.figures import GroupFigures
from fedbandit_envs.leaderboard.report.privacy_picture import privacy_panels, privacy_png
from fedbandit_envs.leaderboard.report.rows import lines_of, rows_of
from fedbandit_envs.leaderboard.suites import SUITES

SUITE = "arms-quick"
ADJACENCY = SUITES[SUITE].adjacency
NOTHING = claim("infinity", ADJACENCY)


def test_which_privacy_buys_what_has_every_private_baseline_and_all_lines(rows):
    for number in range(2):
        picture = GroupFigures(rows).privacy(number)
        lines = lines_of(rows[0].result.suite)
        levels = {c["name"]: c["y"] for c in picture.curves if c["form"] == "level"}
        assert set(levels) == {f"{line}: {name}" for line, name in lines.items()}
        silence = named(rows, lines[TUNED]).result.tasks[number].regret[-1]
        assert levels[f"{TUNED}: {lines[TUNED]}"] == pytest.approx([np.mean(silence)] * 2, rel=1e-3)
        drawn = [c for c in picture.curves if c["form"] == "line"]
        assert len(drawn) == 2
        for one in drawn:
            assert one["x"] == list(EPSILONS)
            assert one["y"] == sorted(one["y"], reverse=True)
        name = drawn[0]["name"]
        least = re.search(rf"{name} ([\d.,]+) \[([\d.,]+), ([\d.,]+)\]", picture.words)
        assert float(least[1].replace(",", "")) == pytest.approx(min(drawn[0]["y"]), rel=0.1)
        # Like is compared with like, and the figure says which lines are alike.
        assert f"{lines[TRUE]} have those of tuned silence" in picture.caption
        assert (TRUE_TUNED in lines) == ("have their own" in picture.caption)


def test_limited_messages_have_a_curve_of_their_own():
    private = [claim(1.0, ADJACENCY)]
    rows = only(
        [
            result(SUITE, "UCB1-weighted", track, level, private, 3)
            for track, level in (("private-1", 0.3), ("private-1-few", 0.4))
        ]
    )
    picture = GroupFigures(rows).privacy(0)
    assert [c["name"] for c in picture.curves] == ["UCB1-weighted", "UCB1-weighted (few messages)"]


@pytest.mark.usefixtures("blank_pictures")
def test_first_figure_as_a_picture(tmp_path):
    groups = rows_of([*federation_pays("exposure-quick"), *federation_pays(SUITE)])
    assert privacy_png(groups, tmp_path / "figure.png")
    drawn = privacy_panels(groups)
    for rows, curves in zip(groups.values(), drawn.values(), strict=True):
        assert list(curves) == [*lines_of(rows[0].result.suite), "paper's form", "weighted"]
        weighted = curves["weighted"]
        assert list(weighted["x"]) == list(EPSILONS)
        name = PRIVATE[rows[0].result.suite.removesuffix("-quick")][1]
        own = [named(rows, name, f"private-{epsilon:g}").result.tasks[0].regret[-1] for epsilon in EPSILONS]
        assert weighted["y"] == pytest.approx(np.mean(own, axis=1), rel=1e-3)
        assert all(
            low < y < high
            for low, y, high in zip(weighted["low"], weighted["y"], weighted["high"], strict=True)
        )


def test_no_private_baseline_no_figure(tmp_path):
    assert not privacy_png(rows_of([result(SUITE, "UCB1", "silent", 0.5)]), tmp_path / "figure.png")
    assert not any(tmp_path.iterdir())
    assert GroupFigures(only([result(SUITE, "UCB1", "silent", 0.5)])).privacy(0) is None


def test_front_by_brute_force(rows):
    for cost in ("epsilon", "bytes"):
        picture = GroupFigures(rows).front(0, cost)
        costs = [row.spent_by_task[0].epsilon if cost == "epsilon" else row.traffic("bytes") for row in rows]
        regrets = [np.mean(row.result.tasks[0].regret[-1]) for row in rows]
        places = list(zip(regrets, costs, strict=True))
        on = {
            i for i, mine in enumerate(places)
            if not any(a <= mine[0] and b <= mine[1] and (a, b) != mine for a, b in places)
        }  # fmt: skip
        steps, *points = picture.curves
        assert steps["form"] == "front"
        assert steps["y"] == [
            pytest.approx(regrets[i], rel=1e-3) for i in sorted(on, key=lambda i: (costs[i], regrets[i]))
        ]
        assert steps["y"] == sorted(steps["y"], reverse=True)
        beaten = [c for c in points if c["name"] == "beaten"]
        assert len(points) - len(beaten) == len(on)
        assert sum(len(c["texts"]) for c in points) == len(rows)


def test_front_leaves_out_unknown_and_those_who_see_what_agents_do_not_know():
    rows = only(
        [
            result(SUITE, "a", "private-1", 0.5, [claim(None, ADJACENCY)], 3),
            result(SUITE, "b", "silent", 0.6),
            result(SUITE, "c", "revealed", 0.001),
        ]
    )
    picture = GroupFigures(rows).front(0, "epsilon")
    assert [c["name"] for c in picture.curves] == ["front", "b"]
    assert "1 whose epsilon is not known" in picture.caption


def test_margins_put_zero_and_infinity_beside_the_scale():
    ends = [result(SUITE, "a", "silent", 0.5), result(SUITE, "d", "non-private", 0.2, [NOTHING], 3)]
    private = [
        result(SUITE, name, "private-1", level, [claim(epsilon, ADJACENCY)], 3)
        for name, level, epsilon in (("b", 0.4, 0.1), ("c", 0.3, 10.0))
    ]
    for between in (private, []):
        picture = GroupFigures(only([*ends, *between])).front(0, "epsilon")
        (zero, infinity), labels = zip(*picture.ticks, strict=True)
        assert labels == ("0", "\N{INFINITY}")
        assert 0 < zero < 0.1 < 10 < infinity < inf if between else 0 < zero < infinity < inf
        first, *inside, last = picture.curves[0]["x"]
        assert inside == ([0.1, 10.0] if between else [])
        assert (first, last) == pytest.approx((zero, infinity), rel=1e-5)


def test_exposure_shows_shares_beside_deserved_ones():
    rows = only(federation_pays("exposure-quick"))
    picture = GroupFigures(rows).exposure(0)
    *entries, deserved = picture.curves
    assert deserved["name"] == "deserved"
    assert sum(deserved["y"]) == pytest.approx(1, abs=1e-3)
    assert deserved["y"] == sorted(deserved["y"], reverse=True)
    # Who pulls at random gives all arms alike.
    (random,) = [c for c in entries if c["name"] == "equal-shares"]
    assert random["y"] == pytest.approx([0.2] * 5, abs=1e-3)
    assert GroupFigures(only(federation_pays(SUITE))).exposure(0) is None


def test_curves_can_be_drawn_on_logarithms(rows):
    suite = rows[0].result.suite
    nothing = result(suite, "sees-all", "revealed", 0.0)
    for picture in GroupFigures(only([*(row.result for row in rows), nothing])).all():
        assert "sees-all" not in [one["name"] for one in picture.curves if picture.log]
        for one in picture.curves:
            if picture.log:
                assert all(value is None or value > 0 for value in [*one["y"], *one.get("low", [])])
                assert all(0 < place < inf for place in one["x"])
    assert GroupFigures(rows).regret_curves(0).curves[0]["x"][-1] == rows[0].result.tasks[0].rounds[-1]
