"""What the page on Zhou and Chowdhury's findings about FedUCB says."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import regret_by_seed
from fedbandit_envs.leaderboard.reproduction.feducb import DELTA
from fedbandit_envs.leaderboard.reproduction.feducb_attacks import ERROR, Added, Betrayed
from fedbandit_envs.leaderboard.reproduction.feducb_critique import (
    AGENTS,
    DIM,
    DOUBLING,
    FORMS,
    MADE,
    PRINTED,
    SEARCHED,
    SUMMED,
    TRUE,
    printed_bound,
    printed_ratio,
)
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds, regret_text
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.leaderboard.sweep.runs import Result

Results = Mapping[str, Any]


def report(section: Section, results: Results) -> None:
    """Writes a panel."""
    {"times": _times, "noise": _noise, "messages": _messages}[section.panel](section, results)


def _swept(results: Results, name: str) -> dict[float, Any]:
    found = {
        run.removeprefix(f"{name} "): result for run, result in results.items() if run.startswith(f"{name} ")
    }
    return {float(x): result for x, result in found.items() if x != "printed"}


def _times(section: Section, results: Results) -> None:
    """Sets a lower bound of epsilon, from the times of messages alone, beside the promise."""
    section.text += [
        "",
        'Dubey and Pentland: "The procedure outlined above guarantees that each of the n outgoing messages [...] for '
        'any agent i is (epsilon, delta)-differentially private." (Remark 3.) Proposition 3 takes the rounds of '
        "synchronisation as given; but line 12 of Algorithm 1 says when they are, and reads V, which holds what the "
        "agent has observed since, without noise. Before the first synchronisation there is no noise in it whatever.",
        "",
        "Two agents, d = 2. In two neighbouring histories one agent's first pull is of a context of length 1 or of "
        "none; all other pulls are of none. An attacker who sees nothing but when the first message comes guesses "
        f"which it was. Lower bounds of epsilon at delta = {DELTA:g} are too high with probability {ERROR:g}; they "
        "are what so many samples can show. D is an argument of Algorithm 1; the printed one is tried at ever longer "
        "horizons. "
        "Few of these betray this observation, the fewer the larger the noise, whose bound stands in the trigger; but "
        "privacy is for the worst of all cases, and an agent has many observations.",
    ]
    row = section.table(
        "when to send, and epsilon promised", "T", "share of horizons that betray it", "first message without",
        "with", "wrong guesses", "epsilon at least", "promise", "what is claimed here",
    )  # fmt: skip
    for name in (MADE, SEARCHED, DOUBLING):
        shown: dict[float, float] = {}
        for epsilon, found in _swept(results, name).items():
            shown[epsilon] = found.epsilon(DELTA)
            refuted = "**refuted**" if shown[epsilon] > epsilon else "stands"
            row(
                f"{name}: {epsilon:g}", found.horizon, "-" if np.isnan(found.share) else f"{found.share:.2%}",
                _rounds(found.without), _rounds(found.with_), _wrong(found), f"{shown[epsilon]:.2f}", refuted,
                f"nothing: {found.reason}" if found.reason else "the promise",
            )  # fmt: skip
        _draw(section, name, shown)
    promised = list(_swept(results, DOUBLING))
    _draw(section, "promised", {epsilon: epsilon for epsilon in promised})
    section.text += [
        "",
        "Where agents choose when to send, each history has a round of its own for its first message, whatever the "
        "noise is drawn to be: no epsilon at all is kept. Rounds that are fixed in advance tell nothing: all baselines "
        "of this package that claim to be private send in such rounds. With the trigger nothing is claimed.",
    ]


def _rounds(times: Any) -> str:
    rounds = sorted(set(times.tolist()))
    return f"round {rounds[0]}" if len(rounds) == 1 else f"rounds {rounds[0]} to {rounds[-1]}"


def _wrong(found: Betrayed) -> str:
    """Says how often who guesses by the median round is wrong."""
    between = (np.median(found.without) + np.median(found.with_)) / 2
    if np.median(found.without) == np.median(found.with_):
        return "half"
    early = np.median(found.with_) < np.median(found.without)
    wrong = ((found.without < between) == early).sum() + ((found.with_ < between) != early).sum()
    return f"{wrong} of {2 * len(found.with_):,}"


def _noise(section: Section, results: Results) -> None:
    """Sets noise in the sum and regret against the number of agents."""
    section.text += [
        "",
        "S, which all agents learn from, is the sum of M noisy matrices. What is measured is the standard deviation of "
        "the noise on its diagonal, over that in one agent's share (agents that do nothing, 16 rounds, printed noise):",
    ]
    added: dict[float, Added] = _swept(results, SUMMED)
    row = section.table("agents M", "noise in one agent's share", "noise in the sum", "ratio", "sqrt(M)")
    ratios = {}
    for agents, found in added.items():
        single, summed = found.single.std(), found.summed.std()
        ratios[agents] = summed / single
        row(
            f"{agents:g}", f"{single:.1f}", f"{summed:.1f}", f"{ratios[agents]:.2f}", f"{np.sqrt(agents):.2f}"
        )
    first = min(ratios)
    _draw(section, "noise in the sum", {m: value / ratios[first] for m, value in ratios.items()})
    section.text += [
        "",
        "Dubey and Pentland's Theorem 1 has regret of the group \"O(sigma sqrt(MTd) (log(rho_max/rho_min + TL^2/(d "
        'rho_min)) + sqrt(log 2/alpha) + MS sqrt(rho_max) + M kappa))", with "rho_max = 3 Lambda" (Proposition 4) of '
        'order sqrt(d)/epsilon. That is M^(3/2) d^(3/4) sqrt(T/epsilon); Corollary 1 prints "O~(d^{3/4} '
        "sqrt(MT/epsilon))\", without the factor M. As noise adds up to sqrt(M) times one agent's, rho_max of the sum "
        "is that much larger, and M S sqrt(rho_max) can be M^(1/4) S sqrt(rho_max), no less: M^(3/4) sqrt(T/epsilon) "
        "for the group, M^(-1/4) an agent, where the corollary has M^(-1/2) and the theorem M^(1/2). Exponents of M "
        "fitted to regret an agent in each trial:",
    ]
    row = section.table(
        "form", *(f"M = {agents:g}" for agents in added), "exponent of M (± 95 % over trials)"
    )
    for form in FORMS:
        runs: dict[float, Result] = _swept(results, form)
        regrets = np.array([regret_by_seed(run) for run in runs.values()])
        slopes = np.polyfit(np.log(list(runs)), np.log(regrets), 1)[0]
        row(form, *(regret_text(run) for run in runs.values()), over_seeds(slopes, ".2f"))
        _draw(
            section,
            form,
            {m: float(each.mean() / regrets[0].mean()) for m, each in zip(runs, regrets, strict=True)},
        )
    for name, power in (("Corollary 1: M^(-1/2)", -0.5), ("noise of M agents: M^(-1/4)", -0.25)):
        _draw(section, name, {m: (m / first) ** power for m in ratios})
    slopes = _slopes(results, "FedUCB")
    exponent = section.say("exponent of FedUCB", over_seeds(slopes, ".2f"))
    section.text += [
        "",
        f"Noise in the sum grows as sqrt(M): {_near(ratios)}. Regret of `FedUCB`, whose bound reckons with the noise "
        f"of the sum, has the exponent {exponent}: {_said(slopes, -0.25, 'M^(-1/4)')}; "
        f"{_said(slopes, -0.5, 'M^(-1/2)')}. These are bounds in the limit, and this is one horizon: an exponent "
        "supports one or the other and proves none. Who has learnt nothing yet has the exponent 0.",
    ]


def _slopes(results: Results, form: str) -> Any:
    runs: dict[float, Result] = _swept(results, form)
    return np.polyfit(
        np.log(list(runs)), np.log(np.array([regret_by_seed(run) for run in runs.values()])), 1
    )[0]


def _near(ratios: Mapping[float, float]) -> str:
    worst = max(abs(value / np.sqrt(agents) - 1) for agents, value in ratios.items())
    return f"no ratio is further from it than {worst:.1%}"


def _said(slopes: Any, power: float, name: str) -> str:
    mean, half = mean_and_half_width(slopes)
    if np.isnan(half):
        return f"{name} undecided, trials are too few"
    return f"{name} {'within' if abs(mean - power) <= half else 'outside'} the interval"


def _draw(section: Section, name: str, points: Mapping[float, float]) -> None:
    section.draw(name, list(points), list(points.values()), np.zeros(len(points)))


def _messages(section: Section, results: Results) -> None:
    """Counts synchronisations beside the printed bound."""
    rounds = int(next(iter(results.values())).rounds[-1])
    section.text += [
        "",
        'Dubey and Pentland: "If Algorithm 1 is run with threshold D, then total rounds of communication n is upper '
        'bounded by 2 sqrt((dT/D) log(rho_max/rho_min + TL^2/(d rho_min))) + 4." (Proposition 1.) Its proof adds up '
        "how much log det S grows from one synchronisation to the next. The trigger does not ask for that: it adds M "
        "(rho_max - rho_min) I to V each time anew, so that its left-hand side is above 0 with no new data at all, and "
        "while the noise outweighs the data it is a clock that strikes whenever D over that many rounds have passed. "
        "Then n grows as dT/D, the bound as its root.",
        "",
        f"{AGENTS} agents, d = {DIM}, T = {rounds:,}; printed noise for epsilon = 1 with rho_min and rho_max of "
        "Proposition 4, or true data, where both are the ridge over M. Means over trials:",
    ]
    row = section.table(
        "dT/D",
        "printed form",
        "its bound",
        "is it kept?",
        "true data",
        "its bound with true data",
        "is that kept?",
    )
    counted: dict[str, dict[float, float]] = {name: {} for name in (PRINTED, TRUE)}
    bounds: dict[str, dict[float, float]] = {name: {} for name in (PRINTED, TRUE)}
    for x in [*_swept(results, PRINTED), None]:
        texts: list[str] = []
        for name in (PRINTED, TRUE):
            private = name == PRINTED
            result = results[f"{name} {'printed' if x is None else format(x, 'g')}"]
            ratio = printed_ratio(rounds, private) if x is None else x
            # Everybody sends to everybody else in each.
            found = result.traffic["messages"].max(axis=1) / (AGENTS - 1)
            bound = printed_bound(ratio, rounds, private)
            if x is not None:
                counted[name][x], bounds[name][x] = float(found.mean()), bound
            holds = "yes" if found.max() <= bound else "**no**"
            label = f"{found.mean():,.1f}" + (f" (dT/D = {ratio:.2f})" if x is None else "")
            texts += [label, f"{bound:,.1f}", holds]
        row("Theorem 1's" if x is None else f"{x:g}", *texts)
    for name, title in ((PRINTED, "printed form"), (TRUE, "true data")):
        _draw(section, title, counted[name])
        _draw(section, f"{title}, the bound", bounds[name])
    broken = [x for x, n in counted[PRINTED].items() if n > bounds[PRINTED][x]]
    # (dT/D) log(...) of the bound, at dT/D = 1.
    needed = DIM * ((printed_bound(1, rounds, True) - 4) / 2) ** 2
    section.text += [
        "",
        "With the printed noise the bound "
        + (f"is broken from dT/D = {broken[0]:g} on" if broken else "holds wherever it was tried")
        + '. With the D of Theorem 1, which "therefore ensures O(M log T) total communication (by Proposition 1)", it '
        'holds, as there is hardly any communication then: the same theorem assumes that "synchronization occurs in at '
        'least n = Omega(d log(rho_max/rho_min + TL^2/(d rho_min))) rounds", of which d log(...) is '
        f"{needed:.0f} here.",
    ]
