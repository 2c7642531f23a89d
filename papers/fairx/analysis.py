"""Tables, ratios and curves of the experiments on exposure fairness: four from the thesis, and this project's own."""

from collections.abc import Mapping
from itertools import pairwise, product
from math import log

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.baselines.tuned import DATA
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.fairx.experiments import FED, GREEDY, PLACEBO, PRIV, SILENT, WEIGHTED
from fedbandit_envs.papers.reproduction.comparison import (
    Mean,
    Ratio,
    Statement,
    all_at_most,
    compare,
    final_regret,
    mean_of,
    over,
    ratio,
    regret_by_instance,
)
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Curves, Table, each

TUNED = DATA["baselines"]["FairX-tuned"]
NEVER_ABOVE = 1.05
"""Bound set in advance for the fairness regret of this project's private baseline, relative to tuned silent agents."""


def regrets(runs: PanelRuns, meanings: Mapping[str, str]) -> Table:
    """Yields a table with a line for each algorithm: its fairness regret and reward regret at the horizon T.

    Fairness regret is also divided by that of B0, the algorithm whose agents do not communicate.

    Args:
        runs: The results of one panel.
        meanings: Description of each algorithm, by its name.
    """
    for line, result in runs.by("line").items():
        yield {
            "algorithm": line,
            "what it does": meanings.get(line, "the same on noise alone"),
            "solver, steps, beta scale": _solver(line),
            "releases an agent": releases(result),
            "fairness regret at T (± 95 %)": final_regret(result),
            "/ B0": "1" if line == SILENT else ratio(result, runs[SILENT]),
            "reward regret at T": f"{result.info['reward_regret'].mean() * result.rounds[-1]:,.0f}",
        }


def releases(result: RunResult) -> str:
    """Returns the mean number of releases that an agent made in a run, as text; ``-`` without communication."""
    messages = result.traffic.get("messages")
    return "-" if messages is None else f"{messages.mean() / (result.regret.shape[2] - 1):,.0f}"


def _solver(line: str) -> str:
    """Returns how an algorithm finds the optimistic parameter, as text: solver, its steps, and the radius' scale."""
    arguments = BASELINES[line.removesuffix(PLACEBO)].policy_kwargs
    if "solver" not in arguments:
        return "-"
    radius = arguments["beta_scale"]
    return f"{arguments['solver']}, {arguments['steps']}, {radius:g}" if radius else "none, 0, 0"


def power_of_rounds(result: RunResult) -> Mean:
    """Returns the exponent p of regret growing as t^p, from round T / 10 to the horizon T; the mean over seeds."""
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    grown = np.log(regret_by_instance(result) / regret_by_instance(result, early))
    return mean_of(grown / log(result.rounds[-1] / result.rounds[early]), ".2f")


def against_epsilon(runs: PanelRuns) -> Table:
    """Yields a table with a line for each epsilon: the private algorithms' fairness regret, and its ratio to B0's.

    B0 is the algorithm whose agents do not communicate. In a placebo, messages carry nothing but noise.
    """
    lines = runs.lines("epsilon")
    for epsilon, result in lines[PRIV].items():
        yield {
            "budget": f"epsilon {epsilon:g}",
            PRIV: final_regret(result),
            "/ B0": ratio(result, runs[SILENT]),
            "placebo / B0": ratio(lines[PRIV + PLACEBO][epsilon], runs[SILENT]),
            WEIGHTED: final_regret(lines[WEIGHTED][epsilon]),
            f"/ {GREEDY}": ratio(lines[WEIGHTED][epsilon], runs[GREEDY]),
        }


def zero_at(place: float, curves: Mapping[str, Mapping[float, Mean]]) -> dict[str, dict[float, Mean]]:
    """Returns curves with their points at x = 0 moved to x = ``place``, since a logarithmic axis has no 0."""
    return {line: {x or place: regret for x, regret in points.items()} for line, points in curves.items()}


_FEW_AND_MANY = {"frank_wolfe": (1, 10), "projected_gradient": (10, 30)}


