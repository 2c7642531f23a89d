"""Tables, ratios and curves of the P-FCB paper's EXP2, EXP3 and Figure 2; those of EXP1 are in ``exp1_analysis``."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Ratio,
    Statement,
    all_hold,
    elsewhere,
    falls,
    over,
    ratio,
    regret_by_seed,
    strata_of_seeds,
)
from fedbandit_envs.leaderboard.reproduction.page import final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.pfcb.verdicts import PAPER_FRR, PAPER_ROUNDS, median_market, verdict
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing

_PAPER_DELTA = 0.01
CONTROLS = {
    "FCB-checked": "true values, checked: no privacy",
    "FCB": "true values, unchecked: no privacy",
    "P-FCB-placebo": "noise of epsilon 1 alone",
}


def against_epsilon(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of EXP2: P-FCB at each epsilon, and the controls, beside silence."""
    silent, printed = runs.one("SS-UCB"), PAPER_FRR[runs.panel]

    def row(name: str, what: str, result: RunResult, paper: str, says: str) -> dict[str, Any]:
        return {
            "algorithm": name,
            "epsilon": what,
            "regret, ± runs": final_regret(result),
            "/ SS-UCB (FRR) [runs]": ratio(result, silent),
            "median market": median_market(result, silent),
            "five other markets": elsewhere(result, silent),
            "paper": paper,
            "verdict": says,
        }

    table = []
    for epsilon, result in runs.by("budget", line="P-FCB").items():
        says = verdict(elsewhere(result, silent).holds(printed), silent)
        of_paper = (f"{printed:.2f} (EXP1)", says) if epsilon == 1 else ("drawn", "")
        table.append(row("P-FCB", f"{epsilon:g}", result, *of_paper))
    return table + [row(name, meaning, runs.one(name), "-", "") for name, meaning in CONTROLS.items()]


def epsilon_curves(runs: PanelRuns) -> dict[str, Mapping[float, Any]]:
    """Returns the curves of EXP2: ratios to silence over epsilon, and the paper's one number."""
    silent = runs.one("SS-UCB")
    private = over(runs.by("budget"), silent)
    flat = {name: dict.fromkeys(private, ratio(runs.one(name), silent)) for name in CONTROLS}
    paper = {f"paper, T = {PAPER_ROUNDS:,} (from EXP1)": {1.0: PAPER_FRR[runs.panel]}}
    return {"P-FCB": private, **flat, **paper}


def beyond_proof(runs: PanelRuns) -> list[tuple[float, float, float]]:
    """Returns where the classic calibration is used beyond its proof: epsilon, first release's share, true delta."""
    found = []
    for epsilon in runs.values("budget"):
        share = float(decreasing(epsilon, int(runs.one("SS-UCB").rounds[-1]))[0])
        if share >= 1:
            delta = gaussian_delta(share, 1 / classic_noise_multiplier(share, _PAPER_DELTA))
            found.append((epsilon, share, float(delta)))
    return found


def over_chord(points: Mapping[float, RunResult], x: float) -> Ratio:
    """Returns regret at x over that of the straight line between the least x and the largest."""
    first, last = min(points), max(points)
    start, end = (points[at].regret.mean(axis=2, keepdims=True) for at in (first, last))
    line = start + (x - first) / (last - first) * (end - start)
    return ratio(points[x], replace(points[first], regret=line))


