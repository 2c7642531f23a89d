"""Tables, ratios, curves and verdicts of the P-FCB paper's pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Ratio,
    Statement,
    all_hold,
    elsewhere,
    falls,
    instance_ratios,
    ratio,
    regret_by_seed,
    strata_of_seeds,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Scale
from fedbandit_envs.leaderboard.reproduction.page import Table, final_regret, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult, Strata
from fedbandit_envs.leaderboard.runs.statistics import stratum_means
from fedbandit_envs.papers.pfcb import experiments
from fedbandit_envs.papers.pfcb.experiments import MARGIN
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing

# What the paper prints: "136%, 233% more regret" than FCB (uniform), "235%, 394%" (normal), section 6.2.
PAPER_ABOVE_FCB = {"uniform": {"P-FCB": 2.36, "SS-UCB": 3.33}, "normal": {"P-FCB": 3.35, "SS-UCB": 4.94}}


def verdict(statement: Statement, scale: Scale) -> str:
    """Returns the verdict on a statement of the paper, as text; none at another horizon than the paper's."""
    if scale.rounds != experiments.SCALES["paper"].rounds:
        return "not the paper's setting"
    return {"holds": "agrees", "does **not** hold": "**differs**"}.get(statement, statement)


def compared(head: str, above: RunResult, below: RunResult) -> dict[str, Any]:
    """Returns two cells of a table: the ratio of two runs' regrets, and the median of the single markets' ratios.

    The median is not moved by one market whose constraint nearly binds.
    """
    return {head: ratio(above, below), "median market": f"{np.median(instance_ratios(above, below)):.3f}"}


def of_markets(result: RunResult, markets: Sequence[int]) -> RunResult:
    """Returns a result restricted to some of its markets, given by their places among the result's strata."""
    seeds = np.isin(strata_of_seeds(result), markets)
    return replace(
        result,
        regret=result.regret[:, seeds],
        info={name: values[seeds] for name, values in result.info.items()},
        strata=Strata(len(markets), result.strata.name),
    )


def over_chord(points: Mapping[float, RunResult], x: float) -> Ratio:
    """Returns regret at x over that of the straight line between the least x and the largest."""
    first, last = min(points), max(points)
    start, end = (points[at].regret.mean(axis=2, keepdims=True) for at in (first, last))
    line = start + (x - first) / (last - first) * (end - start)
    return ratio(points[x], replace(points[first], regret=line))


def explained(points: Mapping[float, RunResult]) -> tuple[float, float]:
    """Returns the shares of the regrets' variance that a straight line and a power of x explain."""
    sizes = np.array(list(points))
    regrets: Array = np.array([regret_by_seed(result).mean() for result in points.values()])
    line = np.polyval(np.polyfit(sizes, regrets, 1), sizes)
    power = np.exp(np.polyval(np.polyfit(np.log(sizes), np.log(regrets), 1), np.log(sizes)))
    shares = [1 - ((regrets - fit) ** 2).mean() / regrets.var() for fit in (line, power)]
    return float(shares[0]), float(shares[1])


def listed(ratios: Mapping[float, Ratio]) -> str:
    """Returns ratios behind their x as text."""
    return "; ".join(f"{x:g}: {value}" for x, value in ratios.items())


def _violations(result: RunResult) -> str:
    """Returns the share of rounds that violated the quality constraint, as text."""
    return f"{result.info['violation'].mean():.3%}"


def regrets(runs: PanelRuns, meanings: Mapping[str, str]) -> Table:
    """Yields the lines of EXP1's table of regrets at T and their ratios to silence.

    Args:
        runs: The results.
        meanings: Description of each algorithm.
    """
    for name, result in runs.by("line").items():
        means = stratum_means(regret_by_seed(result), strata_of_seeds(result))
        cells = compared("/ SS-UCB (FRR) [runs]", result, runs["SS-UCB"])
        yield {
            "algorithm": name,
            "what it is": meanings[name],
            "regret, ± runs": final_regret(result),
            "± markets": over_seeds(means),
            **(cells if name != "SS-UCB" else cells | {"/ SS-UCB (FRR) [runs]": "1"}),
            "rounds that violate": _violations(result),
        }


def changes(runs: PanelRuns, pairs: Mapping[str, tuple[str, str]]) -> Table:
    """Yields the lines of the table of what each printed form does to regret.

    Args:
        runs: The results.
        pairs: The printed form and the corrected one, by a description of the change.
    """
    for change, pair in pairs.items():
        value = ratio(*map(runs.one, pair))
        raises = {"holds": "rises", "does **not** hold": "falls"}.get(value.at_least(1), "undecided")
        yield {"change": change, "regret over the corrected form's [runs]": value, "regret": raises}


