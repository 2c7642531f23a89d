"""What the pages on exposure fairness say that ask what the thesis does not: solvers, tuned silence, shares, prices."""

from itertools import pairwise

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.baselines.tuned import DATA
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, all_hold, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.fairx import (
    FED,
    GREEDY,
    LEARNERS,
    PLACEBO,
    PRIV,
    SILENT,
    WEIGHTED,
)
from fedbandit_envs.leaderboard.reproduction.fairx_reports import numbers
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds, regret_text

NEVER_ABOVE = 1.05
RADIUS = BASELINES[GREEDY].policy_kwargs["beta_scale"]


def solver(section: Section, results: Results) -> None:
    """Fairness regret against the solver's steps or the radius' scale."""
    if section.panel == "radius":
        radii = list(numbers(results, SILENT))
        row = section.table("radius", SILENT, FED, PRIV)
        for radius in radii:
            row(
                f"radius times {radius:g}",
                *(regret_text(numbers(results, name)[radius]) for name in (SILENT, FED, PRIV)),
            )
        for name in (SILENT, FED, PRIV):
            # The axis is logarithmic: 0 is drawn at a third of the least scale.
            section.draw_points(name, {r or radii[1] / 3: numbers(results, name)[r] for r in radii})
        silent, shared = (ratio(numbers(results, n)[0.0], numbers(results, n)[1.0]) for n in (SILENT, FED))
        federation = ratio(numbers(results, FED)[1.0], numbers(results, SILENT)[1.0])
        section.text += [
            "",
            f"Radius 0 over the printed radius: in silence "
            f"{section.say(f'{SILENT}, radius 0 / printed', silent)}, on true data "
            f"{section.say(f'{FED}, radius 0 / printed', shared)}. True data over silence at the printed radius: "
            f"{section.say(f'{FED} / {SILENT}', federation)}. (0 is drawn at {radii[1] / 3:.2g}.)",
        ]
        return
    groups = dict.fromkeys(run.rpartition(" ")[0] for run in results if not run.endswith("steps"))
    row = section.table("run, steps", "fairness regret at T (± 95 %)", "/ 3 steps of Frank and Wolfe")
    for group in groups:
        name = group.split(",")[0]
        standard = results[f"{name}, frank_wolfe 3"]
        for steps, result in numbers(results, group).items():
            row(f"{group} {steps:g}", regret_text(result), ratio(result, standard))
        section.draw_points(group, numbers(results, group))
    for name in (SILENT, FED):
        still = results[f"{name}, 0 steps"]
        row(f"{name}, at the estimate 0", regret_text(still), ratio(still, results[f"{name}, frank_wolfe 3"]))
    section.text += [
        "",
        'The thesis says that "Projected gradient descent was used in each round to solve the resulting non-convex '
        'optimization problem", and not how many steps. Is a better optimum less fair, since it is more optimistic? '
        "One step of Frank and Wolfe against ten, and ten steps of projected gradients against thirty:",
    ]
    row = section.table("run", "fewer steps, less fairness regret", "ratio")
    for name in (SILENT, FED):
        for method, few, many in (("frank_wolfe", 1, 10), ("projected_gradient", 10, 30)):
            value = ratio(results[f"{name}, {method} {few}"], results[f"{name}, {method} {many}"])
            row(f"{name}, {method}", value.at_most(1), value)
    pairs = [
        ratio(results[run.replace(SILENT, FED)], results[run]) for run in results if run.startswith(SILENT)
    ]
    section.text += [
        "",
        f"True data have less fairness regret than silence, whatever the solver and its steps: "
        f"{all_hold(pair.at_most(1) for pair in pairs)} ({min(p.value for p in pairs):.3f} to "
        f"{max(p.value for p in pairs):.3f} times).",
    ]


def _tuned_radius() -> str:
    """Says how silence's radius was chosen."""
    entry = DATA["baselines"]["FairX-tuned"]
    radii = [f"{constants['beta_scale']:g}" for constants, _ in entry["tried"]]
    return (
        f"{entry['chosen']['beta_scale']:g} times the printed radius is the best of {', '.join(radii)} on "
        f"{entry['seeds']} other seeds over {entry['rounds']:,} rounds, and the one here is {RADIUS:g}"
    )


