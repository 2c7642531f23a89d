"""What the pages of the FedUCB paper's experiments say."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Ratio,
    ordered,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.feducb import (
    FIG1B_FORMS,
    GRAPHS,
    PLACEBO,
    PRIVATE,
    SHARED,
    SILENT,
    TRIGGERED,
    noise_sd,
)
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds, regret_text
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.leaderboard.sweep.runs import Result

PAPER_ROUNDS, PAPER_TRIALS = 10_000_000, 100


def found(
    section: Section,
    results: Results,
    quote: str,
    reading: str,
    verdicts: Mapping[str, str],
    agents: int | None = None,
) -> None:
    """Sets a sentence of the paper beside what is found, and says where that is not the paper's setting.

    Args:
        section: Is written to.
        results: The panel's.
        quote: The sentence, word by word.
        reading: What it is taken to say.
        verdicts: Whether it does, by what is judged.
        agents: How many the paper has, if it says so.
    """
    result = next(iter(results.values()))
    rounds, (trials, played) = int(result.rounds[-1]), result.regret.shape[1:]
    unlike = []
    if rounds != PAPER_ROUNDS:
        unlike.append(f"T = {rounds:,} for {PAPER_ROUNDS:,}")
    if trials != PAPER_TRIALS:
        unlike.append(f"{trials} trials for {PAPER_TRIALS}")
    if agents is not None and played != agents:
        unlike.append(f"{played} agents for {agents}")
    where = (
        f"not at the paper's setting ({'; '.join(unlike)}), which may differ" if unlike else "as in the paper"
    )
    section.text += ["", f'The paper: "{quote}" {reading} Found {where}:', ""]
    section.text += [f"* {name}: {verdict}." for name, verdict in verdicts.items()]


def table(section: Section, results: Results) -> None:
    """Writes regret at T of every run, over the silent agents'."""
    row = section.table("algorithm", "what it does", "regret at T (± 95 %)", "/ silent", "messages an agent")
    meanings = {
        **SILENT,
        **PRIVATE,
        **TRIGGERED,
        SHARED: "true data",
        PLACEBO: "FedUCB-min on noise alone",
        **{graph: f"Algorithm 3, gamma = {diameter}" for graph, (_, diameter) in GRAPHS.items()},
    }
    for name, result in results.items():
        value = ratio(result, results["LinUCB"])
        messages = result.traffic.get("messages")
        row(
            name, meanings.get(name.split(",")[0].split(" ")[0], "-"), regret_text(result),
            "1" if name == "LinUCB" else value,
            "-" if messages is None else f"{messages.mean():.0f}",
        )  # fmt: skip
        section.add(f"{name} / silent", "", value)


def _sweep(results: Results, suffixes: Mapping[float, str], name: str, silent: str) -> dict[float, Ratio]:
    """Returns a run's ratios to the silent agents' regret over a sweep, x to ratio."""
    return {
        x: ratio(results[name + suffix], results[silent.format(suffix)]) for x, suffix in suffixes.items()
    }


def numbers(results: Results, name: str) -> dict[float, str]:
    """Returns what a run's names end with, by its number."""
    suffixes = [key.removeprefix(name) for key in results if key.startswith(f"{name} ")]
    return {float(suffix): suffix for suffix in suffixes}


def fig1a(section: Section, results: Results) -> None:
    """Regret against epsilon or the number of agents, and what equal privacy costs in both forms."""
    by_epsilon = section.panel == "epsilon"
    suffixes = numbers(results, "FedUCB")
    silent = "LinUCB" if by_epsilon else "LinUCB{}"
    for name in (*SILENT, SHARED, *PRIVATE, PLACEBO):
        swept = numbers(results, name)
        points = (
            _sweep(results, suffixes, name, silent)
            if swept
            else {x: ratio(results[name], results["LinUCB"]) for x in suffixes}
        )
        if name != "LinUCB":
            section.draw_ratios(name, points)
    at_one = suffixes[1.0] if by_epsilon else suffixes[10.0]
    chosen = {
        name: results[name if name in results else name + at_one]
        for name in (*SILENT, SHARED, *PRIVATE, PLACEBO)
    }
    section.text += ["", "At epsilon = 1 with 10 agents:"]
    table(section, chosen)
    _gains(section, chosen)
    if by_epsilon:
        _equal_privacy(section, chosen)
    row = section.table("epsilon" if by_epsilon else "agents", *PRIVATE, SHARED)
    for x, suffix in suffixes.items():
        shared = results[SHARED if by_epsilon else SHARED + suffix]
        row(f"{x:g}", *(regret_text(results[name + suffix]) for name in PRIVATE), regret_text(shared))
    against = {name: _sweep(results, suffixes, name, silent) for name in PRIVATE}
    found(
        section,
        results,
        "Figure 1A describes the results, competitive even at large privacy budget.",
        "It shows no competitor. Here that is silence, which is private for nothing: competitive is what has at most "
        "silence's regret.",
        {
            name: "; ".join(
                f"at {'epsilon' if by_epsilon else 'M ='} {x:g} {value.at_most(1)} ({value})"
                for x, value in points.items()
            )
            for name, points in against.items()
        },
    )