def over_fcb(runs: PanelRuns, readings: Mapping[str, str]) -> Table:
    """Yields the lines of the table of P-FCB's and silence's regret over that of readings of the non-private FCB.

    Args:
        runs: The results.
        readings: Descriptions of the algorithms that the paper's words for FCB may mean, by name.
    """
    for reading, meaning in readings.items():
        for name, paper in PAPER_ABOVE_FCB[runs.panel].items():
            pair = runs[name], runs[reading]
            yield {
                "ratio": f"{name} / {reading}",
                "FCB": meaning,
                **compared("here [runs]", *pair),
                "five other markets": elsewhere(*pair),
                "paper": paper,
                "verdict": verdict(elsewhere(*pair).holds(paper), runs.plan.scale),
            }


def more_than_fcb(runs: PanelRuns, readings: Mapping[str, str]) -> tuple[str, str]:
    """Returns by how much P-FCB's and silence's regret exceeds that of readings of FCB, and the verdicts.

    Args:
        runs: The results.
        readings: The readings, by a description.
    """
    here, says = [], []
    for how, reading in readings.items():
        lines = dict(zip(PAPER_ABOVE_FCB[runs.panel], over_fcb(runs, {reading: how}), strict=True))
        more = (f"{name} {line['here [runs]'].value - 1:.0%} more" for name, line in lines.items())
        here.append(f"{how}: " + ", ".join(more))
        says.append(f"{how}: " + ", ".join(f"{name} {line['verdict']}" for name, line in lines.items()))
    return "; ".join(here), "; ".join(says)


def in_markets(runs: PanelRuns, markets: Sequence[int]) -> dict[str, RunResult]:
    """Returns the three results that are compared market by market, restricted to some markets, by algorithm."""
    return {name: of_markets(runs[name], markets) for name in ("SS-UCB", "P-FCB", "FCB-checked")}


def single_markets(runs: PanelRuns) -> Table:
    """Yields the lines of the table of single markets."""
    chosen = experiments.choose_markets(runs.panel)
    for place, (seed, surplus) in enumerate(zip(chosen.slack, chosen.surplus, strict=True)):
        results = in_markets(runs, [place])
        silent, private, checked = results.values()
        yield {
            "market": f"seed {seed}",
            "surplus": f"{surplus:.3f}",
            **{f"{name}, ± runs": final_regret(result) for name, result in results.items()},
            "P-FCB / SS-UCB": f"{ratio(private, silent).value:.3f}",
            "SS-UCB / FCB-checked": f"{ratio(silent, checked).value:.3f}",
            "SS-UCB's rounds that violate": _violations(silent),
        }


def nearest_market(runs: PanelRuns) -> dict[str, Any]:
    """Returns the market whose constraint is nearest to binding, and ratios without it.

    Returns:
        ``seed``; ``share``, its share of SS-UCB's regret; without it ``private``, P-FCB's regret over SS-UCB's, and
        ``silent``, SS-UCB's over FCB-checked's.
    """
    chosen, everywhere = experiments.choose_markets(runs.panel), runs["SS-UCB"].regret[-1]
    nearest = int(np.argmin(chosen.surplus))
    others = [place for place in range(len(chosen.slack)) if place != nearest]
    silent, private, checked = in_markets(runs, others).values()
    share = of_markets(runs["SS-UCB"], [nearest]).regret[-1].sum() / everywhere.sum()
    ratios = {"private": ratio(private, silent), "silent": ratio(silent, checked)}
    return {"seed": chosen.slack[nearest], "share": share, **ratios}


def margins(runs: PanelRuns, kinds: Mapping[str, str]) -> Table:
    """Yields the lines of the table of slack and binding markets, with and without a margin on the threshold.

    Args:
        runs: The results.
        kinds: Titles of the kinds of markets.
    """
    for kind, title in kinds.items():
        for margin in (0, MARGIN):
            at = runs.where(markets=kind, margin=margin)
            silent, private = at["SS-UCB"], at["P-FCB"]
            yield {
                "markets": f"{title}, margin {margin:g}",
                "SS-UCB, ± runs": final_regret(silent),
                "P-FCB, ± runs": final_regret(private),
                **compared("P-FCB / SS-UCB [runs]", private, silent),
                "P-FCB's rounds that violate": _violations(private),
            }


def margin_ratio(runs: PanelRuns, kind: str) -> Ratio:
    """Returns P-FCB's regret with the margin over that without, in markets of a kind."""
    return ratio(*(runs.one("P-FCB", markets=kind, margin=margin) for margin in (MARGIN, 0)))


def claim_of(result: RunResult, composition: str) -> Claim:
    """Returns a result's claim for one altered quantity under a composition."""
    kind = ("one-quantity", composition)
    return next(claim for claim in result.claims if (claim.adjacency, claim.composition) == kind)


