"""Experiments on exposure fairness: four of the thesis (Solanki 2024, section 6.5), and this project's own."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise, product
from math import log
from typing import Any

import numpy as np

from fedbandit_envs.experiments import RunResult, RunSpec
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import LINEAR, Experiment, PanelRuns, Plan, Scale, Section, baseline_of
from fedbandit_envs.papers.stats import Mean, Ratio, Row, each, final_regret, judged, mean_of, ratio

THESIS_ROUNDS = 100_000

SILENT, FED, PRIV, WEIGHTED = "FairX-LinUCB", "Fed-FairX-LinUCB", "Priv-FairX-LinUCB", "Priv-FairX-weighted"
GREEDY, ALWAYS = "FairX-LinUCB-greedy", "Fed-FairX-LinUCB-every-round"
PLACEBO = ", placebo"
"""End of the name of an algorithm in whose runs the messages carry nothing but noise."""

THESIS = (SILENT, FED, PRIV, PRIV + PLACEBO)
CONTROLS = (
    SILENT, PRIV, "FairX-LinUCB-0.1", GREEDY, "Fed-FairX-LinUCB-greedy", "Fed-FairX-LinUCB-listing",
    "Priv-FairX-LinUCB-on-sum", "Priv-FairX-LinUCB-printed", WEIGHTED, WEIGHTED + PLACEBO, "best-arm", "equal-shares",
)  # fmt: skip
PROTOCOLS = (PRIV, "B1", "B2")
PRIVATE = (PRIV, PRIV + PLACEBO, WEIGHTED)
LEARNERS = {
    "best-arm": "best arm",
    SILENT: "fair, optimistic",
    GREEDY: "fair, radius 0",
    "equal-shares": "equal",
}
SOLVERS = {"frank_wolfe": (1, 2, 3, 5, 10), "projected_gradient": (3, 10, 30), "at the estimate": (0,)}
"""Numbers of steps that are tried, by the solver that searches for the optimistic parameter.

``at the estimate`` stands for no search: the policy acts on the estimate.
"""
_FEW_AND_MANY = {"frank_wolfe": (1, 10), "projected_gradient": (10, 30)}
_SEARCHED = [*product((SILENT, FED), _FEW_AND_MANY)]

_SMALL: Mapping[str, tuple[float, ...]] = {
    "agents": (2, 5, 10),
    "epsilon": (0.5, 2.0, 8.0),
    "merit": (0.5, 2.0, 5.0, 10.0, 20.0, 50.0),
    "radius": (0.0, 0.01, 0.03, 0.1, 0.3, 1.0),
    **SOLVERS,
}
_PAPER: Mapping[str, tuple[float, ...]] = {
    **_SMALL,
    "agents": (2, 5, 10, 20),
    "epsilon": (0.5, 1.0, 2.0, 5.0, 10.0),
    "merit": (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
}
SCALES = {"small": Scale(5_000, 20, _SMALL), "paper": Scale(THESIS_ROUNDS, 20, _PAPER)}
"""Sizes of the experiments; an experiment uses the sweeps of those quantities that it varies."""
PRIVATE_SCALES = {
    "small": Scale(5_000, 20, {**_SMALL, "agents": (10,)}),
    "paper": Scale(THESIS_ROUNDS, 20, {**_SMALL, "agents": (10, 40)}),
}


def _grid(
    plan: Plan,
    lines: Iterable[str],
    *sweeps: str,
    env_id: str = "FedExposure-v0",
    **env_kwargs: Any,
) -> list[RunSpec]:
    """Returns the runs of each algorithm at each combination of the swept values.

    Args:
        plan: The panel's settings; its scale has the values of sweeps.
        lines: Names of baselines. A name that ends with :data:`PLACEBO` means the baseline with nothing but noise in
            its messages.
        *sweeps: Names of the quantities that are varied: ``agents`` (their number), ``epsilon``, ``merit`` (the scale
            of merit), ``radius`` (the factor of the confidence radius), or one of :data:`SOLVERS` (its number of
            steps). Runs have the values as labels.
        env_id: The environment.
        **env_kwargs: Changes to the environment's preset.
    """
    runs = []
    values = product(*(plan.scale.sweeps[name] for name in sweeps))
    points = [dict(zip(sweeps, map(float, value), strict=True)) for value in values]
    for line, point in product(lines, points):
        baseline, env, constants = line.removesuffix(PLACEBO), dict(env_kwargs), dict[str, Any]()
        if "agents" in point:
            env["num_agents"] = int(point["agents"])
        if "merit" in point:
            env["merit"] = {"name": "exponential", "scale": point["merit"]}
        if "radius" in point:
            constants["beta_scale"] = point["radius"]
        for solver in SOLVERS.keys() & point:
            constants |= {"solver": solver, "steps": int(point[solver])} if point[solver] else {"steps": 0}
        runs.append(plan.run(
            line, env_id, baseline, env=env, policy=constants,
            wrappers={"privatizer": {"epsilon": point["epsilon"]}} if "epsilon" in point else {},
            stack=[("Placebo", {})] if line != baseline else [], delta=0.1, labels=point,
        ))  # fmt: skip
    return runs


def _solver(plan: Plan) -> list[RunSpec]:
    """Returns the runs that vary two constants that no paper specifies: the solver's steps and the radius' scale."""
    if plan.panel == "radius":
        return _grid(plan, [SILENT, FED, PRIV], "radius")
    kinds = [*_SEARCHED, *product((SILENT, FED), ["at the estimate"])]
    return [run for line, solver in kinds for run in _grid(plan, [line], solver)]


def _private(plan: Plan) -> list[RunSpec]:
    """Returns the runs that show whether private federation pays.

    This project's private baseline and the thesis' one are compared with tuned agents that do not communicate.
    """
    grid = partial(_grid, plan, env_id="FedExposureNoisy-v0" if plan.panel == "0.5" else "FedExposure-v0")
    return [
        *grid([GREEDY], "agents"),
        *grid([PRIV, WEIGHTED, WEIGHTED + PLACEBO], "agents", "epsilon"),
    ]


def _shares(plan: Plan) -> list[RunSpec]:
    """Returns the runs that show each worker's (arm's) share of the pulls; the ten workers' contexts are fixed."""
    contexts = (np.random.default_rng(6).random((10, 5)) / np.sqrt(5)).round(3).tolist()
    return _grid(plan, LEARNERS, contexts=contexts, instance_seed=0)


