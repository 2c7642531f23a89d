"""Tables, ratios, curves and verdicts of the FedUCB paper's figures, and of our own pages on its horizon and graphs."""

from collections.abc import Mapping
from math import isnan
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Mean,
    Ratio,
    Statement,
    exponents,
    falls,
    over,
    over_line,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.page import Table, final_regret, over_rounds, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import LabelledResult, PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.papers.feducb import experiments
from fedbandit_envs.papers.feducb.experiments import FEDERATIONS, PRIVATE, RANDOM, SILENCE


def name_of(labels: Mapping[str, Any]) -> str:
    """Returns a run's name on the page: its line, its budget of communication and its epsilon, where it has these."""
    forms = {"line": "{}", "budget": "{}", "epsilon": "epsilon {:g}"}
    return ", ".join(form.format(labels[key]) for key, form in forms.items() if key in labels)


def over_silence(runs: PanelRuns) -> dict[str, dict[str, Ratio]]:
    """Returns the ratio of each run's regret to silence's, by the run's name, without an x."""
    return {name_of(labels): {"": ratio(result, runs[SILENCE])} for labels, result in runs.rows}


def regrets(runs: PanelRuns, meanings: Mapping[str, str]) -> Table:
    """Yields the lines of the table of each run's regret at T, also over silence's, and of its messages.

    Args:
        runs: The results.
        meanings: Description of each line but the graphs.
    """
    for (labels, result), (name, value) in zip(runs.rows, over_silence(runs).items(), strict=True):
        messages = result.traffic.get("messages")
        yield {
            "algorithm": name,
            "what it does": meanings.get(labels["line"]) or f"Algorithm 3, gamma = {labels['diameter']}",
            "regret at T (± 95 %)": final_regret(result),
            "/ silent": "1" if name == SILENCE else value[""],
            "messages an agent": "-" if messages is None else f"{messages.mean():.0f}",
        }


def found(
    runs: PanelRuns, sentence: str, reading: str, verdicts: Mapping[str, Any] = {}, agents: int | None = None
) -> str:
    """Returns a sentence of the paper beside what is found, and where that is not at the paper's setting.

    Args:
        runs: The results of the panel.
        sentence: The sentence, letter by letter.
        reading: What it is taken to say.
        verdicts: Whether it does, by what is judged.
        agents: The paper's number of agents; None if it states none.
    """
    trials, played = runs.rows[0].result.regret.shape[1:]
    settings = {
        "T = {:,} for {:,}": (runs.plan.scale.rounds, experiments.PAPER_ROUNDS),
        "{} trials for {}": (trials, experiments.PAPER_TRIALS),
        "{} agents for {}": (played, agents or played),
    }
    unlike = "; ".join(text.format(*pair) for text, pair in settings.items() if pair[0] != pair[1])
    where = f"not at the paper's setting ({unlike}), which may differ" if unlike else "as in the paper"
    listed = "\n".join(f"* {name}: {verdict}." for name, verdict in verdicts.items())
    return f'The paper: "{sentence}" {reading} Found {where}:\n\n{listed}'


def at_usual(runs: PanelRuns) -> PanelRuns:
    """Returns the runs of Figure 1 A at epsilon = 1 with 10 agents, labelled by their line alone."""
    usual = {"epsilon": 1.0, "agents": 10.0}[runs.panel]
    lines = runs.lines(runs.panel, name_of)
    return PanelRuns(runs.plan, [LabelledResult({"line": name}, own[usual]) for name, own in lines.items()])


def competitive(runs: PanelRuns) -> dict[str, str]:
    """Returns for each private federation of Figure 1 A, as text, where it has at most silence's regret."""
    x_is = {"epsilon": "epsilon", "agents": "M ="}[runs.panel]
    return {
        name: "; ".join(f"at {x_is} {x:g} {value.at_most(1)} ({value})" for x, value in ratios.items())
        for name, ratios in over_line(runs.lines(runs.panel), SILENCE).items()
        if name in PRIVATE
    }


