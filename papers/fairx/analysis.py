"""Tables, ratios and curves of the experiments on exposure fairness: the thesis' four, and ours."""

from collections.abc import Mapping
from itertools import product
from math import log
from typing import Any

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.baselines.tuned import DATA
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, over, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_seeds, swept
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.fairx.experiments import FED, GREEDY, PLACEBO, PRIV, SILENT, WEIGHTED

TUNED = DATA["baselines"]["FairX-tuned"]
NEVER_ABOVE = 1.05
"""Ours is asked never to have more than this many times the fairness regret of tuned silence."""

Curves = dict[str, dict[float, Any]]
Table = list[dict[str, Any]]


def by_x(curves: Mapping[str, Mapping[Any, Any]], head: str, label: str) -> Table:
    """Returns curves as a table with a row for each x and a column for each curve.

    Args:
        curves: Values by x, by the name of the curve; all have the same x.
        head: Head of the first column.
        label: Format of its cells, such as ``"{:g} agents"``.
    """
    xs = next(iter(curves.values()))
    return [{head: label.format(x)} | {name: points[x] for name, points in curves.items()} for x in xs]


class Thesis:
    """Tables, curves and exponents of the thesis' four experiments.

    Attributes:
        runs: The results of one panel.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self.runs = runs

    def regrets(self, meanings: Mapping[str, str]) -> Table:
        """Returns the table of fairness regret and reward regret at T of every line, over B0's.

        Args:
            meanings: What the lines do.
        """
        return [
            {
                "algorithm": line,
                "what it does": meanings.get(line, "the same on noise alone"),
                "solver, steps, beta scale": _solver(line),
                "releases an agent": self.releases(line),
                "fairness regret at T (± 95 %)": final_regret(result),
                "/ B0": "1" if line == SILENT else ratio(result, self.runs[SILENT]),
                "reward regret at T": f"{result.info['reward_regret'].mean() * result.rounds[-1]:,.0f}",
            }
            for line, result in self.runs.by("line").items()
        ]

    def releases(self, line: str) -> str:
        """Returns the number of releases of each agent of a line, as text."""
        result = self.runs[line]
        messages = result.traffic.get("messages")
        return "-" if messages is None else f"{messages.mean() / (result.regret.shape[2] - 1):,.0f}"

    def power_of_rounds(self, line: str) -> Mean:
        """Returns the exponent with which a line's regret grows in the round, over the last tenfold of rounds."""
        result = self.runs[line]
        early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
        grown = np.log(regret_by_seed(result) / regret_by_seed(result, early))
        return over_seeds(grown / log(result.rounds[-1] / result.rounds[early]), ".2f")

    def least(self, start: str = "") -> str:
        """Returns the line with the least fairness regret, of those with this beginning of their name."""
        regrets = {line: regret_by_seed(result).mean() for line, result in self.runs.by("line").items()}
        return min((line for line in regrets if line.startswith(start)), key=regrets.__getitem__)

    def power_of_agents(self, line: str) -> Mean:
        """Returns the exponent of the number of agents in a line's regret, fitted to the logarithms of each run."""
        points = self.runs.by("agents", line=line)
        order = sorted(points, reverse=True)
        logs = np.log([regret_by_seed(points[agents]) for agents in order])
        return over_seeds(np.polyfit(np.log(order), logs, 1)[0], ".3f")

    def against_epsilon(self) -> Table:
        """Returns the table of fairness regret by epsilon."""
        silent, greedy = self.runs[SILENT], self.runs[GREEDY]
        placebo = self.runs.by("epsilon", line=PRIV + PLACEBO)
        weighted = self.runs.by("epsilon", line=WEIGHTED)
        return [
            {
                "budget": f"epsilon {epsilon:g}",
                PRIV: final_regret(result),
                "/ B0": ratio(result, silent),
                "placebo / B0": ratio(placebo[epsilon], silent),
                WEIGHTED: final_regret(weighted[epsilon]),
                f"/ {GREEDY}": ratio(weighted[epsilon], greedy),
            }
            for epsilon, result in self.runs.by("epsilon", line=PRIV).items()
        ]

    def epsilon_curves(self) -> Curves:
        """Returns fairness regret over epsilon, level where a line has none."""
        levels = {line: final_regret(self.runs[line]) for line in (SILENT, FED, GREEDY)}
        epsilons = self.runs.values("epsilon")
        return {
            **swept(self.runs, "epsilon", (PRIV, PRIV + PLACEBO, WEIGHTED)),
            **{line: dict.fromkeys(epsilons, level) for line, level in levels.items()},
        }