NEVER_ABOVE = 1.05
"""Bound set in advance for the fairness regret of this project's private baseline, relative to tuned silent agents."""


def _ratios(runs: PanelRuns, *pairs: tuple[str, str]) -> dict[str, Ratio]:
    """Returns the ratio of two algorithms' fairness regret for each pair of them, by name."""
    b0 = "B0" if runs.plan.panel == "thesis" else SILENT
    return {f"{one} / {b0 if other == SILENT else other}": runs.ratio(one, other) for one, other in pairs}


def _power_of_rounds(result: RunResult) -> Mean:
    """Returns the exponent p of regret growing as t^p, from round T / 10 to the horizon T; the mean over seeds."""
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    grown = np.log(stats.regret_by_instance(result) / stats.regret_by_instance(result, early))
    return mean_of(grown / log(result.rounds[-1] / result.rounds[early]), ".2f")


def _regrets(page: Section, runs: PanelRuns, powers: Iterable[str] = ()) -> None:
    """Writes fairness regret and reward regret at the horizon, exponents of growth, and draws regret over rounds."""
    columns: dict[str, Any] = {
        "solver, steps, beta scale": _constants,
        "releases an agent": releases,
        "fairness regret at T [95 %]": final_regret,
        "/ B0": partial(ratio, below=runs[SILENT]),
        "reward regret at T": lambda run: f"{run.info['reward_regret'].mean() * run.rounds[-1]:,.0f}",
    }
    page.table("regrets", runs.table("algorithm", columns))
    page.say({f"{line}, power of T": _power_of_rounds(runs[line]) for line in powers})
    page.draw_over_rounds(runs)


def releases(result: RunResult) -> str:
    """Returns the mean number of releases that an agent made in a run, as text; ``-`` without communication."""
    messages = result.traffic.get("messages")
    return "-" if messages is None else f"{messages.mean() / (result.regret.shape[2] - 1):,.0f}"


def _constants(result: RunResult) -> str:
    arguments = baseline_of(result.labels["line"].removesuffix(PLACEBO)).policy_kwargs
    if "solver" not in arguments:
        return "-"
    radius = arguments["beta_scale"]
    return f"{arguments['solver']}, {arguments['steps']}, {radius:g}" if radius else "none, 0, 0"