def equal_privacy(runs: PanelRuns) -> Table:
    """Yields the lines of the table of noise and privacy spent in the printed form and in ours.

    Both promise the same. The noise is the largest standard deviation on the diagonal of a sum of released statistics,
    for the baseline's own epsilon; off the diagonal it is 1 / sqrt(2) of that.
    """
    for name in ("FedUCB-printed", "FedUCB"):
        env = BASELINES[name].wrap(parallel_env(max_cycles=runs.plan.scale.rounds))
        variance = env.policy_spec.release[variance_of("statistic")]
        assert isinstance(variance, spaces.Box)
        for claim in runs[name].claims:
            if claim.adjacency == "one-observation":
                yield {
                    "form": name,
                    "largest noise sd on a sum": f"{np.sqrt(variance.high.max()):.2f}",
                    "composition": claim.composition,
                    "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                    "delta": claim.delta,
                    "remark": claim.reason,
                }


def budget_curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns regret over rounds, from where curves differ on, by budget of communication or silent line."""
    first = min(100, runs.plan.scale.rounds // 10)
    curves = {}
    for labels, result in runs.rows:
        line = "its trigger" if labels["line"] in experiments.TRIGGERED else labels["line"]
        kept = {x: mean for x, mean in over_rounds(result).items() if x >= first}
        curves[labels.get("budget", line)] = kept
    return curves


def fitted(lines: Mapping[str, Mapping[float, RunResult]]) -> dict[str, Mean]:
    """Returns the mean exponent of x that is fitted to the regret of each trial, by name."""
    return {name: over_seeds(exponents(own), ".2f") for name, own in lines.items()}


def fitted_table(powers: Mapping[str, Mean]) -> Table:
    """Returns the table of the exponents of d that :func:`fitted` returns."""
    return [
        {"algorithm": name, "exponent of d, fitted (± 95 % over trials)": p} for name, p in powers.items()
    ]


def quadratic(powers: Mapping[str, Mean]) -> dict[str, str]:
    """Returns for each private federation, as text, whether 2 is within the interval of its exponent of d."""
    return {
        name: "undecided, of two trials" if isnan(power.low) else f"{power.holds(2)} (2 against {power})"
        for name, power in powers.items()
        if name in PRIVATE
    }


def sensitivity(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns regret at the least epsilon over that at the largest, by line and gap."""
    epsilons = runs.values("epsilon")
    least, most = (runs.where(epsilon=epsilon).lines("gap") for epsilon in (min(epsilons), max(epsilons)))
    return {line: over(own, most[line]) for line, own in least.items()}


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


def less_sensitive(by_gap: Mapping[str, Mapping[float, Ratio]]) -> dict[str, str]:
    """Returns for each private line, as text, whether epsilon matters less at the largest gap than at the least.

    Args:
        by_gap: The ratios of :func:`sensitivity`.
    """
    verdicts = {}
    for line, ratios in by_gap.items():
        first, *_, last = ratios.values()
        verdicts[line] = f"{nearer_to_one(first, last)} ({first}; {last})"
    return verdicts


def decades(runs: PanelRuns) -> list[int]:
    """Returns the indices of the checkpoints nearest to the rounds 100, 1,000 and so on."""
    powers = range(2, len(str(runs.plan.scale.rounds)))
    return [int(abs(runs[RANDOM].rounds - 10**power).argmin()) for power in powers]


def over_random(runs: PanelRuns) -> Table:
    """Yields the lines of the table of federations' regret over random arms', decade by decade."""
    for k in decades(runs):
        ratios = {f"{name} / {RANDOM}": ratio(runs[name], runs[RANDOM], k) for name in FEDERATIONS}
        yield {"round": f"{runs[RANDOM].rounds[k]:,}"} | ratios


def last_decade(runs: PanelRuns) -> dict[str, Mean]:
    """Returns the ratio of a federation's regret at the end of the last decade of rounds to that at its start."""
    start, end = decades(runs)[-2:]
    regrets = {name: [regret_by_seed(runs[name], k) for k in (end, start)] for name in FEDERATIONS}
    return {name: over_seeds(after / before, ".2f") for name, (after, before) in regrets.items()}


def falling(lines: Mapping[str, Mapping[float, RunResult]]) -> dict[str, Statement]:
    """Returns, as a verdict by line, whether regret falls as x rises."""
    return {name: falls(own)[0] for name, own in lines.items()}
