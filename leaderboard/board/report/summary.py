"""The table for a README: who is best, suite by suite and track by track."""

from collections.abc import Mapping, Sequence

from fedbandit_envs.leaderboard.board.report.markdown import line, rule
from fedbandit_envs.leaderboard.board.report.ranking import suite_label
from fedbandit_envs.leaderboard.board.report.rows import Group, Row
from fedbandit_envs.leaderboard.board.report.words import ABSENT, estimate
from fedbandit_envs.leaderboard.board.result import ResultError

BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
"""Between them stands the table, in lines of its own."""


def summary(groups: Mapping[Group, Sequence[Row]]) -> str:
    """Returns a Markdown table of the best entries and their scores; those who are shown the truth do not compete."""
    best = {
        group: {row.result.track: row for row in rows if row.rank == 1 and not row.revealed}
        for group, rows in groups.items()
    }
    tracks = list(dict.fromkeys(track for found in best.values() for track in sorted(found, key=_place)))
    heads = ("suite", *tracks)
    lines = [line(heads), rule(heads)]
    for group, rows in groups.items():
        found = (best[group].get(track) for track in tracks)
        lines.append(line([suite_label(rows[0], groups), *map(_cell, found)]))
    return "\n".join(lines)


def _place(track: str) -> tuple[bool, bool, str]:
    """Orders tracks: silence, what is private, and what is not."""
    return track != "silent", not track.startswith("private"), track


def _cell(row: Row | None) -> str:
    return ABSENT if row is None else f"{row.name} {estimate(row.score)}"


def renewed(text: str, table: str) -> str:
    """Returns a text with another table between its marks.

    Raises:
        ResultError: It has not one :data:`BEGIN` and one :data:`END` behind it.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise ResultError(f"text has not one line {BEGIN} and one line {END} behind it; both are required")
    return f"{before}{begin}{table}\n{end}{after}"
