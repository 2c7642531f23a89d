"""Tables, ratios, curves and verdicts of the P-FCB paper's pages, with a class for each experiment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
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
    over,
    ratio,
    regret_by_seed,
    strata_of_seeds,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Scale
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult, Strata
from fedbandit_envs.leaderboard.runs.statistics import stratum_means
from fedbandit_envs.papers.pfcb import experiments
from fedbandit_envs.papers.pfcb.experiments import CONTROLS, MARGIN
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing

# What the paper prints: "136%, 233% more regret" than FCB (uniform), "235%, 394%" (normal), section 6.2.
PAPER_ABOVE_FCB = {"uniform": {"P-FCB": 2.36, "SS-UCB": 3.33}, "normal": {"P-FCB": 3.35, "SS-UCB": 4.94}}

Table = Iterator[dict[str, Any]]
"""The lines of a table: heads and cells."""


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


def by_x(ratios: Mapping[float, Ratio]) -> str:
    """Returns ratios behind their x as text."""
    return "; ".join(f"{x:g}: {value}" for x, value in ratios.items())


def _violations(result: RunResult) -> str:
    """Returns the share of rounds that violated the quality constraint, as text."""
    return f"{result.info['violation'].mean():.3%}"


class RegretOverRounds:
    """EXP1: regret over rounds, and how P-FCB, silence (SS-UCB) and the readings of FCB compare at T.

    Attributes:
        main: The runs in markets whose constraint is slack, without a margin on the threshold.
        silent: SS-UCB's result among them.
        kinds: For slack and binding markets, by these words, their number and kind as text.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self._runs, self._chosen = runs, experiments.choose_markets(runs.panel)
        self.main = runs.where(markets="slack", margin=0)
        self.silent: RunResult = self.main["SS-UCB"]
        self.kinds = {kind: f"{len(getattr(self._chosen, kind))} {kind}" for kind in ("slack", "binding")}

    def regrets(self, meanings: Mapping[str, str]) -> Table:
        """Yields the lines of the table of regrets at T and their ratios to silence.

        Args:
            meanings: Description of each algorithm.
        """
        for name, result in self.main.by("line").items():
            means = stratum_means(regret_by_seed(result), strata_of_seeds(result))
            cells = compared("/ SS-UCB (FRR) [runs]", result, self.silent)
            yield {
                "algorithm": name,
                "what it is": meanings[name],
                "regret, ± runs": final_regret(result),
                "± markets": over_seeds(means),
                **(cells if name != "SS-UCB" else cells | {"/ SS-UCB (FRR) [runs]": "1"}),
                "rounds that violate": _violations(result),
            }

    def changes(self, changes: Mapping[str, tuple[str, str]]) -> Table:
        """Yields the lines of the table of what each printed form does to regret.

        Args:
            changes: The printed form and the corrected one, by a description of the change.
        """
        for change, pair in changes.items():
            value = ratio(*map(self.main.one, pair))
            raises = {"holds": "rises", "does **not** hold": "falls"}.get(value.at_least(1), "undecided")
            yield {"change": change, "regret over the corrected form's [runs]": value, "regret": raises}

    def saved(self, name: str) -> float:
        """Returns which part of silence's regret an algorithm saves."""
        return 1 - ratio(self.main[name], self.silent).value

    def over_fcb(self, readings: Mapping[str, str]) -> Table:
        """Yields the lines of the table of P-FCB's and silence's regret over that of readings of the non-private FCB.

        Args:
            readings: Descriptions of the algorithms that the paper's words for FCB may mean, by name.
        """
        for reading, meaning in readings.items():
            for name, paper in PAPER_ABOVE_FCB[self._runs.panel].items():
                pair = self.main[name], self.main[reading]
                yield {
                    "ratio": f"{name} / {reading}",
                    "FCB": meaning,
                    **compared("here [runs]", *pair),
                    "five other markets": elsewhere(*pair),
                    "paper": paper,
                    "verdict": verdict(elsewhere(*pair).holds(paper), self._runs.plan.scale),
                }

    def more_than_fcb(self, readings: Mapping[str, str]) -> tuple[str, str]:
        """Returns by how much P-FCB's and silence's regret exceeds that of readings of FCB, and the verdicts.

        Args:
            readings: The readings, by a description.
        """
        here, says = [], []
        for how, reading in readings.items():
            lines = dict(zip(PAPER_ABOVE_FCB[self._runs.panel], self.over_fcb({reading: how}), strict=True))
            more = (f"{name} {line['here [runs]'].value - 1:.0%} more" for name, line in lines.items())
            here.append(f"{how}: " + ", ".join(more))
            says.append(f"{how}: " + ", ".join(f"{name} {line['verdict']}" for name, line in lines.items()))
        return "; ".join(here), "; ".join(says)

    def _in_markets(self, markets: Sequence[int]) -> dict[str, RunResult]:
        """Returns the three results that are compared market by market, restricted to some markets, by algorithm."""
        return {name: of_markets(self.main[name], markets) for name in ("SS-UCB", "P-FCB", "FCB-checked")}

    def markets(self) -> Table:
        """Yields the lines of the table of single markets."""
        for place, (seed, surplus) in enumerate(zip(self._chosen.slack, self._chosen.surplus, strict=True)):
            results = self._in_markets([place])
            silent, private, checked = results.values()
            yield {
                "market": f"seed {seed}",
                "surplus": f"{surplus:.3f}",
                **{f"{name}, ± runs": final_regret(result) for name, result in results.items()},
                "P-FCB / SS-UCB": f"{ratio(private, silent).value:.3f}",
                "SS-UCB / FCB-checked": f"{ratio(silent, checked).value:.3f}",
                "SS-UCB's rounds that violate": _violations(silent),
            }

    def nearest_market(self) -> dict[str, Any]:
        """Returns the market whose constraint is nearest to binding, and ratios without it.

        Returns:
            ``seed``; ``share``, its share of SS-UCB's regret; without it ``private``, P-FCB's regret over SS-UCB's, and
            ``silent``, SS-UCB's over FCB-checked's.
        """
        nearest = int(np.argmin(self._chosen.surplus))
        others = [place for place in range(len(self._chosen.slack)) if place != nearest]
        silent, private, checked = self._in_markets(others).values()
        share = of_markets(self.silent, [nearest]).regret[-1].sum() / self.silent.regret[-1].sum()
        ratios = {"private": ratio(private, silent), "silent": ratio(silent, checked)}
        return {"seed": self._chosen.slack[nearest], "share": share, **ratios}

    def margins(self) -> Table:
        """Yields the lines of the table of slack and binding markets, with and without a margin on the threshold."""
        for kind, title in self.kinds.items():
            for margin in (0, MARGIN):
                runs = self._runs.where(markets=kind, margin=margin)
                silent, private = runs["SS-UCB"], runs["P-FCB"]
                yield {
                    "markets": f"{title}, margin {margin:g}",
                    "SS-UCB, ± runs": final_regret(silent),
                    "P-FCB, ± runs": final_regret(private),
                    **compared("P-FCB / SS-UCB [runs]", private, silent),
                    "P-FCB's rounds that violate": _violations(private),
                }

    def margin_ratio(self, kind: str) -> Ratio:
        """Returns P-FCB's regret with the margin over that without, in markets of a kind."""
        return ratio(*(self._runs.one("P-FCB", markets=kind, margin=margin) for margin in (MARGIN, 0)))

    def claim(self, composition: str) -> Claim:
        """Returns P-FCB's claim for one altered quantity under a composition."""
        claims: Sequence[Claim] = self.main["P-FCB"].claims
        return next(
            one for one in claims if (one.adjacency, one.composition) == ("one-quantity", composition)
        )


