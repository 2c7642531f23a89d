"""Tables, ratios, curves and verdicts of the FedUCB paper's figures, and of our own pages on its horizon and graphs."""

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.papers.feducb import experiments
from fedbandit_envs.papers.feducb.experiments import FEDERATIONS, RANDOM, SILENCE
from fedbandit_envs.papers.reproduction.comparison import (
    Mean,
    Ratio,
    Statement,
    exponents,
    final_regret,
    mean_of,
    over,
    over_rounds,
    ratio,
)
from fedbandit_envs.papers.reproduction.experiment import LabelledResult, PanelRuns
from fedbandit_envs.papers.reproduction.page import Table


def name_of(labels: Mapping[str, Any]) -> str:
    """Returns a run's name on the page: algorithm, communication budget and epsilon, as far as the run has them.

    Args:
        labels: The run's labels: ``line`` (the algorithm), ``budget`` (of communication) and ``epsilon``.
    """
    forms = {"line": "{}", "budget": "{}", "epsilon": "epsilon {:g}"}
    return ", ".join(form.format(labels[key]) for key, form in forms.items() if key in labels)


def over_silence(runs: PanelRuns) -> dict[str, dict[str, Ratio]]:
    """Returns each run's regret divided by that of agents who do not communicate, by the run's name.

    Each name has one ratio, under the key ``""``, since nothing is varied along an x axis.
    """
    return {name_of(labels): {"": ratio(result, runs[SILENCE])} for labels, result in runs.rows}


def regrets(runs: PanelRuns, meanings: Mapping[str, str]) -> Table:
    """Yields a table with a line for each run: its regret at the horizon and its number of messages.

    Regret is also divided by that of agents who do not communicate.

    Args:
        runs: The results.
        meanings: Description of each algorithm by name; runs on communication graphs need none.
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


def where_found(runs: PanelRuns, agents: int | None = None) -> str:
    """Returns a text that says in what the runs differ from the paper's setting: horizon, trials, agents.

    Args:
        runs: The results of the panel.
        agents: The paper's number of agents; None if it states none.
    """
    trials, played = runs.rows[0].result.regret.shape[1:]
    settings = {
        "T = {:,} for {:,}": (runs.plan.scale.rounds, experiments.PAPER_ROUNDS),
        "{} trials for {}": (trials, experiments.PAPER_TRIALS),
        "{} agents for {}": (played, agents or played),
    }
    unlike = "; ".join(text.format(*pair) for text, pair in settings.items() if pair[0] != pair[1])
    return f"not at the paper's setting ({unlike}), which may differ" if unlike else "as in the paper"


def at_usual(runs: PanelRuns) -> PanelRuns:
    """Returns the runs of Figure 1 A at epsilon = 1 with 10 agents; the algorithm's name is their only label."""
    usual = {"epsilon": 1.0, "agents": 10.0}[runs.panel]
    lines = runs.lines(runs.panel, name_of)
    return PanelRuns(runs.plan, [LabelledResult({"line": name}, own[usual]) for name, own in lines.items()])


def equal_privacy(runs: PanelRuns) -> Table:
    """Yields a table of the noise and the privacy claims of FedUCB as the paper prints it, and as corrected here.

    Both forms promise the same epsilon. The noise is the largest standard deviation of a diagonal entry of a sum of
    released statistics, at the baseline's default epsilon; entries off the diagonal have 1 / sqrt(2) of it.
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
    """Returns curves of regret over rounds, by communication budget, or by algorithm for runs without a budget.

    The first rounds are left out, since all curves agree there.
    """
    first = min(100, runs.plan.scale.rounds // 10)
    curves = {}
    for labels, result in runs.rows:
        line = "its trigger" if labels["line"] in experiments.TRIGGERED else labels["line"]
        kept = {x: mean for x, mean in over_rounds(result).items() if x >= first}
        curves[labels.get("budget", line)] = kept
    return curves


def fitted(lines: Mapping[str, Mapping[float, RunResult]]) -> dict[str, Mean]:
    """Returns for each algorithm the exponent p of regret growing as x^p, fitted to each trial; means over trials.

    Args:
        lines: Results by algorithm and x.
    """
    return {name: mean_of(exponents(own), ".2f") for name, own in lines.items()}


def fitted_table(powers: Mapping[str, Mean]) -> Table:
    """Returns a table with a line for each algorithm: the exponent of the dimension d fitted to its regret.

    Args:
        powers: The exponents by algorithm, as :func:`fitted` returns them.
    """
    return [
        {"algorithm": name, "exponent of d, fitted (± 95 % over trials)": p} for name, p in powers.items()
    ]


def sensitivity(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns regret at the smallest epsilon divided by regret at the largest, by algorithm and gap."""
    epsilons = runs.values("epsilon")
    least, most = (runs.where(epsilon=epsilon).lines("gap") for epsilon in (min(epsilons), max(epsilons)))
    return {line: over(own, most[line]) for line, own in least.items()}


def nearer_to_one(first: Ratio, last: Ratio) -> Statement:
    """Returns the verdict on whether the last ratio is nearer to 1 than the first.

    The distance of a ratio r from 1 is max(r, 1 / r). The verdict is undecided if the intervals of the two distances
    overlap.
    """
    (first_low, first_high), (last_low, last_high) = map(_factor_to_one, (first, last))
    return Ratio(nan, last_low / first_high, last_high / first_low, last.instances).at_most(1)


def _factor_to_one(value: Ratio) -> tuple[float, float]:
    """Returns the interval of max(r, 1 / r) for a ratio r; its lower end is 1 if the interval of r contains 1."""
    ends = sorted(max(end, 1 / end) for end in (value.low, value.high))
    return (1.0 if value.low <= 1 <= value.high else ends[0]), ends[1]


def decades(runs: PanelRuns) -> list[int]:
    """Returns the indices of the checkpoints nearest to the rounds 100, 1,000 and so on."""
    powers = range(2, len(str(runs.plan.scale.rounds)))
    return [int(abs(runs[RANDOM].rounds - 10**power).argmin()) for power in powers]


def over_random(runs: PanelRuns) -> Table:
    """Yields a table with a line for each of the rounds 100, 1,000 and so on: regret relative to random arms.

    Each private federation has a column with its regret divided by that of a policy that pulls random arms.
    """
    for k in decades(runs):
        ratios = {f"{name} / {RANDOM}": ratio(runs[name], runs[RANDOM], k) for name in FEDERATIONS}
        yield {"round": f"{runs[RANDOM].rounds[k]:,}"} | ratios
