"""Runs that compare ways to spend one privacy budget: the number of releases, their times and their shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.leaderboard.reproduction.experiment import LOG_LINEAR, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    equal_shares,
)
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing
from fedbandit_envs.wrappers.transport.schedule import make_schedule

EPSILON, DELTA = 1.0, 1e-5
SILENCE = "tuned silence"

Rounds = Mapping[str, Any]


def doubling(start: int, stop: int | None = None) -> Rounds:
    """Returns the schedule that sends in rounds that are powers of two."""
    return {"name": "doubling", "start": start, "stop": stop}


@dataclass(frozen=True)
class Candidate:
    """One way to spend the budget.

    Attributes:
        when: In which rounds agents release; a specification of a schedule, but for the horizon.
        how: Of shared budgets ``equal`` or ``decreasing`` shares, of continual release the mechanism.
        pair: What gets the noise, where counts are released.
    """

    when: Rounds
    how: str
    pair: str = ""


@dataclass(frozen=True)
class BudgetProblem:
    """Where candidates are compared.

    Attributes:
        env_id: The environment.
        silent: Tuned silence.
        weighted: The baseline that hears.
        rounds: Horizon, as a share of the scale's.
        trials: Seeds, as a multiple of the scale's.
        candidates: By what they are called.
        choices: Pairs of candidates with all else alike, by what is compared.
    """

    env_id: str
    silent: str
    weighted: str
    rounds: float
    trials: int
    candidates: Mapping[str, Candidate]
    choices: Mapping[str, tuple[str, str]]


def _continual(*starts: int) -> tuple[dict[str, Candidate], dict[str, tuple[str, str]]]:
    """Returns candidates of continual release that begin in these rounds, and the choices among them."""
    found = {f"powers of two from {start}": Candidate(doubling(start), "sqrt_toeplitz") for start in starts}
    found |= {
        f"{count} in geometric progression": Candidate({"name": "geometric", "count": count}, "sqrt_toeplitz")
        for count in (1, 3)
    }
    found["a hundred, equal gaps"] = Candidate({"name": "fixed_gap", "gap": 0.01}, "blt")
    found["one a round"] = Candidate({"name": "every_round"}, "blt")
    found |= {
        f"powers of two from {starts[0]}, {name}": Candidate(doubling(starts[0]), name)
        for name in ("tree", "honaker")
    }
    first = f"powers of two from {starts[0]}"
    choices = {
        "the first of these starts over the last": (first, f"powers of two from {starts[-1]}"),
        "the square root's noise over the tree's": (first, f"{first}, tree"),
        "few over a hundred at equal gaps": (first, "a hundred, equal gaps"),
        "few over one a round": (first, "one a round"),
    }
    return found, choices


_GOOD, _GIVEN = "good_and_defective", "as_given"

PROBLEMS = {
    "procurement": BudgetProblem(
        "FedProcurement-v0",
        "SS-UCB-tuned",
        "P-FCB-weighted",
        0.3,
        2,
        {
            "P-FCB's rounds and shares": Candidate(doubling(200, 40_000), "decreasing", _GIVEN),
            "P-FCB's rounds, equal shares": Candidate(doubling(200, 40_000), "equal", _GIVEN),
            "P-FCB's rounds, equal shares, pair": Candidate(doubling(200, 40_000), "equal", _GOOD),
            "powers of two from 32": Candidate(doubling(32), "equal", _GOOD),
            "powers of two from 1024": Candidate(doubling(1024), "equal", _GOOD),
            "powers of two from 8192": Candidate(doubling(8192), "equal", _GOOD),
            "1 in geometric progression": Candidate({"name": "geometric", "count": 1}, "equal", _GOOD),
            "3 in geometric progression": Candidate({"name": "geometric", "count": 3}, "equal", _GOOD),
            "ten, equal gaps": Candidate({"name": "fixed_gap", "gap": 0.1}, "equal", _GOOD),
        },
        {
            "equal shares over decreasing ones": (
                "P-FCB's rounds, equal shares",
                "P-FCB's rounds and shares",
            ),
            "noise on good and defective units over noise on units and good ones": (
                "P-FCB's rounds, equal shares, pair",
                "P-FCB's rounds, equal shares",
            ),
            "a first release in round 32 over one in 1024": (
                "powers of two from 32",
                "powers of two from 1024",
            ),
        },
    ),
    "linear": BudgetProblem(
        "FedLinear-v0", "LinUCB-tuned", "FedUCB-weighted", 0.1, 1, *_continual(1, 64, 512)
    ),
    "exposure": BudgetProblem(
        "FedExposure-v0", "FairX-tuned", "Priv-FairX-weighted", 0.2, 1, *_continual(1, 64, 1024)
    ),
    "arms": BudgetProblem("FedArms-v0", "UCB1-tuned", "UCB1-weighted", 0.2, 10, *_continual(1, 64, 1024)),
}

PANELS = {
    "procurement": "Procurement",
    "linear": "Linear contextual bandits",
    "exposure": "Exposure fairness",
    "arms": "Bernoulli arms",
}
SCALES = {"tiny": Scale(600, 2), "small": Scale(100_000, 4), "paper": Scale(100_000, 20)}


def schedule_of(candidate: Candidate, rounds: int) -> dict[str, Any]:
    """Returns the specification of a candidate's schedule for a horizon."""
    spec = dict(candidate.when)
    if spec["name"] == "geometric":
        spec["horizon"] = rounds
    if spec["name"] == "fixed_gap":
        spec["gap"] = max(1, round(spec["gap"] * rounds))
    if spec["name"] == "doubling":
        # In an episode that is too short for a candidate it still releases once.
        spec["start"] = min(spec["start"], 1 << (rounds.bit_length() - 1))
    return spec


