"""What the page on budgets of privacy says."""

from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text
from fedbandit_envs.leaderboard.reproduction.private_budget import (
    DELTA,
    EPSILON,
    PROBLEMS,
    SILENCE,
    Candidate,
    arguments,
    schedule_of,
)
from fedbandit_envs.leaderboard.sweep.runs import Result
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
)
from fedbandit_envs.wrappers.privacy.budget import decreasing
from fedbandit_envs.wrappers.privacy.continual import NOISES
from fedbandit_envs.wrappers.transport.schedule import make_schedule


def deviations(candidate: Candidate, rounds: int) -> tuple[float, float]:
    """Returns the standard deviation of the noise in an agent's first release, and in the sum of all of them.

    In scales (of a value that is released: capacity; an observation's size), of what counts good outcomes, or of a
    matrix' diagonal for a change of one scale.

    Args:
        candidate: How the budget is spent.
        rounds: Horizon.
    """
    releases = make_schedule(schedule_of(candidate, rounds)).count(rounds)
    given: dict[str, Any] = arguments(candidate, rounds)["privatizer"]
    if not candidate.pair:
        noise = NOISES[given["mechanism"]](releases)
        multiplier = analytic_noise_multiplier(EPSILON, DELTA) * np.sqrt(noise.column_square(releases))
        return multiplier * float(np.sqrt(noise.variance(1))), multiplier * float(
            np.sqrt(noise.variance(releases))
        )
    if candidate.how == "equal":
        each = analytic_noise_multiplier(given["epsilon"] / releases, given["delta"])
        return each, each * float(np.sqrt(releases))
    shares = decreasing(given["epsilon"], rounds)
    sizes = [
        classic_noise_multiplier(float(shares[min(z, shares.size - 1)]), given["delta"])
        for z in range(releases)
    ]
    return sizes[0], float(np.sqrt(np.square(sizes).sum()))


def _spent(result: Result) -> str:
    first = result.claims[0]["adjacency"]
    (claim,) = (one for one in result.claims if (one["adjacency"], one["composition"]) == (first, "exact"))
    return f"{claim['epsilon']:.4f}"


def report(section: Section, results: Results) -> None:
    """Writes a panel: what each candidate costs and gets, and which one is recommended."""
    problem = PROBLEMS[section.panel]
    silence = results[SILENCE]
    rounds = int(silence.rounds[-1])
    row = section.table(
        "releases", "how shared out", "number", "sd of the first", "sd of their sum", "epsilon spent",
        "regret (± 95 %)", f"/ {SILENCE}",
    )  # fmt: skip
    row(SILENCE, "-", 0, "-", "-", "-", regret_text(silence), 1)
    drawn: dict[str, list[tuple[int, Ratio]]] = {}
    for name, candidate in problem.candidates.items():
        number = make_schedule(schedule_of(candidate, rounds)).count(rounds)
        first, total = deviations(candidate, rounds)
        value = ratio(results[name], silence)
        how = f"{candidate.how}, {candidate.pair.replace('_', ' ')}" if candidate.pair else candidate.how
        row(
            name, how, number, f"{first:.2f}", f"{total:.2f}", _spent(results[name]),
            regret_text(results[name]), value,
        )  # fmt: skip
        drawn.setdefault(how, []).append((number, value))
        drawn[how].sort(key=lambda point: point[0])
    best = min(problem.candidates, key=lambda name: float(regret_by_seed(results[name]).mean()))
    chosen = problem.candidates[best]
    near = [
        f"{name} ({value})"
        for name in problem.candidates
        if name != best and not (value := ratio(results[name], results[best])).low > 1
    ]
    section.text += [
        "",
        f"* Recommended: **{best}** ({schedule_of(chosen, rounds)}, {chosen.how}"
        f"{', ' + chosen.pair.replace('_', ' ') if chosen.pair else ''}): {ratio(results[best], silence)} of tuned "
        "silence's regret.",
        f"* Not told apart from it (interval of their ratio reaches 1): {'; '.join(near) if near else 'none'}.",
    ]
    for what, one, other in _choices(section.panel):
        section.text.append(f"* {what}: {section.say(what, ratio(results[one], results[other]))}.")
    for how, ratios in drawn.items():
        spread = [[r.value - r.low, r.high - r.value] for _, r in ratios]
        section.draw(how, [number for number, _ in ratios], [r.value for _, r in ratios], np.array(spread).T)


def _choices(panel: str) -> list[tuple[str, str, str]]:
    """Returns single choices, each with all else alike: what is compared, and the two candidates."""
    if panel == "procurement":
        return [
            (
                "equal shares over decreasing ones",
                "P-FCB's rounds, equal shares",
                "P-FCB's rounds and shares",
            ),
            (
                "noise on good and defective units over noise on units and good ones",
                "P-FCB's rounds, equal shares, pair",
                "P-FCB's rounds, equal shares",
            ),
            (
                "a first release in round 32 over one in 1024",
                "powers of two from 32",
                "powers of two from 1024",
            ),
        ]
    starts = [name for name in PROBLEMS[panel].candidates if name.startswith("powers of two from")]
    plain = [name for name in starts if "," not in name]
    return [
        ("the first of these starts over the last", plain[0], plain[-1]),
        ("the square root's noise over the tree's", plain[0], f"{plain[0]}, tree"),
        ("few over a hundred at equal gaps", plain[0], "a hundred, equal gaps"),
        ("few over one a round", plain[0], "one a round"),
    ]