def by_epsilon(runs: PanelRuns, controls: Mapping[str, str]) -> Table:
    """Yields the lines of EXP2's table of P-FCB at each epsilon, and of the controls, beside silence.

    Args:
        runs: The results.
        controls: Description of each control.
    """
    lines = [("P-FCB", f"{epsilon:g}", result, "drawn") for epsilon, result in runs.by("budget").items()]
    lines += [(name, what, runs[name], "-") for name, what in controls.items()]
    for name, what, result, paper in lines:
        there, says = elsewhere(result, runs["SS-UCB"]), ""
        if what == "1":
            printed = paper_ratio(runs.panel)
            says, paper = verdict(there.holds(printed), runs.plan.scale), f"{printed:.2f} (EXP1)"
        yield {
            "algorithm": name,
            "epsilon": what,
            "regret, ± runs": final_regret(result),
            **compared("/ SS-UCB (FRR) [runs]", result, runs["SS-UCB"]),
            "five other markets": there,
            "paper": paper,
            "verdict": says,
        }


def paper_ratio(distribution: str) -> float:
    """Returns the ratio of P-FCB's regret to silence's that follows from the numbers that the paper prints."""
    above = PAPER_ABOVE_FCB[distribution]
    return above["P-FCB"] / above["SS-UCB"]


def beyond_proof(rounds: int, budgets: Iterable[float]) -> Iterator[tuple[float, float, float]]:
    """Yields epsilon, the first release's share and the true delta where the paper's calibration is not proven."""
    for epsilon in budgets:
        share = float(decreasing(epsilon, rounds)[0])
        if share >= 1:
            yield epsilon, share, float(gaussian_delta(share, 1 / classic_noise_multiplier(share, 0.01)))


def median_agent(result: RunResult) -> RunResult:
    """Returns a result with the regret of each run's median agent alone."""
    return replace(result, regret=np.median(result.regret, axis=2, keepdims=True))


def chords(points: Mapping[float, RunResult]) -> dict[float, Ratio]:
    """Returns regret over that of the straight line between the ends, by each x between them."""
    return {x: over_chord(points, x) for x in list(points)[1:-1]}


def by_agents(runs: PanelRuns) -> Table:
    """Yields the lines of EXP3's table of regret by the number of agents."""
    lines = runs.lines("size")
    for size, silent in lines["SS-UCB"].items():
        private = lines["P-FCB"][size]
        # Regret of each agent of each market, of which the largest may be most of the sum.
        agents = [of_markets(silent, [i]).regret[-1].mean(axis=0) for i in range(silent.strata.count)]
        yield {
            "agents": f"{size:g}",
            "SS-UCB, ± runs": final_regret(silent),
            "P-FCB, ± runs": final_regret(private),
            **compared("P-FCB / SS-UCB [runs]", private, silent),
            "placebo / SS-UCB [runs]": ratio(lines["P-FCB-placebo"][size], silent),
            "P-FCB's median agent, ± runs": final_regret(median_agent(private)),
            "SS-UCB's regret that one agent bears": f"{np.max(agents) / np.sum(agents):.1%}",
        }


def is_linear(points: Mapping[float, RunResult]) -> Statement:
    """Returns, as a verdict, whether regret falls linearly: it falls, and a line fits as well as a power of x.

    A line also fits where regret over that of the straight line between the ends may be 1 everywhere.
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
    """Yields the lines of Figure 2's table of regret at T / 100, T / 10 and T, true data shared and in silence."""
    for setting, results in runs.lines("line", itemgetter("setting")).items():
        rounds = results["shared"].rounds
        for k in decades(rounds):
            silent, shared = (
                replace(results[line], regret=results[line].regret[: k + 1]) for line in ("SS-UCB", "shared")
            )
            yield {
                "setting": setting,
                "round": f"{rounds[k]:,}",
                "shared, ± runs": final_regret(shared),
                "SS-UCB, ± runs": final_regret(silent),
                **compared("shared / SS-UCB (FRR) [runs]", shared, silent),
            }


def ratio_over_rounds(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns Figure 2's ratios to silence over rounds, by setting."""
    curves = {}
    for setting, shared in runs.by("setting", line="shared").items():
        silent, last = runs.one("SS-UCB", setting=setting), shared.rounds.size - 1
        kept = sorted({*range(last, -1, -3), 0})
        curves[setting] = {float(shared.rounds[k]): ratio(shared, silent, k) for k in kept}
    return curves


def directions(runs: PanelRuns) -> dict[str, list[str]]:
    """Returns whether the ratio to silence falls or rises from decade to decade, by setting."""
    ways = {}
    for setting, shared in runs.by("setting", line="shared").items():
        silent = runs.one("SS-UCB", setting=setting)
        frr = [ratio(shared, silent, k).value for k in decades(shared.rounds)]
        ways[setting] = ["falls" if later < earlier else "rises" for earlier, later in pairwise(frr)]
    return ways
