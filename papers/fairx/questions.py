"""Tables, ratios and curves that ask what the thesis does not: solvers, tuned silence, shares of pulls, prices."""

from itertools import pairwise
from typing import Any

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.baselines.tuned import DATA
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.fairx.experiments import (
    FED,
    GREEDY,
    LEARNERS,
    PLACEBO,
    PRIV,
    SILENT,
    STEPS,
    WEIGHTED,
)

NEVER_ABOVE = 1.05
RADIUS = BASELINES[GREEDY].policy_kwargs["beta_scale"]
TUNED = DATA["baselines"]["FairX-tuned"]
_FEWER_STEPS = (("frank_wolfe", 1, 10), ("projected_gradient", 10, 30))


def radii(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of fairness regret by the scale of the radius."""
    return [
        {"radius": f"radius times {radius:g}"}
        | {line: final_regret(runs.one(line, radius=radius)) for line in runs.values("line")}
        for radius in runs.values("radius")
    ]


def place_of_zero(runs: PanelRuns) -> float:
    """Returns where radius 0 is drawn on a logarithmic axis: at a third of the least scale."""
    return float(runs.values("radius")[1]) / 3


def radius_curves(runs: PanelRuns) -> dict[str, dict[float, Mean]]:
    """Returns fairness regret over the scale of the radius, by line."""
    return {
        line: {
            r or place_of_zero(runs): final_regret(result)
            for r, result in runs.by("radius", line=line).items()
        }
        for line in runs.values("line")
    }


def _standard(runs: PanelRuns, line: str) -> RunResult:
    return runs.one(line, solver="frank_wolfe", steps=3)


def steps(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of fairness regret by solver and steps."""
    swept = [(line, f"{line}, {method}", method) for line in (SILENT, FED) for method in STEPS]
    at_the_estimate = [(line, f"{line}, at the estimate", None) for line in (SILENT, FED)]
    return [
        {
            "run, steps": f"{name} {count}",
            "fairness regret at T (± 95 %)": final_regret(result),
            "/ 3 steps of Frank and Wolfe": ratio(result, _standard(runs, line)),
        }
        for line, name, method in swept + at_the_estimate
        for count, result in runs.by("steps", line=line, solver=method).items()
    ]


def step_curves(runs: PanelRuns) -> dict[str, dict[float, Mean]]:
    """Returns fairness regret over the solver's steps, by line and solver."""
    return {
        f"{line}, {method}": {
            float(count): final_regret(result)
            for count, result in runs.by("steps", line=line, solver=method).items()
        }
        for line in (SILENT, FED)
        for method in STEPS
    }


def fewer_steps(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table that says whether fewer steps of a solver have less fairness regret."""
    table = []
    for line in (SILENT, FED):
        for method, few, many in _FEWER_STEPS:
            value = ratio(*(runs.one(line, solver=method, steps=count) for count in (few, many)))
            table.append(
                {
                    "run": f"{line}, {method}",
                    "fewer steps, less fairness regret": value.at_most(1),
                    "ratio": value,
                }
            )
    return table


def shared_over_silent(runs: PanelRuns) -> list[Ratio]:
    """Returns true data's fairness regret over silence's, for each solver and number of steps."""
    silent = runs.where(line=SILENT).rows
    return [ratio(runs.one(**{**row.labels, "line": FED, "baseline": FED}), row.result) for row in silent]


def payoffs(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table that says whether private federation pays, by agents and epsilon."""
    table = []
    for agents, silence in runs.by("agents", line=GREEDY).items():
        for epsilon, result in runs.by("epsilon", line=WEIGHTED, agents=agents).items():
            at = {"agents": agents, "epsilon": epsilon}
            value, theirs = ratio(result, silence), runs.one(PRIV, **at)
            table.append(
                {
                    "federation": f"{agents:g} agents, epsilon {epsilon:g}",
                    GREEDY: final_regret(silence),
                    WEIGHTED: final_regret(result),
                    "/ silence": value,
                    "placebo / silence": ratio(runs.one(WEIGHTED + PLACEBO, **at), silence),
                    f"never above {NEVER_ABOVE}?": value.at_most(NEVER_ABOVE),
                    "pays?": value.at_most(1),
                    PRIV: final_regret(theirs),
                    f"{WEIGHTED} / {PRIV}": ratio(result, theirs),
                }
            )
    return table


def paying(runs: PanelRuns) -> list[tuple[int, float]]:
    """Returns the agents and epsilons for which private federation pays, with an interval below 1."""
    return [
        (agents, epsilon)
        for agents, silence in runs.by("agents", line=GREEDY).items()
        for epsilon, result in runs.by("epsilon", line=WEIGHTED, agents=agents).items()
        if ratio(result, silence).at_most(1) == "holds"
    ]


def payoff_curves(runs: PanelRuns) -> dict[str, dict[float, Mean]]:
    """Returns fairness regret over epsilon, by line and number of agents."""
    curves = {}
    for agents, silence in runs.by("agents", line=GREEDY).items():
        for line in (WEIGHTED, PRIV):
            points = runs.by("epsilon", line=line, agents=agents)
            curves[f"{line}, {agents:g} agents"] = {x: final_regret(result) for x, result in points.items()}
        curves[f"silence, {agents:g} agents"] = dict.fromkeys(points, final_regret(silence))
    return curves


class Shares:
    """Shares of the pulls of ten workers, in order of merit.

    Attributes:
        deserved: The shares that they deserve, ``(workers,)``.
        got: The shares that they get, by line, ``(workers,)``.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the means over all agents and runs."""
        deserved = runs.rows[0].result.totals["deserved"].mean(axis=(0, 1)) / runs.rows[0].result.rounds[-1]
        order = np.argsort(-deserved, kind="stable")
        self.deserved = deserved[order]
        self.got = {
            row.labels["line"]: (row.result.totals["pulls"].mean(axis=(0, 1)) / row.result.rounds[-1])[order]
            for row in runs.rows
        }

    def table(self) -> list[dict[str, Any]]:
        """Returns the table of shares by worker."""
        return [
            {"worker, in order of merit": f"worker {rank + 1}", "deserved": f"{self.deserved[rank]:.3f}"}
            | {f"{line} ({LEARNERS[line]})": f"{got[rank]:.3f}" for line, got in self.got.items()}
            for rank in range(self.deserved.size)
        ]

    def curves(self) -> dict[str, dict[int, float]]:
        """Returns the shares by rank; the deserved ones last, to lie on top of those that come near them."""
        return {
            line: dict(enumerate(map(float, got), start=1))
            for line, got in [*self.got.items(), ("deserved", self.deserved)]
        }

    def differences(self, runs: PanelRuns) -> list[dict[str, Any]]:
        """Returns the table of absolute differences between shares, beside fairness regret."""
        return [
            {
                "algorithm": line,
                "absolute differences, added up over workers": f"{np.abs(self.deserved - got).sum():.3f}",
                "fairness regret at T (± 95 %)": final_regret(runs.one(line)),
            }
            for line, got in self.got.items()
        ]


def a_round(result: RunResult) -> tuple[Mean, Mean]:
    """Returns fairness regret and reward regret a round."""
    fairness = regret_by_seed(result) / result.rounds[-1]
    return over_seeds(fairness, ".4f"), over_seeds(result.info["reward_regret"].mean(axis=1), ".4f")


def prices(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of both regrets by the scale of merit."""
    table = []
    for scale in runs.values("scale"):
        row: dict[str, Any] = {"merit": f"exp({scale:g} mu)"}
        for line in LEARNERS:
            row[f"{line}: fairness"], row[f"{line}: reward"] = a_round(runs.one(line, scale=scale))
        table.append(row)
    return table


def price_curves(runs: PanelRuns) -> dict[str, list[tuple[float, Mean]]]:
    """Returns reward regret over fairness regret, a point a merit scale, by line."""
    curves = {}
    for line in LEARNERS:
        points = [a_round(result) for result in runs.by("scale", line=line).values()]
        curves[line] = [(fairness.value, reward) for fairness, reward in points]
    return curves


def costs(runs: PanelRuns) -> list[float]:
    """Returns the reward of a best-arm learner in a round less that of fair shares, for each scale of merit."""
    return [-a_round(result)[1].value for result in runs.by("scale", line="best-arm").values()]


def always_falls(values: list[float]) -> bool:
    """Returns whether each value is below the one before it."""
    return all(before > after for before, after in pairwise(values))
