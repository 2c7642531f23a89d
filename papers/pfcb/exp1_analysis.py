"""Tables, ratios and curves of the P-FCB paper's EXP1."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fedbandit_envs.core.claim import Claim
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Mean,
    Ratio,
    elsewhere,
    instance_ratios,
    ratio,
    regret_by_seed,
    strata_of_seeds,
)
from fedbandit_envs.leaderboard.reproduction.page import final_regret, over_rounds, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult, Strata
from fedbandit_envs.leaderboard.runs.statistics import stratum_means
from fedbandit_envs.papers.pfcb.experiments import (
    ALGORITHMS,
    BINDING,
    FCB_READINGS,
    MARGIN,
    PRINTED_FORMS,
    SLACK,
    choose_markets,
)
from fedbandit_envs.papers.pfcb.verdicts import PAPER_ABOVE_FCB, median_market, verdict

READINGS_JUDGED = {"as defined": "FCB-checked", "unchecked": "FCB"}
_CHANGES = {
    "the eight more communications": ("P-FCB, printed rounds", "P-FCB"),
    "no guards": ("P-FCB, no guards", "P-FCB"),
    "both (Algorithm 2)": ("P-FCB-printed", "P-FCB"),
    "FCB's radius divided by n twice (Algorithm 1)": ("FCB-printed", "FCB-every-round"),
}


def slack(runs: PanelRuns) -> PanelRuns:
    """Returns the runs in markets whose constraint does not bind, without a margin."""
    return runs if runs.plan.mode == "printed" else runs.where(markets=SLACK, margin=0)


def violations(result: RunResult) -> float:
    """Returns the share of rounds that violated the quality constraint."""
    return float(result.info["violation"].mean())


def _over_markets(result: RunResult) -> Mean:
    """Returns the mean of the markets' means, with the interval over markets."""
    return over_seeds(stratum_means(regret_by_seed(result), strata_of_seeds(result)))


