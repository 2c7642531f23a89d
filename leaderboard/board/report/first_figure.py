"""The first figure of the page as a PNG, for places that show no HTML: one panel a suite."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines.comparison_lines import (
    BASELINE_OF,
    OURS,
    OURS_TUNED,
    PLACEBO,
    SILENT,
    TRUE,
    TUNED,
)
from fedbandit_envs.leaderboard.board.report.figures import GroupFigures
from fedbandit_envs.leaderboard.board.report.rows import RankedRow
from fedbandit_envs.leaderboard.board.result import Group, digest_of
from fedbandit_envs.leaderboard.runs.plots import Style, panels_png

_AXES = {"x": "epsilon claimed", "y": "regret per agent", "xscale": "log", "yscale": "log"}
# As on the page: what private baselines are compared with is grey and black. Dots show what lies beneath.
_LEVELS = {
    SILENT: Style("#8a929b", "solid"),
    TUNED: Style("black", "solid"),
    PLACEBO: Style("#8a929b", "dotted"),
    TRUE: Style("black", "dashed"),
}


def privacy_png(groups: Mapping[Group, Sequence[RankedRow]], path: Path) -> bool:
    """Draws regret against epsilon on the first task of each group.

    The file has under ``Description`` a digest of the numbers that are drawn, to four digits.

    Args:
        groups: Rows, by group.
        path: The file; its folder must exist.

    Returns:
        Whether there was anything to draw.
    """
    panels = privacy_panels(groups)
    numbers = {
        title: {
            name: [[f"{number:.4g}" for number in one.get(part, ())] for part in ("x", "y", "low", "high")]
            for name, one in curves.items()
        }
        for title, curves in panels.items()
    }
    if panels:
        drawn = {title: {name: _points(curves, name) for name in curves} for title, curves in panels.items()}
        digest = digest_of(numbers)
        panels_png(drawn, _AXES, "Which privacy buys what", path, given=_LEVELS, description=digest)
    return bool(panels)


def privacy_panels(groups: Mapping[Group, Sequence[RankedRow]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Returns the curves of each panel, by its title and by the part that a baseline plays in all suites."""
    panels: dict[str, dict[str, Mapping[str, Any]]] = {}
    for (suite, _, edition), rows in groups.items():
        figure, names = GroupFigures(rows).privacy(0), BASELINE_OF.get(suite.removesuffix("-quick"), {})
        if figure is None:
            continue
        levels = {one["name"].partition(":")[0]: one for one in figure.curves if one["form"] == "level"}
        lines = {one["name"]: one for one in figure.curves if one["form"] == "line"}
        private = {
            part: lines[name]
            for part, name in names.items()
            # In some problems ours has the constants of tuned silence, and no tuned form of its own.
            if name in lines and (part, name) != (OURS_TUNED, names[OURS])
        }
        if private:
            panels[figure.title + (f", edition {edition}" if figure.title in panels else "")] = (
                levels | private
            )
    return panels


def _points(curves: Mapping[str, Mapping[str, Any]], name: str) -> tuple[Sequence[float], object, object]:
    """Returns abscissas, ordinates and error bars of a curve; a level has the abscissas of the other curves."""
    curve = curves[name]
    if curve["form"] == "level":
        x = sorted({at for other in curves.values() if other["form"] != "level" for at in other["x"]})
        return x, np.full(len(x), curve["y"][0]), None
    y = np.array(curve["y"], np.float64)
    # With too few seeds there are no intervals.
    ends = [y - np.array(curve["low"]), np.array(curve["high"]) - y] if "low" in curve else None
    return curve["x"], y, ends