def _report_exp1(page: Section, runs: PanelRuns) -> None:
    if runs.plan.panel == "thesis":
        _regrets(page, runs, (SILENT, FED, PRIV))
        page.judge(_ratios(runs, *((line, SILENT) for line in THESIS[1:])))
        page.claims(runs[PRIV].claims)
        return
    _regrets(page, runs)
    lines = runs.by()
    best, ours, sum_ = stats.least(lines, SILENT), WEIGHTED + PLACEBO, "Priv-FairX-LinUCB-on-sum"
    pairs = [
        (PRIV, SILENT), (PRIV, best), (best, SILENT), (WEIGHTED, best), (ours, best), (sum_, SILENT),
        ("Priv-FairX-LinUCB-printed", SILENT), ("best-arm", "equal-shares"),
    ]  # fmt: skip
    page.judge(_ratios(runs, *pairs), ("least fairness regret", stats.least(lines), "-"))


def _report_exp2(page: Section, runs: PanelRuns) -> None:
    _regrets(page, runs, ("B2", PRIV))
    page.judge(_ratios(runs, (PRIV, "B1"), (PRIV, "B2")))


def _report_exp3(page: Section, runs: PanelRuns) -> None:
    lines = runs.lines("agents")
    curves = each(lines, final_regret)
    page.table("regrets", stats.by_x(curves, "federation", "{:g} agents"))
    page.draw(curves)
    page.record({line: stats.over(own, lines[SILENT]) for line, own in lines.items()}, "{} / B0")
    powers = {line: mean_of(stats.exponents(lines[line]), ".3f") for line in (FED, PRIV, SILENT)}
    page.say({f"{line}, power of m": power for line, power in powers.items()})
    expected = {FED: -0.5, PRIV: -0.5, SILENT: 0}
    page.verdicts([
        *((f"{line}, power of m", powers[line], stats.lies_within(at, powers[line])) for line, at in expected.items()),
        *((f"{line} falls with each number of agents", "-", stats.falls(lines[line])) for line in (FED, PRIV)),
    ])  # fmt: skip


def _report_always(page: Section, runs: PanelRuns) -> None:
    lines = runs.lines("agents")
    curves = each(lines, final_regret)
    ratios = {f"{ALWAYS} / {other}": stats.over(lines[ALWAYS], lines[other]) for other in (SILENT, FED)}
    page.table("regrets", stats.by_x(curves | ratios, "federation", "{:g} agents"))
    page.draw(curves)
    power = mean_of(stats.exponents(lines[ALWAYS]), ".3f")
    verdicts = [(f"{ALWAYS}, power of m", power, stats.lies_within(-0.5, power))]
    page.verdicts([*verdicts, *(judged(name, own.values()) for name, own in ratios.items())])


def _report_exp4(page: Section, runs: PanelRuns) -> None:
    lines, silent, greedy = runs.lines("epsilon"), runs[SILENT], runs[GREEDY]
    curves = each(lines, final_regret)
    columns = {
        PRIV: curves[PRIV],
        "/ B0": stats.over(lines[PRIV], silent),
        "placebo / B0": stats.over(lines[PRIV + PLACEBO], silent),
        WEIGHTED: curves[WEIGHTED],
        f"/ {GREEDY}": stats.over(lines[WEIGHTED], greedy),
    }
    page.table("regrets", stats.by_x(columns, "budget", "epsilon {:g}"))
    page.draw(curves)
    page.record({WEIGHTED: stats.over(lines[WEIGHTED], silent)}, "{} / B0")
    page.say({GREEDY: final_regret(greedy), f"{GREEDY} / B0": ratio(greedy, silent)})
    from_one = {epsilon: result for epsilon, result in lines[PRIV].items() if epsilon >= 1}
    silence = stats.over(from_one, greedy).values()
    page.verdicts([
        (f"{PRIV} falls with each epsilon", "-", stats.falls(lines[PRIV])),
        judged("epsilon of 1 or greater: / B0", stats.over(from_one, silent).values()),
        (f"epsilon of 1 or greater: / {GREEDY}", stats.spread(silence, ".2f"), stats.all_within(silence)),
    ])  # fmt: skip


