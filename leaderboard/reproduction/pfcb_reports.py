"""What the pages of the P-FCB paper's experiments say."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, ratio
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text
from fedbandit_envs.leaderboard.reproduction.pfcb import (
    EXP1_BASELINES,
    FCB_READINGS,
    MARGIN,
    MARKETS,
    market_seeds,
)
from fedbandit_envs.leaderboard.reproduction.runs import Result
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.budget import decreasing

# What the paper prints: "136 %, 233 % more regret" than FCB (uniform), "235 %, 394 %" (normal), section 6.2.
PAPER_ABOVE_FCB = {
    "uniform": {"P-FCB": 2.36, "SS-UCB": 3.33},
    "normal": {"P-FCB": 3.35, "SS-UCB": 4.94},
}
PAPER_DELTA = 0.01
PAPER_FRR = {law: above["P-FCB"] / above["SS-UCB"] for law, above in PAPER_ABOVE_FCB.items()}


def exp1(section: Section, results: Results) -> None:
    """Regret over rounds, ratios to FCB, what the placebo gets, binding markets, and what epsilon is spent."""
    section.text += ["", "Cumulative regret per agent at T, over FCB's and over the silent agents':"]
    row = section.table(
        "algorithm", "regret (± 95 %)", "/ FCB", "paper", "", "/ silent (FRR)", "paper", "", "violations"
    )
    for name in EXP1_BASELINES:
        above = ratio(results[name], results["FCB"])
        frr = ratio(results[name], results["SS-UCB"])
        paper = PAPER_ABOVE_FCB[section.panel].get(name)
        paper_frr = {"P-FCB": PAPER_FRR[section.panel]}.get(name)
        row(
            name, regret_text(results[name]),
            above if name != "FCB" else "1", paper or "-", above.verdict(paper) if paper else "",
            frr if name != "SS-UCB" else "1", f"{paper_frr:.2f}" if paper_frr else "-",
            frr.verdict(paper_frr) if paper_frr else "", f"{_violations(results[name]):.1e}",
        )  # fmt: skip
        section.add(f"{name} / FCB", "", above)
        section.add(f"{name} / silent", "", frr)
        section.draw_regret(name, results[name])
    gain, placebo = (1 - ratio(results[n], results["SS-UCB"]).value for n in ("P-FCB", "P-FCB-placebo"))
    tuned = 1 - ratio(results["SS-UCB-0.8"], results["SS-UCB"]).value
    section.text += [
        "",
        f"P-FCB saves {gain:.1%} of the silent agents' regret. Messages that are noise alone (the placebo) save "
        f"{placebo:.1%}, so {placebo / gain:.0%} of the gain is not owed to what agents tell each other. Silence "
        f"with the confidence radius times 0.8 saves {tuned:.1%} without any communication.",
    ]
    _readings(section, results)
    _binding(section, results)
    _claims(section, results["P-FCB"])


def _violations(result: Result) -> float:
    """Returns the share of rounds that violated the quality constraint."""
    return float(result.info["violation"].mean())


def _readings(section: Section, results: Results) -> None:
    """Sets other readings of the paper's non-private FCB beside its ratios."""
    section.text += [
        "",
        "The paper does not say how often its FCB shares, nor how it weighs what it hears. Readings tried:",
    ]
    row = section.table("FCB", "silent / FCB", "paper", "", "P-FCB / FCB", "paper", "")
    for reading, meaning in FCB_READINGS.items():
        cells = []
        for name, paper in (
            ("SS-UCB", PAPER_ABOVE_FCB[section.panel]["SS-UCB"]),
            ("P-FCB", PAPER_ABOVE_FCB[section.panel]["P-FCB"]),
        ):
            value = ratio(results[name], results[reading])
            section.add(f"{name} / {reading}", "", value)
            cells += [value, paper, value.verdict(paper)]
        row(meaning, *cells)


def _binding(section: Section, results: Results) -> None:
    _, binding, share = market_seeds(section.panel)
    if not binding:
        section.text += [
            "",
            "In none of 200 markets of this law does the quality constraint bind for any of ten agents.",
        ]
        return
    section.text += [
        "",
        f"Of 200 markets of this law, {share:.1%} have a quality constraint that binds for some of ten agents; they "
        "are left out above. There optimism about bad producers violates the constraint nearly every round, which "
        "costs the largest regret there is, and every ratio goes to 1. A margin on the threshold helps there and "
        "costs elsewhere:",
    ]
    row = section.table("markets", "margin", "SS-UCB", "P-FCB", "P-FCB / SS-UCB", "violations of P-FCB")
    for markets, count in (("", MARKETS), (", binding", len(binding))):
        for margin, suffix in ((0, ""), (MARGIN, ", margin")):
            silent, private = (results[f"{name}{markets}{suffix}"] for name in ("SS-UCB", "P-FCB"))
            value = ratio(private, silent)
            row(
                f"{count} {markets[2:] or 'slack'}", margin, regret_text(silent), regret_text(private), value,
                f"{_violations(private):.2%}",
            )  # fmt: skip
            section.add(f"P-FCB / SS-UCB{markets}{suffix}", "", value)


