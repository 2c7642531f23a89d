"""The page's first figure as a PNG, for where no page can be: a panel a suite, with the lines that all suites have."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.board.report.figures import what_privacy_buys
from fedbandit_envs.leaderboard.board.report.pictures import Curve
from fedbandit_envs.leaderboard.board.report.rows import Group, Row, problem_of
from fedbandit_envs.leaderboard.figures import panels_png
from fedbandit_envs.leaderboard.reproduction.private_federation import OURS, OURS_TUNED, PAPER, PAPER_TUNED

_PRIVATE = (PAPER, PAPER_TUNED, OURS, OURS_TUNED)


def privacy_png(groups: Mapping[Group, Sequence[Row]], path: Path) -> bool:
    """Draws regret against epsilon on the first task of each group; baselines are called by the part they play.

    Args:
        groups: Rows, by group.
        path: Where to write; the folder must exist.

    Returns:
        Whether there was anything to draw.
    """
    panels: dict[str, dict[str, tuple[Any, Any, Any]]] = {}
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
        # As far as what is held against them.
        places = sorted({place for curve in private.values() for place in curve.x})
        for name, level in levels.items():
            levels[name] = replace(level, x=places, y=[level.y[0]] * len(places))
        several = picture.title in panels
        title = f"{picture.title}, edition {rows[0].result.edition.id}" if several else picture.title
        panels[title] = {name: _points(curve) for name, curve in {**levels, **private}.items()}
    if panels:
        axes = {"x": "epsilon claimed", "y": "regret per agent", "xscale": "log", "yscale": "log"}
        panels_png(panels, axes, "Which privacy buys what", path)
    return bool(panels)


def _points(curve: Curve) -> tuple[Any, Any, Any]:
    y = np.array(curve.y, np.float64)
    if curve.low is None or curve.high is None:
        return curve.x, y, np.zeros(y.size)
    return curve.x, y, np.array([y - np.array(curve.low), np.array(curve.high) - y])
