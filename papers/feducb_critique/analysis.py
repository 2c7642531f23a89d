"""Tables and curves of the page on the errors that Zhou and Chowdhury find in FedUCB."""

from collections.abc import Iterator
from math import isnan, log, sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import Row, final_regret, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.feducb.analysis import exponents
from fedbandit_envs.papers.feducb.experiments import DELTA
from fedbandit_envs.papers.feducb_critique import experiments
from fedbandit_envs.papers.feducb_critique.experiments import AGENTS, DIM
from fedbandit_envs.wrappers.privacy.attacks import epsilon_from_rates, rate_at_least, rate_at_most

Curves = dict[str, dict[float, float]]

ERROR = 1e-4
"""Probability that a lower bound of epsilon is too high."""


def epsilon_at_least(without: Array, including: Array, delta: float) -> float:
    """Returns a lower bound of epsilon, too high with probability :data:`ERROR` at most.

    A quarter of the samples are used to choose the event that is counted in the others: the first synchronisation comes
    on that side of the middle between both histories' median rounds where it comes with the observation.

    Args:
        without: Rounds of the first synchronisation without the observation that is attacked, ``(samples,)``.
        including: The same with the observation.
        delta: The delta of the guarantee.
    """
    quarter = len(without) // 4
    medians = [float(np.median(some[:quarter])) for some in (without, including)]
    false, true = (
        (some[quarter:] < sum(medians) / 2) == (medians[1] < medians[0]) for some in (without, including)
    )
    return epsilon_from_rates(rate_at_least(true, ERROR / 2), rate_at_most(false, ERROR / 2), delta)


class Attacks:
    """Attacks by an attacker who sees nothing but the time of a federation's first message."""

    def __init__(self, runs: PanelRuns) -> None:
        """Computes the lower bound of epsilon of each attack."""
        self.rows = [
            (labels, found, epsilon_at_least(found.without, found.including, DELTA))
            for labels, found in runs.rows
        ]

    def table(self) -> Iterator[Row]:
        """Returns the table of attacks: lower bounds of epsilon beside the promise."""
        for labels, found, least in self.rows:
            yield {
                "when to send, and epsilon promised": f"{labels['line']}: {labels['epsilon']:g}",
                "T": found.horizon,
                "share of horizons that betray it": "-" if isnan(found.share) else f"{found.share:.2%}",
                "first message without": _range(found.without),
                "with": _range(found.including),
                "wrong guesses": _wrong(found.without, found.including),
                "epsilon at least": f"{least:.2f}",
                "promise": "**refuted**" if least > labels["epsilon"] else "stands",
                "what is claimed here": f"nothing: {found.reason}" if found.reason else "the promise",
            }

    def curves(self) -> Curves:
        """Returns lower bounds of epsilon over the epsilon promised, and the promise."""
        curves: Curves = {}
        for labels, _, least in self.rows:
            curves.setdefault(labels["line"], {})[labels["epsilon"]] = least
        return curves | {"promised": {epsilon: epsilon for epsilon in curves[experiments.DOUBLING]}}


def _range(rounds: Array) -> str:
    first, last = rounds.min(), rounds.max()
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _wrong(without: Array, including: Array) -> str:
    """Returns the error rate, as text, of an attacker who guesses the history by the middle of the median rounds."""
    medians = np.median(without), np.median(including)
    if medians[0] == medians[1]:
        return "half"
    between, early = sum(medians) / 2, medians[1] < medians[0]
    wrong = ((without < between) == early).sum() + ((including < between) != early).sum()
    return f"{wrong} of {2 * len(including):,}"


class Noise:
    """Noise in the sum of M agents' statistics, and what M does to regret.

    Attributes:
        added: Results of :func:`.runs.added_noise` by M.
        ratios: Standard deviation of the noise in the sum over that in one agent's share, by M.
        regrets: Results of federations that learn, by form and M.
        exponent: Exponent of M fitted to the regret of ``FedUCB``.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results apart by M."""
        self.added = runs.by("agents", line=experiments.SUMMED)
        self.ratios = {M: float(found.summed.std() / found.single.std()) for M, found in self.added.items()}
        self.regrets = {form: runs.by("agents", line=form) for form in experiments.FORMS}
        self.exponent = over_seeds(exponents(self.regrets["FedUCB"]), ".2f")

    def table(self) -> Iterator[Row]:
        """Returns the table of standard deviations of the noise that is added to V, by M."""
        for agents, found in self.added.items():
            yield {
                "agents M": f"{agents:g}",
                "noise in one agent's share": f"{found.single.std():.1f}",
                "noise in the sum": f"{found.summed.std():.1f}",
                "ratio": f"{self.ratios[agents]:.2f}",
                "sqrt(M)": f"{sqrt(agents):.2f}",
            }

    def furthest_from_root(self) -> float:
        """Returns the largest relative difference between sqrt(M) and the ratio of noise."""
        return max(abs(value / sqrt(agents) - 1) for agents, value in self.ratios.items())

    def regret_table(self) -> Iterator[Row]:
        """Returns the table of regret by M, and of the exponents of M fitted to it."""
        for form, points in self.regrets.items():
            yield {
                "form": form,
                **{f"M = {agents:g}": final_regret(result) for agents, result in points.items()},
                "exponent of M (± 95 % over trials)": over_seeds(exponents(points), ".2f"),
            }

    def lies(self, power: float) -> str:
        """Returns, as text, where a power of M lies beside the interval of the exponent of ``FedUCB``."""
        if isnan(self.exponent.low):
            return "undecided, trials are too few"
        return f"{'within' if self.exponent.holds(power) == 'holds' else 'outside'} the interval"

    def curves(self) -> Curves:
        """Returns noise and regret relative to those of the fewest agents, and the powers that bounds have."""
        points = {"noise in the sum": self.ratios}
        for form, regret in self.regrets.items():
            points[form] = {agents: float(regret_by_seed(run).mean()) for agents, run in regret.items()}
        points["Corollary 1: M^(-1/2)"] = {agents: agents**-0.5 for agents in self.ratios}
        points["noise of M agents: M^(-1/4)"] = {agents: agents**-0.25 for agents in self.ratios}
        fewest = min(self.ratios)
        return {name: {at: y / own[fewest] for at, y in own.items()} for name, own in points.items()}