# The classic calibration is proven for epsilon below 1 only. A large delta for each value keeps each release's epsilon
# below that.
_LARGE_DELTA = 0.5


def decreasing_shares(
    epsilon: float, delta: float, horizon: int, releases: int, norm: float = 1.0
) -> dict[str, Any]:
    """Returns arguments of ``GaussianPrivatizer`` for P-FCB's shares, which spend most on the first releases.

    Args:
        epsilon: Of all releases together, > 0.
        delta: Of all releases together, in (0, 1).
        horizon: T, on which the shares depend, >= 2.
        releases: How many there are in it, >= 1; later ones would spend more.
        norm: By how much neighbours differ in one release, in units of sensitivity.

    Returns:
        ``epsilon`` and ``delta``, for the classic calibration.

    Raises:
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range.
    """
    require_integer("releases", releases, 1)
    require_number("norm", norm, 0, np.inf, open_below=True)
    shares = decreasing(1.0, horizon)
    # All later releases get as much as the last.
    spent = shares[np.minimum(np.arange(releases), shares.size - 1)] / classic_noise_multiplier(
        1.0, _LARGE_DELTA
    )
    mu = norm * float(np.sqrt(np.square(spent).sum()))
    return {"epsilon": (1 - 1e-9) / (analytic_noise_multiplier(epsilon, delta) * mu), "delta": _LARGE_DELTA}


def arguments(candidate: Candidate, rounds: int) -> dict[str, dict[str, Any]]:
    """Returns the wrappers' arguments for a candidate, for a horizon."""
    spec = schedule_of(candidate, rounds)
    if not candidate.pair:
        at = {"epsilon": EPSILON, "delta": DELTA, "mechanism": candidate.how, "releases": spec}
        return {"privatizer": at, "channel": {"schedule": spec}}
    releases = make_schedule(spec).count(rounds)
    # Under "one-quantity" units and good ones change by the capacity each; good and defective ones by it together.
    norm = 1.0 if candidate.pair == _GOOD else sqrt(2)
    share = (
        decreasing_shares(EPSILON, DELTA, rounds, releases, norm)
        if candidate.how == "decreasing"
        else equal_shares(EPSILON, DELTA, releases, norm)
    )
    return {"privatizer": {**share, "pair": candidate.pair}, "channel": {"schedule": spec}}


def run_of(problem: BudgetProblem, name: str, scale: Scale) -> RunSpec:
    """Returns the run of a candidate, or of tuned silence."""
    rounds = max(1, round(scale.rounds * problem.rounds))
    candidate = problem.candidates.get(name)
    return RunSpec(
        problem.weighted if candidate else problem.silent,
        problem.env_id,
        rounds,
        scale.trials * problem.trials,
        wrapper_kwargs=arguments(candidate, rounds) if candidate else {},
        delta=DELTA,
        labels={"line": name},
    )


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: silence and the candidates."""
    problem = PROBLEMS[plan.panel]
    return [run_of(problem, name, plan.scale) for name in (SILENCE, *problem.candidates)]


EXPERIMENTS = {
    "private-budget": Experiment(
        "Private federation: what one budget buys",
        {"x": "releases", "y": "regret / tuned silence's", **LOG_LINEAR},
        SCALES,
        PANELS,
        runs,
        "panel.md.j2",
    )
}
