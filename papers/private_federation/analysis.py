"""Tables, ratios and curves of the page on private federation against tuned silence."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import OURS, OURS_TUNED, PAPER, PLACEBO, SILENT, TRUE, TUNED
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, over, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.private_federation.experiments import NEVER_ABOVE, PROBLEMS

Curves = dict[str, dict[float, Any]]
Table = list[dict[str, Any]]


class AgainstSilence:
    """Tables and curves of the comparison with tuned silence in one problem.

    Attributes:
        runs: The results of the problem's panel.
        problem: The problem.
        names: Its baselines, by line.
        level: The results at the sweeps' horizon that are not swept.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of the problem's panel."""
        self.runs = runs
        self.problem = PROBLEMS[runs.panel]
        self.names = comparison_lines.BASELINE_OF[runs.panel]
        self.level = runs.where(case=None, delta=None)

    def bounds(self) -> Table:
        """Returns the table of ratios at the full horizon, and whether they are within the bounds set in advance."""
        table = []
        for case in self.problem.cases:
            results = self.runs.where(case=case.title).by("line")
            for line, result in results.items():
                row = {
                    "setting: run": f"{case.title}: {line}",
                    "baseline": self.names[line],
                    "regret at T (± 95 %)": final_regret(result),
                    "median": f"{np.median(regret_by_seed(result)):.0f}",
                }
                for ours in (OURS, OURS_TUNED):
                    row |= {f"{ours} over it": "", f"asked of {ours}": ""}
                    if line in case.asked:
                        value = ratio(results[ours], result, middle=self.problem.middle)
                        row[f"{ours} over it"] = value
                        row[f"asked of {ours}"] = _verdict(value, case.asked[line])
                table.append(row)
        return table

    def lines(self) -> Table:
        """Returns the table of the regret of all lines at the sweeps' horizon."""
        table = []
        for line, result in self.level.by("line").items():
            row = {
                "run": line,
                "baseline": self.names[line],
                "regret (± 95 %)": final_regret(result),
                "median": f"{np.median(regret_by_seed(result)):.0f}",
            }
            for below in (SILENT, TUNED):
                row[f"/ {below}"] = "1" if line == below else ratio(result, self.level[below])
            table.append(row)
        return table

    def against_epsilon(self) -> Table:
        """Returns the table of regret against epsilon, as claimed for all releases together."""
        silence = self.level[TUNED]
        table = []
        for delta in self.runs.values("delta"):
            paper = self.runs.by("epsilon", line=PAPER, delta=delta)
            for epsilon, result in self.runs.by("epsilon", line=OURS, delta=delta).items():
                value, beside = ratio(result, silence), paper.get(epsilon)
                table.append(
                    {
                        "claim": f"epsilon {epsilon:g}, delta {delta:g}",
                        f"{OURS} (± 95 %)": final_regret(result),
                        f"/ {TUNED}": value,
                        f"shown above {NEVER_ABOVE:g}?": "**yes**" if value.low > NEVER_ABOVE else "no",
                        "half-width": f"{(value.high - value.low) / 2:.3f}",
                        f"{PAPER} / {TUNED}": ratio(beside, silence) if beside else "-",
                        f"{OURS} / {PAPER}": ratio(result, beside) if beside else "-",
                    }
                )
        return table

    def curves(self) -> Curves:
        """Returns ratios to tuned silence over epsilon, by line and delta."""
        return {
            f"{line}, delta {delta:g}": over(points, self.level[TUNED])
            for delta in self.runs.values("delta")
            for line in (OURS, PAPER)
            if (points := self.runs.by("epsilon", line=line, delta=delta))
        }

    def controls(self) -> Curves:
        """Returns ratios to tuned silence of lines that have no epsilon, drawn as level lines."""
        epsilons = self.runs.values("epsilon")
        return {
            line: dict.fromkeys(epsilons, ratio(self.level[line], self.level[TUNED]).value)
            for line in (SILENT, PLACEBO, TRUE)
        }


def _verdict(value: Ratio, bound: float | None) -> str:
    """Returns, as text, whether a ratio is within its bound, and whether its interval is."""
    if bound is None:
        return "as found"
    met = "met" if value.value <= bound else "**missed**"
    return f"at most {bound:.3g}: {met}; by the interval: {value.at_most(bound)}"


def against_agents(runs: PanelRuns) -> tuple[Table, Curves]:
    """Returns the table of regret against the number of agents in all problems, and its ratios to tuned silence.

    Args:
        runs: The results of the panel.

    Returns:
        The table, and the ratios over the number of agents, by line and problem.
    """
    table: Table = []
    curves: Curves = {}
    for name in PROBLEMS:
        silence = runs.by("agents", line=TUNED, problem=name)
        ratios = {line: over(runs.by("agents", line=line, problem=name), silence) for line in (OURS, PAPER)}
        curves |= {f"{line}, {name}": points for line, points in ratios.items()}
        table += [
            {
                "federation": f"{name}, {agents:g} agents",
                f"{TUNED} (± 95 %)": final_regret(result),
                **{f"{line} / {TUNED}": points[agents] for line, points in ratios.items()},
            }
            for agents, result in silence.items()
        ]
    return table, curves


def pays_from(points: Mapping[float, Ratio]) -> str:
    """Returns, as text, the least x from which on every interval is below 1."""
    not_paying = [x for x, value in points.items() if value.at_most(1) != "holds"]
    paying = [x for x in points if x > max(not_paying, default=-inf)]
    if not paying:
        return "nowhere here"
    return f"from {min(paying):g}" + (" on, the least tried" if not not_paying else " on")
