"""Whether private federation pays in each of the four problems, against agents who do not communicate ("silence").

This project's baselines and the papers' are compared with silence, whose constants are tuned or not.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, LINES
from fedbandit_envs.experiments import RunResult, RunSpec
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale, Section
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares
from fedbandit_envs.wrappers.transport.schedule import make_schedule

SILENT, TUNED, PAPER, PAPER_TUNED, OURS, OURS_TUNED, PLACEBO, TRUE = LINES
NEVER_ABOVE = 1.02
"""Bound on the ratio of our regret to that of tuned silence; the page reports intervals that lie above it."""


class Case(NamedTuple):
    """A setting in which bounds on ratios of regret were set before the runs were played.

    Attributes:
        title: Name of the setting on the page.
        env_id: Id of the environment.
        epsilon: Epsilon of the baselines' privatizers, which otherwise are as registered.
        asked: Largest allowed ratio of our baseline's regret to that of another algorithm, by the name of that
            algorithm; None if no bound was set.
    """

    title: str
    env_id: str
    epsilon: float
    asked: Mapping[str, float | None]


class ComparedProblem(NamedTuple):
    """The settings and sizes of the comparison in one problem.

    Attributes:
        title: Title of its panel.
        cases: Settings with bounds; sweeps over epsilon and agents are played in the first setting.
        delta: Delta of the privacy claim, unless a run sets another.
        rounds: Horizon, as a share of the scale's horizon.
        trials: Number of seeds, as a multiple of the scale's trials; sweeps have the scale's.
    """

    title: str
    cases: Sequence[Case]
    delta: float
    rounds: float = 1.0
    trials: int = 1


PROBLEMS = {
    "procurement": ComparedProblem(
        "Procurement",
        [
            Case(f"{name} qualities, P-FCB's epsilon of 1", env_id, 1.0, {TUNED: 0.8, PAPER: 0.25})
            for name, env_id in (("uniform", "FedProcurement-v0"), ("normal", "FedProcurementNormal-v0"))
        ],
        delta=0.01, trials=2,
    ),
    "linear": ComparedProblem(
        "Linear contextual bandits",
        [Case("epsilon 1", "FedLinear-v0", 1.0, {TUNED: 0.65, PAPER: 0.35})], delta=0.1, rounds=0.3,
    ),
    "exposure": ComparedProblem(
        "Exposure fairness",
        [
            Case("epsilon 8", "FedExposure-v0", 8.0, {TUNED: 0.8, PAPER: 1 / 3}),
            Case("epsilon 2, reward noise 0.5", "FedExposureNoisy-v0", 2.0, {TUNED: 0.8}),
        ],
        delta=0.1,
    ),
    "arms": ComparedProblem(
        "Bernoulli arms", [Case("epsilon 1", "FedArms-v0", 1.0, {TUNED: None, PAPER: None})], delta=1e-5, trials=2
    ),
}  # fmt: skip
"""The comparison in each problem, by the name of the problem, which is also the name of its panel."""


def _run(plan: Plan, name: str, line: str, where: Case, **labels: Any) -> RunSpec:
    """Returns the run of one algorithm, one of :data:`.LINES`, in one setting of a problem.

    Some labels change the run. With ``case`` it has the full horizon and number of seeds, else those of sweeps.
    ``agents`` is the number of agents. ``epsilon`` and ``delta`` are claimed for all releases together, by exact
    composition; otherwise the privatizer has the setting's epsilon.
    """
    problem = PROBLEMS[name]
    part, trials = (1.0, problem.trials) if "case" in labels else (plan.scale.sweeps["part"][0], 1)
    rounds = max(1, round(plan.scale.rounds * problem.rounds * part))
    delta, baseline = labels.get("delta", problem.delta), BASELINE_OF[name][line]
    # P-FCB's privatizer has the epsilon of a release. The arguments for an epsilon of all releases are computed.
    of_a_release = baseline.startswith("P-FCB")
    privatizer: dict[str, Any] = {"epsilon_per_release" if of_a_release else "epsilon": where.epsilon}
    if "epsilon" in labels and of_a_release:
        # With this pair of counts the sensitivity is 1 capacity under "one-quantity": altering one quantity changes the
        # numbers of good and of defective units by at most the capacity in total.
        releases = max(1, make_schedule("doubling").count(rounds))
        privatizer = {**equal_shares(labels["epsilon"], delta, releases), "pair": "good_and_defective"}
    elif "epsilon" in labels:
        privatizer = {"epsilon": labels["epsilon"], "delta": delta}
    # With 10 agents, the default, the argument is left out, so that the run is the same as one of the other sweeps and
    # is played only once.
    agents = labels.get("agents", 10)
    return plan.run(
        line, where.env_id, baseline, rounds=rounds, seeds=plan.scale.trials * trials,
        env={} if agents == 10 else {"num_agents": int(agents)},
        wrappers={} if line in (SILENT, TUNED, TRUE) else {"privatizer": privatizer},
        delta=delta, labels=labels,
    )  # fmt: skip


def _runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs.

    Panel ``agents`` has a sweep over the number of agents in all problems. The other panels have the settings with
    bounds at the full horizon, all algorithms at the horizon of sweeps, and a sweep over epsilon and delta.
    """
    sweeps, name = plan.scale.sweeps, plan.panel
    if name == "agents":
        return [
            _run(plan, name, line, problem.cases[0], problem=name, agents=float(agents))
            for name, problem in PROBLEMS.items()
            for agents in sweeps["agents"]
            for line in (TUNED, OURS, PAPER)
        ]
    cases = PROBLEMS[name].cases
    at_full_size = [
        _run(plan, name, line, case, case=case.title)
        for case in cases
        for line in (*case.asked, OURS, OURS_TUNED)
    ]
    # The paper's form of private federation is played with the last delta only.
    claims = [(OURS, delta) for delta in sweeps["delta"]] + [(PAPER, sweeps["delta"][-1])]
    swept = [
        _run(plan, name, line, cases[0], delta=delta, epsilon=epsilon)
        for line, delta in claims
        for epsilon in sweeps["epsilon"]
    ]
    return [*at_full_size, *(_run(plan, name, line, cases[0]) for line in LINES), *swept]


