"""The FedUCB paper's experiments as data: which runs each needs (Dubey and Pentland 2020, section 4.4 and appendix)."""

from collections.abc import Callable, Mapping
from math import inf, isqrt
from typing import Any

from fedbandit_envs.leaderboard.reproduction.experiment import LOG_LOG, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import ROWS_PER_SHARD, RunSpec

DELTA = 0.1
PAPER_ROUNDS, PAPER_TRIALS = 10_000_000, 100

RANDOM, SILENCE, PRIVATE_SILENCE = "random-arm", "LinUCB", "LinUCB-private"
SILENT = {
    RANDOM: "an arm at random",
    SILENCE: "silent, not private towards itself",
    "LinUCB-0.5": "silent, radius times 0.5",
    PRIVATE_SILENCE: "silent, private towards itself (Shariff and Sheffet)",
}
"""Baselines that send no messages."""

PRIVATE = {
    "FedUCB-printed": "printed noise, shifts and radius",
    "FedUCB": "exact sigma, buffered Toeplitz noise, shift on the sum, root-M bias",
    "FedUCB-floor": "the same noise, eigenvalues lifted, the error's Euclidean bound",
    "FedUCB-min": "FedUCB-floor, never more optimistic than own data alone",
}
"""Private federations, all of which send in the same rounds."""

SHARED, PLACEBO = "FedUCB-nonprivate", "FedUCB-placebo"
TRIGGERED = {
    "FedUCB-printed-trigger": "as printed, trigger included: no claim of privacy",
    "FedUCB-nonprivate-trigger": "true data once determinants have grown",
}
"""Federations that synchronise when an agent asks for it."""

GRAPHS: dict[str, tuple[Any, int]] = {
    "complete": ("complete", 1),
    "star": ({"edges": [[0, leaf] for leaf in range(1, 10)]}, 2),
    "ring": ("ring", 5),
    "line": ("line", 9),
}
"""Graphs over ten agents with their diameters; the star's hub is an agent."""

MEANINGS = {
    **SILENT,
    **PRIVATE,
    **TRIGGERED,
    SHARED: "true data",
    PLACEBO: "FedUCB-min on noise alone",
    **{graph: f"Algorithm 3, gamma = {diameter}" for graph, (_, diameter) in GRAPHS.items()},
}
"""A description of each line of the pages, by name."""

LINES = (*SILENT, SHARED, *PRIVATE, PLACEBO)
FEDERATIONS = ("FedUCB-printed", "FedUCB", "FedUCB-min")
"""The private federations that are compared where there are many runs, or long ones."""

_COSTLY = ("LinUCB-0.5", PRIVATE_SILENCE, "FedUCB-floor", "FedUCB-min", *TRIGGERED)

FIG1B_FORMS = {"nonprivate": SHARED, "printed": "FedUCB-printed", "mended": "FedUCB", "least": "FedUCB-min"}
"""The federation whose budgets of communication a panel of Figure 1 B compares."""


def linear_run(
    plan: Plan, baseline: str, *, agents: float = 10, dim: float = 10, arms: int | None = None, gap: float = 0.1,
    epsilon: float | None = None, wrappers: dict[str, dict[str, Any]] | None = None,
    policy: dict[str, Any] | None = None, **labels: Any,
) -> RunSpec:  # fmt: skip
    """Returns a run of a baseline on a linear bandit.

    Its labels are ``line``, which is the baseline's name if no other is given, ``agents``, ``dim``, ``gap``, where one
    is given ``epsilon``, and those given besides.

    Args:
        plan: Has the horizon and the number of trials.
        baseline: Its name.
        agents: M.
        dim: d.
        arms: K; None for d^2.
        gap: Difference between the best arm's mean and the others'.
        epsilon: Of the privatizer; None where there is none or where all runs have the same.
        wrappers: Arguments of the baseline's wrappers to be changed, by the wrapper's role.
        policy: Arguments of its policy to be changed.
        **labels: Other labels.
    """
    known: dict[str, Any] = {"line": baseline, "agents": float(agents), "dim": float(dim), "gap": gap}
    changed = dict(wrappers or {})
    if epsilon is not None:
        known["epsilon"] = epsilon
        # Baselines are registered with epsilon 1: left unchanged, runs at 1 are shared with other figures.
        if epsilon != 1:
            changed["privatizer"] = {"epsilon": epsilon}
    return RunSpec(
        baseline=baseline, env_id="FedLinear-v0", rounds=plan.scale.rounds, seeds=plan.scale.trials, delta=DELTA,
        env_kwargs={"num_agents": int(agents), "dim": int(dim), "num_arms": arms or int(dim) ** 2, "gap": gap},
        policy_kwargs=policy or {}, wrapper_kwargs=changed, labels=known | labels,
        # A trial at a lean scale takes minutes, so each is a shard, which runs with more trials can reuse.
        rows=int(agents) if plan.scale.lean else ROWS_PER_SHARD,
    )  # fmt: skip


