"""What the pages on exposure fairness say."""

from itertools import pairwise
from math import log

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, ordered, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.fairx import (
    CONTROLS,
    FED,
    GREEDY,
    LEARNERS,
    PLACEBO,
    PRIV,
    PROTOCOLS,
    SILENT,
    THESIS,
    WEIGHTED,
)
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text
from fedbandit_envs.leaderboard.reproduction.runs import Result

NEVER_ABOVE = 1.05


def _chosen(name: str) -> str:
    """Says how a baseline looks for its optimistic parameter: solver, steps and scale of the radius."""
    arguments = BASELINES[name.removesuffix(PLACEBO)].policy_kwargs
    if "solver" not in arguments:
        return "-"
    radius = arguments["beta_scale"]
    return f"{arguments['solver']}, {arguments['steps']}, {radius:g}" if radius else "none, 0, 0"


def _releases(result: Result) -> str:
    messages = result.traffic.get("messages")
    if messages is None:
        return "-"
    return f"{messages.mean() / (result.regret.shape[2] - 1):,.0f}"


def _table(section: Section, results: Results, meanings: dict[str, str]) -> None:
    """Writes fairness regret and reward regret at T of every run, over B0's, and draws the curves."""
    row = section.table(
        "algorithm", "what it does", "solver, steps, beta scale", "releases an agent",
        "fairness regret at T (± 95 %)", "/ B0", "reward regret at T",
    )  # fmt: skip
    for name, result in results.items():
        value = ratio(result, results[SILENT])
        lost = result.info["reward_regret"].mean() * result.rounds[-1]
        row(
            name, meanings.get(name, "the same on noise alone"), _chosen(name), _releases(result),
            regret_text(result), "1" if name == SILENT else value, f"{lost:,.0f}",
        )  # fmt: skip
        section.add(f"{name} / B0", "", value)
        section.draw_regret(name, result)


def _claims(section: Section, result: Result) -> None:
    """Sets what Priv-FairX-LinUCB promises beside what it spends."""
    section.text += [
        "",
        "What the agent that spent most has really spent of the (2, 0.1) that Priv-FairX-LinUCB promises for all its "
        "releases together; trust is `local`: noise is added before anything leaves the agent, and nobody else is "
        "trusted. The thesis' noise is calibrated for each single release of the tree (Claim 6.1); ours for all of "
        "them. No adjacency covers an agent whose later draws change with the altered observation:",
    ]
    section.claims(result.claims)


def exp1(section: Section, results: Results) -> None:
    """Fairness regret over rounds; what the thesis says of the order; what is spent; what controls have."""
    _table(section, results, {**THESIS, **CONTROLS})
    if section.panel == "controls":
        _controls(section, results)
        return
    statement, links = ordered([results[name] for name in (FED, PRIV, SILENT)])
    private, placebo = (ratio(results[name], results[SILENT]) for name in (PRIV, PRIV + PLACEBO))
    owed = private.at_most(1) == "holds" and placebo.at_least(1) == "holds"
    section.text += [
        "",
        'The thesis says that "both federated learning algorithms outperformed the single-agent baseline in terms of '
        'fairness regret". '
        f"Fed < Priv < B0: {statement} ({'; '.join(map(str, links))}).",
        f"Noise alone has {placebo} times B0's fairness regret"
        + (f": what {PRIV} gains is owed to what agents tell each other." if owed else "."),
    ]
    _claims(section, results[PRIV])


def _controls(section: Section, results: Results) -> None:
    least = min(results, key=lambda name: float(regret_by_seed(results[name]).mean()))
    silent = [name for name in results if name.startswith("FairX-LinUCB")]
    best = min(silent, key=lambda name: float(regret_by_seed(results[name]).mean()))
    weighted = results[WEIGHTED]
    section.text += [
        "",
        f"* Least fairness regret of all: {least}. Least in silence: {best}, {ratio(results[best], results[SILENT])} "
        "times B0's.",
        f"* Ours over the best silence here: {ratio(weighted, results[best])}; its placebo: "
        f"{ratio(results[WEIGHTED + PLACEBO], results[best])}.",
        "* The rigorous private forms, whose radius has its term for the noise, over B0: on the sum "
        f"{ratio(results['Priv-FairX-LinUCB-on-sum'], results[SILENT])}, printed "
        f"{ratio(results['Priv-FairX-LinUCB-printed'], results[SILENT])}: fairness regret punishes a wide ellipsoid.",
        f"* A best-arm learner over equal shares: {ratio(results['best-arm'], results['equal-shares'])}.",
    ]


