"""What the pages of the P-FCB paper's EXP2, EXP3 and Figure 2 say."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import (
    all_hold,
    elsewhere,
    ordered,
    ratio,
    regret_by_seed,
    strata_of_seeds,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text
from fedbandit_envs.leaderboard.reproduction.pfcb_exp1_report import PAPER_FRR
from fedbandit_envs.leaderboard.reproduction.pfcb_setting import (
    PAPER_ROUNDS,
    Sentences,
    median_market,
    verdict,
)
from fedbandit_envs.leaderboard.sweep.runs import Result
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.budget import decreasing

PAPER_DELTA = 0.01


def exp2(section: Section, results: Results) -> None:
    """The ratio to the silent agents' regret against epsilon."""
    silent = results["SS-UCB"]
    budgets = [float(name.split()[1]) for name in results if name.startswith("P-FCB ")]
    private = {epsilon: results[f"P-FCB {epsilon:g}"] for epsilon in budgets}
    points = {epsilon: ratio(result, silent) for epsilon, result in private.items()}
    controls = {
        "FCB-checked": "true values, checked: no privacy",
        "FCB": "true values, unchecked: no privacy",
        "P-FCB-placebo": "noise of epsilon 1 alone",
    }
    section.text += [
        "",
        f"Regret per agent at T; SS-UCB's is {section.say('SS-UCB', regret_text(silent))} (± runs):",
    ]
    row = section.table(
        "algorithm", "epsilon", "regret, ± runs", "/ SS-UCB (FRR) [runs]", "median market", "five other markets",
        "paper", "verdict",
    )  # fmt: skip
    for epsilon, result in private.items():
        expected, printed = elsewhere(result, silent), PAPER_FRR[section.panel]
        says = (
            (f"{printed:.2f} (EXP1)", verdict(expected.holds(printed), silent))
            if epsilon == 1
            else ("drawn", "")
        )
        row(
            "P-FCB",
            f"{epsilon:g}",
            regret_text(result),
            points[epsilon],
            median_market(result, silent),
            expected,
            *says,
        )
    for name, meaning in controls.items():
        others = results[name]
        row(
            name, meaning, regret_text(others), ratio(others, silent), median_market(others, silent),
            elsewhere(others, silent), "-", "",
        )  # fmt: skip
    section.draw_ratios("P-FCB", points)
    for name in controls:
        section.draw_ratios(name, dict.fromkeys(budgets, ratio(results[name], silent)))
    section.curves[f"paper, T = {PAPER_ROUNDS:,} (from EXP1)"] = (
        [1.0],
        [PAPER_FRR[section.panel]],
        np.zeros((2, 1)),
    )
    _beyond(section, budgets, int(silent.rounds[-1]))
    _exp2_sentences(section, silent, private)


def _beyond(section: Section, budgets: list[float], horizon: int) -> None:
    """Says where the classic calibration is used beyond its proof."""
    for epsilon in budgets:
        share = float(decreasing(epsilon, horizon)[0])
        if share >= 1:
            delta = float(gaussian_delta(share, 1 / classic_noise_multiplier(share, PAPER_DELTA)))
            section.text += [
                "",
                f"At epsilon = {epsilon:g} the first release's share is {share:.2f}: the paper's calibration is proven "
                f"below 1 only; its noise really gives delta = {delta:.2g} there.",
            ]


def _exp2_sentences(section: Section, silent: Result, private: dict[float, Result]) -> None:
    sentences = Sentences(section)
    falls, links = ordered(reversed(private.values()))
    first, last = min(private), max(private)
    sentences.add(
        "We observe that according to our expectations, the regret decreases as privacy budget is increased.",
        "each over the one of the next smaller epsilon: " + "; ".join(map(str, reversed(links))),
        verdict(falls, silent),
    )
    bent = ratio(private[1.0], _between(private[first], private[last], (1.0 - first) / (last - first)))
    sentences.add(
        "This decrease in regret is sub-linear in terms of increasing ϵ values.",
        f"regret at epsilon = 1 over that of the straight line from {first:g} to {last:g}: {bent}",
        verdict(bent.at_most(1), silent),
    )
    within = {epsilon: ratio(result, silent) for epsilon, result in private.items() if epsilon <= 1}
    sentences.add(
        "From Fig. 4, we note that P-FCB performs well within this privacy budget.",
        "FRR up to epsilon = 1: " + "; ".join(f"{epsilon:g}: {value}" for epsilon, value in within.items()),
        f"below silence: {verdict(all_hold(value.at_most(1) for value in within.values()), silent)}",
    )
    sentences.add(
        "P-FCB achieves reduction in regret (compared to non-federated setting) for low privacy budgets.",
        f"FRR at epsilon = {first:g}: {within[first]}",
        verdict(within[first].at_most(1), silent),
    )


