"""Tables, ratios, curves and verdicts of the FedUCB paper's figures, and of our own pages on its horizon and graphs."""

from collections.abc import Iterable, Iterator, Mapping
from math import isnan
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Mean,
    Ratio,
    Statement,
    falls,
    holds_if,
    over,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_rounds, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import LabelledResult, PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.papers.feducb import experiments
from fedbandit_envs.papers.feducb.experiments import FEDERATIONS, PRIVATE, RANDOM, SILENCE

Table = Iterator[dict[str, Any]]
"""The lines of a table: heads and cells."""


def exponents(points: Mapping[float, RunResult]) -> Array:
    """Returns the slope of log regret against log x of each trial, ``(trials,)``."""
    regret = np.array([regret_by_seed(result) for result in points.values()])
    slopes: Array = np.polyfit(np.log(list(points)), np.log(regret), 1)[0]
    return slopes


def nearer_to_one(first: Ratio, last: Ratio) -> Statement:
    """Returns, as a verdict, whether the last ratio is nearer to 1 than the first, by intervals of the factor to 1."""
    (first_low, first_high), (last_low, last_high) = map(_factor_to_one, (first, last))
    if last_high < first_low:
        return "holds"
    return "does **not** hold" if last_low > first_high else "undecided"


def _factor_to_one(value: Ratio) -> tuple[float, float]:
    """Returns the interval of the ratio or of its inverse, whichever is above 1; from 1 on where both may be."""
    ends = sorted(max(end, 1 / end) for end in (value.low, value.high))
    return (1.0 if value.low <= 1 <= value.high else ends[0]), ends[1]


def is_one(value: Ratio) -> Statement:
    """Returns, as a verdict, whether a ratio may be 1: whether its interval contains 1."""
    return "undecided" if isnan(value.low) else holds_if(value.low <= 1 <= value.high)


def _name_of(labels: Mapping[str, Any]) -> str:
    """Returns a run's name on the page: its line, its budget of communication and its epsilon, where it has these."""
    forms = {"line": "{}", "budget": "{}", "epsilon": "epsilon {:g}"}
    return ", ".join(form.format(labels[key]) for key, form in forms.items() if key in labels)


