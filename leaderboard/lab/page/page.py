"""The page itself: the numbers, plotly.js as the leaderboard's report has it, and menus of the browser's own."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.board.report import assets
from fedbandit_envs.leaderboard.lab.page.grid import PROBLEMS, SCHEDULES


def page(numbers: Mapping[str, Any]) -> str:
    """Returns the page, with all that it needs inside.

    Args:
        numbers: See :func:`.numbers.played`.
    """
    own = files(__name__.rpartition(".")[0])
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
        head=assets.head(
            "fedbandit-envs: regret by problem, algorithm, epsilon and schedule",
            (own / "page.css").read_text(encoding="utf-8"),
        ),
        plotly=assets.plotly(),
        script=(own / "page.js").read_text(encoding="utf-8"),
        data=assets.embedded(data),
        seeds=numbers["seeds"],
        version=escape(str(numbers["version"])),
        horizons=escape(", ".join(f"{p.title.lower()} {p.rounds:,}" for p in PROBLEMS.values())),
    )
