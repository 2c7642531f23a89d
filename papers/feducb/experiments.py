"""The FedUCB paper's experiments as data: the runs of each (Dubey and Pentland 2020, section 4.4 and appendix)."""

from collections.abc import Callable, Iterable, Mapping
from math import inf, isqrt
from typing import Any

from fedbandit_envs.experiments.simulate import ROWS_PER_SHARD
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale

DELTA = 0.1
PAPER_ROUNDS, PAPER_TRIALS = 10_000_000, 100

RANDOM, SILENCE, PRIVATE_SILENCE = "random-arm", "LinUCB", "LinUCB-private"
SILENT = (RANDOM, SILENCE, "LinUCB-0.5", PRIVATE_SILENCE)
"""Baselines that send no messages; the last adds noise to the statistics from which the agent itself learns."""

PRIVATE = ("FedUCB-printed", "FedUCB", "FedUCB-floor", "FedUCB-min")
"""Private federations, all of which send in the same rounds."""

SHARED, PLACEBO = "FedUCB-nonprivate", "FedUCB-placebo"
TRIGGERED = ("FedUCB-printed-trigger", "FedUCB-nonprivate-trigger")
"""Federations that synchronise when an agent asks for it."""

GRAPHS: dict[str, tuple[Any, int]] = {
    "complete": ("complete", 1),
    "star": ({"edges": [[0, leaf] for leaf in range(1, 10)]}, 2),
    "ring": ("ring", 5),
    "line": ("line", 9),
}
"""Graphs over ten agents with their diameters; the star's hub is an agent."""

FEDERATIONS = ("FedUCB-printed", "FedUCB", "FedUCB-min")
"""The private federations that are compared in experiments with many or long runs."""

FIG1B_FORMS = {"nonprivate": SHARED, "printed": "FedUCB-printed", "mended": "FedUCB", "least": "FedUCB-min"}
"""The federation that a panel of Figure 1 B plays with several communication budgets, by the panel's name."""

_COSTLY = ("LinUCB-0.5", PRIVATE_SILENCE, "FedUCB-floor", "FedUCB-min", *TRIGGERED)


def linear_run(
    plan: Plan, baseline: str, *, agents: float = 10, dim: float = 10, arms: int | None = None, gap: float = 0.1,
    epsilon: float | None = None, wrappers: Mapping[str, dict[str, Any]] = {}, policy: Mapping[str, Any] = {},
    **labels: Any,
) -> RunSpec:  # fmt: skip
    """Returns a run of a baseline on a linear bandit.

    The run's labels are ``line`` (the baseline's name, unless ``labels`` has another), ``agents``, ``dim``, ``gap``,
    ``epsilon`` if it is given, and ``labels``.

    Args:
        plan: The panel's settings; its scale has the horizon and the number of trials.
        baseline: Name of the baseline.
        agents: Number of agents M.
        dim: Dimension d of contexts.
        arms: Number of arms K; None for d^2.
        gap: Difference between the best arm's mean and the others'.
        epsilon: The privatizer's epsilon; None if there is no privatizer, or if all runs have the registered epsilon.
        wrappers: Arguments of the baseline's wrappers that are changed, by the wrapper's role.
        policy: Arguments of the baseline's policy that are changed.
        **labels: Further labels.
    """
    known = {"line": baseline, "agents": float(agents), "dim": float(dim), "gap": gap}
    # Baselines are registered with epsilon 1. At 1 the argument is left out, so that the run is the same as one of
    # another figure and is played only once.
    changed = {} if epsilon in (None, 1) else {"privatizer": {"epsilon": epsilon}}
    return RunSpec(
        baseline=baseline, env_id="FedLinear-v0", rounds=plan.scale.rounds, seeds=plan.scale.trials, delta=DELTA,
        env_kwargs={"num_agents": int(agents), "dim": int(dim), "num_arms": arms or int(dim) ** 2, "gap": gap},
        policy_kwargs={**policy}, wrapper_kwargs={**wrappers, **changed},
        labels=known | ({} if epsilon is None else {"epsilon": epsilon}) | labels,
        # Lean scales leave out costly runs, but a trial still takes minutes. So each trial is stored as a shard
        # of its own, and a run with more trials can reuse it.
        rows=int(agents) if plan.scale.lean else ROWS_PER_SHARD,
    )  # fmt: skip