class FedUCBPanel:
    """The runs of a panel as lines of points over a column, and what all panels say of them.

    Attributes:
        runs: The results.
        points: Results by the run's name and the column's values; a run without the column is the same at all values.
    """

    def __init__(self, runs: PanelRuns, column: str = "") -> None:
        """Takes the results of one panel and the name of the column that is varied, if any."""
        self.runs = runs
        self.points: dict[str, dict[Any, RunResult]] = {}
        for labels, result in runs.rows:
            name = _name_of({key: value for key, value in labels.items() if key != column})
            for x in [labels[column]] if column in labels else runs.values(column):
                self.points.setdefault(name, {})[x] = result

    def over_silence(self) -> dict[str, Ratio]:
        """Returns the ratio of each run's regret to silence's, by the run's name."""
        return {_name_of(labels): ratio(result, self.runs[SILENCE]) for labels, result in self.runs.rows}

    def regrets(self, meanings: Mapping[str, str]) -> Table:
        """Yields the lines of the table of each run's regret at T, also over silence's, and of its messages.

        Args:
            meanings: Description of each line but the graphs.
        """
        for (labels, result), (name, value) in zip(self.runs.rows, self.over_silence().items(), strict=True):
            messages = result.traffic.get("messages")
            yield {
                "algorithm": name,
                "what it does": meanings.get(labels["line"]) or f"Algorithm 3, gamma = {labels['diameter']}",
                "regret at T (± 95 %)": final_regret(result),
                "/ silent": "1" if name == SILENCE else value,
                "messages an agent": "-" if messages is None else f"{messages.mean():.0f}",
            }

    def final_regrets(self) -> dict[str, dict[Any, Mean]]:
        """Returns regret at T by name and x."""
        return {name: {x: final_regret(run) for x, run in own.items()} for name, own in self.points.items()}

    def over_line(self, rival: str) -> dict[str, dict[Any, Ratio]]:
        """Returns the ratio of each other line's regret to a rival's, by name and x."""
        return {name: over(own, self.points[rival]) for name, own in self.points.items() if name != rival}

    def budget_curves(self) -> dict[str, dict[int, Mean]]:
        """Returns regret over rounds, from where curves differ on, by budget of communication or silent line."""
        first = min(100, self.runs.plan.scale.rounds // 10)
        curves = {}
        for labels, result in self.runs.rows:
            line = "its trigger" if labels["line"] in experiments.TRIGGERED else labels["line"]
            kept = {x: mean for x, mean in over_rounds(result).items() if x >= first}
            curves[labels.get("budget", line)] = kept
        return curves

    def by_x(self, head: str, names: Iterable[str]) -> Table:
        """Yields the lines of the table of regret at T, a line for each x and a column for each name."""
        cells = self.final_regrets()
        for x in cells[SILENCE]:
            yield {head: f"{x:g}"} | {name: cells[name][x] for name in names}

    def found(
        self, sentence: str, reading: str, verdicts: Mapping[str, str] = {}, agents: int | None = None
    ) -> str:
        """Returns a sentence of the paper beside what is found, and where that is not at the paper's setting.

        Args:
            sentence: The sentence, letter by letter.
            reading: What it is taken to say.
            verdicts: Whether it does, by what is judged.
            agents: The paper's number of agents; None if it states none.
        """
        trials, played = self.runs.rows[0].result.regret.shape[1:]
        settings = {
            "T = {:,} for {:,}": (self.runs.plan.scale.rounds, experiments.PAPER_ROUNDS),
            "{} trials for {}": (trials, experiments.PAPER_TRIALS),
            "{} agents for {}": (played, agents or played),
        }
        unlike = "; ".join(text.format(*pair) for text, pair in settings.items() if pair[0] != pair[1])
        where = f"not at the paper's setting ({unlike}), which may differ" if unlike else "as in the paper"
        listed = "\n".join(f"* {name}: {verdict}." for name, verdict in verdicts.items())
        return f'The paper: "{sentence}" {reading} Found {where}:\n\n{listed}'


class PrivacyAndAgents(FedUCBPanel):
    """Figure 1 A: regret against epsilon or the number of agents.

    Attributes:
        main: The runs at epsilon = 1 with 10 agents, by line.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        super().__init__(runs, runs.panel)
        usual = {"epsilon": 1.0, "agents": 10.0}[runs.panel]
        rows = [LabelledResult({"line": name}, own[usual]) for name, own in self.points.items()]
        self.main = FedUCBPanel(PanelRuns(runs.plan, rows))

    def competitive(self) -> dict[str, str]:
        """Returns for each private federation, as text, where it has at most silence's regret."""
        x_is = {"epsilon": "epsilon", "agents": "M ="}[self.runs.panel]
        return {
            name: "; ".join(f"at {x_is} {x:g} {value.at_most(1)} ({value})" for x, value in ratios.items())
            for name, ratios in self.over_line(SILENCE).items()
            if name in PRIVATE
        }

    def equal_privacy(self) -> Table:
        """Yields the lines of the table of noise and privacy spent in the printed form and in ours.

        Both promise the same. The noise is the largest standard deviation on the diagonal of a sum of released
        statistics, for the baseline's own epsilon; off the diagonal it is 1 / sqrt(2) of that.
        """
        for name in ("FedUCB-printed", "FedUCB"):
            env = BASELINES[name].wrap(parallel_env(max_cycles=self.runs.plan.scale.rounds))
            variance = env.policy_spec.release[variance_of("statistic")]
            assert isinstance(variance, spaces.Box)
            for claim in self.main.runs[name].claims:
                if claim.adjacency == "one-observation":
                    yield {
                        "form": name,
                        "largest noise sd on a sum": f"{np.sqrt(variance.high.max()):.2f}",
                        "composition": claim.composition,
                        "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                        "delta": claim.delta,
                        "remark": claim.reason,
                    }


class Dimensions(FedUCBPanel):
    """Figure 1 C: regret against the dimension d.

    Attributes:
        exponents: The mean exponent of d that is fitted to the regret of each trial, by name.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        super().__init__(runs, "dim")
        self.exponents = {name: over_seeds(exponents(own), ".2f") for name, own in self.points.items()}

    def fitted(self) -> Table:
        """Yields the lines of the table of exponents."""
        for name, value in self.exponents.items():
            yield {"algorithm": name, "exponent of d, fitted (± 95 % over trials)": value}

    def quadratic(self) -> dict[str, str]:
        """Returns for each private federation, as text, whether 2 is within the interval of its exponent of d."""
        return {
            name: "undecided, of two trials" if isnan(value.low) else f"{is_two} (2 against {value})"
            for name, value in self.exponents.items()
            if name in PRIVATE
            for is_two in [holds_if(value.low <= 2 <= value.high)]
        }


class Gaps(FedUCBPanel):
    """Figure 2: regret against the gap, for several epsilons.

    Attributes:
        sensitivity: Regret at the least epsilon over that at the largest, by line and gap.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of one panel."""
        super().__init__(runs, "gap")
        epsilons = runs.values("epsilon")
        least, most = (runs.where(epsilon=epsilon) for epsilon in (min(epsilons), max(epsilons)))
        self.sensitivity = {
            line: over(least.by("gap", line=line), most.by("gap", line=line)) for line in least.values("line")
        }

    def by_name(self, head: str, cells: Mapping[str, Mapping[float, Any]]) -> Table:
        """Yields the lines of a table with a line for each name and a column for each gap."""
        for name, own in cells.items():
            yield {head: name} | {f"gap {x:g}": cell for x, cell in own.items()}

    def falling(self) -> dict[str, Statement]:
        """Returns, as a verdict by line, whether regret falls as the gap rises."""
        return {name: falls(own)[0] for name, own in self.points.items()}

    def less_sensitive(self) -> dict[str, str]:
        """Returns for each private line, as text, whether epsilon matters less at the largest gap than at the least."""
        verdicts = {}
        for line, ratios in self.sensitivity.items():
            first, *_, last = ratios.values()
            verdicts[line] = f"{nearer_to_one(first, last)} ({first}; {last})"
        return verdicts


class Decades(FedUCBPanel):
    """The growth of regret from decade to decade of rounds: 100, 1,000 and so on."""

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of the page on the horizon."""
        super().__init__(runs)
        self._rounds: Array = runs[RANDOM].rounds
        powers = range(2, len(str(runs.plan.scale.rounds)))
        self._checkpoints = [int(abs(self._rounds - 10**power).argmin()) for power in powers]

    def over_random(self) -> Table:
        """Yields the lines of the table of federations' regret over random arms', decade by decade."""
        for k in self._checkpoints:
            ratios = {name: ratio(self.runs[name], self.runs[RANDOM], k) for name in FEDERATIONS}
            yield {"round": f"{self._rounds[k]:,}"} | {f"{name} / {RANDOM}": r for name, r in ratios.items()}

    def last(self) -> dict[str, Mean]:
        """Returns the ratio of a federation's regret at the end of the last decade of rounds to that at its start."""
        regrets = {
            name: [regret_by_seed(self.runs[name], k) for k in self._checkpoints[-2:]] for name in FEDERATIONS
        }
        return {name: over_seeds(end / start, ".2f") for name, (start, end) in regrets.items()}