def _plays(plan: Plan, name: str) -> bool:
    """Returns whether a baseline is played: a lean scale leaves some out."""
    return not (plan.scale.lean and name in _COSTLY)


def fig1a(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 1 A: regret at T against epsilon, or against the number of agents."""
    swept = plan.scale.sweeps[plan.panel]
    if plan.panel == "agents":
        return [linear_run(plan, name, agents=agents) for name in LINES for agents in swept]
    return [
        linear_run(plan, name, epsilon=epsilon)
        for name in LINES
        for epsilon in (swept if name in (PRIVATE_SILENCE, *PRIVATE, PLACEBO) else [None])
    ]


def budgets(agents: int, rounds: int) -> dict[str, Any]:
    """Returns schedules with about sqrt(M), log2 T and T synchronisations: O(M^1.5), O(M log T), O(M T) messages."""
    return {
        "sqrt M": {"name": "geometric", "count": isqrt(agents), "horizon": rounds},
        "log T": {"name": "doubling", "start": 1, "stop": None},
        "T": "every_round",
    }


def fig1b(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 1 B: three budgets of communication, each form with one mechanism for all."""
    agents = int(plan.scale.sweeps["agents"][0])
    form = FIG1B_FORMS[plan.panel]
    names = [*SILENT, *(name for name in TRIGGERED if name == f"{form}-trigger")]
    if form == SHARED:
        names.remove(PRIVATE_SILENCE)
    runs = [linear_run(plan, name, agents=agents) for name in names if _plays(plan, name)]
    for budget, schedule in budgets(agents, plan.scale.rounds).items():
        if plan.scale.lean and (form, budget) == ("FedUCB-min", "T"):
            continue
        wrappers = {"channel": {"schedule": schedule}}
        if form != SHARED:
            wrappers["privatizer"] = {"releases": schedule}
        # Doubling rounds are the baselines' default: left unchanged, these runs are shared with Figure 1 C.
        changed = None if budget == "log T" else wrappers
        runs.append(linear_run(plan, form, agents=agents, wrappers=changed, budget=budget))
    return runs


def fig1c(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 1 C: regret at T against the dimension."""
    sweeps = plan.scale.sweeps
    most = sweeps.get("most arms", (inf,))[0]
    return [
        linear_run(plan, name, agents=sweeps["agents"][0], dim=dim, arms=int(min(dim * dim, most)))
        for dim in sweeps["dim"]
        for name in (*SILENT, SHARED, *PRIVATE)
        if _plays(plan, name)
    ]


def fig2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 2: regret at T against the gap, for several epsilons."""
    sweeps = plan.scale.sweeps
    lines: list[tuple[str, float | None]] = [
        *((name, None) for name in (RANDOM, SILENCE, "LinUCB-0.5", SHARED)),
        *((name, epsilon) for epsilon in sweeps["epsilon"] for name in (PRIVATE_SILENCE, *FEDERATIONS)),
    ]
    return [
        linear_run(plan, name, agents=sweeps["agents"][0], gap=gap, epsilon=epsilon)
        for gap in sweeps["gap"]
        for name, epsilon in lines
        if _plays(plan, name)
    ]


def horizon(plan: Plan) -> list[RunSpec]:
    """Returns runs of as many rounds as the paper has, with ten arms a round to make that many affordable."""
    return [linear_run(plan, name, arms=10) for name in (RANDOM, *FEDERATIONS, SILENCE, SHARED)]


def graphs(plan: Plan) -> list[RunSpec]:
    """Returns runs of Algorithm 3: a hop a round, time to live and number of estimators equal to the diameter."""
    private = plan.panel == "private"
    runs = [linear_run(plan, name) for name in SILENT if private or name != PRIVATE_SILENCE]
    decentralised = "FedUCB-decentralised" + ("-private" if private else "")
    for graph, (topology, diameter) in GRAPHS.items():
        wrappers = {
            "interleaved": {"period": diameter},
            "channel": {"topology": topology, "time_to_live": diameter},
        }
        runs.append(linear_run(plan, decentralised, wrappers=wrappers, line=graph))
    return runs


def _scales(
    small: Scale, medium: dict[str, tuple[float, ...]] | None = None, **paper: Any
) -> dict[str, Scale]:
    """Returns an experiment's scales.

    Args:
        small: The small one.
        medium: Sweeps with a hundredth of the paper's rounds; None where there is no such scale.
        **paper: Sweeps at the paper's scale.
    """
    lean = {} if medium is None else {"medium": Scale(100_000, 3, medium, lean=True)}
    return {"small": small, **lean, "paper": Scale(PAPER_ROUNDS, PAPER_TRIALS, paper)}


def _experiment(
    title: str, x: str, scales: Mapping[str, Scale], runs: Callable[[Plan], list[RunSpec]],
    panels: Mapping[str, str] = {"all": "All runs"}, *, y: str = "cumulative regret per agent",
    panel_axes: Mapping[str, Mapping[str, str]] = {},
) -> Experiment:  # fmt: skip
    """Returns an experiment whose templates are named as the function that returns its runs; axes are logarithmic."""
    name = runs.__name__
    axes = {"x": x, "y": y, **LOG_LOG}
    templates = f"{name}.md.j2", f"{name}_setting.md.j2"
    return Experiment(title, axes, scales, panels, runs, *templates, panel_axes=panel_axes)


EXPERIMENTS = {
    "feducb-fig1a": _experiment(
        "FedUCB, Figure 1 A: regret against epsilon and agents",
        "epsilon",
        _scales(
            Scale(20_000, 5, {"epsilon": (0.1, 1.0, 10.0), "agents": (2, 5, 10)}),
            epsilon=(0.1, 0.3, 1.0, 3.0, 10.0),
            agents=(2, 5, 10, 50, 100),
        ),
        fig1a,
        {"epsilon": "Against epsilon, 10 agents", "agents": "Against the number of agents, epsilon = 1"},
        y="regret / silent regret",
        panel_axes={"agents": {"x": "agents"}},
    ),
    "feducb-fig1b": _experiment(
        "FedUCB, Figure 1 B: regret for three budgets of communication",
        "round",
        _scales(Scale(5_000, 5, {"agents": (16,)}), {"agents": (100,)}, agents=(100,)),
        fig1b,
        {
            "nonprivate": "True data",
            "printed": "Private as printed, epsilon = 1",
            "mended": "Private, mended, epsilon = 1",
            "least": "Mended, never more optimistic than silence, epsilon = 1",
        },
    ),
    "feducb-fig1c": _experiment(
        "FedUCB, Figure 1 C: regret against the dimension",
        "d",
        _scales(
            Scale(20_000, 5, {"agents": (10,), "dim": (3, 5, 10)}),
            {"agents": (100,), "dim": (5, 10, 20), "most arms": (100,)},
            agents=(100,),
            dim=(5, 10, 15, 20),
        ),
        fig1c,
    ),
    "feducb-fig2": _experiment(
        "FedUCB, Figure 2: regret against the gap",
        "gap",
        _scales(
            Scale(20_000, 5, {"agents": (10,), "gap": (0.05, 0.1, 0.2, 0.3), "epsilon": (0.1, 1.0)}),
            {"agents": (100,), "gap": (0.1, 0.3), "epsilon": (0.1, 1.0)},
            agents=(10,),
            gap=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
            epsilon=(0.1, 1.0, 10.0),
        ),
        fig2,
    ),
    "feducb-horizon": _experiment(
        "FedUCB: regret, decade by decade", "round", _scales(Scale(100_000, 2)), horizon
    ),
    "feducb-graphs": _experiment(
        "FedUCB, Algorithm 3 on graphs: complete, star, ring, line",
        "round",
        _scales(Scale(10_000, 5)),
        graphs,
        {"nonprivate": "True data every round", "private": "Private, epsilon = 1, in doubling rounds"},
    ),
}
