"""The FedUCB paper's experiments as data: which runs each needs (Dubey and Pentland 2020, section 4.4 and appendix)."""

from math import isqrt
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.reproduction.runs import Run
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.linear_v0 import parallel_env

DELTA = 0.1

SILENT = {
    "random-arm": "an arm at random",
    "LinUCB": "silent, not private towards itself",
    "LinUCB-0.5": "silent, radius times 0.5",
    "LinUCB-private": "silent, private towards itself (Shariff and Sheffet)",
}
"""Baselines that tell nobody anything."""

PRIVATE = {
    "FedUCB-printed": "printed noise, shifts and radius",
    "FedUCB": "exact sigma, square-root factorisation, shift on the sum, root-M bias",
    "FedUCB-floor": "the same noise, eigenvalues lifted, the error's Euclidean bound",
    "FedUCB-min": "FedUCB-floor, never more optimistic than own data alone",
}
"""Private federations, all in the same rounds."""

PLACEBO = "FedUCB-placebo"
SHARED = "FedUCB-nonprivate"
TRIGGERED = {
    "FedUCB-printed-trigger": "as printed, trigger included: no claim of privacy",
    "FedUCB-nonprivate-trigger": "true data once determinants have grown",
}
"""Federations that synchronise when some agent asks."""

FIG1A_SCALES = {
    "small": Scale(20_000, 5, {"epsilon": (0.1, 1.0, 10.0), "agents": (2, 5, 10)}),
    "paper": Scale(10_000_000, 100, {"epsilon": (0.1, 0.3, 1.0, 3.0, 10.0), "agents": (2, 5, 10, 50, 100)}),
}
FIG1A_PANELS = {
    "epsilon": "Against epsilon, 10 agents",
    "agents": "Against the number of agents, epsilon = 1",
}

FIG1B_SCALES = {
    "small": Scale(5_000, 5, {"agents": (16,)}),
    "paper": Scale(10_000_000, 100, {"agents": (100,)}),
}
FIG1B_PANELS = {"nonprivate": "True data", "private": "Private, epsilon = 1"}

FIG1C_SCALES = {
    "small": Scale(20_000, 5, {"agents": (10,), "dim": (3.0, 5.0, 10.0)}),
    "paper": Scale(10_000_000, 100, {"agents": (100,), "dim": (5.0, 10.0, 15.0, 20.0)}),
}

FIG2_SCALES = {
    "small": Scale(20_000, 5, {"gap": (0.05, 0.1, 0.2, 0.3), "epsilon": (0.1, 1.0)}),
    "paper": Scale(10_000_000, 100, {"gap": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3), "epsilon": (0.1, 1.0, 10.0)}),
}
ONE_PANEL = {"all": "All runs"}

HORIZON_SCALES = {"small": Scale(100_000, 2), "paper": Scale(10_000_000, 100)}

GRAPHS_SCALES = {"small": Scale(10_000, 5), "paper": Scale(10_000_000, 100)}
GRAPHS_PANELS = {"nonprivate": "True data every round", "private": "Private, epsilon = 1, in doubling rounds"}


def describe(scale: Scale, mode: str) -> str:
    """Describes what all experiments have in common."""
    return (
        f"T = {scale.rounds:,}, {scale.trials} trials, each with a theta* of its own; d = 10 unless it varies, d^2 "
        "arms a round, the band of means with a gap of 0.1 and Beta rewards unless said otherwise; delta = 0.1, "
        "adjacency `one-observation` (replaced). All algorithms meet the same contexts and the same luck. Brackets are "
        "95 % bootstrap intervals over trials, somewhat too narrow where trials are few. The paper draws curves and "
        "prints no numbers, so that its sentences are what can be compared."
    )


def _cell(
    plan: Plan, baseline: str, *, agents: int = 10, dim: int = 10, arms: int | None = None, gap: float = 0.1,
    wrappers: dict[str, dict[str, Any]] | None = None,
) -> Run:  # fmt: skip
    env_kwargs = {"num_agents": agents, "dim": dim, "num_arms": arms or dim * dim, "gap": gap}
    settings = Settings(
        baseline, "FedLinear-v0", plan.scale.rounds, plan.scale.trials, 0, env_kwargs, {}, wrappers or {}
    )
    return Run(settings, delta=DELTA)


def _at(epsilon: float) -> dict[str, dict[str, Any]]:
    return {"privatizer": {"epsilon": epsilon}}


def noise_sd(baseline: str, rounds: int) -> float:
    """Returns the largest standard deviation that the noise on a sum of released statistics comes to have.

    On the diagonal, for the baseline's own epsilon; off it, 1 / sqrt(2) of that.
    """
    released = BASELINES[baseline].wrap(parallel_env(max_cycles=rounds)).policy_spaces.release
    variance = released[variance_of("statistic")]
    assert isinstance(variance, spaces.Box)
    return float(np.sqrt(variance.high.max()))


