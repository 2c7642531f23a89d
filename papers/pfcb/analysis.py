"""Tables, ratios, curves and verdicts of the P-FCB paper's pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import nan
from operator import itemgetter
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.statistics import mean_and_half_width
from fedbandit_envs.papers.pfcb.experiments import MARGIN, PROTOCOL, SAMPLES, SCALES, choose_markets
from fedbandit_envs.papers.reproduction.comparison import (
    Ratio,
    Statement,
    all_hold,
    by_instance,
    compare,
    falls,
    final_regret,
    holds_if,
    ratio,
    regret_by_instance,
)
from fedbandit_envs.papers.reproduction.experiment import PanelRuns, Scale
from fedbandit_envs.papers.reproduction.page import Table
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing

# Regret of P-FCB and SS-UCB divided by that of the non-private FCB. The paper (section 6.2) prints "136%, 233% more
# regret" than FCB for the uniform distribution, and "235%, 394%" for the normal one.
PAPER_ABOVE_FCB = {"uniform": {"P-FCB": 2.36, "SS-UCB": 3.33}, "normal": {"P-FCB": 3.35, "SS-UCB": 4.94}}


def verdict(statement: Statement, scale: Scale) -> str:
    """Returns the verdict on a statement of the paper, as text; ``not the paper's setting`` for another horizon."""
    if scale.rounds != SCALES["paper"].rounds:
        return "not the paper's setting"
    return {"holds": "agrees", "does **not** hold": "**differs**"}.get(statement, statement)


def compared(head: str, above: RunResult, below: RunResult) -> dict[str, Any]:
    """Returns two cells of a table: the ratio of two runs' regrets, and the median of the ratios in single markets.

    The median shows whether the first ratio is due to one market in which the quality constraint nearly binds.

    Args:
        head: Head of the first cell's column.
        above: The run whose regret is divided.
        below: The run by whose regret it is divided.
    """
    single = regret_by_instance(above) / regret_by_instance(below)
    return {head: ratio(above, below), "median market": f"{np.median(single):.3f}"}


def elsewhere(above: RunResult, below: RunResult) -> Ratio:
    """Returns the interval in which the ratio of two regrets is expected in other markets, as many as the paper has.

    The interval is Student's 95 % prediction interval for the logarithm of the ratio, by the delta method.

    Args:
        above: The run whose regret is divided.
        below: The run by whose regret it is divided.
    """
    over, under = map(regret_by_instance, (above, below))
    value = over.mean() / under.mean()
    _, half = mean_and_half_width(over / over.mean() - under / under.mean())
    # The half width is for a mean over these markets alone; the paper's mean varies, too.
    reach = half * np.sqrt(1 + over.size / PROTOCOL)
    return Ratio(nan, float(value * np.exp(-reach)), float(value * np.exp(reach)), over.size)


def chords(points: Mapping[float, RunResult]) -> dict[float, Ratio]:
    """Returns for each x but the smallest and the largest the regret divided by a straight line's value at that x.

    The line goes from the regret at the smallest x to the regret at the largest x.

    Args:
        points: Results by x.
    """
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


def listed(ratios: Mapping[float, Ratio]) -> str:
    """Returns a text that lists each x with its ratio."""
    return "; ".join(f"{x:g}: {value}" for x, value in ratios.items())


def _violations(result: RunResult) -> str:
    """Returns the share of rounds that violated the quality constraint, as text."""
    return f"{result.info['violation'].mean():.3%}"


def regrets(runs: PanelRuns, meanings: Mapping[str, str]) -> Table:
    """Yields EXP1's table with a line for each algorithm: its regret at the horizon T, and its ratio to SS-UCB's.

    SS-UCB's agents do not communicate.

    Args:
        runs: The results.
        meanings: Description of each algorithm, by its name.
    """
    for name, result in runs.by("line").items():
        cells = compared("/ SS-UCB (FRR)", result, runs["SS-UCB"])
        yield {
            "algorithm": name,
            "what it is": meanings[name],
            "regret (± 95 %)": final_regret(result),
            **(cells if name != "SS-UCB" else cells | {"/ SS-UCB (FRR)": "1"}),
            "rounds that violate": _violations(result),
        }


def changes(runs: PanelRuns, pairs: Mapping[str, tuple[str, str]]) -> Table:
    """Yields a table with a line for each change that corrects the paper's algorithms: how it changes regret.

    The regret of the algorithm as printed is divided by that of the corrected algorithm.

    Args:
        runs: The results.
        pairs: Names of the printed algorithm and of the corrected one, by a description of the change.
    """
    for change, pair in pairs.items():
        value = ratio(*map(runs.one, pair))
        says = value.at_least(1)
        raises = {"holds": "rises", "does **not** hold": "falls"}.get(says, says)
        yield {"change": change, "regret over the corrected form's": value, "regret": raises}


