"""Tables, ratios and curves of the FedUCB paper's figures, and of our own questions about its horizon and graphs."""

from collections.abc import Mapping
from dataclasses import replace
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
    all_hold,
    falls,
    holds_if,
    over,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_rounds, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import LabelledResult, PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.leaderboard.runs.statistics import mean_and_half_width
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.papers.feducb import experiments

Points = dict[float, RunResult]
Table = list[dict[str, Any]]


def name_of(labels: Mapping[str, Any]) -> str:
    """Returns a run's name on the page: its line, its budget of communication and its epsilon, where it has these."""
    budget = [labels["budget"]] if "budget" in labels else []
    epsilon = [f"epsilon {labels['epsilon']:g}"] if "epsilon" in labels else []
    return ", ".join([labels["line"], *budget, *epsilon])


def lines(runs: PanelRuns, column: str) -> dict[str, Points]:
    """Returns results by the run's name and a column; one without that column is the same at all of its values."""
    points: dict[str, Points] = {}
    for labels, result in runs.rows:
        name = name_of({key: value for key, value in labels.items() if key != column})
        for x in [labels[column]] if column in labels else runs.values(column):
            points.setdefault(name, {})[x] = result
    return points


def over_line(points: Mapping[str, Points], rival: str) -> dict[str, dict[float, Ratio]]:
    """Returns the ratio of each other line's regret to a rival's, by name and x."""
    return {name: over(own, points[rival]) for name, own in points.items() if name != rival}


def final_regrets(points: Mapping[str, Points]) -> dict[str, dict[float, Mean]]:
    """Returns regret at T by name and x."""
    return {name: {x: final_regret(result) for x, result in own.items()} for name, own in points.items()}


def line_by_x(head: str, cells: Mapping[str, Mapping[float, Any]]) -> Table:
    """Returns a table with a line for each x and a column for each name."""
    first = next(iter(cells.values()))
    return [{head: f"{x:g}"} | {name: own[x] for name, own in cells.items()} for x in first]


def line_by_name(head: str, what: str, cells: Mapping[str, Mapping[float, Any]]) -> Table:
    """Returns a table with a line for each name and a column for each x; the head names the quantity x."""
    return [{head: name} | {f"{what} {x:g}": cell for x, cell in own.items()} for name, own in cells.items()]


def found(
    runs: PanelRuns, sentence: str, reading: str, verdicts: Mapping[str, str] = {}, agents: int | None = None
) -> str:
    """Returns a sentence of the paper beside what is found, and where that is not at the paper's setting.

    Args:
        runs: The runs.
        sentence: The sentence, letter by letter.
        reading: What it is taken to say.
        verdicts: Whether it does, by what is judged.
        agents: The paper's number of agents; None if it states none.
    """
    result = runs.rows[0].result
    rounds, (trials, played) = int(result.rounds[-1]), result.regret.shape[1:]
    unlike = []
    if rounds != experiments.PAPER_ROUNDS:
        unlike.append(f"T = {rounds:,} for {experiments.PAPER_ROUNDS:,}")
    if trials != experiments.PAPER_TRIALS:
        unlike.append(f"{trials} trials for {experiments.PAPER_TRIALS}")
    if agents not in (None, played):
        unlike.append(f"{played} agents for {agents}")
    where = (
        f"not at the paper's setting ({'; '.join(unlike)}), which may differ" if unlike else "as in the paper"
    )
    listed = "\n".join(f"* {name}: {verdict}." for name, verdict in verdicts.items())
    return f'The paper: "{sentence}" {reading} Found {where}:\n\n{listed}'


def over_silence(runs: PanelRuns) -> dict[str, Ratio]:
    """Returns the ratio of each run's regret to silence's, by the run's name."""
    return {name_of(labels): ratio(result, runs.one(experiments.SILENCE)) for labels, result in runs.rows}