def _solver(line: str) -> str:
    """Returns how a line's policy finds the optimistic parameter, as text: solver, steps and scale of the radius."""
    arguments = BASELINES[line.removesuffix(PLACEBO)].policy_kwargs
    if "solver" not in arguments:
        return "-"
    radius = arguments["beta_scale"]
    return f"{arguments['solver']}, {arguments['steps']}, {radius:g}" if radius else "none, 0, 0"


_FEW_AND_MANY = {"frank_wolfe": (1, 10), "projected_gradient": (10, 30)}


class SolverSteps:
    """Tables and curves of fairness regret over what no paper specifies: the solver's steps and the radius' scale.

    Attributes:
        runs: The results of one panel.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self.runs = runs

    def radius_curves(self, zero: float) -> Curves:
        """Returns fairness regret over the scale of the radius, by line.

        Args:
            zero: Where the scale 0 is drawn on the logarithmic axis.
        """
        curves = swept(self.runs, "radius")
        return {line: {x or zero: regret for x, regret in points.items()} for line, points in curves.items()}

    def steps(self) -> Table:
        """Returns the table of fairness regret by solver and steps, those without a solver last."""
        solvers = [*product((SILENT, FED), _FEW_AND_MANY), *product((SILENT, FED), ["at the estimate"])]
        return [
            {
                "run, steps": f"{line}, {solver} {steps:g}",
                "fairness regret at T (± 95 %)": final_regret(result),
                "/ 3 steps of Frank and Wolfe": ratio(result, self.runs.one(line, frank_wolfe=3)),
            }
            for line, solver in solvers
            for steps, result in self.runs.by(solver, line=line).items()
        ]

    def step_curves(self) -> Curves:
        """Returns fairness regret over the solver's steps, by line and solver."""
        kinds = product((SILENT, FED), _FEW_AND_MANY)
        return {f"{line}, {solver}": swept(self.runs, solver, [line])[line] for line, solver in kinds}

    def fewer_steps(self) -> Table:
        """Returns the table of verdicts on whether fewer steps of a solver have less fairness regret."""
        table = []
        for line, (solver, steps) in product((SILENT, FED), _FEW_AND_MANY.items()):
            value = ratio(*(self.runs.one(line, **{solver: count}) for count in steps))
            verdict = {"fewer steps, less fairness regret": value.at_most(1), "ratio": value}
            table.append({"run": f"{line}, {solver}", **verdict})
        return table

    def shared_over_silent(self) -> list[Ratio]:
        """Returns true data's fairness regret over silence's, for each solver and number of steps."""
        silent = self.runs.where(line=SILENT).rows
        return [ratio(self.runs.one(**{**row.labels, "line": FED}), row.result) for row in silent]