class RegretByEpsilon:
    """EXP2: regret against the privacy budget, beside silence's and that of controls.

    Attributes:
        silent: SS-UCB's result.
        private: P-FCB's results by epsilon.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self._runs, self.silent, self.private = runs, runs["SS-UCB"], runs.by("budget")
        above = PAPER_ABOVE_FCB[runs.panel]
        self._paper = above["P-FCB"] / above["SS-UCB"]

    def regrets(self, controls: Mapping[str, str]) -> Table:
        """Yields the lines of the table of P-FCB at each epsilon, and of the controls, beside silence.

        Args:
            controls: Description of each control.
        """
        lines = [("P-FCB", f"{epsilon:g}", result, "drawn") for epsilon, result in self.private.items()]
        lines += [(name, what, self._runs[name], "-") for name, what in controls.items()]
        for name, what, result, paper in lines:
            there, says = elsewhere(result, self.silent), ""
            if what == "1":
                says = verdict(there.holds(self._paper), self._runs.plan.scale)
                paper = f"{self._paper:.2f} (EXP1)"
            yield {
                "algorithm": name,
                "epsilon": what,
                "regret, ± runs": final_regret(result),
                **compared("/ SS-UCB (FRR) [runs]", result, self.silent),
                "five other markets": there,
                "paper": paper,
                "verdict": says,
            }

    def curves(self) -> dict[str, Mapping[float, Any]]:
        """Returns ratios to silence over epsilon, and the paper's one number."""
        private = over(self.private, self.silent)
        controls = over({name: self._runs[name] for name in CONTROLS}, self.silent)
        flat = {name: dict.fromkeys(private, value) for name, value in controls.items()}
        rounds = experiments.SCALES["paper"].rounds
        return {"P-FCB": private, **flat, f"paper, T = {rounds:,} (from EXP1)": {1.0: self._paper}}

    def beyond_proof(self) -> Iterator[tuple[float, float, float]]:
        """Yields epsilon, the first release's share and the true delta where the paper's calibration is not proven."""
        for epsilon in self.private:
            share = float(decreasing(epsilon, self._runs.plan.scale.rounds)[0])
            if share >= 1:
                delta = gaussian_delta(share, 1 / classic_noise_multiplier(share, 0.01))
                yield epsilon, share, float(delta)


