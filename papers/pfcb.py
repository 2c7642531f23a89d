"""The P-FCB paper's experiments (Solanki et al., ECML PKDD 2022, section 6): runs, tables and verdicts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.statistics import mean_and_half_width
from fedbandit_envs.papers.comparison import (
    Ratio,
    Statement,
    all_at_most,
    all_hold,
    by_instance,
    claim_of,
    compare,
    each,
    falls,
    final_regret,
    holds_if,
    over,
    over_line,
    ratio,
    regret_by_instance,
)
from fedbandit_envs.papers.experiment import LINEAR, Experiment, PanelRuns, Plan, Scale
from fedbandit_envs.papers.page import Section, Table, all_over_rounds
from fedbandit_envs.papers.variants import run_of
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing

PROTOCOL, MANY = 5, 20
"""Numbers of markets: of the paper's protocol, and of the panels from which verdicts follow."""

SAMPLES = {
    "uniform": ("uniform", PROTOCOL),
    "normal": ("normal", PROTOCOL),
    "uniform-20": ("uniform", MANY),
    "normal-20": ("normal", MANY),
}
"""Each panel's distribution of markets, and their number.

In the paper's protocol each market has the number of runs that the scale sets, in the other panels one: verdicts are
over markets, and markets differ more than the runs of one do.
"""

PANELS = {
    name: f"{law.title()} law, {number} markets{' as in the paper' * (number == PROTOCOL)}"
    for name, (law, number) in SAMPLES.items()
}
"""Titles of the panels."""

_PAPER_BUDGETS, _PAPER_SIZES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0), (2, 5, 10, 20, 30, 40)
SCALES = {
    "small": Scale(10_000, 4, {"epsilon": (0.1, 1.0, 5.0), "agents": (2, 5, 10)}),
    "paper": Scale(100_000, 20, {"epsilon": _PAPER_BUDGETS, "agents": _PAPER_SIZES}),
}
"""``paper`` is the size of the paper's experiments: T = 1e5, 5 markets with 20 runs each; ``small`` takes minutes."""

_ENV_IDS = {"uniform": "FedProcurement-v0", "normal": "FedProcurementNormal-v0"}


DRAWN = 400
"""Number of candidate markets, drawn by the seeds from 0 on, among which those of a panel are chosen."""


class Markets(NamedTuple):
    """Markets of one panel, chosen among the first seeds by whether the quality constraint binds.

    The constraint binds for an agent if buying all profitable units would violate it. Markets in which it binds only
    for agents after the first ten are in neither list.

    Attributes:
        slack: Seeds of the first markets in which the constraint binds for none of 40 agents.
        binding: Seeds of the first markets (at most as many) in which it binds for at least one of the first ten
            agents.
        share: Share of the :data:`DRAWN` markets in which it binds for at least one of the first ten agents.
        surplus: For each market of ``slack``, the smallest over the first ten agents of the mean quality of all
            profitable units less the threshold. At 0 the constraint begins to bind.
    """

    slack: tuple[int, ...]
    binding: tuple[int, ...]
    share: float
    surplus: tuple[float, ...]


@cache
def choose_markets(panel: str) -> Markets:
    """Returns the markets that are played in a panel."""
    distribution, number = SAMPLES[panel]
    env = parallel_env(num_agents=40, **REGISTRY[_ENV_IDS[distribution]].kwargs)
    seen = env.reset_batch(range(DRAWN)).observation
    quality, threshold = env.hidden()["quality"], seen["quality_threshold"]
    paying = np.where(seen["unit_revenue"] * quality > seen["cost"], seen["capacity"], 0)
    excess = (paying * (quality - threshold)).sum(axis=2)
    # Where an agent's excess is negative, a policy that is optimistic about qualities buys everything profitable, and
    # so violates the quality constraint in every round.
    slack = np.flatnonzero((excess >= 0).all(axis=1))[:number]
    of_ten = (excess < 0)[:, :10].any(axis=1)
    binding = np.flatnonzero(of_ten)[:number]
    surplus = (excess / paying.sum(axis=2))[slack, :10].min(axis=1)
    return Markets(tuple(slack.tolist()), tuple(binding.tolist()), of_ten.mean(), tuple(surplus.tolist()))


PRINTED = {"FCB": "FCB-printed", "FCB-every-round": "FCB-printed", "P-FCB": "P-FCB-printed"}
"""Baselines as the paper prints them, by the corrected baseline that each replaces in mode ``printed``."""