def _report_solver(page: Section, runs: PanelRuns) -> None:
    if runs.plan.panel == "radius":
        curves = each(runs.lines("radius"), final_regret)
        page.table("regrets", stats.by_x(curves, "radius", "radius times {:g}"))
        # A logarithmic axis has no 0.
        zero = runs.values("radius")[1] / 3
        page.draw({line: {x or zero: mean for x, mean in points.items()} for line, points in curves.items()})
        free, printed = runs.where(radius=0.0), runs.where(radius=1.0)
        page.say({f"{line}, radius 0 / printed": ratio(free[line], printed[line]) for line in (SILENT, FED)})
        page.say({f"{FED} / {SILENT}": printed.ratio(FED, SILENT)})
        return
    usual = runs.where(frank_wolfe=3).by()
    columns = {
        "fairness regret at T [95 %]": final_regret,
        "/ 3 steps of Frank and Wolfe": lambda result: ratio(result, usual[result.labels["line"]]),
    }
    page.table("regrets", runs.table("run, steps", columns, *SOLVERS))
    found = {f"{line}, {solver}": runs.by(solver, line=line) for line, solver in _SEARCHED}
    page.draw(each(found, final_regret))
    fewer = {}
    for line, solver in _SEARCHED:
        few, many = (runs.one(line, **{solver: count}) for count in _FEW_AND_MANY[solver])
        fewer[f"{line}, {solver}: fewer steps / more"] = ratio(few, many)
    pairs = [ratio(runs.one(**{**labels, "line": FED}), own) for labels, own in runs.where(line=SILENT).rows]
    page.verdicts([
        *stats.each_judged(fewer),
        ("true data / silence, all solvers", stats.spread(pairs, ".3f"), stats.all_within(pairs)),
    ])  # fmt: skip


def _report_private(page: Section, runs: PanelRuns) -> None:
    rows: list[Row] = []
    curves: dict[str, Any] = {}
    for agents, silence in runs.by("agents", line=GREEDY).items():
        own = runs.where(agents=agents).lines("epsilon")
        found, ratios = each(own, final_regret), stats.over(own[WEIGHTED], silence)
        columns: dict[str, Any] = {
            GREEDY: found[GREEDY],
            WEIGHTED: found[WEIGHTED],
            "/ silence": ratios,
            "placebo / silence": stats.over(own[WEIGHTED + PLACEBO], silence),
            f"never above {NEVER_ABOVE}?": {x: value.at_most(NEVER_ABOVE) for x, value in ratios.items()},
            "pays?": {x: value.at_most() for x, value in ratios.items()},
            PRIV: found[PRIV],
            f"{WEIGHTED} / {PRIV}": stats.over(own[WEIGHTED], own[PRIV]),
        }
        rows += stats.by_x(columns, "federation", f"{agents:g} agents, epsilon {{:g}}")
        names = {WEIGHTED: WEIGHTED, PRIV: PRIV, "silence": GREEDY}
        curves |= {f"{name}, {agents:g} agents": found[line] for name, line in names.items()}
    page.table("regrets", rows)
    page.draw(curves)


def shares(runs: PanelRuns) -> dict[str, dict[int, float]]:
    """Returns each worker's (arm's) share of the pulls, averaged over all agents and runs.

    Returns:
        Shares by algorithm and by the worker's rank, where rank 1 has the largest deserved share. The last entry,
        ``deserved``, has the shares that the workers deserve, so that its curve is drawn on top of similar ones.
    """
    totals = {line: result.totals["pulls"] for line, result in runs.by().items()}
    totals["deserved"] = runs["best-arm"].totals["deserved"]
    found = {name: total.mean(axis=(0, 1)) / runs["best-arm"].rounds[-1] for name, total in totals.items()}
    order = np.argsort(-found["deserved"], kind="stable")
    return {name: dict(enumerate(map(float, share[order]), 1)) for name, share in found.items()}


def _report_shares(page: Section, runs: PanelRuns) -> None:
    found = shares(runs)
    heads = {"deserved": "deserved"} | {line: f"{line} ({what})" for line, what in LEARNERS.items()}
    texts = each({head: found[line] for line, head in heads.items()}, "{:.3f}".format)
    page.table("shares", stats.by_x(texts, "worker, in order of merit", "worker {}"))
    page.draw(found)

    def differences(result: RunResult) -> str:
        own = found[result.labels["line"]]
        return f"{sum(abs(own[rank] - share) for rank, share in found['deserved'].items()):.3f}"

    columns = {
        "absolute differences, added up over workers": differences,
        "fairness regret at T [95 %]": final_regret,
    }
    page.table("differences", runs.table("algorithm", columns))