def over_fcb(runs: PanelRuns, readings: Mapping[str, str]) -> Table:
    """Yields a table that compares the regret of P-FCB and of SS-UCB with that of the non-private FCB.

    The paper's description of FCB can be read in several ways; the table has two lines for each of them. SS-UCB's
    agents do not communicate.

    Args:
        runs: The results.
        readings: Descriptions of the algorithms that the paper may mean by FCB, by their names.
    """
    for reading, meaning in readings.items():
        for name, paper in printed(runs).items():
            pair = runs[name], runs[reading]
            other = elsewhere(*pair)
            yield {
                "ratio": f"{name} / {reading}",
                "FCB": meaning,
                **compared("here", *pair),
                "five other markets": other,
                "paper": paper,
                "verdict": verdict(other.holds(paper), runs.plan.scale),
            }


def more_than_fcb(runs: PanelRuns, readings: Mapping[str, str]) -> tuple[str, str]:
    """Returns two texts: by how much regret exceeds that of the non-private FCB, and whether the paper agrees.

    The excess is given for P-FCB and for SS-UCB, whose agents do not communicate.

    Args:
        runs: The results.
        readings: Names of the algorithms that the paper may mean by FCB, by a description.
    """
    here, says = [], []
    for how, reading in readings.items():
        lines = dict(zip(printed(runs), over_fcb(runs, {reading: how}), strict=True))
        more = (f"{name} {line['here'].value - 1:.0%} more" for name, line in lines.items())
        here.append(f"{how}: " + ", ".join(more))
        says.append(f"{how}: " + ", ".join(f"{name} {line['verdict']}" for name, line in lines.items()))
    return "; ".join(here), "; ".join(says)


def single_markets(runs: PanelRuns) -> Table:
    """Yields a table with a line for each market: regrets of SS-UCB, P-FCB and FCB-checked, and their ratios.

    FCB-checked is FCB as the paper defines it.
    """
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


def margins(runs: PanelRuns, kinds: Mapping[str, str]) -> Table:
    """Yields a table of regret in two kinds of markets, with and without a margin on the quality threshold.

    In ``slack`` markets the quality constraint does not bind, in ``binding`` markets it does. A policy with the margin
    adds it to the threshold, so that it violates the constraint less often.

    Args:
        runs: The results.
        kinds: Titles of the kinds of markets, by ``slack`` and ``binding``.
    """
    for kind, title in kinds.items():
        for margin in (0, MARGIN):
            at = runs.where(markets=kind, margin=margin)
            silent, private = at["SS-UCB"], at["P-FCB"]
            yield {
                "markets": f"{title}, margin {margin:g}",
                "SS-UCB (± 95 %)": final_regret(silent),
                "P-FCB (± 95 %)": final_regret(private),
                **compared("P-FCB / SS-UCB", private, silent),
                "P-FCB's rounds that violate": _violations(private),
            }


def by_epsilon(runs: PanelRuns, controls: Mapping[str, str]) -> Table:
    """Yields EXP2's table: the regret of P-FCB at each epsilon, and its ratio to the regret of SS-UCB.

    SS-UCB's agents do not communicate.

    Args:
        runs: The results.
        controls: Descriptions of the algorithms without an epsilon that are compared as well, by their names.
    """
    lines = [("P-FCB", f"{epsilon:g}", result, "drawn") for epsilon, result in runs.by("budget").items()]
    lines += [(name, what, runs[name], "-") for name, what in controls.items()]
    for name, what, result, paper in lines:
        there, says = elsewhere(result, runs["SS-UCB"]), ""
        if what == "1":
            number = paper_ratio(runs)
            says, paper = verdict(there.holds(number), runs.plan.scale), f"{number:.2f} (EXP1)"
        yield {
            "algorithm": name,
            "epsilon": what,
            "regret (± 95 %)": final_regret(result),
            **compared("/ SS-UCB (FRR)", result, runs["SS-UCB"]),
            "five other markets": there,
            "paper": paper,
            "verdict": says,
        }


def printed(runs: PanelRuns) -> Mapping[str, float]:
    """Returns the ratios of regret that the paper prints for the panel's distribution of markets, by algorithm."""
    return PAPER_ABOVE_FCB[SAMPLES[runs.panel][0]]


