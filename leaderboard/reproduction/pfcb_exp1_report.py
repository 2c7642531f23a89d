"""What the page of the P-FCB paper's EXP1 says."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import (
    Mean,
    elsewhere,
    instance_ratios,
    ratio,
    regret_by_seed,
    strata_of_seeds,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds, regret_text
from fedbandit_envs.leaderboard.reproduction.pfcb import (
    ALGORITHMS,
    FCB_READINGS,
    MARGIN,
    PRINTED_FORMS,
    choose_markets,
)
from fedbandit_envs.leaderboard.reproduction.pfcb_setting import Sentences, median_market, verdict
from fedbandit_envs.leaderboard.statistics import stratum_means
from fedbandit_envs.leaderboard.sweep.runs import Result, Strata

# What the paper prints: "136%, 233% more regret" than FCB (uniform), "235%, 394%" (normal), section 6.2.
PAPER_ABOVE_FCB = {
    "uniform": {"P-FCB": 2.36, "SS-UCB": 3.33},
    "normal": {"P-FCB": 3.35, "SS-UCB": 4.94},
}
PAPER_FRR = {law: above["P-FCB"] / above["SS-UCB"] for law, above in PAPER_ABOVE_FCB.items()}

_SILENT, _PRIVATE, _PLACEBO = "SS-UCB", "P-FCB", "P-FCB-placebo"
_DEFINED, _UNCHECKED = "FCB-checked", "FCB"
_RATIOS = (
    "Compared to FCB, P-FCB (ϵ = 1) and Non-federated incurs 136%, 233% more regret respectively for uniform "
    "sampling and 235%, 394% more regret respectively for normal sampling."
)
_SIGNIFICANT = (
    "P-FCB shows significant improvement in terms of regret (Fig. 3) at the cost of relatively low privacy "
    "budget."
)
_ABSTRACT = (
    "We further show that our algorithm provides an improvement in terms of regret while upholding quality threshold "
    "and meaningful privacy guarantees."
)


def exp1(section: Section, results: Results) -> None:
    """Regret over rounds; ratios to each reading of FCB; markets one by one; binding markets; what is spent."""
    if "P-FCB-printed" in results:
        _printed(section, results)
        return
    _regrets(section, results, ALGORITHMS)
    _gains(section, results)
    _readings(section, results)
    _markets(section, results)
    _binding(section, results)
    _claims(section, results[_PRIVATE])
    _sentences(section, results)


def _printed(section: Section, results: Results) -> None:
    """What the printed forms change, one by one."""
    _regrets(section, results, PRINTED_FORMS)
    mended, federated = results[_PRIVATE], results["FCB-every-round"]
    changes = {
        "the eight more communications": ("P-FCB, printed rounds", mended),
        "no guards": ("P-FCB, no guards", mended),
        "both (Algorithm 2)": ("P-FCB-printed", mended),
        "FCB's radius divided by n twice (Algorithm 1)": ("FCB-printed", federated),
    }
    section.text += ["", "What each change does to the regret of the mended form:"]
    row = section.table("change", "regret over the mended form's [runs]", "regret")
    for change, (name, from_what) in changes.items():
        value = ratio(results[name], from_what)
        raises = {"holds": "rises", "does **not** hold": "falls"}.get(value.at_least(1), "undecided")
        row(change, value, raises)
    section.text += [
        "",
        "What breaks. Without guards, noise that outweighs what is told makes W negative or next to 0. Where W <= 0, "
        "the bound on quality is 1, whatever has been seen; where W is next to 0, Y / W is any number, and an agent "
        "buys a bad producer for ever or a good one never again. The early communications tell next to nothing and "
        "spend the largest shares of epsilon. FCB's printed radius leaves the estimate outside it with probability up "
        "to 2 (n t)^(-3 / n) by Hoeffding's bound in place of 2 (n t)^(-3), and Theorem 1 rests on the latter; markets "
        "whose quality constraint is slack do not punish that, so its regret says nothing for it.",
    ]
    _claims(section, results["P-FCB-printed"])


def _regrets(section: Section, results: Results, names: Iterable[str]) -> None:
    """Writes regrets at T and their ratios to silence, and draws regret over rounds."""
    meanings = {**ALGORITHMS, **PRINTED_FORMS} if "P-FCB-printed" in results else ALGORITHMS
    section.text += ["", f"Cumulative regret per agent at T, silence is {_SILENT}:"]
    row = section.table(
        "algorithm", "what it is", "regret, ± runs", "± markets", f"/ {_SILENT} (FRR) [runs]",
        "median market", "rounds that violate",
    )  # fmt: skip
    silent = results[_SILENT]
    for name in names:
        result = results[name]
        row(
            name, meanings[name], regret_text(result), _over_markets(result),
            "1" if name == _SILENT else ratio(result, silent), median_market(result, silent),
            f"{_violations(result):.3%}",
        )  # fmt: skip
        section.draw_regret(name, result)


def _gains(section: Section, results: Results) -> None:
    """Says what P-FCB saves, and what of that noise alone and a smaller radius save without any data."""
    gain, placebo, tuned = (
        1 - ratio(results[name], results[_SILENT]).value for name in (_PRIVATE, _PLACEBO, "SS-UCB-0.8")
    )
    owed = f", which is {placebo / gain:.0%} of the gain" if gain > 0 else ""
    section.text += [
        "",
        f"Of silence's regret, P-FCB saves {section.say('P-FCB saves', f'{gain:.1%}')}; messages that are noise alone "
        f"(the placebo) save {section.say('the placebo saves', f'{placebo:.1%}')}{owed}; silence with the confidence "
        f"radius times 0.8 saves {section.say('radius 0.8 saves', f'{tuned:.1%}')} without any communication.",
    ]


def _readings(section: Section, results: Results) -> None:
    """Sets each reading of the paper's non-private FCB beside its ratios."""
    section.text += [
        "",
        'The paper defines FCB as "the non-private variant of P-FCB", which communicates "the true values": its check '
        "is kept. Its Algorithm 1, of the same name, shares every round, unchecked. Other readings are ours:",
    ]
    row = section.table(
        "ratio", "FCB", "here [runs]", "median market", "five other markets", "paper", "verdict"
    )
    for reading, meaning in FCB_READINGS.items():
        for name, paper in PAPER_ABOVE_FCB[section.panel].items():
            expected = elsewhere(results[name], results[reading])
            row(
                f"{name} / {reading}", meaning, ratio(results[name], results[reading]),
                median_market(results[name], results[reading]), expected, paper,
                verdict(expected.holds(paper), results[name]),
            )  # fmt: skip