class RegretByAgents:
    """EXP3: regret against the number of agents.

    Attributes:
        silent: SS-UCB's results by number of agents.
        private: P-FCB's results by number of agents.
        median: The same with the regret of each run's median agent alone.
        chords: P-FCB's regret over that of the straight line between the ends, by the numbers of agents between them.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self.silent, self.private, self._placebo = (
            runs.by("size", line=name) for name in runs.values("line")
        )
        self.median = {
            size: replace(result, regret=np.median(result.regret, axis=2, keepdims=True))
            for size, result in self.private.items()
        }
        self.chords = {size: over_chord(self.private, size) for size in list(self.private)[1:-1]}

    def regrets(self) -> Table:
        """Yields the lines of the table of regret by the number of agents."""
        for size, silent in self.silent.items():
            private = self.private[size]
            # Regret of each agent of each market, of which the largest may be most of the sum.
            agents = [of_markets(silent, [i]).regret[-1].mean(axis=0) for i in range(silent.strata.count)]
            yield {
                "agents": f"{size:g}",
                "SS-UCB, ± runs": final_regret(silent),
                "P-FCB, ± runs": final_regret(private),
                **compared("P-FCB / SS-UCB [runs]", private, silent),
                "placebo / SS-UCB [runs]": ratio(self._placebo[size], silent),
                "P-FCB's median agent, ± runs": final_regret(self.median[size]),
                "SS-UCB's regret that one agent bears": f"{np.max(agents) / np.sum(agents):.1%}",
            }

    def is_linear(self) -> Statement:
        """Returns, as a verdict, whether regret falls linearly: it falls, and a line fits as well as a power of x.

        A line also fits where regret over that of the straight line between the ends may be 1 everywhere.
        """
        statement, _ = falls(self.private)
        line, power = explained(self.private)
        if statement != "holds" or line >= power:
            return statement
        return all_hold(s for value in self.chords.values() for s in (value.at_least(1), value.at_most(1)))


class SharingTrueData:
    """Figure 2: regret when true data is shared every round, over silence's, by setting.

    Attributes:
        shared: Results of the agents that share true data, by setting.
        silent: SS-UCB's results, by setting.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        self.shared, self.silent = (runs.by("setting", line=line) for line in ("shared", "SS-UCB"))
        self._rounds: Array = self.shared["homogeneous"].rounds
        self._decades = [
            int(np.searchsorted(self._rounds, self._rounds[-1] // part)) for part in (100, 10, 1)
        ]

    def regrets(self) -> Table:
        """Yields the lines of the table of regret at T / 100, T / 10 and T."""
        for setting in self.shared:
            for k in self._decades:
                shared, silent = (
                    replace(results[setting], regret=results[setting].regret[: k + 1])
                    for results in (self.shared, self.silent)
                )
                yield {
                    "setting": setting,
                    "round": f"{self._rounds[k]:,}",
                    "shared, ± runs": final_regret(shared),
                    "SS-UCB, ± runs": final_regret(silent),
                    **compared("shared / SS-UCB (FRR) [runs]", shared, silent),
                }

    def curves(self) -> dict[str, dict[float, Ratio]]:
        """Returns ratios to silence over rounds, by setting."""
        kept = sorted({*range(self._rounds.size - 1, -1, -3), 0})
        return {
            setting: {float(self._rounds[k]): ratio(shared, self.silent[setting], k) for k in kept}
            for setting, shared in self.shared.items()
        }

    def directions(self) -> dict[str, list[str]]:
        """Returns whether the ratio to silence falls or rises from decade to decade, by setting."""
        ways = {}
        for setting, shared in self.shared.items():
            frr = [ratio(shared, self.silent[setting], k).value for k in self._decades]
            ways[setting] = ["falls" if later < earlier else "rises" for earlier, later in pairwise(frr)]
        return ways