def against_agents(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of EXP3: regret by the number of agents."""
    table = []
    for size in runs.values("size"):
        silent, private, placebo = (runs.one(name, size=size) for name in runs.values("line"))
        table.append(
            {
                "agents": f"{size:g}",
                "SS-UCB, ± runs": final_regret(silent),
                "P-FCB, ± runs": final_regret(private),
                "P-FCB / SS-UCB [runs]": ratio(private, silent),
                "median market": median_market(private, silent),
                "placebo / SS-UCB [runs]": ratio(placebo, silent),
                "P-FCB's median agent, ± runs": final_regret(of_the_median_agent(private)),
                "SS-UCB's regret that one agent bears": f"{_largest_part(silent):.1%}",
            }
        )
    return table


def of_the_median_agent(result: RunResult) -> RunResult:
    """Returns a result with the regret of each run's median agent alone."""
    return replace(result, regret=np.median(result.regret, axis=2, keepdims=True))


def _largest_part(result: RunResult) -> float:
    """Returns which part of all regret is that of one agent of one market, the largest."""
    strata = strata_of_seeds(result)
    markets = [result.regret[-1, strata == market].mean(axis=0) for market in range(result.strata.count)]
    agents = np.stack(markets)
    return float(agents.max() / agents.sum())


def falls_of_the_median_agent(points: Mapping[float, RunResult]) -> Statement:
    """Returns, as a verdict, whether the median agent's regret falls with x."""
    return falls({x: of_the_median_agent(result) for x, result in points.items()})[0]


def chords(points: Mapping[float, RunResult]) -> dict[float, Ratio]:
    """Returns regret over that of the straight line between the ends, by x between them."""
    return {x: over_chord(points, x) for x in list(points)[1:-1]}


def explained(points: Mapping[float, RunResult]) -> tuple[float, float]:
    """Returns the shares of the regrets' variance that a straight line and a power of x explain."""
    sizes = np.array(list(points))
    regrets: Array = np.array([regret_by_seed(result).mean() for result in points.values()])
    line = np.polyval(np.polyfit(sizes, regrets, 1), sizes)
    power = np.exp(np.polyval(np.polyfit(np.log(sizes), np.log(regrets), 1), np.log(sizes)))
    shares = [1 - ((regrets - fit) ** 2).mean() / regrets.var() for fit in (line, power)]
    return float(shares[0]), float(shares[1])


def is_linear(points: Mapping[float, RunResult]) -> Statement:
    """Returns, as a verdict, whether regret falls linearly: it falls, and a line explains it or is in all intervals."""
    statement, _ = falls(points)
    if statement != "holds":
        return statement
    line, power = explained(points)
    on_it = all_hold(s for value in chords(points).values() for s in (value.at_least(1), value.at_most(1)))
    return "holds" if line >= power else on_it


def by_x(ratios: Mapping[float, Ratio]) -> str:
    """Returns ratios behind their x as text."""
    return "; ".join(f"{x:g}: {value}" for x, value in ratios.items())


def _decades(result: RunResult) -> list[int]:
    """Returns the checkpoints of T / 100, T / 10 and T."""
    return [int(np.searchsorted(result.rounds, result.rounds[-1] // part)) for part in (100, 10, 1)]


def _until(result: RunResult, index: int) -> RunResult:
    """Returns the regret up to a checkpoint."""
    return replace(result, rounds=result.rounds[: index + 1], regret=result.regret[: index + 1])


def sharing(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of Figure 2: regret when true data is shared every round, decade by decade."""
    table = []
    for setting, shared in runs.by("setting", line="shared").items():
        silent = runs.one("SS-UCB", setting=setting)
        for index in _decades(shared):
            table.append(
                {
                    "setting": setting,
                    "round": f"{shared.rounds[index]:,}",
                    "shared, ± runs": final_regret(_until(shared, index)),
                    "SS-UCB, ± runs": final_regret(_until(silent, index)),
                    "shared / SS-UCB (FRR) [runs]": ratio(shared, silent, index),
                    "median market": median_market(_until(shared, index), _until(silent, index)),
                }
            )
    return table


def sharing_curves(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns the curves of Figure 2: ratios to silence over rounds."""
    curves = {}
    for setting, shared in runs.by("setting", line="shared").items():
        silent, last = runs.one("SS-UCB", setting=setting), shared.rounds.size - 1
        kept = sorted({*range(last, -1, -3), 0})
        curves[setting] = {float(shared.rounds[k]): ratio(shared, silent, k) for k in kept}
    return curves


def directions(runs: PanelRuns) -> dict[str, list[str]]:
    """Returns whether the ratio to silence falls or rises from decade to decade, by setting."""
    found = {}
    for setting, shared in runs.by("setting", line="shared").items():
        silent = runs.one("SS-UCB", setting=setting)
        frr = [ratio(shared, silent, index).value for index in _decades(shared)]
        found[setting] = ["falls" if later < earlier else "rises" for earlier, later in pairwise(frr)]
    return found
