"""Markdown: a table of all rows, and the table of each track's best entry for a README."""

from collections.abc import Mapping, Sequence

from fedbandit_envs.leaderboard.board.report.formatting import ABSENT
from fedbandit_envs.leaderboard.board.report.rows import Group, RankedRow, suite_label
from fedbandit_envs.leaderboard.board.report.templates import render
from fedbandit_envs.leaderboard.board.result import ResultError

BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
"""Lines of a README between which the table of best entries stands."""


def markdown(groups: Mapping[Group, Sequence[RankedRow]], withdrawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Returns ``leaderboard.md``: a table a suite, edition and track, and one of withdrawn rows."""
    return render("leaderboard.md.j2", groups=groups, withdrawn=withdrawn)


def summary(groups: Mapping[Group, Sequence[RankedRow]]) -> str:
    """Returns a table of each track's best entry and its score; entries that are shown the truth do not compete."""
    suites = [
        (suite_label(group, groups), {r.result.track: r for r in rows if r.rank == 1 and not r.revealed})
        for group, rows in groups.items()
    ]

    # Silence first, then private tracks, then the others.
    def place(track: str) -> tuple[bool, bool, str]:
        return track != "silent", not track.startswith("private"), track

    tracks = list(dict.fromkeys(track for _, best in suites for track in sorted(best, key=place)))
    return render("summary.md.j2", suites=suites, tracks=tracks, absent=ABSENT).rstrip()


def renewed(text: str, table: str) -> str:
    """Returns the text of a README with another table between its marks.

    Raises:
        ResultError: The text has not exactly one :data:`BEGIN` and one :data:`END` behind it, in lines of their own.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise ResultError(f"text has not one line {BEGIN} and one line {END} behind it; both are required")
    return f"{before}{begin}{table}\n{end}{after}"