def exp2(section: Section, results: Results) -> None:
    """Fairness regret over rounds by protocol of communication."""
    _table(section, results, {SILENT: "silent (B0)", **PROTOCOLS})
    first, second = (ratio(results[PRIV], results[name]) for name in ("B1", "B2"))
    section.text += [
        "",
        'The thesis says that "Priv-FairX-LinUCB outperforms B1 while producing comparable performance for B2".',
        "",
        f"* Priv < B1: {first.at_most(1)} ({first}).",
        f"* Priv / B2: {second}. The thesis does not say what is comparable; within a quarter, either way: "
        f"{_within(second, 1.25)}.",
        "* B1 asks when its unnoised data say so: it has no claim of privacy (None), whatever its noise. B2 releases "
        f"{_releases(results['B2'])} times, Priv {_releases(results[PRIV])} times, at the same epsilon.",
    ]


def _within(value: Ratio, factor: float) -> str:
    if value.high <= factor and value.low >= 1 / factor:
        return "holds"
    return "does **not** hold" if value.low > factor or value.high < 1 / factor else "undecided"


def _numbers(results: Results, name: str) -> dict[float, Result]:
    """Returns the runs of a sweep whose names are that name and a number, by the number."""
    found = {}
    for run, result in results.items():
        base, _, number = run.rpartition(" ")
        if base == name:
            found[float(number)] = result
    return found


def exp3(section: Section, results: Results) -> None:
    """Fairness regret at T against the number of agents."""
    names = (SILENT, FED, PRIV, PRIV + PLACEBO, GREEDY, WEIGHTED)
    sweeps = {name: _numbers(results, name) for name in names}
    row = section.table("agents", *names)
    for agents in sweeps[FED]:
        row(f"{agents:g}", *(regret_text(sweeps[name][agents]) for name in names))
    for name in names:
        section.draw_points(name, sweeps[name])
        for agents, result in sweeps[name].items():
            section.add(f"{name} / B0", agents, ratio(result, sweeps[SILENT][agents]))
    section.text += [
        "",
        'The thesis says that "the fairness regret scales as expected with respect to the number of agents"; by its '
        "theory an agent's falls like 1/sqrt(m).",
        "",
    ]
    for name in (FED, PRIV):
        swept = sweeps[name]
        order = sorted(swept, reverse=True)
        statement, _ = ordered([swept[agents] for agents in order])
        most, least = (float(regret_by_seed(swept[agents]).mean()) for agents in (order[-1], order[0]))
        exponent = log(least / most) / log(order[0] / order[-1])
        section.text.append(
            f"* {name}: falls at every step with the number of agents: {statement}; from {order[-1]:g} to "
            f"{order[0]:g} agents like m^{exponent:.2f}."
        )


def exp4(section: Section, results: Results) -> None:
    """Fairness regret at T against epsilon."""
    names = (PRIV, PRIV + PLACEBO, WEIGHTED)
    sweeps = {name: _numbers(results, name) for name in names}
    row = section.table("epsilon", PRIV, "/ B0", "placebo / B0", WEIGHTED, f"/ {GREEDY}")
    for epsilon, result in sweeps[PRIV].items():
        row(
            f"{epsilon:g}", regret_text(result), ratio(result, results[SILENT]),
            ratio(sweeps[PRIV + PLACEBO][epsilon], results[SILENT]),
            regret_text(sweeps[WEIGHTED][epsilon]), ratio(sweeps[WEIGHTED][epsilon], results[GREEDY]),
        )  # fmt: skip
    for name in names:
        section.draw_points(name, sweeps[name])
        for epsilon, result in sweeps[name].items():
            section.add(f"{name} / B0", epsilon, ratio(result, results[SILENT]))
    for name in (SILENT, FED, GREEDY):
        section.draw_points(name, dict.fromkeys(sweeps[PRIV], results[name]))
    order = sorted(sweeps[PRIV], reverse=True)
    statement, _ = ordered([sweeps[PRIV][epsilon] for epsilon in order])
    reasonable = [ratio(sweeps[PRIV][e], results[SILENT]).at_most(1) for e in order if e >= 1]
    section.text += [
        "",
        'The thesis says that "the private algorithm achieved reasonable performance for ε values of 1 or greater, '
        'highlighting the trade-off between privacy and regret".',
        "",
        f"* {PRIV}'s fairness regret falls at every step with epsilon: {statement}.",
        f"* Reasonable, taken as no more than B0's, for all epsilon >= 1 here: "
        f"{'holds' if set(reasonable) == {'holds'} else 'does **not** hold for all of them'}.",
        f"* Silence with radius 0 ({GREEDY}): {regret_text(results[GREEDY])}, "
        f"{ratio(results[GREEDY], results[SILENT])} times B0's.",
    ]