def regrets(runs: PanelRuns) -> Table:
    """Returns the table of each run's regret at T, also over silence's, and of its messages."""
    table = []
    for (labels, result), (name, value) in zip(runs.rows, over_silence(runs).items(), strict=True):
        messages = result.traffic.get("messages")
        table.append(
            {
                "algorithm": name,
                "what it does": experiments.MEANINGS[labels["line"]],
                "regret at T (± 95 %)": final_regret(result),
                "/ silent": "1" if name == experiments.SILENCE else value,
                "messages an agent": "-" if messages is None else f"{messages.mean():.0f}",
            }
        )
    return table


def round_curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns the curve of each run's regret over rounds."""
    return {name_of(labels): over_rounds(result) for labels, result in runs.rows}


# Figure 1 A


def at_usual(runs: PanelRuns) -> PanelRuns:
    """Returns the runs of Figure 1 A at epsilon = 1 with 10 agents, by line."""
    usual = {"epsilon": 1.0, "agents": 10.0}[runs.panel]
    points = lines(runs, runs.panel)
    return PanelRuns(runs.plan, [LabelledResult({"line": name}, own[usual]) for name, own in points.items()])


def federated_regrets(runs: PanelRuns) -> Table:
    """Returns the table of federations' regret at T by epsilon or number of agents."""
    points = final_regrets(lines(runs, runs.panel))
    return line_by_x(runs.panel, {name: points[name] for name in (*experiments.PRIVATE, experiments.SHARED)})


def competitive(runs: PanelRuns) -> dict[str, str]:
    """Returns for each private federation, as text, where it has at most silence's regret."""
    x_is = {"epsilon": "epsilon", "agents": "M ="}[runs.panel]
    ratios = over_line(lines(runs, runs.panel), experiments.SILENCE)
    return {
        name: "; ".join(f"at {x_is} {x:g} {value.at_most(1)} ({value})" for x, value in ratios[name].items())
        for name in experiments.PRIVATE
    }


def equal_privacy(runs: PanelRuns) -> Table:
    """Returns the table of noise and privacy spent in the printed form and in ours, which promise the same."""
    return [
        {
            "form": name,
            "largest noise sd on a sum": f"{noise_sd(name, runs.plan.scale.rounds):.2f}",
            "composition": claim.composition,
            "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
            "delta": claim.delta,
            "remark": claim.reason,
        }
        for name in ("FedUCB-printed", "FedUCB")
        for claim in runs.one(name).claims
        if claim.adjacency == "one-observation"
    ]


def noise_sd(baseline: str, rounds: int) -> float:
    """Returns the largest standard deviation that the noise on a sum of released statistics comes to have.

    On the diagonal, for the baseline's own epsilon; off it, 1 / sqrt(2) of that.
    """
    released = BASELINES[baseline].wrap(parallel_env(max_cycles=rounds)).policy_spec.release
    variance = released[variance_of("statistic")]
    assert isinstance(variance, spaces.Box)
    return float(np.sqrt(variance.high.max()))


# Figure 1 B


def budget_curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns regret over rounds, from where curves differ on; budgets have the same names in all panels."""
    curves = {}
    for labels, result in runs.rows:
        since = result.rounds >= min(100, result.rounds[-1] // 10)
        line = "its trigger" if labels["line"] in experiments.TRIGGERED else labels["line"]
        curves[labels.get("budget", line)] = over_rounds(
            replace(result, rounds=result.rounds[since], regret=result.regret[since])
        )
    return curves


# Figure 1 C


def exponents(points: Mapping[float, RunResult]) -> Array:
    """Returns the slope of log regret against log x of each trial, ``(trials,)``."""
    regret = np.array([regret_by_seed(result) for result in points.values()])
    slopes: Array = np.polyfit(np.log(list(points)), np.log(regret), 1)[0]
    return slopes


def exponents_of_dimension(runs: PanelRuns) -> Table:
    """Returns the table of the exponent of d that is fitted to each line's regret."""
    return [
        {"algorithm": name, "exponent of d, fitted (± 95 % over trials)": over_seeds(exponents(own), ".2f")}
        for name, own in lines(runs, "dim").items()
    ]