def exp3(section: Section, results: Results) -> None:
    """Regret per agent against the number of agents, as the paper draws it; ratios to the silent agents'."""
    names = ("SS-UCB", "P-FCB", "P-FCB-placebo")
    sizes = [int(name.split()[1]) for name in results if name.startswith("SS-UCB ")]
    runs = {name: {float(size): results[f"{name} {size}"] for size in sizes} for name in names}
    section.text += ["", "Regret per agent at T:"]
    row = section.table(
        "agents", "SS-UCB, ± runs", "P-FCB, ± runs", "P-FCB / SS-UCB [runs]", "median market",
        "placebo / SS-UCB [runs]", "P-FCB's median agent, ± runs", "SS-UCB's regret that one agent bears",
    )  # fmt: skip
    for size in map(float, sizes):
        silent, private, placebo = (runs[name][size] for name in names)
        row(
            f"{size:g}", regret_text(silent), regret_text(private), ratio(private, silent),
            median_market(private, silent), ratio(placebo, silent), regret_text(_of_the_median_agent(private)),
            f"{_largest_part(silent):.1%}",
        )  # fmt: skip
    for name, points in runs.items():
        section.draw_points(name, points)
    section.text += [
        "",
        "A larger federation is the smaller one and more agents, who have other costs and capacities: by that alone "
        "SS-UCB's regret changes with n. The ratio to it takes that out. The last column is the regret of the agent "
        "who has most, as a part of that of all agents of all five markets: where it is large, means say little of the "
        "others, and the median agent of every run says more.",
    ]
    _exp3_sentences(section, runs["SS-UCB"], runs["P-FCB"])


def _of_the_median_agent(result: Result) -> Result:
    return replace(result, regret=np.median(result.regret, axis=2, keepdims=True))


def _largest_part(result: Result) -> float:
    """Returns which part of all regret is that of one agent of one market, the largest."""
    agents = np.stack(
        [
            result.regret[-1, strata_of_seeds(result) == market].mean(axis=0)
            for market in range(result.strata.count)
        ]
    )
    return float(agents.max() / agents.sum())


def _exp3_sentences(section: Section, silent: dict[float, Result], private: dict[float, Result]) -> None:
    sizes = list(private)
    first, last = sizes[0], sizes[-1]
    falls, _ = ordered([private[size] for size in reversed(sizes)])
    usually, _ = ordered([_of_the_median_agent(private[size]) for size in reversed(sizes)])
    chords = {
        size: ratio(private[size], _between(private[first], private[last], (size - first) / (last - first)))
        for size in sizes[1:-1]
    }
    straight, power = _fits(
        np.array(sizes), np.array([regret_by_seed(run).mean() for run in private.values()])
    )
    on_it = all_hold([s for value in chords.values() for s in (value.at_least(1), value.at_most(1))])
    linear = falls if falls != "holds" else "holds" if straight >= power else on_it
    reduced = all_hold(ratio(private[size], silent[size]).at_most(1) for size in sizes)
    sentences = Sentences(section)
    sentences.add(
        "We see (Fig. 5) an approximately linear decrease in per agent regret as the number of learning agents "
        "increases.",
        f"over the straight line from {first:g} to {last:g} agents: "
        + "; ".join(f"{size:g}: {value}" for size, value in chords.items())
        + f"; of the variance a straight line explains {straight:.1%}, a power of n {power:.1%}",
        f"decrease: {verdict(falls, private[last])}, of the median agent: {verdict(usually, private[last])}; "
        f"linear: {verdict(linear, private[last])}",
    )
    sentences.add(
        "This reinforces the notion of reduction of regret, suggested in Section 4, by engaging in federated learning "
        "is valid in a heterogeneous private setting.",
        f"P-FCB / SS-UCB with {first:g} agents: {ratio(private[first], silent[first])}; with {last:g}: "
        f"{ratio(private[last], silent[last])}",
        verdict(reduced, private[last]),
    )
    section.text += [
        "",
        "Linear is judged by the straight line between the ends: it differs where there is no decrease, and where the "
        "intervals of regret over the line's leave 1 out and a power of n explains more of the variance.",
    ]


