"""Tables and curves of the page on the errors that Zhou and Chowdhury find in FedUCB."""

from collections.abc import Mapping, Sequence
from math import isnan, log, sqrt
from types import SimpleNamespace

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.feducb.analysis import fitted
from fedbandit_envs.papers.feducb.experiments import DELTA
from fedbandit_envs.papers.feducb_critique.experiments import AGENTS, DIM, PRINTED, TRUE
from fedbandit_envs.papers.reproduction.comparison import final_regret, regret_by_instance
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Curves, Table, by_line, each
from fedbandit_envs.wrappers.privacy.audit import epsilon_from_rates, rate_at_least, rate_at_most

ERROR = 1e-4
"""Largest probability with which a lower bound of epsilon may be above the true epsilon."""


def epsilon_at_least(without: Array, including: Array, delta: float) -> float:
    """Returns a lower bound of epsilon from the rounds of the first synchronisation under two histories.

    An attacker sees that round and guesses whether the history includes one observation: he compares the round with the
    middle of the two histories' median rounds. A quarter of the samples give the medians; the other samples give the
    attacker's error rates, from which the bound follows. It is too high with probability :data:`ERROR` at most.

    Args:
        without: Rounds of the first synchronisation in runs without the observation, ``(samples,)``.
        including: Rounds of the first synchronisation in runs with the observation, ``(samples,)``.
        delta: The delta of the privacy guarantee.
    """
    quarter = len(without) // 4
    medians = [float(np.median(some[:quarter])) for some in (without, including)]
    false, true = (_guessed(some[quarter:], medians) for some in (without, including))
    return epsilon_from_rates(rate_at_least(true, ERROR / 2), rate_at_most(false, ERROR / 2), delta)


def _guessed(rounds: Array, medians: Sequence[float]) -> Array:
    """Returns for each sample whether the attacker guesses the history with the observation, bool.

    Args:
        rounds: Rounds of the first synchronisation, ``(samples,)``.
        medians: Median of these rounds without the observation, and with it.
    """
    without, including = medians
    guessed: Array = (rounds < (without + including) / 2) == (including < without)
    return guessed


def epsilons(runs: PanelRuns) -> Curves:
    """Returns curves of a lower bound of epsilon over the promised epsilon, by the rule for when messages are sent.

    The curve ``promised`` is the diagonal; a point above it refutes the promise.
    """
    found = each(runs.lines("epsilon"), lambda one: epsilon_at_least(one.without, one.including, DELTA))
    return {**found, "promised": {epsilon: epsilon for epsilon in runs.values("epsilon")}}


def attacks(runs: PanelRuns) -> Table:
    """Yields a table with a line for each attack by someone who sees only the round of the first message."""
    least = epsilons(runs)
    for line, own in runs.lines("epsilon").items():
        for epsilon, found in own.items():
            yield {
                "when to send, and epsilon promised": f"{line}: {epsilon:g}",
                "T": found.horizon,
                "share of horizons that betray it": "-" if isnan(found.share) else f"{found.share:.2%}",
                "first message without": _range(found.without),
                "with": _range(found.including),
                "wrong guesses": _wrong(found.without, found.including),
                "epsilon at least": f"{least[line][epsilon]:.2f}",
                "promise": "**refuted**" if least[line][epsilon] > epsilon else "stands",
                "what is claimed here": f"nothing: {found.reason}" if found.reason else "the promise",
            }


def _range(rounds: Array) -> str:
    first, last = rounds.min(), rounds.max()
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _wrong(without: Array, including: Array) -> str:
    """Returns as text how often an attacker guesses the wrong history from the round of the first message.

    The attacker compares the round with the middle of the two histories' median rounds.

    Args:
        without: Rounds of the first message without the attacked observation, ``(samples,)``.
        including: Rounds of the first message with it, ``(samples,)``.
    """
    medians = [float(np.median(some)) for some in (without, including)]
    if medians[0] == medians[1]:
        return "half"
    wrong = _guessed(without, medians).sum() + (~_guessed(including, medians)).sum()
    return f"{wrong} of {2 * len(including):,}"


def noise_ratio(found: SimpleNamespace) -> float:
    """Returns the noise's standard deviation in the sum over agents, divided by that in one agent's message.

    Args:
        found: Noise of each agent and of the sum, as :func:`.runs.added_noise` measures it.
    """
    return float(found.summed.std() / found.single.std())


def noise_table(added: Mapping[float, SimpleNamespace]) -> Table:
    """Yields a table with a line for each number of agents M: noise in one agent's share and in the sum of all shares.

    Both are standard deviations of the noise on the diagonal of the released matrix, summed over all rounds.

    Args:
        added: Results of :func:`.runs.added_noise` by M.
    """
    for agents, found in added.items():
        yield {
            "agents M": f"{agents:g}",
            "noise in one agent's share": f"{found.single.std():.1f}",
            "noise in the sum": f"{found.summed.std():.1f}",
            "ratio": f"{noise_ratio(found):.2f}",
            "sqrt(M)": f"{sqrt(agents):.2f}",
        }


def furthest_from_root(added: Mapping[float, SimpleNamespace]) -> float:
    """Returns the largest relative difference, over the numbers of agents M, of :func:`noise_ratio` from sqrt(M).

    Args:
        added: Results of :func:`.runs.added_noise` by M.
    """
    return max(abs(noise_ratio(found) / sqrt(agents) - 1) for agents, found in added.items())