def solver(section: Section, results: Results) -> None:
    """Fairness regret against the solver's steps or the radius' scale."""
    if section.panel == "radius":
        radii = list(_numbers(results, SILENT))
        row = section.table("scale of the radius", SILENT, FED, PRIV)
        for radius in radii:
            row(
                f"{radius:g}",
                *(regret_text(_numbers(results, name)[radius]) for name in (SILENT, FED, PRIV)),
            )
        for name in (SILENT, FED, PRIV):
            # The axis is logarithmic: 0 is drawn at a third of the least scale.
            section.draw_points(name, {r or radii[1] / 3: _numbers(results, name)[r] for r in radii})
        silent, shared = (ratio(_numbers(results, n)[0.0], _numbers(results, n)[1.0]) for n in (SILENT, FED))
        federation = ratio(_numbers(results, FED)[1.0], _numbers(results, SILENT)[1.0])
        section.text += [
            "",
            f"Radius 0 over the printed radius: in silence {silent}, on true data {shared}. True data over silence at "
            f"the printed radius: {federation}. (0 is drawn at {radii[1] / 3:.2g}.)",
        ]
        return
    groups = dict.fromkeys(run.rpartition(" ")[0] for run in results if not run.endswith("steps"))
    row = section.table("run", "steps", "fairness regret at T (± 95 %)", "/ 3 steps of Frank and Wolfe")
    for group in groups:
        name = group.split(",")[0]
        standard = results[f"{name}, frank_wolfe 3"]
        for steps, result in _numbers(results, group).items():
            value = ratio(result, standard)
            row(group, f"{steps:g}", regret_text(result), value)
            section.add(f"{group} / frank_wolfe 3", steps, value)
        section.draw_points(group, _numbers(results, group))
    for name in (SILENT, FED):
        still = results[f"{name}, 0 steps"]
        row(
            f"{name}, at the estimate", 0, regret_text(still), ratio(still, results[f"{name}, frank_wolfe 3"])
        )
    section.text += [
        "",
        "Is a better optimum less fair, since it is more optimistic? One step of Frank and Wolfe against ten, and ten "
        "steps of projected gradients against thirty:",
    ]
    row = section.table("run", "fewer steps, less fairness regret", "ratio")
    for name in (SILENT, FED):
        for method, few, many in (("frank_wolfe", 1, 10), ("projected_gradient", 10, 30)):
            value = ratio(results[f"{name}, {method} {few}"], results[f"{name}, {method} {many}"])
            row(f"{name}, {method}", value.at_most(1), value)


