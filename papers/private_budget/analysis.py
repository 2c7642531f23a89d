"""Tables, ratios and curves of the page on what one privacy budget buys."""

from operator import itemgetter
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.private_budget.experiments import (
    DELTA,
    EPSILON,
    PROBLEMS,
    SILENCE,
    Candidate,
    arguments,
    schedule_of,
)
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
)
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.transport.schedule import make_schedule


def deviations(candidate: Candidate, rounds: int) -> tuple[float, float]:
    """Returns the standard deviation of the noise in an agent's first release, and in the sum of all of them.

    Both are in units of the scale of a released value: the capacity in procurement, an observation's size elsewhere.
    They are those of the count of good outcomes, or of a matrix's diagonal.

    Args:
        candidate: How the budget is spent.
        rounds: Horizon.
    """
    releases = num_releases(candidate, rounds)
    given: dict[str, Any] = arguments(candidate, rounds)["privatizer"]
    if not candidate.pair:
        noise = NOISES[given["mechanism"]](releases)
        multiplier = analytic_noise_multiplier(EPSILON, DELTA) * np.sqrt(noise.column_square(releases))
        first, total = (float(np.sqrt(noise.variance(count))) for count in (1, releases))
        return multiplier * first, multiplier * total
    if candidate.how == "equal":
        each = float(given["noise_multiplier"])
        return each, each * float(np.sqrt(releases))
    shares = decreasing(given["epsilon"], rounds)
    sizes = [
        classic_noise_multiplier(float(shares[min(z, shares.size - 1)]), given["delta"])
        for z in range(releases)
    ]
    return sizes[0], float(np.sqrt(np.square(sizes).sum()))


def num_releases(candidate: Candidate, rounds: int) -> int:
    """Returns the number of a candidate's releases until the horizon."""
    return make_schedule(schedule_of(candidate, rounds)).count(rounds)


def shared_out(candidate: Candidate) -> str:
    """Returns a candidate's division of the budget over releases, as text."""
    return f"{candidate.how}, {candidate.pair.replace('_', ' ')}" if candidate.pair else candidate.how


def _spent(result: RunResult) -> str:
    first = result.claims[0].adjacency
    (claim,) = (one for one in result.claims if (one.adjacency, one.composition) == (first, "exact"))
    return f"{claim.epsilon:.4f}"


def candidates(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of what each candidate costs and gets, beside tuned silence."""

    def row(
        name: str, how: str, number: int, first: str, total: str, spent: str, over: Any
    ) -> dict[str, Any]:
        return {
            "releases": name,
            "how shared out": how,
            "number": number,
            "sd of the first": first,
            "sd of their sum": total,
            "epsilon spent": spent,
            "regret (± 95 %)": final_regret(runs.one(name)),
            f"/ {SILENCE}": over,
        }

    silence = runs.one(SILENCE)
    rounds = int(silence.rounds[-1])
    table = [row(SILENCE, "-", 0, "-", "-", "-", 1)]
    for name, candidate in PROBLEMS[runs.panel].candidates.items():
        first, total = (f"{sd:.2f}" for sd in deviations(candidate, rounds))
        result = runs.one(name)
        number = num_releases(candidate, rounds)
        table.append(
            row(name, shared_out(candidate), number, first, total, _spent(result), ratio(result, silence))
        )
    return table


def curves(runs: PanelRuns) -> dict[str, list[tuple[int, Mean]]]:
    """Returns ratios to tuned silence over the number of releases, by how the budget is shared out."""
    silence = runs.one(SILENCE)
    found: dict[str, list[tuple[int, Mean]]] = {}
    for name, candidate in PROBLEMS[runs.panel].candidates.items():
        value = ratio(runs.one(name), silence)
        number = num_releases(candidate, int(silence.rounds[-1]))
        found.setdefault(shared_out(candidate), []).append((number, Mean(value.value, value.low, value.high)))
    # Candidates of one number stay in their order.
    return {how: sorted(points, key=itemgetter(0)) for how, points in found.items()}


def best(runs: PanelRuns) -> str:
    """Returns the candidate with the least mean regret."""
    return min(PROBLEMS[runs.panel].candidates, key=lambda name: regret_by_seed(runs.one(name)).mean())


def near(runs: PanelRuns) -> dict[str, Ratio]:
    """Returns the candidates whose ratio to the best one has an interval that reaches 1."""
    chosen = best(runs)
    ratios = {
        name: ratio(runs.one(name), runs.one(chosen))
        for name in PROBLEMS[runs.panel].candidates
        if name != chosen
    }
    return {name: value for name, value in ratios.items() if not value.low > 1}
