"""Tables and curves of the page on liars."""

from typing import Any

from fedbandit_envs.leaderboard.reproduction.comparison import over, ratio
from fedbandit_envs.leaderboard.reproduction.page import final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.byzantine.experiments import BY_NUMBER, SILENT, compared

SHARE, BOUND = 0.2, 1.3


def by_share(runs: PanelRuns, line: str) -> dict[float, RunResult]:
    """Returns the results of a baseline's honest agents by the share of liars."""
    return {share: result.of("honest") for share, result in runs.by("liars", line=line).items()}


def regrets(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of honest agents' regret by baseline and share of liars."""
    return [
        {"honest agents' regret at T (± 95 %)": line, "what it does": meaning}
        | {f"{share:.0%} liars": final_regret(result) for share, result in by_share(runs, line).items()}
        for line, meaning in compared(runs.panel).items()
    ]


def curves(runs: PanelRuns) -> dict[str, dict[float, Any]]:
    """Returns the curve of each baseline's regret over the share of liars."""
    return {
        line: {share: final_regret(result) for share, result in by_share(runs, line).items()}
        for line in compared(runs.panel)
    }


def ratios(runs: PanelRuns) -> dict[str, dict[float, Any]]:
    """Returns each baseline's regret over its own without liars and over silence, by the share of liars."""
    found = {}
    silent = by_share(runs, SILENT)
    for line in compared(runs.panel):
        own = by_share(runs, line)
        found[f"{line} / without liars"] = over(own, own[0.0])
        found[f"{line} / silent"] = over(own, silent)
    return found


def bounds(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of what a fifth of liars does to the regret of each federated baseline."""
    table = []
    for line in compared(runs.panel):
        if line != SILENT:
            own = by_share(runs, line)
            grown = ratio(own[SHARE], own[0.0])
            table.append(
                {
                    "algorithm": line,
                    "holds?": grown.at_most(BOUND),
                    "over its own without liars": grown,
                    "over silence": ratio(own[SHARE], by_share(runs, SILENT)[SHARE]),
                }
            )
    return table


def is_biased(runs: PanelRuns) -> bool:
    """Returns whether trimming each number by itself costs more than the bound."""
    return any(line["algorithm"] == BY_NUMBER and line["holds?"] != "holds" for line in bounds(runs))
