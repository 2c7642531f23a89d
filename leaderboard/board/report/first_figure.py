"""The first figure of the page as a PNG, for places that show no HTML: one panel a suite."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedbandit_envs.baselines.comparison_lines import (
    OURS,
    OURS_TUNED,
    PAPER,
    PAPER_TUNED,
    PLACEBO,
    SILENT,
    TRUE,
    TUNED,
)
from fedbandit_envs.leaderboard.board.report.figure_data import Curve
from fedbandit_envs.leaderboard.board.report.figures import what_privacy_buys
from fedbandit_envs.leaderboard.board.report.rows import Group, RankedRow, named_baselines
from fedbandit_envs.leaderboard.board.result import digest_of
from fedbandit_envs.leaderboard.runs.plots import panels_png

_AXES = {"x": "epsilon claimed", "y": "regret per agent", "xscale": "log", "yscale": "log"}
# As on the page: what private baselines are compared with is grey and black. Dots show what lies beneath.
_LEVELS = {
    SILENT: ("#8a929b", "solid"),
    TUNED: ("black", "solid"),
    PLACEBO: ("#8a929b", "dotted"),
    TRUE: ("black", "dashed"),
}


def privacy_png(groups: Mapping[Group, Sequence[RankedRow]], path: Path) -> bool:
    """Draws regret against epsilon on the first task of each group.

    The file has under ``Description`` a digest of the numbers that are drawn.

    Args:
        groups: Rows, by group.
        path: The file; its folder must exist.

    Returns:
        Whether there was anything to draw.
    """
    panels = privacy_panels(groups)
    if panels:
        drawn = {title: {name: _points(curves, name) for name in curves} for title, curves in panels.items()}
        panels_png(drawn, _AXES, "Which privacy buys what", path, given=_LEVELS, description=_digest(panels))
    return bool(panels)


def privacy_panels(groups: Mapping[Group, Sequence[RankedRow]]) -> dict[str, dict[str, Curve]]:
    """Returns the curves of each panel, by its title and by the part that a baseline plays in all suites."""
    panels: dict[str, dict[str, Curve]] = {}
    for rows in groups.values():
        figure = what_privacy_buys(rows, 0)
        names = named_baselines(rows[0].result.suite)
        if figure is None or not names:
            continue
        levels = {curve.name.partition(":")[0]: curve for curve in figure.curves if curve.form == "level"}
        lines = {curve.name: curve for curve in figure.curves if curve.form == "line"}
        # In some problems ours has the constants of tuned silence, and no tuned form of its own.
        same = names[OURS] == names[OURS_TUNED]
        parts = (PAPER, PAPER_TUNED, OURS) if same else (PAPER, PAPER_TUNED, OURS, OURS_TUNED)
        private = {part: lines[names[part]] for part in parts if names[part] in lines}
        if private:
            edition = f", edition {rows[0].result.edition.id}" if figure.title in panels else ""
            panels[figure.title + edition] = {**levels, **private}
    return panels


def _points(curves: Mapping[str, Curve], name: str) -> tuple[Sequence[float], object, object]:
    """Returns abscissas, ordinates and error bars of a curve; a level has the abscissas of the other curves."""
    curve = curves[name]
    if curve.form == "level":
        x = sorted({at for other in curves.values() if other.form != "level" for at in other.x})
        return x, np.full(len(x), curve.y[0]), None
    y = np.array(curve.y, np.float64)
    # With too few seeds there are no intervals.
    ends = None if curve.low is None else [y - np.array(curve.low), np.array(curve.high) - y]
    return curve.x, y, ends


def _digest(panels: Mapping[str, Mapping[str, Curve]]) -> str:
    """Returns the digest of all numbers that are drawn, to four digits."""

    def rounded(part: Sequence[float | None] | None) -> list[str | None]:
        return [None if number is None else f"{number:.4g}" for number in part or ()]

    return digest_of(
        {
            title: {name: [rounded(part) for part in (c.x, c.y, c.low, c.high)] for name, c in curves.items()}
            for title, curves in panels.items()
        }
    )