_TINY = {"part": (0.5,), "delta": (0.1,), "epsilon": (0.1, 10.0), "agents": (2, 4)}
_EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_PAPER = {"part": (1.0,), "delta": (0.1, 1e-5), "epsilon": _EPSILONS, "agents": (2, 5, 10, 20, 50, 100)}
_SMALL = _PAPER | {"part": (0.2,), "epsilon": (0.01, 0.1, 1.0, 10.0), "agents": (2, 5, 10, 30, 100)}
"""Values of the sweeps; ``part`` is the share of the full horizon that runs of the sweeps have."""


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports where private federation pays; in a problem also targets, all algorithms, and regret by epsilon."""
    by_agents = runs.plan.panel == "agents"
    of_sweeps = runs.where(case=None, delta=None)
    level = of_sweeps.by()
    if by_agents:
        groups = {name: runs.where(problem=name).lines("agents") for name in PROBLEMS}
    else:
        groups = {f"delta {at:g}": own.lines("epsilon") for at, own in runs.groups("delta").items()}
    curves = {
        f"{line}, {group}": stats.over(points, own.get(TUNED, level[TUNED]))
        for group, own in groups.items()
        for line, points in own.items()
        if line != TUNED
    }
    head = "regret below tuned silence's"
    section.table("pays", [{head: name, "at": pays_from(points)} for name, points in curves.items()])
    if by_agents:
        section.table("agents", [
            {
                "problem": f"{name}, {agents:g} agents",
                f"{TUNED} [95 %]": stats.final_regret(result),
                **{f"{line} / {TUNED}": curves[f"{line}, {name}"][agents] for line in (OURS, PAPER)},
            }
            for name, own in groups.items()
            for agents, result in own[TUNED].items()
        ])  # fmt: skip
    else:
        section.table("ratios", _controlled(level))
        section.table("targets", _targets(runs))
        columns: dict[str, Any] = {
            "baseline": lambda result: BASELINE_OF[runs.plan.panel][result.labels["line"]],
            "regret [95 %]": stats.final_regret,
            "median": _median,
            **{f"/ {below}": partial(stats.ratio, below=level[below]) for below in (SILENT, TUNED)},
        }
        section.table("lines", of_sweeps.table("run", columns))
        section.table("epsilon", _against_epsilon(groups, curves))
        own = runs.one(OURS, case=PROBLEMS[runs.plan.panel].cases[0].title).claims
        section.claims(one for one in own if one.adjacency == own[0].adjacency and one.composition != "zcdp")
    section.draw(curves)
    if not by_agents:
        heights = {line: stats.ratio(level[line], level[TUNED]).value for line in (SILENT, PLACEBO, TRUE)}
        section.draw({line: dict.fromkeys(runs.values("epsilon"), y) for line, y in heights.items()})


def pays_from(points: Mapping[float, stats.Ratio]) -> str:
    """Returns a text with the smallest x from which on private federation pays: all intervals of ratios are below 1."""
    verdicts = {x: value.at_most(1) for x, value in points.items()}
    if "exploratory" in verdicts.values():
        return "exploratory"
    paying = list(takewhile(lambda x: verdicts[x] == "holds", sorted(points, reverse=True)))
    if not paying:
        return "none of those tried"
    return f"from {paying[-1]:g} on" + (", the least tried" if len(paying) == len(points) else "")


def _controlled(level: Mapping[str, RunResult]) -> Iterator[stats.Row]:
    """Yields a row for each ratio that separates what tuning, communication and data do."""
    pairs = [(TUNED, SILENT), (PAPER_TUNED, PAPER), (PAPER, SILENT), (PAPER_TUNED, TUNED)]
    for above, below in pairs + [(line, TUNED) for line in (OURS, OURS_TUNED, TRUE, PLACEBO)]:
        value = stats.ratio(level[above], level[below])
        is_1 = stats.lies_within(1, value) if above == PLACEBO else ""
        yield {"regret": f"{above} / {below}", "here": value, "is it 1?": is_1}


def _median(result: RunResult) -> str:
    return f"{np.median(stats.regret_by_instance(result)):.0f}"


def _targets(runs: PanelRuns) -> Iterator[stats.Row]:
    """Yields a row for each setting and algorithm: regret at the full horizon, and ratios of ours to it.

    The row says whether a ratio is at most the bound that was set in advance.
    """
    problem = PROBLEMS[runs.plan.panel]
    for case in problem.cases:
        results = runs.where(case=case.title).by()
        for line, result in results.items():
            row: stats.Row = {
                "setting: run": f"{case.title}: {line}",
                "baseline": BASELINE_OF[runs.plan.panel][line],
                "regret at T [95 %]": stats.final_regret(result),
                "median": _median(result),
            }
            for ours in (OURS, OURS_TUNED):
                row |= {f"{ours} / this run": "", f"target of {ours}": ""}
                if line in case.asked:
                    value, bound = stats.ratio(results[ours], result), case.asked[line]
                    text = "no target" if bound is None else f"at most {bound:.3g}: {value.at_most(bound)}"
                    row |= {f"{ours} / this run": value, f"target of {ours}": text}
            yield row


def _against_epsilon(groups: Mapping[str, stats.Curves], curves: stats.Curves) -> Iterator[stats.Row]:
    """Yields a row for each epsilon and delta, claimed for all releases together: regret, and ratios to others'."""
    for delta, lines in groups.items():
        for epsilon, result in lines[OURS].items():
            value, paper = curves[f"{OURS}, {delta}"][epsilon], PAPER in lines
            yield {
                "all releases": f"epsilon {epsilon:g}, {delta}",
                f"{OURS} [95 %]": stats.final_regret(result),
                f"/ {TUNED}": value,
                f"never above {NEVER_ABOVE:g}?": value.at_most(NEVER_ABOVE),
                f"{PAPER} / {TUNED}": curves[f"{PAPER}, {delta}"][epsilon] if paper else "-",
                f"{OURS} / {PAPER}": stats.ratio(result, lines[PAPER][epsilon]) if paper else "-",
            }


EXPERIMENTS = {
    "private-federation": Experiment(
        "Private federation: whether it pays against tuned silence",
        "Whether agents who send noisy data do better than tuned agents who send nothing; 30 minutes.",
        {"x": "epsilon", "y": "regret / tuned silence's"},
        # Problems multiply the number of seeds.
        {"tiny": Scale(600, 2, _TINY), "small": Scale(100_000, 20, _SMALL), "paper": Scale(100_000, 20, _PAPER)},
        _runs, _report,
        {**{name: problem.title for name, problem in PROBLEMS.items()}, "agents": "Against the number of agents"},
        panel_axes={"agents": {"x": "agents"}},
    )
}  # fmt: skip