def regrets(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of regrets at T and their ratios to silence."""
    main = slack(runs)
    silent = main.one("SS-UCB")
    forms: Mapping[str, str] = PRINTED_FORMS if runs.plan.mode == "printed" else ALGORITHMS
    return [
        {
            "algorithm": name,
            "what it is": meaning,
            "regret, ± runs": final_regret(result),
            "± markets": _over_markets(result),
            "/ SS-UCB (FRR) [runs]": "1" if name == "SS-UCB" else ratio(result, silent),
            "median market": median_market(result, silent),
            "rounds that violate": f"{violations(result):.3%}",
        }
        for name, meaning in forms.items()
        for result in [main.one(name)]
    ]


def curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns the curves of EXP1: regret over rounds."""
    forms = PRINTED_FORMS if runs.plan.mode == "printed" else ALGORITHMS
    return {name: over_rounds(slack(runs).one(name)) for name in forms}


def changes(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of what each printed form does to the regret of the corrected one."""
    table = []
    for change, (name, corrected) in _CHANGES.items():
        value = ratio(runs.one(name), runs.one(corrected))
        raises = {"holds": "rises", "does **not** hold": "falls"}.get(value.at_least(1), "undecided")
        table.append({"change": change, "regret over the corrected form's [runs]": value, "regret": raises})
    return table


def saved(runs: PanelRuns, name: str) -> float:
    """Returns which part of silence's regret an algorithm saves."""
    return 1 - ratio(slack(runs).one(name), slack(runs).one("SS-UCB")).value


def readings(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table that sets each reading of the paper's non-private FCB beside the paper's ratios."""
    main, table = slack(runs), []
    for reading, meaning in FCB_READINGS.items():
        for name, paper in PAPER_ABOVE_FCB[runs.panel].items():
            pair = main.one(name), main.one(reading)
            table.append(
                {
                    "ratio": f"{name} / {reading}",
                    "FCB": meaning,
                    "here [runs]": ratio(*pair),
                    "median market": median_market(*pair),
                    "five other markets": elsewhere(*pair),
                    "paper": paper,
                    "verdict": verdict(elsewhere(*pair).holds(paper), pair[0]),
                }
            )
    return table


def markets(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of single markets."""
    main, chosen = slack(runs), choose_markets(runs.panel)
    silent, private, defined = (main.one(name) for name in ("SS-UCB", "P-FCB", "FCB-checked"))
    strata = strata_of_seeds(silent)
    saving, spending = instance_ratios(private, silent), instance_ratios(silent, defined)
    table = []
    for index, (seed, surplus) in enumerate(zip(chosen.slack, chosen.surplus, strict=True)):
        own = [over_seeds(regret_by_seed(run)[strata == index]) for run in (silent, private, defined)]
        table.append(
            {
                "market": f"seed {seed}",
                "surplus": f"{surplus:.3f}",
                "SS-UCB, ± runs": own[0],
                "P-FCB, ± runs": own[1],
                "FCB-checked, ± runs": own[2],
                "P-FCB / SS-UCB": f"{saving[index]:.3f}",
                "SS-UCB / FCB-checked": f"{spending[index]:.3f}",
                "SS-UCB's rounds that violate": f"{silent.info['violation'][strata == index].mean():.3%}",
            }
        )
    return table


def nearest_market(runs: PanelRuns) -> dict[str, Any]:
    """Returns the market that is nearest to binding, and ratios without it.

    Returns:
        ``seed``; ``share``, its share of SS-UCB's regret; without it ``private``, P-FCB's regret over SS-UCB's, and
        ``silent``, SS-UCB's over FCB-checked's.
    """
    chosen = choose_markets(runs.panel)
    nearest = int(np.argmin(chosen.surplus))
    results = [slack(runs).one(name) for name in ("SS-UCB", "P-FCB", "FCB-checked")]
    silent, private, defined = (_without(result, nearest) for result in results)
    regret = regret_by_seed(results[0])
    own = stratum_means(regret, strata_of_seeds(results[0]))[nearest]
    share = float(own / regret.mean() / len(chosen.slack))
    ratios = {"private": ratio(private, silent), "silent": ratio(silent, defined)}
    return {"seed": chosen.slack[nearest], "share": share, **ratios}


def _without(result: RunResult, index: int) -> RunResult:
    """Returns a result without one of the markets."""
    kept = result.regret[:, strata_of_seeds(result) != index]
    return replace(result, regret=kept, strata=Strata(result.strata.count - 1, result.strata.name))


def kinds_of_markets(panel: str) -> dict[str, str]:
    """Returns the numbers of markets with a slack and with a binding constraint, as text by kind."""
    chosen = choose_markets(panel)
    return {SLACK: f"{len(chosen.slack)} slack", BINDING: f"{len(chosen.binding)} binding"}


def margins(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of slack and binding markets, with and without a margin on the threshold."""
    table = []
    for kind, title in kinds_of_markets(runs.panel).items():
        for margin in (0, MARGIN):
            silent, private = (runs.one(name, markets=kind, margin=margin) for name in ("SS-UCB", "P-FCB"))
            table.append(
                {
                    "markets": f"{title}, margin {margin:g}",
                    "SS-UCB, ± runs": final_regret(silent),
                    "P-FCB, ± runs": final_regret(private),
                    "P-FCB / SS-UCB [runs]": ratio(private, silent),
                    "median market": median_market(private, silent),
                    "P-FCB's rounds that violate": f"{violations(private):.3%}",
                }
            )
    return table


def margin_ratio(runs: PanelRuns, kind: str) -> Ratio:
    """Returns P-FCB's regret with the margin over that without, in markets of a kind."""
    with_margin, without = (runs.one("P-FCB", markets=kind, margin=margin) for margin in (MARGIN, 0))
    return ratio(with_margin, without)


def claim(result: RunResult, composition: str) -> Claim:
    """Returns the claim for one altered quantity under a composition."""
    wanted = ("one-quantity", composition)
    (found,) = (one for one in result.claims if (one.adjacency, one.composition) == wanted)
    return found


def more_than_fcb(runs: PanelRuns) -> tuple[str, str]:
    """Returns the ratios of the regret of P-FCB and SS-UCB to that of each reading of FCB, and the verdicts."""
    main, here, says = slack(runs), [], []
    for how, reading in READINGS_JUDGED.items():
        above = PAPER_ABOVE_FCB[runs.panel]
        ratios = {name: ratio(main.one(name), main.one(reading)).value for name in above}
        here.append(f"{how}: " + ", ".join(f"{name} {value - 1:.0%} more" for name, value in ratios.items()))
        judged = {
            name: verdict(elsewhere(main.one(name), main.one(reading)).holds(paper), main.one("SS-UCB"))
            for name, paper in above.items()
        }
        says.append(f"{how}: " + ", ".join(f"{name} {found}" for name, found in judged.items()))
    return "; ".join(here), "; ".join(says)