def _equal_privacy(section: Section, results: Results) -> None:
    """Sets the printed form's noise and what it has spent beside ours; both promise (1, 0.1)."""
    section.text += [
        "",
        "Both forms promise epsilon = 1 at delta = 0.1 for one observation replaced. What the agent that spent most "
        "has really spent says how much more noise the printed sigma adds than its promise needs. `exact` is what is "
        "spent; `zcdp` is the same noise through a bound, rho + 2 sqrt(rho ln(1/delta)) with rho = mu^2/2, which is "
        "loose at so large a delta: to say more than was promised is its fault, not that of the noise. Where delta at "
        "epsilon 0 is below 0.1 already, 0 is spent.",
    ]
    row = section.table("form", "largest noise sd on a sum", "composition", "epsilon", "delta", "remark")
    for name in ("FedUCB-printed", "FedUCB"):
        sd = noise_sd(name, int(results[name].rounds[-1]))
        for claim in results[name].claims:
            if claim["adjacency"] == "one-observation":
                epsilon = "-" if claim["epsilon"] is None else f"{claim['epsilon']:.3f}"
                row(name, f"{sd:.2f}", claim["composition"], epsilon, claim["delta"], claim["reason"])


def _gains(section: Section, results: Results) -> None:
    """Says what ours gains over the printed form, sharing over silence, and what the minimum risks."""
    gained = ratio(results["FedUCB"], results["FedUCB-printed"])
    shared = ratio(results["LinUCB"], results[SHARED])
    least = ratio(results["FedUCB-min"], results["LinUCB"])
    random = ratio(results["FedUCB-printed"], results["random-arm"])
    placebo = ratio(results[PLACEBO], results["LinUCB"])
    tuned = ratio(results["LinUCB-0.5"], results["LinUCB"])
    say = section.say
    section.text += [
        "",
        "* `FedUCB` over the printed form, both private by the same promise: "
        f"{say('ours / printed', gained)}.",
        f"* Silence over sharing true data: {say('silence / true data', shared)}.",
        f"* `FedUCB-min`, which takes the smaller one of two bounds, over silence: "
        f"{say('smaller bound / silence', least)}.",
        f"* The printed form over random arms: {say('printed / random', random)}. For how long: `feducb-horizon`.",
        f"* The placebo, noise alone, over silence: {say('placebo / silence', placebo)}; silence with half the radius "
        f"over silence: {say('half the radius / silence', tuned)}.",
    ]


def fig1b(section: Section, results: Results) -> None:
    """Regret over rounds for three budgets of communication."""
    table(section, results)
    form = FIG1B_FORMS[section.panel]
    for name, result in results.items():
        # Before, all curves are one; budgets look alike in all panels.
        label = "its trigger" if name in TRIGGERED else name.removeprefix(f"{form}, ")
        section.draw_regret(label, _from(result, 100))
    runs = {
        budget: results[f"{form}, {budget}"]
        for budget in ("T", "log T", "sqrt M")
        if f"{form}, {budget}" in results
    }
    statement, links = ordered(runs.values())
    found(
        section,
        results,
        "We observe a tradeoff as highlighted in Remark 1.",
        "That remark has less regret with more communication, at a given privacy budget: O(M T), then O(M log T), then "
        "O(M^1.5).",
        {f"{form}, regret with {' < with '.join(runs)}": f"{statement} ({'; '.join(map(str, links))})"},
        agents=100,
    )
    if form != SHARED:
        over = {
            rival: "; ".join(str(ratio(run, results[rival])) for run in runs.values())
            for rival in ("random-arm", "LinUCB")
        }
        section.text += [
            "",
            f"Over random arms' regret, with {', '.join(runs)}: {over['random-arm']}. Where all are near 1 nobody has "
            f"learnt, and no order is a tradeoff. Over silence's, which spends nothing: {over['LinUCB']}.",
            "",
            "All have the same mechanism, "
            + ("the printed tree" if form == "FedUCB-printed" else "buffered linear Toeplitz noise")
            + ", planned for as many releases as there are, and one claim. More releases share it, so that each is "
            "noisier.",
        ]


def _from(result: Result, round_: int) -> Result:
    """Returns a run's curve without what was before a round, or all of it where there is little more."""
    since = result.rounds >= min(round_, result.rounds[-1] // 10)
    return replace(result, rounds=result.rounds[since], regret=result.regret[since])


def fig1c(section: Section, results: Results) -> None:
    """Regret at T against the dimension."""
    names = list(dict.fromkeys(key.rpartition(" ")[0] for key in results))
    suffixes = numbers(results, "FedUCB")
    row = section.table("d", *names)
    for dim, suffix in suffixes.items():
        row(f"{dim:g}", *(regret_text(results[name + suffix]) for name in names))
    for name in names:
        section.draw_points(name, {dim: results[name + suffix] for dim, suffix in suffixes.items()})
    exponents = {name: _exponents(results, suffixes, name) for name in names}
    row = section.table("algorithm", "exponent of d, fitted (± 95 % over trials)")
    for name, values in exponents.items():
        row(name, over_seeds(values, ".2f"))
    found(
        section,
        results,
        "We observe essentially a quadratic dependence.",
        "Of regret on d, in the private setting, so that the exponent of a power of d fitted to each trial is 2. (Who "
        "learns nothing has random arms' exponent; more arms a round make the best one rarer, too.)",
        {name: _two(exponents[name]) for name in PRIVATE if name in exponents},
        agents=100,
    )


def _exponents(results: Results, suffixes: Mapping[float, str], name: str) -> Array:
    """Returns the slopes of log regret against log d, a trial each."""
    regrets = np.array([regret_by_seed(results[name + suffix]) for suffix in suffixes.values()])
    slopes: Array = np.polyfit(np.log(list(suffixes)), np.log(regrets), 1)[0]
    return slopes


def _two(exponents: Array) -> str:
    """Says whether 2 is within the interval of exponents."""
    mean, half = mean_and_half_width(exponents)
    if np.isnan(half):
        return "undecided, of two trials"
    verdict = "holds" if abs(mean - 2) <= half else "does **not** hold"
    return f"{verdict} (2 against {over_seeds(exponents, '.2f')})"