def regret_table(regrets: Mapping[str, Mapping[float, RunResult]]) -> Table:
    """Returns a table with a line for each federation: regret by the number of agents M, and the exponent of M.

    Args:
        regrets: Results of federations that learn, by their baseline and by M.
    """
    powers, rows = fitted(regrets).values(), by_line(each(regrets, final_regret), "form", "M = {:g}")
    head = "exponent of M (± 95 % over trials)"
    return [{**row, head: power} for row, power in zip(rows, powers, strict=True)]


def relative_to_fewest(
    added: Mapping[float, SimpleNamespace], regrets: Mapping[str, Mapping[float, RunResult]]
) -> Curves:
    """Returns curves over the number of agents M, each divided by its value at the smallest M.

    The curves are noise, regret of each federation, and the two powers of M that the papers' regret bounds have.

    Args:
        added: Results of :func:`.runs.added_noise` by M.
        regrets: Results of federations that learn, by their baseline and by M.
    """
    points = {
        **each({"noise in the sum": added}, noise_ratio),
        **each(regrets, lambda run: float(regret_by_instance(run).mean())),
        "Corollary 1: M^(-1/2)": {agents: agents**-0.5 for agents in added},
        "noise of M agents: M^(-1/4)": {agents: agents**-0.25 for agents in added},
    }
    return {name: {at: y / own[min(own)] for at, y in own.items()} for name, own in points.items()}


def log_growth(rounds: int, private: bool) -> float:
    """Returns log(rho_max/rho_min + T L^2/(d rho_min)), FedUCB's bound on a log determinant's growth per dimension.

    T is the number of rounds, d the dimension and L the bound on contexts. With noise, rho_min = Lambda and
    rho_max = 3 Lambda (Proposition 4), where Lambda = sqrt(32) m (L^2 + 1) ln(4/delta) (4 sqrt(d) + 2 ln(2nM/alpha))/
    epsilon, with epsilon = 1, n = T and alpha = 0.01. Without noise, both are each agent's share of the ridge.

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
    """Returns the FedUCB paper's bound on the number of synchronisations (Proposition 1), and the rate d T / D.

    Args:
        rounds: Horizon T.
        private: Whether there is noise.
        rate: d T / D, for dimension d and threshold D of the communication trigger; None for the D of Theorem 1.
    """
    growth = log_growth(rounds, private)
    rate = (growth + 1) / 2 if rate is None else rate
    return 2 * sqrt(rate * growth) + 4, rate


Counts = Mapping[str, Mapping[float | None, tuple[Array, float, float]]]


def synchronisations(runs: PanelRuns) -> Counts:
    """Returns measured numbers of synchronisations beside the FedUCB paper's bound on them.

    In a synchronisation every agent sends a message to every other agent.

    Returns:
        For each curve's name, and each rate d T / D (None for the threshold D of Theorem 1): the number of
        synchronisations in each trial, ``(trials,)``; Proposition 1's bound on it; and d T / D as a number.
    """
    return {
        name: {
            rate: (
                result.traffic["messages"].max(axis=1) / (AGENTS - 1),
                *printed_bound(runs.plan.scale.rounds, line == PRINTED, rate),
            )
            for rate, result in runs.by("rate", line=line).items()
        }
        for name, line in {"printed form": PRINTED, "true data": TRUE}.items()
    }


def bound_table(found: Counts) -> Table:
    """Yields a table with a line for each rate d T / D: numbers of synchronisations and their bounds.

    Args:
        found: Counts and bounds with noise and without, as :func:`synchronisations` returns them.
    """
    heads = {
        "printed form": ("its bound", "is it kept?"),
        "true data": ("its bound with true data", "is that kept?"),
    }
    for given in found["printed form"]:
        cells = {"dT/D": "Theorem 1's" if given is None else f"{given:g}"}
        for name, (bound_head, kept_head) in heads.items():
            counts, bound, rate = found[name][given]
            cells[name] = f"{counts.mean():,.1f}" + (f" (dT/D = {rate:.2f})" if given is None else "")
            cells[bound_head] = f"{bound:,.1f}"
            cells[kept_head] = "yes" if counts.max() <= bound else "**no**"
        yield cells


def bound_curves(found: Counts) -> Curves:
    """Returns curves over d T / D: the mean number of synchronisations, and the paper's bound on it.

    Args:
        found: Counts and bounds, as :func:`synchronisations` returns them.
    """
    curves = {}
    for name, own in found.items():
        swept = {given: each for given, each in own.items() if given is not None}
        curves[name] = {given: float(counts.mean()) for given, (counts, *_) in swept.items()}
        curves[f"{name}, the bound"] = {given: bound for given, (_, bound, _) in swept.items()}
    return curves


def first_broken(found: Counts) -> float | None:
    """Returns the first d T / D at which FedUCB as printed synchronises more often than its bound, on average.

    Args:
        found: Counts and bounds, as :func:`synchronisations` returns them.

    Returns:
        The rate d T / D; None if the bound is exceeded at none.
    """
    rates = found["printed form"].items()
    return next((rate for rate, (n, bound, _) in rates if rate is not None and n.mean() > bound), None)