def _run(
    plan: Plan,
    line: str,
    baseline: str = "",
    *,
    markets: str = "slack",
    margin: float = 0,
    env: Mapping[str, Any] = {},
    policy: Mapping[str, Any] = {},
    wrappers: Mapping[str, dict[str, Any]] = {},
    **labels: Any,
) -> RunSpec:
    """Returns one run over the panel's markets; ``line``, ``markets`` and ``margin`` are among its labels.

    Args:
        plan: The panel's settings.
        line: Name of the run on the page.
        baseline: Name of the corrected baseline; by default ``line``.
        markets: Kind of the markets: ``slack`` (the quality constraint does not bind) or ``binding``.
        margin: Amount that the policy adds to the quality threshold.
        env: Arguments of the environment that extend or override ten agents and the markets.
        policy: Arguments of the policy that differ from the baseline's, besides ``margin``.
        wrappers: Arguments of the wrappers that differ from the baseline's, by the wrapper's role.
        **labels: Further labels.
    """
    name, (distribution, number) = baseline or line, SAMPLES[plan.panel]
    seeds = getattr(choose_markets(plan.panel), markets)
    return run_of(
        baseline=PRINTED.get(name, name) if plan.mode == "printed" else name,
        env_id=_ENV_IDS[distribution],
        rounds=plan.scale.rounds,
        seeds=len(seeds) * (plan.scale.trials if number == PROTOCOL else 1),
        env_kwargs={"num_agents": 10, "instance_seed": list(seeds), **env},
        policy_kwargs={"margin": margin, **policy} if margin else {**policy},
        wrapper_kwargs={**wrappers},
        instances=len(seeds),
        labels={"line": line, "markets": markets, "margin": margin, **labels},
    )


_FCB_READINGS = ("FCB-checked", "FCB", "FCB-every-round", "FCB-printed")
_ALGORITHMS = ("SS-UCB", "P-FCB", "P-FCB-placebo", *_FCB_READINGS, "SS-UCB-0.8", "SS-UCB-0.5")
MARGIN = 0.02


