"""What the leaderboard's report says: rows, their scores and ranks, and what was spent."""

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest
from board_results import EDITION, EPSILONS, SALT, claim, federation_pays, named, only, result

from fedbandit_envs.baselines.comparison_lines import TUNED
from fedbandit_envs.leaderboard.report.figures import GroupFigures
from fedbandit_envs.leaderboard.report.rows import Spent, lines_of, rows_of
from fedbandit_envs.leaderboard.result import Edition
from fedbandit_envs.leaderboard.suites import SUITES

SUITE = "arms-quick"
ADJACENCY = SUITES[SUITE].adjacency


def test_results_are_as_the_schema_wants_them():
    for one in federation_pays(SUITE):
        one.as_json()


def test_scores_are_against_the_reference_under_the_same_seeds(rows):
    reference = named(rows, SUITES[rows[0].result.suite].reference)
    assert reference.score == (0, 0, 0)
    for row in rows:
        by_hand = [
            1 - np.array(mine.regret[-1]) / np.array(theirs.regret[-1])
            for mine, theirs in zip(row.result.tasks, reference.result.tasks, strict=True)
        ]
        assert row.scores == pytest.approx(np.concatenate(by_hand))
        assert row.score.low <= row.score.value <= row.score.high


def test_ranks_are_those_of_a_track(rows):
    tracks = {row.result.track for row in rows}
    assert len(tracks) == 2 + len(EPSILONS)
    for track in tracks:
        ranked = [row for row in rows if row.result.track == track]
        assert [row.rank for row in ranked] == list(range(1, len(ranked) + 1))
        values = [row.score.value for row in ranked]
        assert values == sorted(values, reverse=True)


def test_comparisons_are_with_tuned_silence(rows):
    tuned = named(rows, lines_of(rows[0].result.suite)[TUNED])
    assert isnan(tuned.better.value)
    for row in rows:
        if row is not tuned:
            assert (row.better.value > 0.5) == (row.over.value > 0) == (row.score.value > tuned.score.value)


def test_regret_is_compared_with_that_of_tuned_silence(rows):
    tuned = named(rows, lines_of(rows[0].result.suite)[TUNED])
    assert tuned.ratio == pytest.approx((1, 1, 1))
    for row in rows:
        logs = np.sort(np.log(row.result.last_regret / tuned.result.last_regret))
        quarter = len(logs) // 4
        assert row.ratio.value == pytest.approx(np.exp(logs[quarter : len(logs) - quarter].mean()))
        assert row.ratio.low <= row.ratio.value <= row.ratio.high


def test_without_the_reference_regret_ranks_and_nothing_is_made_up():
    rows = only([result(SUITE, "b", "silent", 0.5), result(SUITE, "a", "silent", 0.7)])
    assert [(row.name, row.rank) for row in rows] == [("b", 1), ("a", 2)]
    assert all(isnan(row.score.value) and isnan(row.better.value) and not row.scores.size for row in rows)
    assert GroupFigures(rows).profiles() is None


def test_editions_and_versions_are_not_mixed():
    other = Edition("f" * 12, SALT)
    mine, later = result(SUITE, "a", "silent", 0.5), result(SUITE, "a", "silent", 0.6, edition=other)
    now = mine.suite_version
    groups = rows_of([mine, later, replace(mine, suite_version=now + 1)])
    assert set(groups) == {(SUITE, now, EDITION.id), (SUITE, now, other.id), (SUITE, now + 1, EDITION.id)}
    assert all(row.rank == 1 for rows in groups.values() for row in rows)
    assert all(row.result.group == group for group, rows in groups.items() for row in rows)


def test_results_that_cannot_be_compared_are_refused():
    mine, other = result(SUITE, "a", "silent", 0.5), result(SUITE, "b", "silent", 0.5)
    seeds = replace(other, tasks=[replace(task, seeds=task.seeds[::-1]) for task in other.tasks])
    with pytest.raises(ValueError, match=r"'b' and 'a' of arms-quick .* same seeds"):
        rows_of([mine, seeds])
    with pytest.raises(ValueError, match="same seeds"):
        rows_of([mine, replace(other, tasks=other.tasks[:1])])
    with pytest.raises(ValueError, match="the baseline 'a' twice on track 'silent'"):
        rows_of([mine, mine])
    # A submission may be called as a baseline is, and does not stand for it.
    rows_of([mine, result(SUITE, "a", "silent", 0.5, kind="submission")])


def test_submission_cannot_be_the_reference():
    (row,) = only([result(SUITE, SUITES[SUITE].reference, "silent", 0.5, kind="submission")])
    assert isnan(row.score.value)


@pytest.mark.parametrize(
    ("claims", "sent", "epsilon"),
    [
        ([], 0, 0.0),
        ([], 3, inf),
        ([claim(1.0, ADJACENCY)], 3, 1.0),
        ([claim("infinity", ADJACENCY)], 3, inf),
        ([claim(None, ADJACENCY)], 3, None),
        # The strongest of what holds; under the suite's adjacency, if anything is claimed under that.
        ([claim(2.0, ADJACENCY), claim(1.5, ADJACENCY, composition="zcdp")], 3, 1.5),
        ([claim("infinity", ADJACENCY), claim(1.5, ADJACENCY, composition="basic")], 3, 1.5),
        ([claim(2.0, ADJACENCY), claim(0.1, "one-outcome")], 3, 2.0),
        ([claim(0.1, "one-outcome")], 3, 0.1),
    ],
)
def test_what_was_spent(claims, sent, epsilon):
    (task, _) = result(SUITE, "a", "any", 0.5, claims, sent).tasks
    found = Spent.on(task, ADJACENCY).epsilon
    assert isnan(found) if epsilon is None else found == epsilon


def test_row_spends_what_its_worst_task_does():
    one = result(SUITE, "a", "any", 0.5, [claim(1.0, ADJACENCY)], 3)
    unknown = replace(one.tasks[0], claims=[claim(None, ADJACENCY)])
    nothing = replace(one.tasks[0], claims=[claim("infinity", ADJACENCY)])
    for tasks, worst in (([one.tasks[0], nothing], inf), ([nothing, unknown], None)):
        (row,) = only([replace(one, tasks=tasks)])
        assert isnan(row.spent.epsilon) if worst is None else row.spent.epsilon == worst