def _report_price(page: Section, runs: PanelRuns) -> None:
    lines = runs.lines("merit")
    fairness = each(lines, lambda run: mean_of(stats.regret_by_instance(run) / run.rounds[-1], ".4f"))
    reward = each(lines, lambda run: mean_of(run.info["reward_regret"].mean(axis=1), ".4f"))
    measures = {"fairness": fairness, "reward": reward}
    columns = {f"{line}: {name}": found[line] for line in lines for name, found in measures.items()}
    page.table("regrets", stats.by_x(columns, "merit", "exp({:g} mu)"))
    page.draw({line: [(fairness[line][x].value, y) for x, y in own.items()] for line, own in reward.items()})
    # A best-arm learner's reward regret is negative. It nears 0 with each scale of merit.
    prices = [-run.info["reward_regret"].mean(axis=1) for run in lines["best-arm"].values()]
    falls = stats.all_within(stats.compare(later, earlier) for earlier, later in pairwise(prices))
    page.verdicts([("the price of fairness falls with the steepness of merit", "-", falls)])


def _experiment(title: str, shows: str, x: str, runs: Any, report: Any, **others: Any) -> Experiment:
    """Returns an experiment whose y axis is fairness regret, if ``axes`` has no other."""
    axes = {"x": x, "y": "cumulative fairness regret per agent", **others.pop("axes", {})}
    scales = others.pop("scales", SCALES)
    return Experiment(f"Exposure fairness, {title}", shows, axes, scales, runs, report, **others)


EXPERIMENTS = {
    "fairx-exp1": _experiment(
        "Exp 1: silent, federated, private", "What sharing and private sharing gain; half an hour",
        "round", lambda plan: _grid(plan, THESIS if plan.panel == "thesis" else CONTROLS), _report_exp1,
        panels={"thesis": "As in the thesis", "controls": "Controls, and ours"},
    ),
    "fairx-exp2": _experiment(
        "Exp 2: protocols of communication", "When to communicate; 10 minutes", "round",
        lambda plan: _grid(plan, [SILENT, *(name + end for name in PROTOCOLS for end in ("", PLACEBO))]), _report_exp2,
    ),
    "fairx-exp3": _experiment(
        "Exp 3: against the number of agents", "What more agents gain; half an hour", "agents",
        lambda plan: _grid(plan, [*THESIS, GREEDY, WEIGHTED], "agents"), _report_exp3,
    ),
    "fairx-exp4": _experiment(
        "Exp 4: against epsilon", "What a smaller epsilon costs; half an hour", "epsilon",
        lambda plan: _grid(plan, PRIVATE, "epsilon") + _grid(plan, [SILENT, FED, GREEDY]), _report_exp4,
    ),
    "fairx-every-round": _experiment(
        "communication in every round", "What a schedule costs; half an hour", "agents",
        lambda plan: _grid(plan, [SILENT, FED, ALWAYS], "agents"), _report_always,
    ),
    "fairx-solver": _experiment(
        "what the papers leave open: solver steps and radius", "Whether open constants matter; an hour",
        "steps of the solver", _solver, _report_solver,
        panels={"steps": "Against the solver's steps, radius as printed", "radius": "Against the radius' scale"},
        panel_axes={"radius": {"x": "scale of the radius"}},
    ),
    "fairx-private": _experiment(
        "whether private federation pays", "Private sharing beside tuned silence; half an hour",
        "epsilon", _private, _report_private, scales=PRIVATE_SCALES,
        panels={"0.1": "Reward noise 0.1", "0.5": "Reward noise 0.5"},
    ),
    "fairx-shares": _experiment(
        "shares of the pulls against deserved shares", "Who gets the pulls; 5 minutes",
        "worker, in order of merit", _shares, _report_shares, axes={"y": "share of the pulls", **LINEAR},
    ),
    "fairx-price": _experiment(
        "the price of fairness over merit scales", "What fairness costs in reward; 20 minutes",
        "fairness regret a round", lambda plan: _grid(plan, LEARNERS, "merit"), _report_price,
        axes={"y": "reward regret a round", **LINEAR},
    ),
}  # fmt: skip
