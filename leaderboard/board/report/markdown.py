"""Markdown tables of all rows."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from fedbandit_envs.leaderboard.board.child.errors import printable
from fedbandit_envs.leaderboard.board.records import Withdrawn
from fedbandit_envs.leaderboard.board.report.rows import Group, Row
from fedbandit_envs.leaderboard.board.report.words import amount, audited, claimed, estimate
from fedbandit_envs.leaderboard.reproduction.private_federation import TUNED

HEADS = (
    "rank", "entry", "score [95 %]", f"better than {TUNED}", f"score over {TUNED}", "epsilon claimed", "audited",
    "messages", "bytes",
)  # fmt: skip

WITHDRAWN_HEADS = ("entry", "suite", "track", "withdrawn", "why")

_INTRODUCTION = """# Leaderboard

The score is 1 - regret / regret of acting at random under the same luck, its interquartile mean over tasks and seeds;
brackets are 95 % stratified bootstrap intervals over seeds. Entries of an edition meet the same luck and are compared
in pairs. Epsilon is what all releases of an agent are claimed to cost together; messages and bytes are an agent's in an
episode. `fedbandit leaderboard report` writes `leaderboard.html` too: the figures, and each row's command."""


def line(cells: Iterable[str]) -> str:
    """Returns a line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def rule(heads: Sequence[str]) -> str:
    """Returns what stands below a table's heads."""
    return "|" + "---|" * len(heads)


def cells(row: Row) -> list[str]:
    """Returns a row's cells, one for each of :data:`HEADS`."""
    return [
        str(row.rank),
        row.name,
        estimate(row.score),
        estimate(row.better),
        estimate(row.over),
        claimed(row.spent),
        audited(row)[1],
        amount(row.traffic("messages")),
        amount(row.traffic("bytes")),
    ]


def withdrawn_cells(row: Withdrawn) -> list[str]:
    """Returns a withdrawn row's cells, one for each of :data:`WITHDRAWN_HEADS`."""
    return [row.entry, row.suite, row.track, row.at[:10], printable(row.reason)]


def markdown(groups: Mapping[Group, Sequence[Row]], withdrawn: Sequence[Withdrawn] = ()) -> str:
    """Returns the file: a table a suite, edition and track, and what was withdrawn."""
    lines = [_INTRODUCTION]
    for (suite, version, edition), rows in groups.items():
        lines += ["", f"## {suite} (version {version}, edition {edition})"]
        for track, ranked in groupby(rows, lambda row: row.result.track):
            lines += ["", f"### Track {track}", "", line(HEADS), rule(HEADS)]
            lines += [line(cells(row)) for row in ranked]
    if withdrawn:
        lines += ["", "## Withdrawn", "", line(WITHDRAWN_HEADS), rule(WITHDRAWN_HEADS)]
        lines += [line(withdrawn_cells(row)) for row in withdrawn]
    return "\n".join(lines) + "\n"