def paper_ratio(runs: PanelRuns) -> float:
    """Returns P-FCB's regret divided by SS-UCB's, computed from the numbers that the paper prints."""
    above = printed(runs)
    return above["P-FCB"] / above["SS-UCB"]


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


def by_agents(runs: PanelRuns) -> Table:
    """Yields EXP3's table with a line for each number of agents: regret of P-FCB and SS-UCB, and their ratio.

    SS-UCB's agents do not communicate.
    """
    lines = runs.lines("size")
    for size, silent in lines["SS-UCB"].items():
        private = lines["P-FCB"][size]
        # Mean regret of each agent in each market: one agent in one market may have most of the federation's regret.
        agents = by_instance(silent, silent.regret[-1].T)
        yield {
            "agents": f"{size:g}",
            "SS-UCB (± 95 %)": final_regret(silent),
            "P-FCB (± 95 %)": final_regret(private),
            **compared("P-FCB / SS-UCB", private, silent),
            "placebo / SS-UCB": ratio(lines["P-FCB-placebo"][size], silent),
            "P-FCB's median agent (± 95 %)": final_regret(median_agent(private)),
            "SS-UCB's regret that one agent bears": f"{np.max(agents) / np.sum(agents):.1%}",
        }


def is_linear(points: Mapping[float, RunResult]) -> Statement:
    """Returns the verdict on whether regret falls linearly in x.

    It does if it falls from each x to the next, and a straight line fits at least as well as a power of x. Where the
    power fits better, the verdict is by :func:`chords`: whether the regret's ratio to the straight line between the
    first and the last point may be 1 at each x.
    """
    statement, _ = falls(points)
    line, power = explained(points)
    if statement != "holds" or line >= power:
        return statement
    return all_hold(s for value in chords(points).values() for s in (value.at_least(1), value.at_most(1)))


def decades(rounds: Array) -> list[int]:
    """Returns the indices of the checkpoints at T / 100, T / 10 and T."""
    return [int(np.searchsorted(rounds, rounds[-1] // part)) for part in (100, 10, 1)]


def by_setting(runs: PanelRuns) -> Table:
    """Yields Figure 2's table of regret at the rounds T / 100, T / 10 and T, with true data shared and by SS-UCB.

    SS-UCB's agents do not communicate.
    """
    for setting, results in runs.lines("line", itemgetter("setting")).items():
        rounds = results["shared"].rounds
        for k in decades(rounds):
            silent, shared = (
                replace(results[line], regret=results[line].regret[: k + 1]) for line in ("SS-UCB", "shared")
            )
            yield {
                "setting": setting,
                "round": f"{rounds[k]:,}",
                "shared (± 95 %)": final_regret(shared),
                "SS-UCB (± 95 %)": final_regret(silent),
                **compared("shared / SS-UCB (FRR)", shared, silent),
            }


def ratio_over_rounds(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns Figure 2's curves: regret with true data shared, divided by SS-UCB's, by setting and round."""
    curves = {}
    for setting, shared in runs.by("setting", line="shared").items():
        silent, last = runs.one("SS-UCB", setting=setting), shared.rounds.size - 1
        kept = sorted({*range(last, -1, -3), 0})
        curves[setting] = {float(shared.rounds[k]): ratio(shared, silent, k) for k in kept}
    return curves


def changes_of_ratio(runs: PanelRuns) -> dict[str, list[Ratio]]:
    """Returns Figure 2's ratio at T / 10 over that at T / 100, and at T over that at T / 10, by setting.

    The ratio is regret with true data shared divided by that of SS-UCB, whose agents do not communicate. It is taken in
    each market, and its means over markets are divided.
    """
    found = {}
    for setting, shared in runs.by("setting", line="shared").items():
        pair = shared, runs.one("SS-UCB", setting=setting)
        frr = [np.divide(*(regret_by_instance(run, k) for run in pair)) for k in decades(shared.rounds)]
        found[setting] = [compare(later, earlier) for earlier, later in pairwise(frr)]
    return found


def same_directions(changes: Mapping[str, Sequence[Ratio]]) -> Statement:
    """Returns the verdict on whether a ratio changes in the same direction in both settings, between the same rounds.

    Args:
        changes: What :func:`changes_of_ratio` returns.
    """
    ways = [[value.at_most(1) for value in own] for own in changes.values()]
    if {"exploratory", "undecided"} & {way for own in ways for way in own}:
        return all_hold(way for own in ways for way in own if way in ("exploratory", "undecided"))
    return holds_if(ways[0] == ways[1])
