"""The page's first figure as a PNG, for where no page can be: a panel a suite, with the lines that all suites have."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.board.canonical import digest_of
from fedbandit_envs.leaderboard.board.report.figures import what_privacy_buys
from fedbandit_envs.leaderboard.board.report.pictures import Curve
from fedbandit_envs.leaderboard.board.report.rows import Group, Row, problem_of
from fedbandit_envs.leaderboard.figures import styles, write_numbers_out
from fedbandit_envs.leaderboard.reproduction.private_federation import (
    OURS,
    OURS_TUNED,
    PAPER,
    PAPER_TUNED,
    PLACEBO,
    SILENT,
    TRUE,
    TUNED,
)

_PRIVATE = (PAPER, PAPER_TUNED, OURS, OURS_TUNED)
# As on the page: lines to compare with are grey and black.
_LEVELS = {
    SILENT: ("#8a929b", "solid"),
    TUNED: ("black", "solid"),
    PLACEBO: ("#8a929b", "dotted"),
    TRUE: ("black", "dashed"),
}


def privacy_png(groups: Mapping[Group, Sequence[Row]], path: Path) -> bool:
    """Draws regret against epsilon on the first task of each group; baselines are called by the part they play.

    The file says under ``Description`` of what numbers it is the picture, as a digest of them.

    Args:
        groups: Rows, by group.
        path: Where to write; the folder must exist.

    Returns:
        Whether there was anything to draw.
    """
    panels: dict[str, dict[str, Curve]] = {}
    for rows in groups.values():
        picture, problem = what_privacy_buys(rows, 0), problem_of(rows[0].result.suite)
        if picture is None or problem is None:
            continue
        drawn = {curve.name.partition(":")[0]: curve for curve in picture.curves}
        levels = {name: curve for name, curve in drawn.items() if curve.form == "level"}
        private = {line: drawn[problem.names[line]] for line in _PRIVATE if problem.names[line] in drawn}
        if problem.names[OURS] == problem.names[OURS_TUNED]:
            private.pop(OURS_TUNED, None)
        if not private:
            continue
        several = picture.title in panels
        title = f"{picture.title}, edition {rows[0].result.edition.id}" if several else picture.title
        panels[title] = {**levels, **private}
    if panels:
        _draw(panels, path)
    return bool(panels)


def _draw(panels: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    from matplotlib.figure import Figure

    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    looks = styles([name for name in names if name not in _LEVELS])
    rows, columns = -(-len(panels) // 2), min(2, len(panels))
    figure = Figure(figsize=(5.2 * columns, 3.7 * rows + 0.8), dpi=120, layout="constrained")
    figure.suptitle("Which privacy buys what")
    places = figure.subplots(rows, columns, squeeze=False).flat
    shown: dict[str, Any] = {}
    for (title, curves), place in zip(panels.items(), places, strict=False):
        for name, curve in curves.items():
            if name in _LEVELS:
                colour, dashes = _LEVELS[name]
                shown[name] = place.axhline(curve.y[0], color=colour, linestyle=dashes, linewidth=1.6)
                continue
            y = np.array(curve.y, np.float64)
            # Without intervals, where there are too few seeds for them.
            ends = None if curve.low is None else [y - np.array(curve.low), np.array(curve.high) - y]
            colour, dashes = looks[name]
            shown[name] = place.errorbar(
                curve.x, y, ends, color=colour, linestyle=dashes, marker="o", markersize=4, capsize=3
            )
        ticks = sorted({at for name, curve in curves.items() if name not in _LEVELS for at in curve.x})
        place.set(
            xscale="log", yscale="log", xlabel="epsilon claimed", ylabel="regret per agent", title=title
        )
        place.set_xticks(ticks, [f"{at:g}" for at in ticks])
        place.set_xticks([], minor=True)
        write_numbers_out(place.yaxis)
        place.grid(alpha=0.3)
    for empty in places:
        empty.set_visible(False)
    handles = [shown[name] for name in names]
    figure.legend(handles, list(names), loc="outside lower center", ncols=2 * columns, handlelength=3)
    figure.savefig(path, metadata={"Description": _digest(panels)})


def _digest(panels: Mapping[str, Mapping[str, Curve]]) -> str:
    """Returns the digest of what is drawn, to four digits."""
    return digest_of(
        {
            title: {
                name: [
                    [number if number is None else f"{number:.4g}" for number in part or ()]
                    for part in (curve.x, curve.y, curve.low, curve.high)
                ]
                for name, curve in curves.items()
            }
            for title, curves in panels.items()
        }
    )