def private(section: Section, results: Results) -> None:
    """Whether private federation pays, over epsilon and the number of agents."""
    row = section.table(
        "agents", "epsilon", GREEDY, WEIGHTED, "/ silence", "placebo / silence", f"never above {NEVER_ABOVE}?",
        "pays?", PRIV, f"{WEIGHTED} / {PRIV}",
    )  # fmt: skip
    sizes = _numbers(results, GREEDY)
    paying = []
    for agents, silence in sizes.items():
        swept = _numbers(results, f"{WEIGHTED} {agents:g}")
        for epsilon, result in swept.items():
            value = ratio(result, silence)
            placebo = ratio(results[f"{WEIGHTED}{PLACEBO} {agents:g} {epsilon:g}"], silence)
            theirs = results[f"{PRIV} {agents:g} {epsilon:g}"]
            pays = value.at_most(1)
            if pays == "holds":
                paying.append(f"m = {agents:g} at epsilon = {epsilon:g}")
            row(
                f"{agents:g}", f"{epsilon:g}", regret_text(silence), regret_text(result), value, placebo,
                value.at_most(NEVER_ABOVE), pays, regret_text(theirs), ratio(result, theirs),
            )  # fmt: skip
            section.add(f"{WEIGHTED} / silence, {agents:g} agents", epsilon, value)
            section.add(f"{WEIGHTED} / {PRIV}, {agents:g} agents", epsilon, ratio(result, theirs))
        section.draw_points(f"{WEIGHTED}, {agents:g} agents", swept)
        section.draw_points(f"{PRIV}, {agents:g} agents", _numbers(results, f"{PRIV} {agents:g}"))
        section.draw_points(f"silence, {agents:g} agents", dict.fromkeys(swept, silence))
    section.text += [
        "",
        "Silence is tuned: radius 0, the best of 0, 0.02, 0.05 and 0.1 times the printed one on other seeds. Private "
        f"federation pays, with an interval below 1, for {'; '.join(paying) or 'none of these'}.",
    ]


def shares(section: Section, results: Results) -> None:
    """Shares of the pulls by arm against deserved shares."""
    any_run = next(iter(results.values()))
    due = any_run.totals["deserved"].mean(axis=(0, 1)) / any_run.rounds[-1]
    order = np.argsort(-due, kind="stable")
    place = np.arange(1, due.size + 1)
    got = {name: run.totals["pulls"].mean(axis=(0, 1)) / run.rounds[-1] for name, run in results.items()}
    row = section.table("worker, in order of merit", "deserved", *(f"{n} ({LEARNERS[n]})" for n in results))
    for rank, arm in enumerate(order, start=1):
        row(rank, f"{due[arm]:.3f}", *(f"{got[name][arm]:.3f}" for name in results))
    for name in results:
        section.curves[name] = (place, got[name][order], np.zeros((2, due.size)))
    # Last, so that it lies on top of those that come near it.
    section.curves["deserved"] = (place, due[order], np.zeros((2, due.size)))
    row = section.table(
        "algorithm", "absolute differences, added up over workers", "fairness regret at T (± 95 %)"
    )
    for name, run in results.items():
        row(name, f"{np.abs(due - got[name]).sum():.3f}", regret_text(run))
    section.text += [
        "",
        "Ten workers who are the same in every round, and one theta*; shares are of all pulls of all agents and runs.",
    ]


def price(section: Section, results: Results) -> None:
    """Reward regret against fairness regret over merit scales."""
    scales = list(_numbers(results, SILENT))
    row = section.table("merit scale", *(f"{name}: fairness, reward" for name in LEARNERS))

    def a_round(result: Result) -> tuple[float, float]:
        fairness = float(regret_by_seed(result).mean() / result.rounds[-1])
        return fairness, float(result.info["reward_regret"].mean())

    for scale in scales:
        pairs = (a_round(_numbers(results, name)[scale]) for name in LEARNERS)
        row(f"{scale:g}", *(f"{fairness:.4f}, {reward:+.4f}" for fairness, reward in pairs))
    for name in LEARNERS:
        fairness, reward = zip(*(a_round(_numbers(results, name)[scale]) for scale in scales), strict=True)
        section.curves[name] = (fairness, reward, np.zeros((2, len(scales))))
    best = {scale: _numbers(results, "best-arm")[scale] for scale in scales}
    costs = [-a_round(best[scale])[1] for scale in scales]
    falls = all(before > after for before, after in pairwise(costs))
    section.text += [
        "",
        "Regrets a round; reward regret is against fair shares, negative where more is earned than they would earn. "
        "So what a best-arm learner's has below zero is the price of fairness: "
        f"{costs[0]:.3f} a round where merit is exp({scales[0]:g} mu), {costs[-1]:.3f} where it is "
        f"exp({scales[-1]:g} mu). It {'falls' if falls else 'does not fall'} at every step with the steepness of "
        "merit. In the picture a curve has a point a merit scale.",
    ]
