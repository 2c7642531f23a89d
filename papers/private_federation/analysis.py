"""Tables, ratios and curves of the page on private federation against tuned silence."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import OURS, OURS_TUNED, PAPER, PLACEBO, SILENT, TRUE, TUNED
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, over, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.private_federation.experiments import NEVER_ABOVE, PROBLEMS, Case

Curves = dict[str, dict[float, Any]]


def _median(result: RunResult) -> str:
    return f"{np.median(regret_by_seed(result)):.0f}"


def _judged(value: Ratio, bound: float | None) -> str:
    if bound is None:
        return "as found"
    met = "met" if value.value <= bound else "**missed**"
    return f"at most {bound:.3g}: {met}; by the interval: {value.at_most(bound)}"


def bounds(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of what was to be shown, at the full horizon."""
    problem = PROBLEMS[runs.panel]
    return [
        {
            "setting: run": f"{case.title}: {line}",
            "baseline": problem.names[line],
            "regret at T (± 95 %)": final_regret(result),
            "median": _median(result),
            **_over(runs, case, line, OURS),
            **_over(runs, case, line, OURS_TUNED),
        }
        for case in problem.cases
        for line, result in runs.where(case=case.title).by("line").items()
    ]


def _over(runs: PanelRuns, case: Case, line: str, ours: str) -> dict[str, Any]:
    """Returns the cells that set one of our lines against another line, and against the bound on that ratio."""
    asked = {TUNED: case.over_silence, PAPER: case.over_paper}
    value: Ratio | str = ""
    if line in asked:
        above, below = (runs.one(name, case=case.title) for name in (ours, line))
        value = ratio(above, below, middle=PROBLEMS[runs.panel].middle)
    judged = _judged(value, asked[line]) if isinstance(value, Ratio) else ""
    return {f"{ours} over it": value, f"asked of {ours}": judged}


def spent(runs: PanelRuns) -> list[Claim]:
    """Returns the claims for the agent with the largest epsilon in the first setting, under its first adjacency."""
    claims = runs.one(OURS, case=PROBLEMS[runs.panel].cases[0].title).claims
    first = claims[0].adjacency
    return [claim for claim in claims if claim.adjacency == first and claim.composition != "zcdp"]


def flat(runs: PanelRuns) -> PanelRuns:
    """Returns the runs at the sweeps' horizon that are not swept."""
    return runs.where(case=None, delta=None)


def lines(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of what all lines have at the sweeps' horizon."""
    names = PROBLEMS[runs.panel].names
    return [
        {
            "run": line,
            "baseline": names[line],
            "regret (± 95 %)": final_regret(result),
            "median": _median(result),
            f"/ {SILENT}": "1" if line == SILENT else ratio(result, flat(runs).one(SILENT)),
            f"/ {TUNED}": "1" if line == TUNED else ratio(result, flat(runs).one(TUNED)),
        }
        for line in comparison_lines.LINES
        for result in [flat(runs).one(line)]
    ]


def against_epsilon(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of regret against epsilon, as claimed for all releases together."""
    silence = flat(runs).one(TUNED)
    table = []
    for delta in runs.values("delta"):
        paper = runs.by("epsilon", line=PAPER, delta=delta)
        for epsilon, result in runs.by("epsilon", line=OURS, delta=delta).items():
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


def epsilon_curves(runs: PanelRuns) -> Curves:
    """Returns ratios to tuned silence over epsilon, by line and delta."""
    silence = flat(runs).one(TUNED)
    return {
        f"{line}, delta {delta:g}": over(points, silence)
        for delta in runs.values("delta")
        for line in (OURS, PAPER)
        if (points := runs.by("epsilon", line=line, delta=delta))
    }


def controls(runs: PanelRuns) -> Curves:
    """Returns ratios to tuned silence of lines that have no epsilon, drawn as level lines."""
    return {
        line: dict.fromkeys(runs.values("epsilon"), ratio(flat(runs).one(line), flat(runs).one(TUNED)).value)
        for line in (SILENT, PLACEBO, TRUE)
    }


def against_agents(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of regret against the number of agents, of all problems."""
    curves = agents_curves(runs)
    return [
        {
            "federation": f"{name}, {size:g} agents",
            f"{TUNED} (± 95 %)": final_regret(silence),
            **{f"{line} / {TUNED}": curves[f"{line}, {name}"][size] for line in (OURS, PAPER)},
        }
        for name in runs.values("problem")
        for size, silence in runs.by("size", line=TUNED, problem=name).items()
    ]


def agents_curves(runs: PanelRuns) -> Curves:
    """Returns ratios to tuned silence over the number of agents, by line and problem."""
    curves: Curves = {}
    for name in runs.values("problem"):
        silence = runs.by("size", line=TUNED, problem=name)
        for line in (OURS, PAPER):
            points = runs.by("size", line=line, problem=name)
            curves[f"{line}, {name}"] = over(points, silence)
    return curves


def pays_from(points: Mapping[float, Ratio]) -> str:
    """Returns, as text, the least x from which on every interval is below 1."""
    paying: list[float] = []
    for x, value in sorted(points.items(), reverse=True):
        if value.at_most(1) != "holds":
            break
        paying.append(x)
    if not paying:
        return "nowhere here"
    return f"from {paying[-1]:g}" + (" on, the least tried" if len(paying) == len(points) else " on")
