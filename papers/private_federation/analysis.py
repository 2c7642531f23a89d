"""Tables, ratios and curves of the page that compares private federation with tuned agents who do not communicate.

"Tuned silence" is the baseline without communication, with tuned constants.
"""

from collections.abc import Mapping
from math import inf

import numpy as np

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import OURS, OURS_TUNED, PAPER, PLACEBO, SILENT, TRUE, TUNED
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.private_federation.experiments import NEVER_ABOVE, PROBLEMS
from fedbandit_envs.papers.reproduction.comparison import (
    Ratio,
    final_regret,
    over,
    over_line,
    ratio,
    regret_by_instance,
)
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table


def level(runs: PanelRuns) -> PanelRuns:
    """Returns the results of the runs in which no quantity is varied, at the horizon of the sweeps."""
    return runs.where(case=None, delta=None)


def _median(result: RunResult) -> str:
    return f"{np.median(regret_by_instance(result)):.0f}"


def bounds(runs: PanelRuns) -> Table:
    """Yields a table with a line for each setting and algorithm: regret at the full horizon, and ratios to it.

    Each ratio is the regret of one of this project's baselines divided by that of the line's algorithm; the table says
    whether it is at most the bound that was set in advance.
    """
    problem = PROBLEMS[runs.panel]
    for case in problem.cases:
        results = runs.where(case=case.title).by("line")
        for line, result in results.items():
            row = {
                "setting: run": f"{case.title}: {line}",
                "baseline": comparison_lines.BASELINE_OF[runs.panel][line],
                "regret at T (± 95 %)": final_regret(result),
                "median": _median(result),
            }
            for ours in (OURS, OURS_TUNED):
                row |= {f"{ours} / this run": "", f"target of {ours}": ""}
                if line in case.asked:
                    value = ratio(results[ours], result, middle=problem.middle)
                    row[f"{ours} / this run"] = value
                    bound = case.asked[line]
                    row[f"target of {ours}"] = (
                        "no target" if bound is None else f"at most {bound:.3g}: {value.at_most(bound)}"
                    )
            yield row


def lines(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm: its regret at the horizon of the sweeps.

    Regret is also divided by that of agents who do not communicate, with and without tuning.
    """
    for line, result in level(runs).by("line").items():
        row = {
            "run": line,
            "baseline": comparison_lines.BASELINE_OF[runs.panel][line],
            "regret (± 95 %)": final_regret(result),
            "median": _median(result),
        }
        for below in (SILENT, TUNED):
            row[f"/ {below}"] = "1" if line == below else ratio(result, level(runs)[below])
        yield row


def against_epsilon(runs: PanelRuns) -> Table:
    """Yields a table with a line for each epsilon and delta, claimed for all releases together: regret and ratios.

    Ratios are to tuned agents who do not communicate, and to the paper's form of private federation.
    """
    silence = level(runs)[TUNED]
    for delta in runs.values("delta"):
        found = runs.where(delta=delta).lines("epsilon")
        for epsilon, result in found[OURS].items():
            value, beside = ratio(result, silence), found.get(PAPER, {}).get(epsilon)
            yield {
                "all releases": f"epsilon {epsilon:g}, delta {delta:g}",
                f"{OURS} (± 95 %)": final_regret(result),
                f"/ {TUNED}": value,
                f"never above {NEVER_ABOVE:g}?": value.at_most(NEVER_ABOVE),
                "half-width of the interval": f"{(value.high - value.low) / 2:.3f}",
                f"{PAPER} / {TUNED}": ratio(beside, silence) if beside else "-",
                f"{OURS} / {PAPER}": ratio(result, beside) if beside else "-",
            }


def curves_of(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns curves over epsilon, by a text that names the algorithm and delta.

    A point is the algorithm's regret divided by that of tuned agents who do not communicate.
    """
    return {
        f"{line}, delta {delta:g}": over(points, level(runs)[TUNED])
        for delta in runs.values("delta")
        for line, points in runs.where(delta=delta).lines("epsilon").items()
    }


def controls(runs: PanelRuns) -> dict[str, dict[float, float]]:
    """Returns, for algorithms without an epsilon, horizontal lines over epsilon.

    Their height is the algorithm's regret divided by that of tuned agents who do not communicate.
    """
    values = over({line: level(runs)[line] for line in (SILENT, PLACEBO, TRUE)}, level(runs)[TUNED])
    return {line: dict.fromkeys(runs.values("epsilon"), value.value) for line, value in values.items()}


def over_silence(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns curves over the number of agents, by a text that names the algorithm and the problem.

    A point is the algorithm's regret divided by that of tuned agents who do not communicate.
    """
    return {
        f"{line}, {name}": points
        for name in PROBLEMS
        for line, points in over_line(runs.where(problem=name).lines("agents"), TUNED).items()
    }


def against_agents(runs: PanelRuns) -> Table:
    """Yields a table with a line for each problem and number of agents: regret of tuned agents without communication.

    Its other columns are the regret of private federations, divided by that regret.
    """
    ratios = over_silence(runs)
    for name in PROBLEMS:
        for agents, result in runs.by("agents", line=TUNED, problem=name).items():
            yield {
                "problem": f"{name}, {agents:g} agents",
                f"{TUNED} (± 95 %)": final_regret(result),
                **{f"{line} / {TUNED}": ratios[f"{line}, {name}"][agents] for line in (OURS, PAPER)},
            }


def pays_from(points: Mapping[float, Ratio]) -> str:
    """Returns a text with the smallest x from which on private federation pays: all intervals of ratios are below 1.

    Args:
        points: Regret divided by that of tuned agents who do not communicate, by x.
    """
    verdicts = {x: value.at_most(1) for x, value in points.items()}
    if "exploratory" in verdicts.values():
        return "exploratory"
    not_paying = [x for x, verdict in verdicts.items() if verdict != "holds"]
    paying = [x for x in points if x > max(not_paying, default=-inf)]
    if not paying:
        return "none of those tried"
    return f"from {min(paying):g}" + (" on, the least tried" if not not_paying else " on")