def _fits(sizes: Array, regrets: Array) -> tuple[float, float]:
    """Returns what share of the regrets' variance a straight line and a power of the sizes explain."""
    line = np.polyval(np.polyfit(sizes, regrets, 1), sizes)
    power = np.exp(np.polyval(np.polyfit(np.log(sizes), np.log(regrets), 1), np.log(sizes)))
    variance = regrets.var()
    return float(1 - ((regrets - line) ** 2).mean() / variance), float(
        1 - ((regrets - power) ** 2).mean() / variance
    )


def fig2(section: Section, results: Results) -> None:
    """The ratio over rounds when true data is shared every round, homogeneous and heterogeneous."""
    settings = {
        setting: (results[f"shared, {setting}"], results[f"SS-UCB, {setting}"])
        for setting in ("homogeneous", "heterogeneous")
    }
    section.text += [
        "",
        "Regret per agent when true data is shared every round (FCB-every-round), and SS-UCB's:",
    ]
    row = section.table(
        "setting",
        "round",
        "shared, ± runs",
        "SS-UCB, ± runs",
        "shared / SS-UCB (FRR) [runs]",
        "median market",
    )
    falls = {}
    for setting, (shared, silent) in settings.items():
        last = shared.rounds.size - 1
        indices = [int(np.searchsorted(shared.rounds, shared.rounds[-1] // part)) for part in (100, 10, 1)]
        for index in indices:
            told, alone = _until(shared, index), _until(silent, index)
            row(
                setting, f"{shared.rounds[index]:,}", regret_text(told), regret_text(alone),
                ratio(told, alone), median_market(told, alone),
            )  # fmt: skip
        frr = [ratio(shared, silent, index).value for index in indices]
        falls[setting] = [bool(later < earlier) for earlier, later in pairwise(frr)]
        kept = sorted({*range(last, -1, -3), 0})
        section.draw_ratios(setting, {float(shared.rounds[k]): ratio(shared, silent, k) for k in kept})
    _fig2_sentences(section, settings, falls)


def _fig2_sentences(
    section: Section, settings: dict[str, tuple[Result, Result]], falls: dict[str, list[bool]]
) -> None:
    alike = falls["homogeneous"] == falls["heterogeneous"]
    values = {setting: ratio(*pair) for setting, pair in settings.items()}
    silent = settings["heterogeneous"][1]
    ways = "; ".join(
        f"{setting}: " + ", ".join("falls" if down else "rises" for down in downs)
        for setting, downs in falls.items()
    )
    sentences = Sentences(section)
    sentences.add(
        "From Fig. 2 we observe that the trend for both homogeneous and heterogeneous settings are quite similar.",
        f"FRR from T / 100 to T / 10, and to T: {ways}; the ratio of the two settings' FRR at T is "
        f"{values['homogeneous'].value / values['heterogeneous'].value:.2f}",
        f"same directions: {verdict('holds' if alike else 'does **not** hold', silent)}",
    )
    sentences.add(
        "This shows that, similar to the homogeneous setting, employing federated learning reduces regret even in the "
        "heterogeneous setting.",
        f"FRR at T: homogeneous {values['homogeneous']}; heterogeneous {values['heterogeneous']}",
        verdict(all_hold(value.at_most(1) for value in values.values()), silent),
    )


def _until(result: Result, index: int) -> Result:
    """Returns the regret up to a checkpoint."""
    return replace(result, rounds=result.rounds[: index + 1], regret=result.regret[: index + 1])


def _between(first: Result, last: Result, share: float) -> Result:
    """Returns a run whose regret per agent lies that share of the way from one's to another's."""
    start, end = (run.regret.mean(axis=2, keepdims=True) for run in (first, last))
    return replace(first, regret=start + share * (end - start))
