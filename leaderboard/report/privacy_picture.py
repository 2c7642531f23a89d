"""The picture of regret against epsilon: a PNG, for places that cannot show the page, with a panel for each suite."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines import comparison_lines as compared
from fedbandit_envs.experiments.plots import panels_png
from fedbandit_envs.leaderboard.report.figures import GroupFigures
from fedbandit_envs.leaderboard.report.rows import RankedRow
from fedbandit_envs.leaderboard.result import Group, digest_of

_TITLE = """Compare lines with the same constants:
"weighted", "placebo", "true data", "tuned silence";
or "weighted, tuned" and "true data, tuned\""""
_AXES = {"x": "epsilon claimed", "y": "regret per agent", "xscale": "log", "yscale": "log"}
# Colours and dashes of the horizontal lines in the PNG. As on the page, baselines with which private ones are compared
# are grey and black; the placebo is dotted, since its line often covers that of silence.
_LEVELS = {
    compared.SILENT: ("#8a929b", "solid"),
    compared.TUNED: ("black", "solid"),
    compared.PLACEBO: ("#8a929b", "dotted"),
    compared.TRUE: ("black", "dashed"),
    # Lines of one colour have the same constants.
    compared.OURS_TUNED: ("#c7751a", "solid"),
    compared.TRUE_TUNED: ("#c7751a", "dashed"),
}


def privacy_png(groups: Mapping[Group, Sequence[RankedRow]], path: Path) -> bool:
    """Writes a PNG of regret against epsilon, with a panel for the first task of each suite and edition.

    The file's ``Description`` is a digest of the drawn numbers (to four digits), by which a test can compare pictures.

    Args:
        groups: Rows, by their group (suite, version and edition).
        path: The file to write; its folder must exist.

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
        panels_png(drawn, _AXES, _TITLE, path, given=_LEVELS, description=digest_of(numbers), text_scale=1.7)
    return bool(panels)


def privacy_panels(groups: Mapping[Group, Sequence[RankedRow]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Returns the curves of regret against epsilon that the PNG shows.

    Args:
        groups: Rows, by their group (suite, version and edition).

    Returns:
        For each panel's title its curves, by the role of the baseline (one of the lines that the pages compare, such as
        ``tuned silence``), in the form that :func:`.figures.curve` returns. Groups without private baselines have no
        panel.
    """
    panels: dict[str, dict[str, Mapping[str, Any]]] = {}
    for (suite, _, edition), rows in groups.items():
        if (figure := GroupFigures(rows).privacy(0)) is None:
            continue
        names = compared.BASELINE_OF.get(suite.removesuffix("-quick"), {})
        levels = {one["name"].partition(":")[0]: one for one in figure.curves if one["form"] == "level"}
        lines = {one["name"]: one for one in figure.curves if one["form"] == "line"}
        private = {
            part: lines[name]
            for part, name in names.items()
            # In some problems this package's federation ("ours") has the tuned constants by default. Its tuned form is
            # then the same baseline, whose curve must not be drawn twice.
            if name in lines and (part, name) != (compared.OURS_TUNED, names[compared.OURS])
        }
        if private:
            title = figure.title + (f", edition {edition}" if figure.title in panels else "")
            panels[title] = levels | private
    return panels


def _points(curves: Mapping[str, Mapping[str, Any]], name: str) -> tuple[Sequence[float], object, object]:
    """Returns the abscissas, ordinates and error bars of one curve, for matplotlib.

    A horizontal line gets the abscissas of all other curves, so that it spans the panel; it has no error bars (None).

    Args:
        curves: All curves of the panel, by name.
        name: Name of the curve.
    """
    curve = curves[name]
    if curve["form"] == "level":
        x = sorted({at for other in curves.values() if other["form"] != "level" for at in other["x"]})
        return x, np.full(len(x), curve["y"][0]), None
    y = np.array(curve["y"], np.float64)
    # Curves from too few seeds for an interval are drawn without error bars.
    ends = [y - np.array(curve["low"]), np.array(curve["high"]) - y] if "low" in curve else None
    return curve["x"], y, ends