def _exp1(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP1 (Figure 3): regret over rounds, also in markets in which the quality constraint binds.

    Mode ``printed`` has the algorithms as the paper prints them, the corrected ones, and algorithms that differ from
    the corrected ones in one printed detail each.
    """
    if plan.mode == "printed":
        rounds = {"channel": {"schedule": {"name": "doubling", "mode": "printed"}}}
        # In mode "printed" `_run` would replace corrected baselines by printed ones; here both are wanted.
        named = partial(_run, plan._replace(mode="default"))
        return [
            *(named(name) for name in ("SS-UCB", "P-FCB")),
            named("P-FCB, printed rounds", "P-FCB", wrappers=rounds),
            named("P-FCB, no guards", "P-FCB", policy={"guards": False}),
            *(named(name) for name in ("P-FCB-printed", "FCB-every-round", "FCB-printed")),
        ]
    kinds = [("binding", 0), ("binding", MARGIN), ("slack", MARGIN)]
    return [_run(plan, name) for name in _ALGORITHMS] + [
        _run(plan, name, markets=markets, margin=margin)
        for name in ("SS-UCB", "P-FCB")
        for markets, margin in kinds
        if choose_markets(plan.panel).binding
    ]


def _exp2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP2 (Figure 4): regret relative to agents who do not communicate, against epsilon."""
    runs = []
    for epsilon in plan.scale.sweeps["epsilon"]:
        # The baseline is registered with epsilon 1. At 1 the argument is left out, so that the run is the same as one
        # of another experiment and is played only once.
        wrappers = {} if epsilon == 1 else {"privatizer": {"epsilon": epsilon}}
        runs.append(_run(plan, "P-FCB", wrappers=wrappers, budget=epsilon))
    return runs + [_run(plan, name) for name in ("SS-UCB", "FCB-checked", "FCB", "P-FCB-placebo")]


def _exp3(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP3 (Figure 5): regret against the number of agents."""
    return [
        _run(plan, name, env={"num_agents": int(agents)}, size=float(agents))
        for agents in plan.scale.sweeps["agents"]
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    ]


def _fig2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 2: agents who share true data in every round, and agents who do not communicate.

    Both are played in a homogeneous setting (all agents have the same costs and capacities) and a heterogeneous one.
    """
    settings = {
        "homogeneous": {"market": {"name": SAMPLES[plan.panel][0], "homogeneous": True}},
        "heterogeneous": {},
    }
    return [
        _run(plan, line, baseline, env=env, setting=setting)
        for line, baseline in (("SS-UCB", ""), ("shared", "FCB-every-round"))
        for setting, env in settings.items()
    ]


# Regret of P-FCB and SS-UCB divided by that of the non-private FCB. The paper (section 6.2) prints "136%, 233% more
# regret" than FCB for the uniform distribution, and "235%, 394%" for the normal one.
_PAPER_ABOVE_FCB = {"uniform": {"P-FCB": 2.36, "SS-UCB": 3.33}, "normal": {"P-FCB": 3.35, "SS-UCB": 4.94}}
_READINGS = {
    "FCB-checked": "as the paper defines it: P-FCB on true values, its check kept",
    "FCB": "FCB-checked without the check: P-FCB's rounds, omega2 = 10",
    "FCB-every-round": "every round, omega2 = 1, without the check: Algorithm 1, its radius corrected",
    "FCB-printed": "every round, without the check, radius divided by n twice: Algorithm 1 as printed",
}
_CHANGES = {
    "the eight more communications": ("P-FCB, printed rounds", "P-FCB"),
    "no guards": ("P-FCB, no guards", "P-FCB"),
    "both (Algorithm 2)": ("P-FCB-printed", "P-FCB"),
    "FCB's radius divided by n twice (Algorithm 1)": ("FCB-printed", "FCB-every-round"),
}


def _verdict(statement: Statement, plan: Plan) -> str:
    """Returns the verdict on a statement of the paper, or ``not the paper's setting`` for another horizon."""
    if plan.scale.rounds != SCALES["paper"].rounds:
        return "not the paper's setting"
    return {"holds": "agrees", "does **not** hold": "**differs**"}.get(statement, statement)


def _compared(head: str, above: RunResult, below: RunResult) -> dict[str, Any]:
    # The median shows whether the ratio is due to one market in which the quality constraint nearly binds.
    single = regret_by_instance(above) / regret_by_instance(below)
    return {head: ratio(above, below), "median market": f"{np.median(single):.3f}"}


def elsewhere(above: RunResult, below: RunResult) -> Ratio:
    """Returns the interval in which the ratio of two regrets is expected in other markets, as many as the paper has.

    The interval is Student's 95 % prediction interval for the logarithm of the ratio, by the delta method.

    Args:
        above: The run whose regret is divided.
        below: The run by whose regret it is divided.
    """
    top, under = map(regret_by_instance, (above, below))
    value = top.mean() / under.mean()
    _, half = mean_and_half_width(top / top.mean() - under / under.mean())
    # The half width is for a mean over these markets alone; the paper's mean varies, too.
    reach = half * np.sqrt(1 + top.size / PROTOCOL)
    return Ratio(nan, float(value * np.exp(-reach)), float(value * np.exp(reach)), top.size)


def chords(points: Mapping[float, RunResult]) -> dict[float, Ratio]:
    """Returns for each inner x the regret over that of the straight line between the smallest and the largest x."""
    first, *inner, last = sorted(points)
    start, end = (points[at].regret.mean(axis=2, keepdims=True) for at in (first, last))
    lines = {x: start + (x - first) / (last - first) * (end - start) for x in inner}
    return {x: ratio(points[x], replace(points[first], regret=line)) for x, line in lines.items()}


def explained(points: Mapping[float, RunResult]) -> tuple[float, float]:
    """Returns R^2 of two curves fitted to the mean regret at each x: of a straight line, and of a power of x."""
    sizes = np.array(list(points))
    regrets: Array = np.array([regret_by_instance(result).mean() for result in points.values()])
    line = np.polyval(np.polyfit(sizes, regrets, 1), sizes)
    power = np.exp(np.polyval(np.polyfit(np.log(sizes), np.log(regrets), 1), np.log(sizes)))
    shares = [1 - ((regrets - fit) ** 2).mean() / regrets.var() for fit in (line, power)]
    return float(shares[0]), float(shares[1])


def is_linear(points: Mapping[float, RunResult]) -> Statement:
    """Returns the verdict on whether regret falls linearly in x.

    It does if it falls from each x to the next, and a straight line fits at least as well as a power of x. Where the
    power fits better, it does if the regret's ratio to the straight line between the ends may be 1 at each x.
    """
    statement, _ = falls(points)
    line, power = explained(points)
    if statement != "holds" or line >= power:
        return statement
    return all_hold(s for value in chords(points).values() for s in (value.at_least(1), value.at_most(1)))


def _listed(ratios: Mapping[float, Ratio]) -> str:
    return "; ".join(f"{x:g}: {value}" for x, value in ratios.items())


def _violations(result: RunResult, kept: bool = False) -> str:
    share = result.info["violation"].mean()
    return f"{1 - share if kept else share:.3%}"


def _printed_ratios(plan: Plan) -> Mapping[str, float]:
    return _PAPER_ABOVE_FCB[SAMPLES[plan.panel][0]]


def _report_exp1(page: Section, runs: PanelRuns) -> None:
    main = runs.where(markets="slack", margin=0)
    silent = main["SS-UCB"]
    page.draw(all_over_rounds(main))
    regrets = []
    for name, result in main.by("line").items():
        cells = _compared("/ SS-UCB (FRR)", result, silent)
        regrets.append({
            "algorithm": name,
            "regret (± 95 %)": final_regret(result),
            **(cells if name != "SS-UCB" else cells | {"/ SS-UCB (FRR)": "1"}),
            "rounds that violate": _violations(result),
        })  # fmt: skip
    page.table("regrets", regrets)
    if page.plan.mode == "printed":
        ways = {"holds": "rises", "does **not** hold": "falls"}
        values = {change: ratio(runs[old], runs[new]) for change, (old, new) in _CHANGES.items()}
        lines = [
            {
                "change": change,
                "regret over the corrected form's": value,
                "regret": ways.get(value.at_least(1), value.at_least(1)),
            }
            for change, value in values.items()
        ]
        page.table("changes", lines)
        _report_claims(page, runs["P-FCB-printed"])
        return
    private, quiet = main["P-FCB"], ratio(main["SS-UCB-0.8"], silent)
    frr, placebo = ratio(private, silent), ratio(main["P-FCB-placebo"], silent)
    saved = {"P-FCB saves": frr, "the placebo saves": placebo, "radius 0.8 saves": quiet}
    page.say(**{name: f"{1 - value.value:.1%}" for name, value in saved.items()})
    page.table("over FCB", _over_fcb(main))
    if SAMPLES[runs.panel][1] == PROTOCOL:
        page.table("markets", _single_markets(main))
    improves, held = _verdict(frr.at_most(1), page.plan), ""
    if choose_markets(runs.panel).binding:
        _report_margins(page, runs)
        bound, free = (runs.one(name, markets="binding", margin=0) for name in ("P-FCB", "SS-UCB"))
        above = ratio(bound, free)
        improves += (
            f" in slack markets; {_verdict(above.at_most(1), page.plan)} where the constraint binds: {above}"
        )
        held = f" ({_violations(bound, kept=True)} where the constraint binds)"
    _report_claims(page, private)
    basic, exact = claim_of(private, "basic"), claim_of(private, "exact")
    promises = [_verdict(holds_if((claim.epsilon or nan) <= 1), page.plan) for claim in (basic, exact)]
    here, says = _more_than_fcb(main)
    page.sentences(
        (
            "Compared to FCB, P-FCB (ϵ = 1) and Non-federated incurs 136%, 233% more regret respectively for uniform "
            "sampling and 235%, 394% more regret respectively for normal sampling.",
            here,
            says,
        ),
        (
            "P-FCB shows significant improvement in terms of regret (Fig. 3) at the cost of relatively low privacy "
            "budget.",
            f"P-FCB / SS-UCB {frr}; noise alone {placebo}; SS-UCB with the radius times 0.8 {quiet}",
            improves,
        ),
        (
            "We further show that our algorithm provides an improvement in terms of regret while upholding quality "
            "threshold and meaningful privacy guarantees.",
            f"threshold held in {_violations(private, kept=True)} of rounds{held}, by SS-UCB in "
            f"{_violations(silent, kept=True)}; one quantity costs epsilon {basic.epsilon:.3f} at delta "
            f"{basic.delta:.3g} (basic), {exact.epsilon:.3f} at delta {exact.delta:.3g} exactly",
            f"regret: {improves}; threshold: no rate is printed; epsilon = 1: {promises[0]} (basic), {promises[1]} "
            "exactly",
        ),
    )


def _report_claims(page: Section, private: RunResult) -> None:
    page.claims(one for one in private.claims if one.adjacency in ("one-quantity", "one-round"))


def _over_fcb(runs: PanelRuns) -> Table:
    for reading, meaning in _READINGS.items():
        for name, paper in _printed_ratios(runs.plan).items():
            other = elsewhere(runs[name], runs[reading])
            yield {
                "ratio": f"{name} / {reading}",
                "FCB": meaning,
                **_compared("here", runs[name], runs[reading]),
                "five other markets": other,
                "paper": paper,
                "verdict": _verdict(other.holds(paper), runs.plan),
            }


def _more_than_fcb(runs: PanelRuns) -> tuple[str, str]:
    """Returns by how much regret exceeds that of the readings of FCB, and whether the paper agrees."""
    here, says = [], []
    for line in _over_fcb(runs):
        if "printed" not in line["ratio"]:
            here.append(f"{line['ratio']}: {line['here'].value - 1:.0%} more")
            says.append(f"{line['ratio']} {line['verdict']}")
    return "; ".join(here), "; ".join(says)


def _single_markets(runs: PanelRuns) -> Table:
    chosen, results = choose_markets(runs.panel), [runs[name] for name in ("SS-UCB", "P-FCB", "FCB-checked")]
    violations = by_instance(results[0], results[0].info["violation"].mean(axis=1))
    regret = zip(*map(regret_by_instance, results), strict=True)
    for seed, surplus, own, violated in zip(chosen.slack, chosen.surplus, regret, violations, strict=True):
        silent, private, checked = own
        yield {
            "market": f"seed {seed}",
            "surplus": f"{surplus:.3f}",
            "SS-UCB": f"{silent:.0f}",
            "P-FCB": f"{private:.0f}",
            "FCB-checked": f"{checked:.0f}",
            "P-FCB / SS-UCB": f"{private / silent:.3f}",
            "SS-UCB / FCB-checked": f"{silent / checked:.3f}",
            "SS-UCB's rounds that violate": f"{violated:.3%}",
        }


def _report_margins(page: Section, runs: PanelRuns) -> None:
    chosen, lines = choose_markets(runs.panel), []
    for kind, number in (("slack", len(chosen.slack)), ("binding", len(chosen.binding))):
        plain, asking = (runs.where(markets=kind, margin=margin) for margin in (0, MARGIN))
        for margin, at in ((0, plain), (MARGIN, asking)):
            lines.append({
                "markets": f"{number} {kind}, margin {margin:g}",
                "SS-UCB (± 95 %)": final_regret(at["SS-UCB"]),
                "P-FCB (± 95 %)": final_regret(at["P-FCB"]),
                **_compared("P-FCB / SS-UCB", at["P-FCB"], at["SS-UCB"]),
                "P-FCB's rounds that violate": _violations(at["P-FCB"]),
            })  # fmt: skip
        page.say(**{f"margin, {number} {kind}": ratio(asking["P-FCB"], plain["P-FCB"])})
    page.table("margins", lines)


def _report_exp2(page: Section, runs: PanelRuns) -> None:
    silent, private = runs["SS-UCB"], runs.by("budget")
    above = _printed_ratios(page.plan)
    paper = above["P-FCB"] / above["SS-UCB"]
    page.say(**{"SS-UCB": final_regret(silent)})
    controls = {
        "FCB-checked": "true values, checked: no privacy",
        "FCB": "true values, unchecked: no privacy",
        "P-FCB-placebo": "noise of epsilon 1 alone",
    }
    lines = [("P-FCB", f"{epsilon:g}", result) for epsilon, result in private.items()]
    lines += [(name, what, runs[name]) for name, what in controls.items()]
    table = []
    for name, what, result in lines:
        there = elsewhere(result, silent)
        table.append({
            "algorithm": name,
            "epsilon": what,
            "regret (± 95 %)": final_regret(result),
            **_compared("/ SS-UCB (FRR)", result, silent),
            "five other markets": there,
            "paper": f"{paper:.2f} (EXP1)" if what == "1" else "drawn" if name == "P-FCB" else "-",
            "verdict": _verdict(there.holds(paper), page.plan) if what == "1" else "",
        })  # fmt: skip
    page.table("regrets", table)
    page.draw(over_line(runs.lines("budget"), "SS-UCB"))
    page.draw({f"paper, T = {SCALES['paper'].rounds:,} (from EXP1)": {1.0: paper}})
    beyond = [
        {"epsilon": f"{epsilon:g}", "first share": f"{share:.2f}", "true delta": f"{delta:.2g}"}
        for epsilon, share, delta in beyond_proof(page.plan.scale.rounds, private)
    ]
    if beyond:
        page.table("beyond the proof", beyond)
    trend, links = falls(private)
    first, last = min(private), max(private)
    bent = chords(private)[1.0]
    within = over({epsilon: result for epsilon, result in private.items() if epsilon <= 1}, silent)
    page.sentences(
        (
            "We observe that according to our expectations, the regret decreases as privacy budget is increased.",
            f"each over the one of the next smaller epsilon: {'; '.join(map(str, reversed(links)))}",
            _verdict(trend, page.plan),
        ),
        (
            "This decrease in regret is sub-linear in terms of increasing ϵ values.",
            f"regret at epsilon = 1 over that of the straight line from {first:g} to {last:g}: {bent}",
            _verdict(bent.at_most(1), page.plan),
        ),
        (
            "From Fig. 4, we note that P-FCB performs well within this privacy budget.",
            f"FRR up to epsilon = 1: {_listed(within)}",
            f"below silence: {_verdict(all_at_most(within.values()), page.plan)}",
        ),
        (
            "P-FCB achieves reduction in regret (compared to non-federated setting) for low privacy budgets.",
            f"FRR at epsilon = {first:g}: {within[first]}",
            _verdict(within[first].at_most(1), page.plan),
        ),
    )


def beyond_proof(rounds: int, budgets: Iterable[float]) -> Iterator[tuple[float, float, float]]:
    """Yields the epsilons for which the paper's calibration of the noise is not proven.

    The paper divides epsilon over the releases. Its calibration is proven for shares below 1 only.

    Args:
        rounds: Horizon T, on which the shares depend.
        budgets: The epsilons that are checked.

    Yields:
        Epsilon, the first release's share of it, and the true delta of that release, for which the paper has 0.01.
    """
    for epsilon in budgets:
        share = float(decreasing(epsilon, rounds)[0])
        if share >= 1:
            yield epsilon, share, float(gaussian_delta(share, 1 / classic_noise_multiplier(share, 0.01)))


def median_agent(result: RunResult) -> RunResult:
    """Returns a result with a single agent, whose regret in each run is the median over the agents' regrets."""
    return replace(result, regret=np.median(result.regret, axis=2, keepdims=True))


def _report_exp3(page: Section, runs: PanelRuns) -> None:
    lines = runs.lines("size")
    silent, private, placebo = (lines[name] for name in ("SS-UCB", "P-FCB", "P-FCB-placebo"))
    first, last = min(private), max(private)
    page.draw(each(lines, final_regret))
    table = []
    for size, own in silent.items():
        # Mean regret of each agent in each market: one agent in one market may have most of the federation's regret.
        agents = by_instance(own, own.regret[-1].T)
        table.append({
            "agents": f"{size:g}",
            "SS-UCB (± 95 %)": final_regret(own),
            "P-FCB (± 95 %)": final_regret(private[size]),
            **_compared("P-FCB / SS-UCB", private[size], own),
            "placebo / SS-UCB": ratio(placebo[size], own),
            "P-FCB's median agent (± 95 %)": final_regret(median_agent(private[size])),
            "SS-UCB's regret that one agent bears": f"{np.max(agents) / np.sum(agents):.1%}",
        })  # fmt: skip
    page.table("regrets", table)
    line, power = explained(private)
    trend, middle = falls(private)[0], falls({n: median_agent(result) for n, result in private.items()})[0]
    gains = over(private, silent)
    page.sentences(
        (
            "We see (Fig. 5) an approximately linear decrease in per agent regret as the number of learning agents "
            "increases.",
            f"over the straight line from {first:g} to {last:g} agents: {_listed(chords(private))}; of the variance a "
            f"straight line explains {line:.1%}, a power of n {power:.1%}",
            f"decrease: {_verdict(trend, page.plan)}, of the median agent: {_verdict(middle, page.plan)}; linear: "
            f"{_verdict(is_linear(private), page.plan)}",
        ),
        (
            "This reinforces the notion of reduction of regret, suggested in Section 4, by engaging in federated "
            "learning is valid in a heterogeneous private setting.",
            f"P-FCB / SS-UCB with {first:g} agents: {gains[first]}; with {last:g}: {gains[last]}",
            _verdict(all_at_most(gains.values()), page.plan),
        ),
    )


def _report_fig2(page: Section, runs: PanelRuns) -> None:
    page.draw(ratio_over_rounds(runs))
    lines, changes, table = runs.lines("setting"), {}, []
    for setting, shared in lines["shared"].items():
        pair = shared, lines["SS-UCB"][setting]
        decades = [int(np.searchsorted(shared.rounds, shared.rounds[-1] // part)) for part in (100, 10, 1)]
        frr = [np.divide(*(regret_by_instance(run, k) for run in pair)) for k in decades]
        changes[setting] = [compare(later, earlier) for earlier, later in pairwise(frr)]
        for k in decades:
            upto, silent = (replace(run, regret=run.regret[: k + 1]) for run in pair)
            table.append({
                "setting": setting,
                "round": f"{shared.rounds[k]:,}",
                "shared (± 95 %)": final_regret(upto),
                "SS-UCB (± 95 %)": final_regret(silent),
                **_compared("shared / SS-UCB (FRR)", upto, silent),
            })  # fmt: skip
    page.table("regrets", table)
    values = over(lines["shared"], lines["SS-UCB"])
    moves = "; ".join(f"{setting}: {', '.join(map(str, own))}" for setting, own in changes.items())
    page.sentences(
        (
            "From Fig. 2 we observe that the trend for both homogeneous and heterogeneous settings are quite similar.",
            f"FRR at T / 10 over that at T / 100, and at T over that at T / 10: {moves}",
            f"same directions: {_verdict(same_directions(changes), page.plan)}",
        ),
        (
            "This shows that, similar to the homogeneous setting, employing federated learning reduces regret even in "
            "the heterogeneous setting.",
            "FRR at T: " + "; ".join(f"{setting} {value}" for setting, value in values.items()),
            _verdict(all_at_most(values.values()), page.plan),
        ),
    )


def ratio_over_rounds(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns Figure 2's curves: regret with true data shared, divided by SS-UCB's, by setting and round."""
    curves = {}
    for setting, shared in runs.by("setting", line="shared").items():
        silent, last = runs.one("SS-UCB", setting=setting), shared.rounds.size - 1
        kept = sorted({*range(last, -1, -3), 0})
        curves[setting] = {float(shared.rounds[k]): ratio(shared, silent, k) for k in kept}
    return curves


def same_directions(changes: Mapping[str, list[Ratio]]) -> Statement:
    """Returns the verdict on whether ratios change in the same direction in both settings, between the same rounds."""
    ways = [[value.at_most(1) for value in own] for own in changes.values()]
    if {"exploratory", "undecided"} & {way for own in ways for way in own}:
        return all_hold(way for own in ways for way in own if way in ("exploratory", "undecided"))
    return holds_if(ways[0] == ways[1])


_REGRET, _FRR = "cumulative regret per agent", "regret / SS-UCB's (FRR)"
EXPERIMENTS = {
    f"pfcb-{name}": Experiment(
        f"P-FCB, {title}", shows, {"x": x, "y": y, **axes}, SCALES, runs, report, PANELS, modes=("default", "printed")
    )
    for name, title, shows, runs, report, x, y, axes in (
        (
            "exp1", "EXP1 (Figure 3): regret over rounds", "What private sharing saves, beside its forms; 6 minutes",
            _exp1, _report_exp1, "round", _REGRET, {},
        ),
        (
            "exp2", "EXP2 (Figure 4): regret against epsilon", "What a smaller epsilon costs; 2 minutes",
            _exp2, _report_exp2, "epsilon", _FRR, {"yscale": "linear"},
        ),
        (
            "exp3", "EXP3 (Figure 5): regret against agents", "What more agents gain; 2 minutes",
            _exp3, _report_exp3, "agents", "regret per agent at T", LINEAR,
        ),
        (
            "fig2", "Figure 2: sharing true data every round", "What sharing gains where agents differ; 2 minutes",
            _fig2, _report_fig2, "round", _FRR, {"yscale": "linear"},
        ),
    )
}  # fmt: skip