def steps(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm, solver and number of steps: its fairness regret.

    The solver searches for the optimistic parameter. Runs that act on the estimate itself, without a search, are last.
    """
    solvers = [*product((SILENT, FED), _FEW_AND_MANY), *product((SILENT, FED), ["at the estimate"])]
    for line, solver in solvers:
        for steps, result in runs.by(solver, line=line).items():
            yield {
                "run, steps": f"{line}, {solver} {steps:g}",
                "fairness regret at T (± 95 %)": final_regret(result),
                "/ 3 steps of Frank and Wolfe": ratio(result, runs.one(line, frank_wolfe=3)),
            }


def by_steps(runs: PanelRuns) -> dict[str, dict[float, RunResult]]:
    """Returns results by a text that names algorithm and solver, and by the solver's number of steps."""
    kinds = product((SILENT, FED), _FEW_AND_MANY)
    return {f"{line}, {solver}": runs.by(solver, line=line) for line, solver in kinds}


def fewer_steps(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm and solver: whether fewer steps have less fairness regret."""
    for line, (solver, counts) in product((SILENT, FED), _FEW_AND_MANY.items()):
        value = ratio(*(runs.one(line, **{solver: count}) for count in counts))
        verdict = {"fewer steps, less fairness regret": value.at_most(1), "ratio": value}
        yield {"run": f"{line}, {solver}", **verdict}


def shared_over_silent(runs: PanelRuns) -> list[Ratio]:
    """Returns fairness regret with true data shared, divided by that without communication.

    The list has a ratio for each solver and number of steps.
    """
    silent = runs.where(line=SILENT).rows
    return [ratio(runs.one(**{**row.labels, "line": FED}), row.result) for row in silent]


def payoffs(runs: PanelRuns) -> dict[tuple[float, float], Ratio]:
    """Returns the fairness regret of this project's private baseline, divided by that of tuned silent agents.

    The keys are pairs of the number of agents and epsilon.
    """
    return {
        (agents, epsilon): value
        for agents, silence in runs.by("agents", line=GREEDY).items()
        for epsilon, value in over(runs.by("epsilon", line=WEIGHTED, agents=agents), silence).items()
    }


def payoff_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each number of agents and epsilon: whether private federation pays.

    It pays where it has less fairness regret than tuned agents that do not communicate.
    """
    for (agents, epsilon), value in payoffs(runs).items():
        silence, at = runs.one(GREEDY, agents=agents), runs.where(agents=agents, epsilon=epsilon)
        yield {
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


def payoff_curves(runs: PanelRuns) -> Curves:
    """Returns curves of fairness regret over epsilon, by a text that names the algorithm and the number of agents."""
    curves: dict[str, Mapping[float, Mean]] = {}
    for agents in runs.values("agents"):
        found = each(runs.where(agents=agents).lines("epsilon"), final_regret)
        names = {WEIGHTED: WEIGHTED, PRIV: PRIV, "silence": GREEDY}
        curves |= {f"{name}, {agents:g} agents": found[line] for name, line in names.items()}
    return curves


def shares(runs: PanelRuns) -> dict[str, dict[int, float]]:
    """Returns each worker's (arm's) share of the pulls, averaged over all agents and runs.

    Returns:
        Shares by algorithm and by the worker's rank, where rank 1 has the largest deserved share. The last entry,
        ``deserved``, has the shares that the workers deserve, so that its curve is drawn on top of similar ones.
    """
    totals = {line: result.totals["pulls"] for line, result in runs.by("line").items()}
    totals["deserved"] = runs["best-arm"].totals["deserved"]
    shares = {name: total.mean(axis=(0, 1)) / runs["best-arm"].rounds[-1] for name, total in totals.items()}
    order = np.argsort(-shares["deserved"], kind="stable")
    return {name: dict(enumerate(map(float, share[order]), 1)) for name, share in shares.items()}


def share_table(shares: Mapping[str, Mapping[int, float]], meanings: Mapping[str, str]) -> Table:
    """Yields a table with a line for each worker: its deserved share of the pulls, and its share by each algorithm.

    Args:
        shares: Shares by algorithm and by the worker's rank, as :func:`shares` returns them.
        meanings: Description of each algorithm that the table has a column for.
    """
    for rank, deserved in shares["deserved"].items():
        got = {f"{line} ({what})": f"{shares[line][rank]:.3f}" for line, what in meanings.items()}
        yield {"worker, in order of merit": f"worker {rank}", "deserved": f"{deserved:.3f}", **got}


def differences(runs: PanelRuns, shares: Mapping[str, Mapping[int, float]]) -> Table:
    """Yields a table with a line for each algorithm: how far shares of the pulls are from the deserved ones.

    The distance is the sum over workers of absolute differences; fairness regret is beside it.

    Args:
        runs: The results of one panel.
        shares: Shares by algorithm and by the worker's rank, as :func:`shares` returns them.
    """
    sums = {line: sum(abs(got[i] - shares["deserved"][i]) for i in got) for line, got in shares.items()}
    for line, result in runs.by("line").items():
        yield {
            "algorithm": line,
            "absolute differences, added up over workers": f"{sums[line]:.3f}",
            "fairness regret at T (± 95 %)": final_regret(result),
        }


def price_falls(runs: PanelRuns) -> Statement:
    """Returns the verdict on whether a best-arm learner's reward regret, which is negative, nears 0 with each scale."""
    found = [-run.info["reward_regret"].mean(axis=1) for run in runs.lines("merit")["best-arm"].values()]
    return all_at_most(compare(later, earlier) for earlier, later in pairwise(found))


def prices(runs: PanelRuns) -> tuple[dict[str, dict[float, Mean]], dict[str, list[tuple[float, Mean]]]]:
    """Returns fairness regret and reward regret per round of each algorithm at each scale of merit.

    Args:
        runs: The results of the panel.

    Returns:
        Two mappings. The first has the means by algorithm and kind of regret (``"best-arm: fairness"``,
        ``"best-arm: reward"`` ...), and by scale. The second has a curve for each algorithm with a point for each
        scale: x is fairness regret, y is reward regret.
    """
    by_scale: dict[str, dict[float, Mean]] = {}
    curves = {}
    for line, results in runs.lines("merit").items():
        fairness = {x: mean_of(regret_by_instance(one) / one.rounds[-1], ".4f") for x, one in results.items()}
        reward = {x: mean_of(one.info["reward_regret"].mean(axis=1), ".4f") for x, one in results.items()}
        by_scale |= {f"{line}: fairness": fairness, f"{line}: reward": reward}
        curves[line] = [(fairness[scale].value, reward[scale]) for scale in results]
    return by_scale, curves
