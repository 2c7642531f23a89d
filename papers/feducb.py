"""The FedUCB paper's experiments (Dubey and Pentland 2020, section 4.4 and appendix): runs, tables and verdicts."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf, isqrt, nan, sqrt
from typing import Any

from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import highest
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.experiments import RunSpec
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale, Section, baseline_of

DELTA = 0.1

RANDOM, SILENCE, PRIVATE_SILENCE = "random-arm", "LinUCB", "LinUCB-private"
SILENT = (RANDOM, SILENCE, "LinUCB-0.5", PRIVATE_SILENCE)
"""Baselines that send no messages; the last adds noise to the statistics from which the agent itself learns."""

PRIVATE = ("FedUCB-printed", "FedUCB", "FedUCB-floor", "FedUCB-min")
"""Private federations, all of which send in the same rounds."""

SHARED, PLACEBO = "FedUCB-nonprivate", "FedUCB-placebo"
WITHOUT_NOISE = (RANDOM, SILENCE, "LinUCB-0.5", SHARED)
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
    known = {"agents": float(agents), "dim": float(dim), "gap": gap}
    # Baselines are registered with epsilon 1. At 1 the argument is left out, so that the run is the same as one of
    # another figure and is played only once.
    changed = {} if epsilon in (None, 1) else {"privatizer": {"epsilon": epsilon}}
    return plan.run(
        labels.pop("line", baseline), "FedLinear-v0", baseline, delta=DELTA,
        env={"num_agents": int(agents), "dim": int(dim), "num_arms": arms or int(dim) ** 2, "gap": gap},
        policy=policy, wrappers={**wrappers, **changed},
        labels=known | ({} if epsilon is None else {"epsilon": epsilon}) | labels,
        # Lean scales leave out costly runs, but a trial still takes minutes. So each trial is stored as a shard
        # of its own, and a run with more trials can reuse it.
        **({"rows": int(agents)} if plan.scale.lean else {}),
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
        for epsilon in ([None] if name in WITHOUT_NOISE else swept)
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
    return [
        linear_run(plan, name, agents=sweeps["agents"][0], gap=gap, epsilon=epsilon)
        for gap in sweeps["gap"]
        for epsilon in (None, *sweeps["epsilon"])
        for name in _played(plan, WITHOUT_NOISE if epsilon is None else (PRIVATE_SILENCE, *FEDERATIONS))
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


def largest_sd(env: FederatedEnv) -> float:
    """Returns the largest standard deviation of a diagonal entry of a sum of released statistics."""
    return sqrt(highest(env.policy_spec.release[variance_of("statistic")]))


def _equal_privacy(runs: PanelRuns) -> Iterable[stats.Row]:
    """Yields a table of the noise and the privacy claims of FedUCB as the paper prints it, and as corrected here.

    Both forms promise the same epsilon. The noise is the largest standard deviation of a diagonal entry of a sum of
    released statistics, at the baseline's default epsilon; entries off the diagonal have 1 / sqrt(2) of it.
    """
    for name in ("FedUCB-printed", "FedUCB"):
        env = baseline_of(name).wrap(parallel_env(max_cycles=runs.plan.scale.rounds))
        for claim in runs[name].claims:
            if claim.adjacency == "one-observation":
                yield {
                    "form": name,
                    "largest noise sd on a sum": f"{largest_sd(env):.2f}",
                    "composition": claim.composition,
                    "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                    "delta": claim.delta,
                    "remark": claim.reason,
                }


def _regrets(page: Section, runs: PanelRuns) -> None:
    """Writes the table of regret at the horizon and messages; regret is also divided by that of silent agents."""
    columns: dict[str, Callable[[Any], Any]] = {
        "regret at T [95 %]": stats.final_regret,
        "/ silent": partial(stats.ratio, below=runs[SILENCE]),
        "messages an agent": lambda run: f"{run.traffic['messages'].mean():.0f}" if run.traffic else "-",
    }
    page.table("regrets", runs.table("algorithm", columns, "budget"))


_USUAL = {
    "ours / printed": ("FedUCB", "FedUCB-printed"),
    "silence / true data": (SILENCE, SHARED),
    "smaller bound / silence": ("FedUCB-min", SILENCE),
    "printed / random": ("FedUCB-printed", RANDOM),
    "placebo / silence": (PLACEBO, SILENCE),
    "half the radius / silence": ("LinUCB-0.5", SILENCE),
}


def _report_fig1a(page: Section, runs: PanelRuns) -> None:
    panel, lines = runs.plan.panel, runs.lines(runs.plan.panel)
    usual = {"epsilon": 1.0, "agents": 10.0}[panel]
    shown = PanelRuns(runs.plan, [({"line": name}, own[usual]) for name, own in lines.items()])
    _regrets(page, shown)
    page.say({name: shown.ratio(*pair) for name, pair in _USUAL.items()})
    if panel == "epsilon":
        page.table("equal privacy", _equal_privacy(shown))
    page.table("sweep", stats.by_x(stats.each(lines, stats.final_regret), panel, "{:g}", (*PRIVATE, SHARED)))
    found = stats.over_line(lines, SILENCE)
    page.verdicts(
        stats.judged(f"{name}, {panel} {x:g}, over silence at most 1", [value])
        for name in PRIVATE
        for x, value in found[name].items()
    )
    page.draw(found)


def _report_fig1b(page: Section, runs: PanelRuns) -> None:
    _regrets(page, runs)
    by_budget = dict(reversed(runs.by("budget").items()))
    form = FIG1B_FORMS[runs.plan.panel]
    rivals = () if form == SHARED else (RANDOM, SILENCE)
    page.verdicts([
        stats.judged(f"{form}: {' < '.join(by_budget)}", stats.links(by_budget.values())),
        *((f"over {rival}", stats.joined(stats.over(by_budget, runs[rival]).values()), "-") for rival in rivals),
    ])  # fmt: skip
    # The first rounds are left out, since all curves agree there.
    first = min(100, page.plan.scale.rounds // 10)
    for labels, result in runs.rows:
        line = "its trigger" if labels["line"] in TRIGGERED else labels["line"]
        kept = {x: mean for x, mean in stats.over_rounds(result).items() if x >= first}
        page.draw({labels.get("budget", line): kept})


def _report_fig1c(page: Section, runs: PanelRuns) -> None:
    lines = runs.lines("dim")
    curves = stats.each(lines, stats.final_regret)
    powers = {name: stats.mean_of(stats.exponents(own), ".2f") for name, own in lines.items()}
    page.table("regrets", stats.by_x(curves, "d", "{:g}"))
    head = "exponent of d, fitted [95 % over trials]"
    page.table("powers", [{"algorithm": name, head: power} for name, power in powers.items()])
    private = [name for name in PRIVATE if name in powers]
    page.verdicts((f"{name}: d^2", powers[name], powers[name].contains(2)) for name in private)
    page.draw(curves)


def _report_fig2(page: Section, runs: PanelRuns) -> None:
    lines, epsilons = runs.lines("gap", "epsilon"), runs.values("epsilon")
    curves, over_random = stats.each(lines, stats.final_regret), stats.over_line(lines, RANDOM)
    least, most = (runs.where(epsilon=epsilon).lines("gap") for epsilon in (min(epsilons), max(epsilons)))
    by_gap = stats.each(least, stats.ratio, most)
    page.table("regrets", stats.by_line(curves, "regret at T [95 %]", "gap {:g}"))
    page.table("over random", stats.by_line(over_random, "over random arms'", "gap {:g}"))
    page.verdicts((f"{name}: falls with the gap", "-", stats.falls(own)) for name, own in lines.items())
    head = f"regret at epsilon {min(epsilons):g} over that at {max(epsilons):g}"
    page.table("sensitivity", stats.by_line(by_gap, head, "gap {:g}"))
    nearer = []
    for name, ratios in by_gap.items():
        first, *_, last = ratios.values()
        nearer.append((f"{name}: nearer to 1", f"{first}; {last}", nearer_to_one(first, last)))
    page.verdicts(nearer, "sensitivity verdicts")
    page.draw(curves)


def nearer_to_one(first: stats.Ratio, last: stats.Ratio) -> stats.Statement:
    """Returns the verdict on whether the last ratio is nearer to 1 than the first.

    The distance of a ratio r from 1 is max(r, 1 / r), which is at least 1 if the interval of r contains 1. The verdict
    is undecided if the intervals of the two distances overlap.
    """
    ends = []
    for value in (first, last):
        low, high = sorted(max(end, 1 / end) for end in (value.low, value.high))
        ends.append((1.0 if value.low <= 1 <= value.high else low, high))
    (first_low, first_high), (last_low, last_high) = ends
    return stats.Ratio(nan, last_low / first_high, last_high / first_low, last.instances).at_most(1)


def _report_graphs(page: Section, runs: PanelRuns) -> None:
    _regrets(page, runs)
    alone = runs.ratio("line", SILENCE)
    page.verdicts([
        stats.judged(f"regret orders {' < '.join(GRAPHS)}", stats.links(runs.by("diameter").values())),
        (f"line / {SILENCE} is 1", alone, alone.contains(1)),
    ])  # fmt: skip
    page.draw_over_rounds(runs)


def _report_horizon(page: Section, runs: PanelRuns) -> None:
    _regrets(page, runs)
    rounds = runs[RANDOM].rounds
    digits = len(str(rounds[-1]))
    decades = [int(abs(rounds - 10**power).argmin()) for power in range(min(2, digits - 2), digits)]
    page.table("decades", [
        {"round": f"{rounds[k]:,}"}
        | {f"{name} / {RANDOM}": stats.ratio(runs[name], runs[RANDOM], k) for name in FEDERATIONS}
        for k in decades
    ])  # fmt: skip
    for name in FEDERATIONS:
        start, end = (stats.regret_by_instance(runs[name], k) for k in decades[-2:])
        page.say({f"{name}, last decade": stats.mean_of(end / start, ".2f")})
    page.draw_over_rounds(runs)


def _experiment(
    title: str, shows: str, x: str, runs: Any, report: Any, small: Scale,
    paper: Mapping[str, Any] = {}, medium: Mapping[str, Any] = {}, **others: Any,
) -> Experiment:  # fmt: skip
    """Returns an experiment; its scale ``medium`` has a hundredth of the paper's rounds, and is lean."""
    scales = {"small": small, "paper": Scale(10_000_000, 100, paper)}
    if medium:
        scales["medium"] = Scale(100_000, 3, medium, lean=True)
    axes = {"x": x, "y": others.pop("y", "cumulative regret per agent")}
    return Experiment(f"FedUCB{title}", shows, axes, scales, runs, report, **others)