def _claims(section: Section, result: Result) -> None:
    section.text += [
        "",
        "What the agent that spent most has really spent (the paper asks for epsilon = 1 at delta = 0.01; a message "
        "releases two values, and its budgets sum to 1.2 with a natural logarithm, hence log2). No adjacency here "
        "covers an agent whose later choices change with the altered quantity:",
    ]
    section.claims(claim for claim in result.claims if claim["adjacency"] in ("one-quantity", "one-round"))


def exp2(section: Section, results: Results) -> None:
    """The ratio to the silent agents' regret against epsilon."""
    budgets = [float(name.split()[1]) for name in results if name.startswith("P-FCB ")]
    points = {e: ratio(results[f"P-FCB {e:g}"], results["SS-UCB"]) for e in budgets}
    others = {name: ratio(results[name], results["SS-UCB"]) for name in ("FCB", "P-FCB-placebo")}
    row = section.table("epsilon", "FRR (ours)", "paper", "")
    for epsilon, value in points.items():
        at_one = epsilon == 1
        row(
            epsilon, value, f"{PAPER_FRR[section.panel]:.2f} (EXP1)" if at_one else "drawn only",
            value.verdict(PAPER_FRR[section.panel]) if at_one else "",
        )  # fmt: skip
    for name, value in others.items():
        row(f"{name}", value, "-", "")
        section.add(name, "", value)
    section.text += [
        "",
        f"FRR {'falls' if _falls(points) else 'does **not** fall'} monotonically in epsilon; the paper says it does.",
    ]
    section.text += [""] + [
        f"At epsilon = {epsilon:g} the first release's share is {share:.2f}: the paper's calibration is proven below 1 "
        f"only; its noise really gives delta = {delta:.2g} there."
        for epsilon, share, delta in _beyond_proof(budgets, int(results["SS-UCB"].rounds[-1]))
    ]
    section.draw_ratios("P-FCB", points)
    for name, value in others.items():
        flat = [value.value] * len(points)
        section.curves[name] = (list(points), flat, np.zeros((2, len(points))))
    section.curves["paper (from EXP1)"] = ([1.0], [PAPER_FRR[section.panel]], np.zeros((2, 1)))


def _falls(points: Mapping[float, Ratio]) -> bool:
    return all(before.value > after.value for before, after in pairwise(points.values()))


def _beyond_proof(budgets: list[float], horizon: int) -> list[tuple[float, float, float]]:
    """Returns budget, first share and its true delta where the classic calibration is used beyond its proof."""
    shares = [(epsilon, float(decreasing(epsilon, horizon)[0])) for epsilon in budgets]
    return [
        (epsilon, share, float(gaussian_delta(share, 1 / classic_noise_multiplier(share, PAPER_DELTA))))
        for epsilon, share in shares
        if share >= 1
    ]


def exp3(section: Section, results: Results) -> None:
    """Regret per agent and its ratio to the silent agents', against the number of agents."""
    sizes = [int(name.split()[1]) for name in results if name.startswith("SS-UCB ")]
    row = section.table("agents", "silent", "P-FCB", "P-FCB / silent", "placebo / silent")
    points, placebos = {}, {}
    for size in sizes:
        silent, private, placebo = (results[f"{n} {size}"] for n in ("SS-UCB", "P-FCB", "P-FCB-placebo"))
        points[float(size)] = ratio(private, silent)
        placebos[float(size)] = ratio(placebo, silent)
        row(size, regret_text(silent), regret_text(private), points[size], placebos[size])
    section.text += [
        "",
        "The paper draws a curve that falls about linearly in the number of agents and prints no number. "
        f"Ours {'falls at every step' if _falls(points) else 'does **not** fall at every step'}.",
    ]
    section.draw_ratios("P-FCB", points)
    section.draw_ratios("P-FCB-placebo", placebos)


def fig2(section: Section, results: Results) -> None:
    """The ratio over rounds when true data is shared every round, homogeneous and heterogeneous."""
    row = section.table("setting", "FRR at T", "at T / 10", "at T / 100")
    for setting in ("homogeneous", "heterogeneous"):
        shared, silent = results[f"shared, {setting}"], results[f"SS-UCB, {setting}"]
        indices = [int(np.searchsorted(shared.rounds, shared.rounds[-1] // scale)) for scale in (1, 10, 100)]
        row(setting, *(ratio(shared, silent, index) for index in indices))
        kept = range(0, shared.rounds.size, 3)
        section.draw_ratios(setting, {float(shared.rounds[k]): ratio(shared, silent, k) for k in kept})
    section.text += [
        "",
        "The paper draws these curves and prints no number; it says that both settings show the same trend.",
    ]
