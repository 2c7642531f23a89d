"""The page itself: the numbers, plotly.js as the leaderboard's report has it, and menus of the browser's own."""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.lab.page.grid import PROBLEMS, SCHEDULES

_REPORT = "fedbandit_envs.leaderboard.board.report"
"""Where the leaderboard's report lies: colours, sizes and plotly.js are the same, and shipped once."""


def page(numbers: Mapping[str, Any]) -> str:
    """Returns the page, with all that it needs inside.

    Args:
        numbers: See :func:`.numbers.played`.
    """
    report, own = files(_REPORT), files(__name__.rpartition(".")[0])
    problems = {
        name: {
            **numbers["problems"][name],
            "title": problem.title,
            "silent": problem.silent,
            "sharing": problem.sharing,
            "private": problem.private,
        }
        for name, problem in PROBLEMS.items()
    }
    names = {one["algorithm"] for problem in problems.values() for one in problem["curves"]}
    data = {
        "problems": problems,
        "schedules": list(SCHEDULES),
        "summaries": {name: BASELINES[name].summary for name in sorted(names)},
    }
    return Template((own / "page.html").read_text(encoding="utf-8")).substitute(
        style="\n".join((folder / "page.css").read_text(encoding="utf-8") for folder in (report, own)),
        plotly=(report / "plotly-basic.min.js").read_text(encoding="utf-8"),
        script=(own / "page.js").read_text(encoding="utf-8"),
        data=_embedded(data),
        seeds=numbers["seeds"],
        version=escape(str(numbers["version"])),
        horizons=escape(", ".join(f"{p.title.lower()} {p.rounds:,}" for p in PROBLEMS.values())),
    )


def _embedded(data: object) -> str:
    """Returns JSON that no text within can end early."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