EXPERIMENTS = {
    "feducb-fig1a": _experiment(
        ", Figure 1 A: regret against epsilon and agents", "Whether FedUCB beats silence; half an hour", "epsilon",
        _fig1a, _report_fig1a,
        Scale(20_000, 20, {"epsilon": (0.1, 1.0, 10.0), "agents": (2, 5, 10)}),
        {"epsilon": (0.1, 0.3, 1.0, 3.0, 10.0), "agents": (2, 5, 10, 50, 100)},
        panels={"epsilon": "Against epsilon, 10 agents", "agents": "Against the number of agents, epsilon = 1"},
        y="regret / silent regret", panel_axes={"agents": {"x": "agents"}},
    ),
    "feducb-fig1b": _experiment(
        ", Figure 1 B: regret for three budgets of communication", "What more messages buy; half an hour", "round",
        _fig1b, _report_fig1b,
        Scale(5_000, 20, {"agents": (16,)}), {"agents": (100,)}, {"agents": (100,)},
        panels={
            "nonprivate": "True data",
            "printed": "Private as printed, epsilon = 1",
            "mended": "Private, mended, epsilon = 1",
            "least": "Mended, never more optimistic than silence, epsilon = 1",
        },
    ),
    "feducb-fig1c": _experiment(
        ", Figure 1 C: regret against the dimension", "How regret grows with d; 10 minutes", "d",
        _fig1c, _report_fig1c,
        Scale(20_000, 20, {"agents": (10,), "dim": (3, 5, 10)}),
        {"agents": (100,), "dim": (5, 10, 15, 20)},
        {"agents": (100,), "dim": (5, 10, 20), "most arms": (100,)},
    ),
    "feducb-fig2": _experiment(
        ", Figure 2: regret against the gap", "Whether wide gaps make privacy cheap; an hour", "gap",
        _fig2, _report_fig2,
        Scale(20_000, 20, {"agents": (10,), "gap": (0.05, 0.1, 0.2, 0.3), "epsilon": (0.1, 1.0)}),
        {"agents": (10,), "gap": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3), "epsilon": (0.1, 1.0, 10.0)},
        {"agents": (100,), "gap": (0.1, 0.3), "epsilon": (0.1, 1.0)},
    ),
    "feducb-horizon": _experiment(
        ": regret, decade by decade", "For how long the printed form plays like random arms; 10 minutes", "round",
        _horizon, _report_horizon, Scale(100_000, 20),
    ),
    "feducb-graphs": _experiment(
        ", Algorithm 3 on graphs: complete, star, ring, line", "What graphs cost; 20 minutes", "round",
        _graphs, _report_graphs, Scale(10_000, 20),
        panels={"nonprivate": "True data every round", "private": "Private, epsilon = 1, in doubling rounds"},
    ),
}  # fmt: skip
