"""Tables and curves of the page on Zhou and Chowdhury's findings about FedUCB."""

from math import isnan, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.feducb.analysis import exponents
from fedbandit_envs.papers.feducb.experiments import DELTA
from fedbandit_envs.papers.feducb_critique import experiments
from fedbandit_envs.papers.feducb_critique.runs import ERROR, FirstMessages

__all__ = ["ERROR"]

Table = list[dict[str, Any]]
Curves = dict[str, dict[float, float]]


# What the times of messages betray


def attacks(runs: PanelRuns) -> Table:
    """Returns the table of attacks on the times of messages: lower bounds of epsilon beside the promise."""
    table = []
    for labels, found in runs.rows:
        least = found.epsilon(DELTA)
        table.append(
            {
                "when to send, and epsilon promised": f"{labels['line']}: {labels['epsilon']:g}",
                "T": found.horizon,
                "share of horizons that betray it": "-" if isnan(found.share) else f"{found.share:.2%}",
                "first message without": _rounds(found.without),
                "with": _rounds(found.including),
                "wrong guesses": _wrong(found),
                "epsilon at least": f"{least:.2f}",
                "promise": "**refuted**" if least > labels["epsilon"] else "stands",
                "what is claimed here": f"nothing: {found.reason}" if found.reason else "the promise",
            }
        )
    return table


def _rounds(times: Array) -> str:
    first, last = times.min(), times.max()
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _wrong(found: FirstMessages) -> str:
    """Returns the error rate of an attacker who guesses by the median round, as text."""
    without, including = np.median(found.without), np.median(found.including)
    if without == including:
        return "half"
    between, early = (without + including) / 2, including < without
    wrong = ((found.without < between) == early).sum() + ((found.including < between) != early).sum()
    return f"{wrong} of {2 * len(found.including):,}"


def epsilon_curves(runs: PanelRuns) -> Curves:
    """Returns lower bounds of epsilon over the epsilon promised, and the promise."""
    found: Curves = {}
    for labels, attack in runs.rows:
        found.setdefault(labels["line"], {})[labels["epsilon"]] = attack.epsilon(DELTA)
    return found | {"promised": {epsilon: epsilon for epsilon in found[experiments.DOUBLING]}}


# How the noise of M agents adds up


def _noise_ratios(runs: PanelRuns) -> dict[float, float]:
    """Returns the noise in the sum over that in one agent's share, by the number of agents."""
    added = runs.by("agents", line=experiments.SUMMED)
    return {agents: float(found.summed.std() / found.single.std()) for agents, found in added.items()}


def added_noise(runs: PanelRuns) -> Table:
    """Returns the table of standard deviations of the noise that is added to V, by the number of agents."""
    ratios = _noise_ratios(runs)
    return [
        {
            "agents M": f"{agents:g}",
            "noise in one agent's share": f"{found.single.std():.1f}",
            "noise in the sum": f"{found.summed.std():.1f}",
            "ratio": f"{ratios[agents]:.2f}",
            "sqrt(M)": f"{sqrt(agents):.2f}",
        }
        for agents, found in runs.by("agents", line=experiments.SUMMED).items()
    ]


def furthest_from_root(runs: PanelRuns) -> float:
    """Returns by which part of sqrt(M) the noise in the sum is off at most."""
    return max(abs(value / sqrt(agents) - 1) for agents, value in _noise_ratios(runs).items())


def regrets_by_agents(runs: PanelRuns) -> Table:
    """Returns the table of regret by the number of agents, and of the exponents of M fitted to it."""
    return [
        {"form": form}
        | {f"M = {agents:g}": final_regret(result) for agents, result in points.items()}
        | {"exponent of M (± 95 % over trials)": over_seeds(exponents(points), ".2f")}
        for form in experiments.FORMS
        for points in [runs.by("agents", line=form)]
    ]


def lies(power: float, found: Mean) -> str:
    """Returns, as text, where a power of M lies beside the interval of a fitted exponent."""
    if isnan(found.low):
        return "undecided, trials are too few"
    half = (found.high - found.low) / 2
    return f"{'within' if abs(found.value - power) <= half else 'outside'} the interval"


def growth_curves(runs: PanelRuns) -> Curves:
    """Returns noise and regret relative to those of the fewest agents, and the powers that bounds have."""
    noise = _noise_ratios(runs)
    points = {"noise in the sum": noise}
    for form in experiments.FORMS:
        regret = runs.by("agents", line=form)
        points[form] = {agents: float(regret_by_seed(run).mean()) for agents, run in regret.items()}
    points["Corollary 1: M^(-1/2)"] = {agents: agents**-0.5 for agents in noise}
    points["noise of M agents: M^(-1/4)"] = {agents: agents**-0.25 for agents in noise}
    return {name: {at: y / own[min(noise)] for at, y in own.items()} for name, own in points.items()}