def _markets(section: Section, results: Results) -> None:
    """Shows each market by itself, and what ratios are without the one that is nearest to binding."""
    chosen = choose_markets(section.panel)
    silent, private, defined = (results[name] for name in (_SILENT, _PRIVATE, _DEFINED))
    section.text += [
        "",
        "Market by market (surplus: by how much the mean quality of all that pays exceeds alpha, the least of ten "
        "agents; at 0 the quality constraint begins to bind):",
    ]
    row = section.table(
        "market", "surplus", "SS-UCB, ± runs", "P-FCB, ± runs", "FCB-checked, ± runs",
        "P-FCB / SS-UCB", "SS-UCB / FCB-checked", "SS-UCB's rounds that violate",
    )  # fmt: skip
    strata = strata_of_seeds(silent)
    saved, spent = instance_ratios(private, silent), instance_ratios(silent, defined)
    for index, (seed, surplus) in enumerate(zip(chosen.slack, chosen.surplus, strict=True)):
        own = (over_seeds(regret_by_seed(run)[strata == index]) for run in (silent, private, defined))
        violating = silent.info["violation"][strata == index].mean()
        row(
            f"seed {seed}", f"{surplus:.3f}", *own, f"{saved[index]:.3f}", f"{spent[index]:.3f}",
            f"{violating:.3%}",
        )  # fmt: skip
    nearest = int(np.argmin(chosen.surplus))
    kept = [_without(run, nearest) for run in (silent, private, defined)]
    share = (
        stratum_means(regret_by_seed(silent), strata)[nearest]
        / regret_by_seed(silent).mean()
        / len(chosen.slack)
    )
    section.text += [
        "",
        f"Seed {chosen.slack[nearest]} is nearest to binding and has {share:.0%} of SS-UCB's regret. Without it "
        f"P-FCB / SS-UCB is {section.say('P-FCB / SS-UCB without it', ratio(kept[1], kept[0]))} [runs], and "
        f"SS-UCB / FCB-checked {section.say('SS-UCB / FCB-checked without it', ratio(kept[0], kept[2]))} [runs].",
    ]