def _played(plan: Plan, names: Iterable[str]) -> list[str]:
    """Returns the names of the baselines that are played at the plan's scale; a lean scale leaves out costly ones."""
    return [name for name in names if not (plan.scale.lean and name in _COSTLY)]


def _fig1a(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 1 A: regret at T against epsilon, or against the number of agents."""
    swept, names = plan.scale.sweeps[plan.panel], (*SILENT, SHARED, *PRIVATE, PLACEBO)
    if plan.panel == "agents":
        return [linear_run(plan, name, agents=agents) for name in names for agents in swept]
    return [
        linear_run(plan, name, epsilon=epsilon)
        for name in names
        for epsilon in (swept if name in (PRIVATE_SILENCE, *PRIVATE, PLACEBO) else [None])
    ]


def budgets(agents: int, rounds: int) -> dict[str, Any]:
    """Returns three schedules of communication by name, for M agents and T rounds.

    They have about sqrt(M), log2 T and T synchronisations, hence O(M^1.5), O(M log T) and O(M T) messages.

    Args:
        agents: Number of agents M.
        rounds: Horizon T.
    """
    return {
        "sqrt M": {"name": "geometric", "count": isqrt(agents), "horizon": rounds},
        "log T": {"name": "doubling", "start": 1, "stop": None},
        "T": "every_round",
    }


def _fig1b(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 1 B: one federation, the panel's, with three budgets of communication.

    The federation adds noise by the same mechanism under each budget. Silent agents are played for comparison.
    """
    agents, form = int(plan.scale.sweeps["agents"][0]), FIG1B_FORMS[plan.panel]
    roles = ("channel", "schedule"), ("privatizer", "releases")
    trigger = [name for name in TRIGGERED if name == f"{form}-trigger"]
    silent = [name for name in SILENT if (form, name) != (SHARED, PRIVATE_SILENCE)]
    runs = [linear_run(plan, name, agents=agents) for name in _played(plan, silent + trigger)]
    for budget, schedule in budgets(agents, plan.scale.rounds).items():
        # Doubling rounds are the baselines' default. The argument is left out for them, so that the runs are the same
        # as those of Figure 1 C and are played only once.
        changed = () if budget == "log T" else roles[:1] if form == SHARED else roles
        wrappers = {role: {argument: schedule} for role, argument in changed}
        if not (plan.scale.lean and (form, budget) == ("FedUCB-min", "T")):
            runs.append(linear_run(plan, form, agents=agents, wrappers=wrappers, budget=budget))
    return runs


def _fig1c(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 1 C: regret at T against the dimension."""
    sweeps = plan.scale.sweeps
    most = sweeps.get("most arms", (inf,))[0]
    return [
        linear_run(plan, name, agents=sweeps["agents"][0], dim=dim, arms=int(min(dim * dim, most)))
        for dim in sweeps["dim"]
        for name in _played(plan, (*SILENT, SHARED, *PRIVATE))
    ]


def _fig2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 2: regret at T against the gap, for several epsilons."""
    sweeps = plan.scale.sweeps
    without, private = (RANDOM, SILENCE, "LinUCB-0.5", SHARED), (PRIVATE_SILENCE, *FEDERATIONS)
    return [
        linear_run(plan, name, agents=sweeps["agents"][0], gap=gap, epsilon=epsilon)
        for gap in sweeps["gap"]
        for epsilon in (None, *sweeps["epsilon"])
        for name in _played(plan, without if epsilon is None else private)
    ]


def _horizon(plan: Plan) -> list[RunSpec]:
    """Returns runs for horizons as long as the paper's; they have only ten arms, since more would take too long."""
    return [linear_run(plan, name, arms=10) for name in (RANDOM, *FEDERATIONS, SILENCE, SHARED)]


def _graphs(plan: Plan) -> list[RunSpec]:
    """Returns the runs of the paper's Algorithm 3, in which messages travel over a graph, one edge a round.

    Messages are forwarded for as many rounds as the graph's diameter, and each agent has as many estimators.
    """
    private = plan.panel == "private"
    runs = [linear_run(plan, name) for name in SILENT if private or name != PRIVATE_SILENCE]
    for graph, (topology, diameter) in GRAPHS.items():
        channel = {"topology": topology, "time_to_live": diameter}
        wrappers = {"interleaved": {"period": diameter}, "channel": channel}
        name = "FedUCB-decentralised" + ("-private" if private else "")
        runs.append(linear_run(plan, name, wrappers=wrappers, line=graph, diameter=diameter))
    return runs


def _experiment(
    title: str, runs: Callable[[Plan], list[RunSpec]], small: Scale, *, medium: Mapping[str, Any] = {},
    paper: Mapping[str, Any] = {}, x: str, y: str = "cumulative regret per agent", **others: Any,
) -> Experiment:  # fmt: skip
    """Returns an experiment.

    Args:
        title: End of the experiment's title.
        runs: Returns a panel's runs.
        small: The small scale.
        medium: Sweeps of the scale ``medium``, which has 100,000 rounds, a hundredth of the paper's; the experiment
            lacks that scale if this is empty.
        paper: Sweeps at the paper's scale.
        x: Label of the x axis; both axes are logarithmic.
        y: Label of the y axis.
        **others: Other attributes of the experiment.
    """
    scales = {"small": small, "paper": Scale(PAPER_ROUNDS, PAPER_TRIALS, paper)}
    if medium:
        scales["medium"] = Scale(100_000, 3, medium, lean=True)
    return Experiment(f"FedUCB{title}", {"x": x, "y": y}, scales, runs, **others)


EXPERIMENTS = {
    "feducb-fig1a": _experiment(
        ", Figure 1 A: regret against epsilon and agents",
        _fig1a,
        Scale(20_000, 20, {"epsilon": (0.1, 1.0, 10.0), "agents": (2, 5, 10)}),
        paper={"epsilon": (0.1, 0.3, 1.0, 3.0, 10.0), "agents": (2, 5, 10, 50, 100)},
        panels={
            "epsilon": "Against epsilon, 10 agents",
            "agents": "Against the number of agents, epsilon = 1",
        },
        panel_axes={"agents": {"x": "agents"}},
        x="epsilon",
        y="regret / silent regret",
    ),
    "feducb-fig1b": _experiment(
        ", Figure 1 B: regret for three budgets of communication",
        _fig1b,
        Scale(5_000, 20, {"agents": (16,)}),
        medium={"agents": (100,)},
        paper={"agents": (100,)},
        panels={
            "nonprivate": "True data",
            "printed": "Private as printed, epsilon = 1",
            "mended": "Private, mended, epsilon = 1",
            "least": "Mended, never more optimistic than silence, epsilon = 1",
        },
        x="round",
    ),
    "feducb-fig1c": _experiment(
        ", Figure 1 C: regret against the dimension",
        _fig1c,
        Scale(20_000, 20, {"agents": (10,), "dim": (3, 5, 10)}),
        medium={"agents": (100,), "dim": (5, 10, 20), "most arms": (100,)},
        paper={"agents": (100,), "dim": (5, 10, 15, 20)},
        x="d",
    ),
    "feducb-fig2": _experiment(
        ", Figure 2: regret against the gap",
        _fig2,
        Scale(20_000, 20, {"agents": (10,), "gap": (0.05, 0.1, 0.2, 0.3), "epsilon": (0.1, 1.0)}),
        medium={"agents": (100,), "gap": (0.1, 0.3), "epsilon": (0.1, 1.0)},
        paper={"agents": (10,), "gap": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3), "epsilon": (0.1, 1.0, 10.0)},
        x="gap",
    ),
    "feducb-horizon": _experiment(": regret, decade by decade", _horizon, Scale(100_000, 20), x="round"),
    "feducb-graphs": _experiment(
        ", Algorithm 3 on graphs: complete, star, ring, line",
        _graphs,
        Scale(10_000, 20),
        panels={"nonprivate": "True data every round", "private": "Private, epsilon = 1, in doubling rounds"},
        x="round",
    ),
}
