"""Tables, ratios and curves of the thesis' experiments on exposure fairness; ours are in ``questions``."""

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_seeds, swept
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.fairx.experiments import (
    CONTROLS,
    FED,
    GREEDY,
    PLACEBO,
    PRIV,
    PROTOCOLS,
    SILENT,
    THESIS,
    WEIGHTED,
)

_MEANINGS = {**THESIS, **CONTROLS}
PROTOCOL_MEANINGS = {SILENT: "silent (B0)", **PROTOCOLS}
Points = dict[float, Any]


def _solver(baseline: str) -> str:
    """Returns a baseline's optimiser of the optimistic parameter as text: solver, steps and scale of the radius."""
    arguments = BASELINES[baseline].policy_kwargs
    if "solver" not in arguments:
        return "-"
    radius = arguments["beta_scale"]
    return f"{arguments['solver']}, {arguments['steps']}, {radius:g}" if radius else "none, 0, 0"


def releases(result: RunResult) -> str:
    """Returns the number of an agent's releases as text."""
    messages = result.traffic.get("messages")
    if messages is None:
        return "-"
    return f"{messages.mean() / (result.regret.shape[2] - 1):,.0f}"


def regrets(runs: PanelRuns, meanings: Mapping[str, str] = _MEANINGS) -> list[dict[str, Any]]:
    """Returns the table of fairness regret and reward regret at T of every run, over B0's."""
    return [
        {
            "algorithm": (line := row.labels["line"]),
            "what it does": meanings.get(line, "the same on noise alone"),
            "solver, steps, beta scale": _solver(row.labels["baseline"]),
            "releases an agent": releases(row.result),
            "fairness regret at T (± 95 %)": final_regret(row.result),
            "/ B0": "1" if line == SILENT else ratio(row.result, runs.one(SILENT)),
            "reward regret at T": f"{row.result.info['reward_regret'].mean() * row.result.rounds[-1]:,.0f}",
        }
        for row in runs.rows
    ]


def growth(result: RunResult) -> Mean:
    """Returns like which power of the round regret grows over the last tenfold of rounds."""
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    grown = np.log(regret_by_seed(result) / regret_by_seed(result, early))
    return over_seeds(grown / log(result.rounds[-1] / result.rounds[early]), ".2f")


def least(runs: PanelRuns, start: str = "") -> str:
    """Returns the line with the least fairness regret, of those whose baseline's name begins so."""
    rows = [row for row in runs.rows if row.labels["baseline"].startswith(start)]
    return min(rows, key=lambda row: float(regret_by_seed(row.result).mean())).labels["line"]


def against_agents(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of fairness regret by the number of agents."""
    points = swept(runs, "agents")
    return [
        {"federation": f"{agents:g} agents"} | {line: points[line][agents] for line in points}
        for agents in runs.values("agents")
    ]


def power_of_agents(runs: PanelRuns, line: str) -> Mean:
    """Returns like which power of the number of agents regret goes: a line through logarithms, fitted for each run."""
    points = runs.by("agents", line=line)
    order = sorted(points, reverse=True)
    logs = np.log([regret_by_seed(points[agents]) for agents in order])
    return over_seeds(np.polyfit(np.log(order), logs, 1)[0], ".3f")


def against_epsilon(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of fairness regret by epsilon."""
    silent, greedy = runs.one(SILENT), runs.one(GREEDY)
    table = []
    for epsilon, result in runs.by("epsilon", line=PRIV).items():
        weighted = runs.one(WEIGHTED, epsilon=epsilon)
        table.append(
            {
                "budget": f"epsilon {epsilon:g}",
                PRIV: final_regret(result),
                "/ B0": ratio(result, silent),
                "placebo / B0": ratio(runs.one(PRIV + PLACEBO, epsilon=epsilon), silent),
                WEIGHTED: final_regret(weighted),
                f"/ {GREEDY}": ratio(weighted, greedy),
            }
        )
    return table


def epsilon_curves(runs: PanelRuns) -> dict[str, Points]:
    """Returns fairness regret over epsilon, level where a line has none."""
    level = {
        line: dict.fromkeys(runs.values("epsilon"), final_regret(runs.one(line)))
        for line in (SILENT, FED, GREEDY)
    }
    return {**swept(runs, "epsilon", (PRIV, PRIV + PLACEBO, WEIGHTED)), **level}