def log_growth(rounds: int, private: bool) -> float:
    """Returns log(rho_max/rho_min + T L^2/(d rho_min)).

    With noise, rho_min and rho_max are those of Proposition 4 for epsilon = 1, Lambda and 3 Lambda with
    Lambda = sqrt(32) m (L^2 + 1) ln(4/delta) (4 sqrt(d) + 2 ln(2nM/alpha))/epsilon, n = T and alpha = 0.01; without
    noise, both are each agent's share of the ridge.

    Args:
        rounds: T.
        private: Whether there is noise.
    """
    if not private:
        return log(1 + rounds * AGENTS / DIM)
    depth = 1 + (rounds - 1).bit_length()
    spread = 4 * sqrt(DIM) + 2 * log(2 * rounds * AGENTS / 0.01)
    least = sqrt(32) * depth * 2 * log(4 / DELTA) * spread
    return log(3 + rounds / (DIM * least))


def printed_bound(rounds: int, private: bool, rate: float | None) -> tuple[float, float]:
    """Returns Proposition 1's bound of the number of synchronisations, and d T / D.

    Args:
        rounds: T.
        private: Whether there is noise.
        rate: d T / D; None for the D of Theorem 1.
    """
    growth = log_growth(rounds, private)
    rate = (growth + 1) / 2 if rate is None else rate
    return 2 * sqrt(rate * growth) + 4, rate


class Synchronisations:
    """Numbers of synchronisations of the federations with a trigger, beside Proposition 1's bound of them.

    Attributes:
        found: For each curve's name, by d T / D (None for the D of Theorem 1): counts, ``(trials,)``, their bound, and
            d T / D as a number.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Counts the synchronisations, in each of which everybody sends to everybody else."""
        rounds = runs.plan.scale.rounds
        self.found: dict[str, dict[float | None, tuple[Array, float, float]]] = {}
        for name, line in {"printed form": experiments.PRINTED, "true data": experiments.TRUE}.items():
            private, own = line == experiments.PRINTED, self.found.setdefault(name, {})
            for given, result in runs.by("rate", line=line).items():
                counts = result.traffic["messages"].max(axis=1) / (AGENTS - 1)
                own[given] = counts, *printed_bound(rounds, private, given)

    def table(self) -> Iterator[Row]:
        """Returns the table of synchronisations beside their bound, with noise and without."""
        heads = {
            "printed form": ("its bound", "is it kept?"),
            "true data": ("its bound with true data", "is that kept?"),
        }
        for given in self.found["printed form"]:
            cells = {"dT/D": "Theorem 1's" if given is None else f"{given:g}"}
            for name, (bound_head, kept_head) in heads.items():
                counts, bound, rate = self.found[name][given]
                cells[name] = f"{counts.mean():,.1f}" + (f" (dT/D = {rate:.2f})" if given is None else "")
                cells[bound_head] = f"{bound:,.1f}"
                cells[kept_head] = "yes" if counts.max() <= bound else "**no**"
            yield cells

    def curves(self) -> Curves:
        """Returns means of synchronisations and their bounds over d T / D."""
        curves: Curves = {}
        for name, own in self.found.items():
            swept = {given: each for given, each in own.items() if given is not None}
            curves[name] = {given: float(counts.mean()) for given, (counts, *_) in swept.items()}
            curves[f"{name}, the bound"] = {given: bound for given, (_, bound, _) in swept.items()}
        return curves

    def first_broken(self) -> float | None:
        """Returns the first d T / D at which the printed form exceeds its bound on average; None if none does."""
        found = self.found["printed form"].items()
        return next((given for given, (n, bound, _) in found if given is not None and n.mean() > bound), None)
