"""Tables and curves of the page on liars."""

from collections.abc import Mapping
from operator import methodcaller

from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.byzantine.experiments import SILENT
from fedbandit_envs.papers.reproduction.comparison import Ratio, over, ratio
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Curves, Table, each

SHARE, BOUND = 0.2, 1.3


def honest_agents(runs: PanelRuns) -> Curves:
    """Returns the results restricted to honest agents, by baseline and by the share of agents that lie."""
    return each(runs.lines("liars"), methodcaller("of", "honest"))


def ratios(lines: Mapping[str, Mapping[float, RunResult]]) -> dict[str, dict[float, Ratio]]:
    """Returns two ratios for each baseline and share of liars, by the ratio's name and by the share.

    The baseline's regret is divided by its regret without liars, and by the regret of LinUCB, whose agents do not
    communicate.

    Args:
        lines: Results of honest agents, by baseline and share of liars.
    """
    found = {}
    for line, own in lines.items():
        found[f"{line} / without liars"] = over(own, own[0.0])
        found[f"{line} / silent"] = over(own, lines[SILENT])
    return found


def bounds(lines: Mapping[str, Mapping[float, RunResult]]) -> Table:
    """Yields a table with a line for each federated baseline: the factor by which 20 % of liars raise its regret.

    Args:
        lines: Results of honest agents, by baseline and share of liars.
    """
    grown = {line: ratio(own[SHARE], own[0.0]) for line, own in lines.items() if line != SILENT}
    for line, value in grown.items():
        yield {
            "algorithm": line,
            "holds?": value.at_most(BOUND),
            "over its own without liars": value,
            "over silence": ratio(lines[line][SHARE], lines[SILENT][SHARE]),
        }