def quadratic(runs: PanelRuns) -> dict[str, str]:
    """Returns for each private federation, as text, whether 2 is within the interval of its exponent of d."""
    verdicts = {}
    for name, own in lines(runs, "dim").items():
        if name in experiments.PRIVATE:
            mean, half = map(float, mean_and_half_width(exponents(own)))
            verdict = f"{holds_if(abs(mean - 2) <= half)} (2 against {over_seeds(exponents(own), '.2f')})"
            verdicts[name] = "undecided, of two trials" if np.isnan(half) else verdict
    return verdicts


# Figure 2


def falling(points: Mapping[str, Points]) -> dict[str, Statement]:
    """Says of each line whether its regret falls as x rises."""
    return {name: falls(own)[0] for name, own in points.items()}


def sensitivity(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns regret at the least epsilon over that at the largest, by line and gap."""
    epsilons = runs.values("epsilon")
    least, most = (runs.where(epsilon=epsilon) for epsilon in (min(epsilons), max(epsilons)))
    return {
        line: {gap: ratio(least.one(line, gap=gap), most.one(line, gap=gap)) for gap in runs.values("gap")}
        for line in least.values("line")
    }


def less_sensitive(runs: PanelRuns) -> dict[str, str]:
    """Returns for each private line, as text, whether epsilon matters less at the largest gap than at the least."""
    verdicts = {}
    for line, ratios in sensitivity(runs).items():
        first, *_, last = ratios.values()
        verdicts[line] = f"{nearer_to_one(first, last)} ({first}; {last})"
    return verdicts


def nearer_to_one(first: Ratio, last: Ratio) -> Statement:
    """Returns, as a verdict, whether the last ratio is nearer to 1 than the first, by intervals of the factor to 1."""
    (first_low, first_high), (last_low, last_high) = _off(first), _off(last)
    if last_high < first_low:
        return "holds"
    return "does **not** hold" if last_low > first_high else "undecided"


def _off(value: Ratio) -> tuple[float, float]:
    """Returns the interval of the ratio or of its inverse, whichever is above 1; from 1 on where both may be."""
    ends = sorted(max(end, 1 / end) for end in (value.low, value.high))
    return (1.0 if value.low <= 1 <= value.high else ends[0]), ends[1]


# Horizon and graphs


def _decades(runs: PanelRuns) -> list[int]:
    """Returns the checkpoints of rounds 100, 1,000 and so on."""
    rounds = runs.rows[0].result.rounds
    return [int(abs(rounds - 10**power).argmin()) for power in range(2, len(str(int(rounds[-1]))))]


def decades(runs: PanelRuns) -> Table:
    """Returns the table of federations' regret over random arms', decade by decade."""
    random = runs.one(experiments.RANDOM)
    return [
        {"round": f"{random.rounds[place]:,}"}
        | {
            f"{name} / {experiments.RANDOM}": ratio(runs.one(name), random, place)
            for name in experiments.FEDERATIONS
        }
        for place in _decades(runs)
    ]


def last_decade(runs: PanelRuns) -> dict[str, Mean]:
    """Returns the ratio of a federation's regret at the end of the last decade of rounds to that at its start."""
    before, last = _decades(runs)[-2:]
    return {
        name: over_seeds(regret_by_seed(runs.one(name), last) / regret_by_seed(runs.one(name), before), ".2f")
        for name in experiments.FEDERATIONS
    }


def by_graph(runs: PanelRuns) -> list[RunResult]:
    """Returns the results on the graphs, the smallest diameter first."""
    return [runs.one(graph) for graph in experiments.GRAPHS]


def is_one(value: Ratio) -> Statement:
    """Returns, as a verdict, whether a ratio may be 1: whether its interval holds 1."""
    return "holds" if value.low <= 1 <= value.high else all_hold([value.at_least(1), value.at_most(1)])
