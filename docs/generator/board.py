"""The committed results of the leaderboard: the first entries of each track, and the rows of each baseline."""

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.experiments import measures
from fedbandit_envs.leaderboard import report
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.table import ResultTable
from generator.folder import Folder
from generator.markup import slug, table

FULL, QUICK = "leaderboard-full", "leaderboard"
_PLACES = ("first", "second", "third")
_ROWS = "leaderboard/rows.json"
_SOURCES, _KINDS = (
    ("leaderboard", "experiments", f"docs/{FULL}", f"docs/{QUICK}"),
    ("*.py", "*.csv.gz", "*.json"),
)


def write(folder: Folder, docs: Path) -> None:
    """Writes the rows of all boards, and the ranking that other pages include."""
    files = [file for of in _SOURCES for kind in _KINDS for file in (docs.parent / of).rglob(kind)]
    # To rank takes longer than all other pages, so that it is done again only where something has changed.
    if not folder.keep(_ROWS, max(file.stat().st_mtime for file in files)):
        folder.write(_ROWS, json.dumps([row for board in (FULL, QUICK) for row in _ranked(docs, board)]))
    rows.cache_clear()
    suites = groupby((row for row in rows(docs) if row["board"] == FULL), lambda row: row["suite"])
    ranking = [_ranking(suite, list(own)) for suite, own in suites]
    # No page of its own: its links are those of pages in the folder above.
    folder.write("leaderboard/ranking.inc", "\n\n".join(ranking) + "\n")
    folder.write("leaderboard/best.inc", _best([row for row in rows(docs) if row["board"] == FULL]) + "\n")


@cache
def rows(docs: Path) -> list[dict[str, Any]]:
    """Returns the ranked rows of the committed results, sorted by suite, track and rank.

    Args:
        docs: The folder of the documentation.
    """
    found: list[dict[str, Any]] = json.loads((docs / "generated" / _ROWS).read_text())
    return found


def _ranked(docs: Path, board: str) -> Iterable[dict[str, Any]]:
    for edition, ranked in report.ranked(ResultTable.load(docs / board)).items():
        tasks = SUITES[edition.suite].tasks
        for row in ranked:
            half, epsilon = row.values("half"), float(np.max(row.values("epsilon")))
            yield {
                "board": board,
                "suite": edition.suite,
                "track": row.entry.track,
                "rank": row.rank,
                "name": row.entry.name,
                "ratio": measures.rounded(row.ratio),
                "epsilon": "unknown" if np.isnan(epsilon) else "∞" if np.isinf(epsilon) else f"{epsilon:.3g}",
                "seeds": len(row.lines) // len(tasks),
                "of_seeds": tasks[0].seeds,
                "tasks": [task.id for task in tasks],
                "version": row.entry.package["version"],
                "failures_known": not np.isnan(half).any(),
                # Of best silence: tasks in which one run has most of the regret.
                "decided_by_one": [
                    f"`{task.id}` ({share:.0%})"
                    for task in tasks
                    if (share := _share(row.silence[row.tasks == task.id])) > 0.5
                ],
            }


def _share(regret: Any) -> float:
    """Returns the largest run's share of the regret; 0 if it is unknown."""
    share = measures.largest_share(regret, np.zeros(len(regret)))
    return 0.0 if np.isnan(share) else share


def entry(name: str, place: str) -> str:
    """Returns the name of an entry, with a link to its page if it is a baseline.

    Args:
        name: The entry's name.
        place: Path from the page to the folder of baselines.
    """
    return f"[{name}]({place}{slug(name)}.md)" if name in BASELINES.own else name


def _order(track: str) -> tuple[bool, bool, str]:
    """Sorts silence first, then private tracks, then the others."""
    return track != "silent", track[:7] != "private", track


def _shown(row: dict[str, Any]) -> str:
    return f"{entry(row['name'], 'generated/baselines/')}<br>{row['ratio']}"


def _best(ranked: list[dict[str, Any]]) -> str:
    """Returns a table of the first entry of each suite and track."""
    first = {
        (row["suite"], row["track"]): row for row in ranked if row["rank"] == 1 and row["track"] != "revealed"
    }
    tracks = sorted({track for _, track in first}, key=_order)
    suites = dict.fromkeys(suite for suite, _ in first)
    cells = [
        [suite, *(_shown(first[suite, one]) if (suite, one) in first else "" for one in tracks)]
        for suite in suites
    ]
    return _ranked_table(["problem", *tracks], cells)


def _ranked_table(head: list[str], lines: list[list[str]]) -> str:
    """Returns a table whose first column stays in sight on a phone."""
    return "\n\n".join(["````{container} ranked", table(head, lines), "````"])


def _ranking(suite: str, ranked: list[dict[str, Any]]) -> str:
    """Returns the section of a suite: the first entries of each track."""
    one = ranked[0]
    tracks = {track: list(own) for track, own in groupby(ranked, lambda row: row["track"])}
    lines = []
    for track in sorted(tracks, key=_order):
        own = [row for row in tracks[track] if row["rank"]]
        first = [_shown(row) for row in own[:3]]
        lines.append([track, *first, *[""] * (3 - len(first)), str(len(own))])
    played = f"{one['seeds']} of {one['of_seeds']}" if one["seeds"] < one["of_seeds"] else str(one["seeds"])
    notes = [f"{' and '.join(f'`{task}`' for task in one['tasks'])}, {played} seeds of each."]
    if one["decided_by_one"]:
        notes.append(
            f"One run has most of best silence's regret in {', '.join(one['decided_by_one'])}: ratios say little there."
        )
    if not one["failures_known"]:
        notes.append("Failed runs are unknown.")
    notes.append(f"[All {len(ranked)} rows]({FULL}/leaderboard.md#{slug(suite)}).")
    return "\n\n".join(
        [
            f"### {suite}",
            " ".join(notes),
            "````{container} ranked",
            table(["track", *_PLACES, "entries"], lines),
            "````",
        ]
    )


def results(name: str, docs: Path) -> str:
    """Returns a table of a baseline's rows on the boards, in Markdown; empty if there are none.

    Args:
        name: The baseline's name.
        docs: The folder of the documentation.
    """
    ranked = [row for row in rows(docs) if row["rank"]]
    entries = Counter((row["suite"], row["track"]) for row in ranked)
    lines = [
        [
            f"[{row['suite']}](../../{row['board']}/leaderboard.md#{slug(row['suite'])})",
            row["track"],
            f"{row['rank']} of {entries[row['suite'], row['track']]}",
            row["ratio"],
            row["epsilon"],
            str(row["seeds"]),
        ]
        for row in ranked
        if row["name"] == name
    ]
    heads = ["suite", "track", "rank", "regret / best silence's", "epsilon claimed", "seeds"]
    return _ranked_table(heads, lines) if lines else ""