def _binding(section: Section, results: Results) -> None:
    """Shows markets whose quality constraint binds, and what a margin on the threshold does there and elsewhere."""
    chosen = choose_markets(section.panel)
    if not chosen.binding:
        section.text += [
            "",
            "In none of 200 markets of this law does the quality constraint bind for any of ten agents.",
        ]
        return
    section.text += [
        "",
        f"Of 200 markets of this law, {chosen.share:.1%} have a quality constraint that binds for some of ten agents; "
        "they are left out above. With a margin the oracle's threshold is alpha and that much:",
    ]
    row = section.table(
        "markets", "SS-UCB, ± runs", "P-FCB, ± runs", "P-FCB / SS-UCB [runs]", "median market",
        "P-FCB's rounds that violate",
    )  # fmt: skip
    kinds = {"": f"{len(chosen.slack)} slack", ", binding": f"{len(chosen.binding)} binding"}
    for kind, title in kinds.items():
        for suffix, margin in (("", 0), (", margin", MARGIN)):
            silent, private = (results[f"{name}{kind}{suffix}"] for name in (_SILENT, _PRIVATE))
            row(
                f"{title}, margin {margin:g}", regret_text(silent), regret_text(private), ratio(private, silent),
                median_market(private, silent), f"{_violations(private):.3%}",
            )  # fmt: skip
    changes = {
        title: ratio(results[f"{_PRIVATE}{kind}, margin"], results[f"{_PRIVATE}{kind}"])
        for kind, title in kinds.items()
    }
    said = (
        f"{section.say(f'margin, {title}', value)} [runs] in the {title} markets"
        for title, value in changes.items()
    )
    section.text += ["", f"The margin of {MARGIN:g} multiplies P-FCB's regret by {' and by '.join(said)}."]


def _claims(section: Section, result: Result) -> None:
    """Shows what is spent of the epsilon promised, and says why some numbers are above it."""
    claims = [claim for claim in result.claims if claim["adjacency"] in ("one-quantity", "one-round")]
    section.text += [
        "",
        "What the agent that spent most has really spent. The paper promises epsilon = 1 and adds up the shares of the "
        'communications, each of delta = 0.01, for one altered quantity of one producer ("one-quantity" here). "basic" '
        "does the same, and differs from 1 by two things: each message releases two values, each under noise for the "
        'whole share, and the shares of so many rounds need not fill epsilon; its delta is 0.01 a release. "zcdp" and '
        '"exact" are at the delta shown; zcdp is a bound on what exact computes, so it is the larger. "parallel" '
        'counts that windows are disjoint: one quantity is in one message only. "one-round" alters what an agent '
        "bought of all 30 producers in a round, sqrt(30) times as far, for which the paper promises nothing: an "
        "epsilon above 1 there breaks no promise. No adjacency covers an agent whose later choices change with the "
        "altered quantity:",
    ]
    section.claims(claims)


def _sentences(section: Section, results: Results) -> None:
    """Sets sentences of the paper beside what is measured."""
    silent, private = results[_SILENT], results[_PRIVATE]
    sentences = Sentences(section)
    verdicts, here = [], []
    for reading, how in ((_DEFINED, "as defined"), (_UNCHECKED, "unchecked")):
        pairs = [
            (
                ratio(results[name], results[reading]).value,
                elsewhere(results[name], results[reading]),
                paper,
                name,
            )
            for name, paper in PAPER_ABOVE_FCB[section.panel].items()
        ]
        here.append(f"{how}: " + ", ".join(f"{name} {value - 1:.0%} more" for value, _, _, name in pairs))
        verdicts.append(
            f"{how}: "
            + ", ".join(f"{name} {verdict(span.holds(paper), silent)}" for _, span, paper, name in pairs)
        )
    sentences.add(_RATIOS, "; ".join(here), "; ".join(verdicts))
    frr, placebo = (ratio(results[name], silent) for name in (_PRIVATE, _PLACEBO))
    sentences.add(
        _SIGNIFICANT,
        f"P-FCB / SS-UCB {frr}; noise alone {placebo}",
        verdict(frr.at_most(1), silent),
    )
    spent = {c["composition"]: c for c in private.claims if c["adjacency"] == "one-quantity"}
    basic, exact = spent["basic"], spent["exact"]
    held, honest = (
        verdict("holds" if claim["epsilon"] <= 1 else "does **not** hold", silent) for claim in (basic, exact)
    )
    sentences.add(
        _ABSTRACT,
        f"threshold held in {1 - _violations(private):.3%} of rounds, by SS-UCB in {1 - _violations(silent):.3%}; one "
        f"quantity costs epsilon {basic['epsilon']:.3f} at delta {basic['delta']:.3g} as the paper adds up (basic), "
        f"{exact['epsilon']:.3f} at delta {exact['delta']:.3g} exactly",
        f"regret: {verdict(frr.at_most(1), silent)}; threshold: no rate is printed; epsilon = 1 for one quantity: "
        f"{held} as the paper adds up, {honest} exactly",
    )


def _over_markets(result: Result) -> Mean:
    """Returns the mean of the markets' means, with the interval over markets."""
    return over_seeds(stratum_means(regret_by_seed(result), strata_of_seeds(result)))


def _without(result: Result, index: int) -> Result:
    """Returns the regret without one of the markets."""
    kept = result.regret[:, strata_of_seeds(result) != index]
    return replace(result, regret=kept, strata=Strata(result.strata.count - 1, result.strata.name))


def _violations(result: Result) -> float:
    """Returns the share of rounds that violated the quality constraint."""
    return float(result.info["violation"].mean())