def private(section: Section, results: Results) -> None:
    """Whether private federation pays, over epsilon and the number of agents."""
    row = section.table(
        "federation", GREEDY, WEIGHTED, "/ silence", "placebo / silence", f"never above {NEVER_ABOVE}?",
        "pays?", PRIV, f"{WEIGHTED} / {PRIV}",
    )  # fmt: skip
    sizes = numbers(results, GREEDY)
    paying = []
    for agents, silence in sizes.items():
        swept = numbers(results, f"{WEIGHTED} {agents:g}")
        for epsilon, result in swept.items():
            value = ratio(result, silence)
            placebo = ratio(results[f"{WEIGHTED}{PLACEBO} {agents:g} {epsilon:g}"], silence)
            theirs = results[f"{PRIV} {agents:g} {epsilon:g}"]
            pays = value.at_most(1)
            if pays == "holds":
                paying.append(f"m = {agents:g} at epsilon = {epsilon:g}")
            row(
                f"{agents:g} agents, epsilon {epsilon:g}", regret_text(silence), regret_text(result), value, placebo,
                value.at_most(NEVER_ABOVE), pays, regret_text(theirs), ratio(result, theirs),
            )  # fmt: skip
        section.draw_points(f"{WEIGHTED}, {agents:g} agents", swept)
        section.draw_points(f"{PRIV}, {agents:g} agents", numbers(results, f"{PRIV} {agents:g}"))
        section.draw_points(f"silence, {agents:g} agents", dict.fromkeys(swept, silence))
    section.text += [
        "",
        f"Silence is tuned at reward noise 0.1: {_tuned_radius()}. Bounds are ours: the thesis says nothing of "
        "tuned silence. Private federation pays, with an interval below 1, for "
        f"{'; '.join(paying) or 'none of these'}.",
    ]


def shares(section: Section, results: Results) -> None:
    """Shares of the pulls by arm against deserved shares."""
    any_run = next(iter(results.values()))
    due = any_run.totals["deserved"].mean(axis=(0, 1)) / any_run.rounds[-1]
    order = np.argsort(-due, kind="stable")
    place = np.arange(1, due.size + 1)
    got = {name: run.totals["pulls"].mean(axis=(0, 1)) / run.rounds[-1] for name, run in results.items()}
    row = section.table("worker, in order of merit", "deserved", *(f"{n} ({LEARNERS[n]})" for n in results))
    for rank, arm in enumerate(order, start=1):
        row(f"worker {rank}", f"{due[arm]:.3f}", *(f"{got[name][arm]:.3f}" for name in results))
    for name in results:
        section.draw(name, place, got[name][order], np.zeros(due.size))
    # Last, so that it lies on top of those that come near it.
    section.draw("deserved", place, due[order], np.zeros(due.size))
    row = section.table(
        "algorithm", "absolute differences, added up over workers", "fairness regret at T (± 95 %)"
    )
    for name, run in results.items():
        row(name, f"{np.abs(due - got[name]).sum():.3f}", regret_text(run))
    section.text += [
        "",
        "Ten workers who are the same in every round, and one theta*, in all runs: intervals are over luck alone. "
        "Shares are of all pulls of all agents and runs. No experiment of the thesis.",
    ]


def price(section: Section, results: Results) -> None:
    """Reward regret against fairness regret over merit scales."""
    scales = list(numbers(results, SILENT))
    row = section.table("merit", *(f"{name}: {what}" for name in LEARNERS for what in ("fairness", "reward")))

    def a_round(name: str, scale: float) -> tuple[Mean, Mean]:
        result = numbers(results, name)[scale]
        fairness = regret_by_seed(result) / result.rounds[-1]
        return over_seeds(fairness, ".4f"), over_seeds(result.info["reward_regret"].mean(axis=1), ".4f")

    for scale in scales:
        row(f"exp({scale:g} mu)", *(mean for name in LEARNERS for mean in a_round(name, scale)))
    for name in LEARNERS:
        fairness, reward = zip(*(a_round(name, scale) for scale in scales), strict=True)
        error = [mean.high - mean.value for mean in reward]
        section.draw(name, [mean.value for mean in fairness], [mean.value for mean in reward], error)
    costs = [-a_round("best-arm", scale)[1].value for scale in scales]
    falls = all(before > after for before, after in pairwise(costs))
    section.text += [
        "",
        "Regrets a round (± 95 % over runs); reward regret is against fair shares, negative where more is earned than "
        "they would earn. "
        "So what a best-arm learner's has below zero is the price of fairness: "
        f"{costs[0]:.3f} a round where merit is exp({scales[0]:g} mu), {costs[-1]:.3f} where it is "
        f"exp({scales[-1]:g} mu). It {'falls' if falls else 'does not fall'} at every step with the steepness of "
        "merit. In the picture a curve has a point a merit scale. No experiment of the thesis, which has exp(10 mu) "
        "alone.",
    ]