def fig1a(plan: Plan) -> dict[str, Run]:
    """Figure 1 A: regret at T against epsilon, or against the number of agents."""
    runs = {}
    if plan.panel == "epsilon":
        for name in ("random-arm", "LinUCB", "LinUCB-0.5", SHARED):
            runs[name] = _cell(plan, name)
        for epsilon in plan.scale.sweeps["epsilon"]:
            for name in ("LinUCB-private", *PRIVATE, PLACEBO):
                runs[f"{name} {epsilon:g}"] = _cell(plan, name, wrappers=_at(epsilon))
        return runs
    for agents in map(int, plan.scale.sweeps["agents"]):
        for name in (*SILENT, SHARED, *PRIVATE, PLACEBO):
            runs[f"{name} {agents}"] = _cell(plan, name, agents=agents)
    return runs


def budgets(agents: int, rounds: int) -> dict[str, Any]:
    """Returns schedules with about sqrt(M), log2 T and T synchronisations: O(M^1.5), O(M log T), O(M T) messages."""
    return {
        "sqrt M": {"name": "geometric", "count": isqrt(agents), "horizon": rounds},
        "log T": {"name": "doubling", "start": 1, "stop": None},
        "T": "every_round",
    }


def fig1b(plan: Plan) -> dict[str, Run]:
    """Figure 1 B: regret over rounds for three budgets of communication."""
    agents = int(plan.scale.sweeps["agents"][0])
    runs = {name: _cell(plan, name, agents=agents) for name in ("random-arm", "LinUCB", "LinUCB-0.5")}
    if plan.panel == "private":
        runs["LinUCB-private"] = _cell(plan, "LinUCB-private", agents=agents)
    for name in TRIGGERED:
        if ("printed" in name) == (plan.panel == "private"):
            runs[name] = _cell(plan, name, agents=agents)
    for budget, schedule in budgets(agents, plan.scale.rounds).items():
        channel = {"channel": {"schedule": schedule}}
        if plan.panel == "nonprivate":
            runs[f"{SHARED}, {budget}"] = _cell(plan, SHARED, agents=agents, wrappers=channel)
            continue
        for name in ("FedUCB-printed", "FedUCB", "FedUCB-min"):
            privatizer: dict[str, Any] = {"releases": schedule}
            if budget == "T" and name != "FedUCB-printed":
                # Square-root factorisation remembers every release.
                privatizer["mechanism"] = "honaker"
            runs[f"{name}, {budget}"] = _cell(
                plan, name, agents=agents, wrappers={**channel, "privatizer": privatizer}
            )
    return runs


def fig1c(plan: Plan) -> dict[str, Run]:
    """Figure 1 C: regret at T against the dimension."""
    agents = int(plan.scale.sweeps["agents"][0])
    return {
        f"{name} {dim}": _cell(plan, name, agents=agents, dim=dim)
        for dim in map(int, plan.scale.sweeps["dim"])
        for name in (*SILENT, SHARED, *PRIVATE)
    }


def fig2(plan: Plan) -> dict[str, Run]:
    """Figure 2: regret at T against the gap, for several epsilons."""
    runs = {}
    for gap in plan.scale.sweeps["gap"]:
        for name in ("random-arm", "LinUCB", "LinUCB-0.5", SHARED):
            runs[f"{name} {gap:g}"] = _cell(plan, name, gap=gap)
        for epsilon in plan.scale.sweeps["epsilon"]:
            for name in ("LinUCB-private", "FedUCB-printed", "FedUCB", "FedUCB-min"):
                runs[f"{name}, epsilon {epsilon:g} {gap:g}"] = _cell(
                    plan, name, gap=gap, wrappers=_at(epsilon)
                )
    return runs


def horizon(plan: Plan) -> dict[str, Run]:
    """Regret over as many rounds as the paper has, with ten arms a round to make that many affordable."""
    names = ("random-arm", "FedUCB-printed", "FedUCB", "FedUCB-min", "LinUCB", SHARED)
    return {name: _cell(plan, name, arms=10) for name in names}


GRAPHS: dict[str, tuple[Any, int]] = {
    "complete": ("complete", 1),
    "star": ({"edges": [[0, leaf] for leaf in range(1, 10)]}, 2),
    "ring": ("ring", 5),
    "line": ("line", 9),
}
"""Graphs over ten agents with their diameters; the star's hub is an agent."""


def graphs(plan: Plan) -> dict[str, Run]:
    """Algorithm 3 over graphs: a hop a round, time to live and number of estimators equal to the diameter."""
    names = ["random-arm", "LinUCB", "LinUCB-0.5"]
    if plan.panel == "private":
        names.append("LinUCB-private")
    runs = {name: _cell(plan, name) for name in names}
    decentralised = "FedUCB-decentralised" + ("-private" if plan.panel == "private" else "")
    for graph, (topology, diameter) in GRAPHS.items():
        wrappers = {
            "interleaved": {"period": diameter},
            "channel": {"topology": topology, "time_to_live": diameter},
        }
        runs[graph] = _cell(plan, decentralised, wrappers=wrappers)
    return runs