# Synchronisations against the printed bound


def regularisers(rounds: int, private: bool) -> tuple[float, float]:
    """Returns rho_min and rho_max: of Proposition 4 for epsilon = 1, or each agent's share of the ridge.

    Proposition 4 has Lambda = sqrt(32) m (L^2 + 1) ln(4/delta) (4 sqrt(d) + 2 ln(2nM/alpha))/epsilon, with n = T and
    alpha = 0.01 here, as the policy has it.

    Args:
        rounds: T.
        private: Whether there is noise.
    """
    if not private:
        return 1 / experiments.AGENTS, 1 / experiments.AGENTS
    depth = 1 + (rounds - 1).bit_length()
    spread = 4 * sqrt(experiments.DIM) + 2 * log(2 * rounds * experiments.AGENTS / 0.01)
    reach = sqrt(32) * depth * 2 * log(4 / DELTA) * spread
    return reach, 3 * reach


def log_growth(rounds: int, private: bool) -> float:
    """Returns log(rho_max/rho_min + T L^2/(d rho_min)); see :func:`regularisers` for the arguments."""
    least, most = regularisers(rounds, private)
    return log(most / least + rounds / (experiments.DIM * least))


def printed_bound(rate: float, rounds: int, private: bool) -> float:
    """Returns Proposition 1's bound of the number of synchronisations, given d T / D."""
    return 2 * sqrt(rate * log_growth(rounds, private)) + 4


def printed_rate(rounds: int, private: bool) -> float:
    """Returns d T / D for the D of Theorem 1."""
    return (log_growth(rounds, private) + 1) / 2


class Synchronisations(NamedTuple):
    """Synchronisations of a federation with a trigger.

    Attributes:
        rate: d T / D.
        counts: How many there were, ``(trials,)``.
        bound: How many Proposition 1 allows.
    """

    rate: float
    counts: Array
    bound: float

    @property
    def mean(self) -> float:
        """Mean of the counts."""
        return float(self.counts.mean())

    def cells(self, counts: str, bound: str, kept: str) -> dict[str, str]:
        """Returns cells of a table under the heads given."""
        holds = "yes" if self.counts.max() <= self.bound else "**no**"
        return {counts: f"{self.mean:,.1f}", bound: f"{self.bound:,.1f}", kept: holds}


def counted(runs: PanelRuns, line: str) -> dict[float | None, Synchronisations]:
    """Returns a federation's synchronisations by d T / D; None for the D of Theorem 1."""
    rounds, private = runs.plan.scale.rounds, line == experiments.PRINTED
    found = {}
    for given, result in runs.by("rate", line=line).items():
        rate = printed_rate(rounds, private) if given is None else given
        # Everybody sends to everybody else in each.
        counts = result.traffic["messages"].max(axis=1) / (experiments.AGENTS - 1)
        found[given] = Synchronisations(rate, counts, printed_bound(rate, rounds, private))
    return found


def synchronisations(runs: PanelRuns) -> Table:
    """Returns the table of synchronisations beside Proposition 1's bound, with noise and without."""
    private, true = (counted(runs, line) for line in (experiments.PRINTED, experiments.TRUE))
    table = []
    for given in private:
        cells = {
            "dT/D": "Theorem 1's" if given is None else f"{given:g}",
            **private[given].cells("printed form", "its bound", "is it kept?"),
            **true[given].cells("true data", "its bound with true data", "is that kept?"),
        }
        if given is None:
            cells["printed form"] += f" (dT/D = {private[given].rate:.2f})"
            cells["true data"] += f" (dT/D = {true[given].rate:.2f})"
        table.append(cells)
    return table


def synchronisation_curves(runs: PanelRuns) -> Curves:
    """Returns means of synchronisations and their bounds over d T / D."""
    curves: Curves = {}
    for line, name in ((experiments.PRINTED, "printed form"), (experiments.TRUE, "true data")):
        found = {given: each for given, each in counted(runs, line).items() if given is not None}
        curves[name] = {rate: each.mean for rate, each in found.items()}
        curves[f"{name}, the bound"] = {rate: each.bound for rate, each in found.items()}
    return curves


def first_broken(runs: PanelRuns) -> float | None:
    """Returns the first d T / D at which the printed form has more synchronisations than its bound, on average."""
    found = counted(runs, experiments.PRINTED).items()
    return next((given for given, each in found if given is not None and each.mean > each.bound), None)