class Payoffs:
    """Fairness regret of private federation beside that of tuned silence, by the number of agents and epsilon.

    Attributes:
        runs: The results of one panel.
        ratios: Ours over tuned silence, by agents and epsilon.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self.runs = runs
        self.ratios = {
            (agents, epsilon): value
            for agents, silence in runs.by("agents", line=GREEDY).items()
            for epsilon, value in over(runs.by("epsilon", line=WEIGHTED, agents=agents), silence).items()
        }

    def table(self) -> Table:
        """Returns the table of verdicts on whether private federation pays, by agents and epsilon."""
        table = []
        for (agents, epsilon), value in self.ratios.items():
            silence = self.runs.one(GREEDY, agents=agents)
            at = self.runs.where(agents=agents, epsilon=epsilon)
            table.append(
                {
                    "federation": f"{agents:g} agents, epsilon {epsilon:g}",
                    GREEDY: final_regret(silence),
                    WEIGHTED: final_regret(at[WEIGHTED]),
                    "/ silence": value,
                    "placebo / silence": ratio(at[WEIGHTED + PLACEBO], silence),
                    f"never above {NEVER_ABOVE}?": value.at_most(NEVER_ABOVE),
                    "pays?": value.at_most(1),
                    PRIV: final_regret(at[PRIV]),
                    f"{WEIGHTED} / {PRIV}": ratio(at[WEIGHTED], at[PRIV]),
                }
            )
        return table

    def curves(self) -> Curves:
        """Returns fairness regret over epsilon, by line and number of agents."""
        curves: Curves = {}
        for agents, silence in self.runs.by("agents", line=GREEDY).items():
            found = swept(self.runs, "epsilon", (WEIGHTED, PRIV), agents=agents)
            found["silence"] = dict.fromkeys(found[PRIV], final_regret(silence))
            curves |= {f"{line}, {agents:g} agents": points for line, points in found.items()}
        return curves


class Shares:
    """Shares of the pulls of ten workers, in order of merit; means over all agents and runs.

    Attributes:
        runs: The results of the panel.
        deserved: The shares that the workers deserve, by rank.
        got: The shares that they get, by line and rank.
        curves: All of them, the deserved ones last, to be drawn on top of those that come near them.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of the panel."""
        self.runs = runs
        totals = {line: result.totals["pulls"] for line, result in runs.by("line").items()}
        totals["deserved"] = runs["best-arm"].totals["deserved"]
        shares = {
            name: total.mean(axis=(0, 1)) / runs["best-arm"].rounds[-1] for name, total in totals.items()
        }
        order = np.argsort(-shares["deserved"], kind="stable")
        self.curves = {name: dict(enumerate(map(float, share[order]), 1)) for name, share in shares.items()}
        self.got = dict(self.curves)
        self.deserved = self.got.pop("deserved")

    def table(self, meanings: Mapping[str, str]) -> Table:
        """Returns the table of shares by worker.

        Args:
            meanings: What the lines do.
        """
        return [
            {"worker, in order of merit": f"worker {rank}", "deserved": f"{deserved:.3f}"}
            | {f"{line} ({meanings[line]})": f"{got[rank]:.3f}" for line, got in self.got.items()}
            for rank, deserved in self.deserved.items()
        ]

    def differences(self) -> Table:
        """Returns the table of absolute differences between shares, beside fairness regret."""
        sums = {line: sum(abs(got[i] - self.deserved[i]) for i in got) for line, got in self.got.items()}
        return [
            {
                "algorithm": line,
                "absolute differences, added up over workers": f"{differences:.3f}",
                "fairness regret at T (± 95 %)": final_regret(self.runs[line]),
            }
            for line, differences in sums.items()
        ]


def prices(runs: PanelRuns) -> tuple[Curves, dict[str, list[tuple[float, Mean]]]]:
    """Returns the two regrets a round of each line over the scale of merit, and reward regret over fairness regret.

    Args:
        runs: The results of the panel.

    Returns:
        Means by scale, by line and kind of regret (``"best-arm: fairness"``, ``"best-arm: reward"`` ...); and curves
        with a point for each scale, by line.
    """
    by_scale: Curves = {}
    curves = {}
    for line in runs.values("line"):
        results = runs.by("merit", line=line)
        fairness = {x: over_seeds(regret_by_seed(one) / one.rounds[-1], ".4f") for x, one in results.items()}
        reward = {x: over_seeds(one.info["reward_regret"].mean(axis=1), ".4f") for x, one in results.items()}
        by_scale |= {f"{line}: fairness": fairness, f"{line}: reward": reward}
        curves[line] = [(fairness[scale].value, reward[scale]) for scale in results]
    return by_scale, curves
