"""Runs that compare ways to spend one privacy budget: the number of releases, their times and their shares."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, OURS, TUNED
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.experiment import LOG_LINEAR, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    equal_shares,
)
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.transport.schedule import make_schedule

EPSILON, DELTA = 1.0, 1e-5
_GOOD, _GIVEN = "good_and_defective", "as_given"


@dataclass(frozen=True)
class Candidate:
    """One way to spend the budget.

    Attributes:
        when: In which rounds agents release: a specification of a schedule, but for the horizon.
        how: Of shared budgets ``equal`` or ``decreasing`` shares, of continual release the mechanism.
        pair: The counts to which noise is added, where counts are released.
    """

    when: Mapping[str, Any]
    how: str
    pair: str = ""

    def __str__(self) -> str:
        """Writes how the budget is divided over releases."""
        return f"{self.how}, {self.pair.replace('_', ' ')}" if self.pair else self.how

    def schedule(self, rounds: int) -> dict[str, Any]:
        """Returns the specification of the schedule for a horizon."""
        spec = dict(self.when)
        if spec["name"] == "geometric":
            spec["horizon"] = rounds
        if spec["name"] == "fixed_gap":
            spec["gap"] = max(1, round(spec["gap"] * rounds))
        if spec["name"] == "doubling":
            # An episode that ends before the first release has one release all the same.
            spec["start"] = min(spec["start"], 1 << (rounds.bit_length() - 1))
        return spec

    def releases(self, rounds: int) -> int:
        """Returns the number of releases until the horizon."""
        return make_schedule(self.schedule(rounds)).count(rounds)

    def privatizer(self, rounds: int) -> dict[str, Any]:
        """Returns the arguments of the privatizer for a horizon."""
        if not self.pair:
            releases = self.schedule(rounds)
            return {"epsilon": EPSILON, "delta": DELTA, "mechanism": self.how, "releases": releases}
        # Under "one-quantity" units and good ones change by the capacity each; good and defective ones by it together.
        budget = (EPSILON, DELTA, self.releases(rounds), 1.0 if self.pair == _GOOD else sqrt(2))
        shares = decreasing_shares(rounds, *budget) if self.how == "decreasing" else equal_shares(*budget)
        return {**shares, "pair": self.pair}

    def deviations(self, rounds: int) -> tuple[float, float]:
        """Returns the standard deviation of the noise in an agent's first release, and in the sum of all of them.

        Both are those of the count of good outcomes, or of a matrix's diagonal, in units of the scale of a released
        value: the capacity in procurement, an observation's size elsewhere.
        """
        releases, given = self.releases(rounds), self.privatizer(rounds)
        if not self.pair:
            noise = NOISES[given["mechanism"]](releases)
            multiplier = analytic_noise_multiplier(EPSILON, DELTA) * np.sqrt(noise.column_square(releases))
            first, total = (float(np.sqrt(noise.variance(count))) for count in (1, releases))
            return multiplier * first, multiplier * total
        if self.how == "equal":
            sizes = np.full(releases, given["noise_multiplier"])
        else:
            multiplier = classic_noise_multiplier(given["epsilon"], given["delta"])
            sizes = multiplier / _first_shares(rounds, releases)
        return float(sizes[0]), float(np.sqrt(np.square(sizes).sum()))


# The classic calibration is proven for epsilon below 1 only. A large delta for each value keeps each release's epsilon
# below that.
_LARGE_DELTA = 0.5


def _first_shares(horizon: int, releases: int) -> Array:
    """Returns P-FCB's shares of an epsilon of 1 for the first releases; all late ones are alike."""
    shares = decreasing(1.0, horizon)
    return shares[np.minimum(np.arange(releases), shares.size - 1)]


def decreasing_shares(
    horizon: int, epsilon: float, delta: float, releases: int, norm: float
) -> dict[str, Any]:
    """Returns arguments of ``GaussianPrivatizer`` for P-FCB's shares, which spend most on the first releases.

    Args:
        horizon: T, on which the shares depend, >= 2.
        epsilon: Of all releases together, > 0.
        delta: Of all releases together, in (0, 1).
        releases: How many there are in it, >= 1; later ones would spend more.
        norm: By how much neighbours differ in one release, in units of sensitivity, > 0.

    Returns:
        ``epsilon`` and ``delta``, for the classic calibration.
    """
    spent = _first_shares(horizon, releases) / classic_noise_multiplier(1.0, _LARGE_DELTA)
    mu = norm * float(np.sqrt(np.square(spent).sum()))
    return {"epsilon": (1 - 1e-9) / (analytic_noise_multiplier(epsilon, delta) * mu), "delta": _LARGE_DELTA}


@dataclass(frozen=True)
class BudgetProblem:
    """A problem in which candidates are compared.

    Attributes:
        title: Title of its panel.
        env_id: The environment.
        rounds: Horizon, as a share of the scale's.
        trials: Seeds, as a multiple of the scale's.
        candidates: By what they are called.
        choices: Pairs of candidates with all else alike, by what is compared.
    """

    title: str
    env_id: str
    rounds: float
    trials: int
    candidates: Mapping[str, Candidate]
    choices: Mapping[str, tuple[str, str]]


def _doubling(start: int, stop: int | None = None) -> dict[str, Any]:
    """Returns the schedule that sends in rounds that are powers of two."""
    return {"name": "doubling", "start": start, "stop": stop}


def _few(*starts: int) -> dict[str, dict[str, Any]]:
    """Returns schedules of few releases by name: powers of two from these rounds on, and geometric progressions."""
    few = {f"powers of two from {start}": _doubling(start) for start in starts}
    return few | {
        f"{count} in geometric progression": {"name": "geometric", "count": count} for count in (1, 3)
    }


def _continual(*starts: int) -> tuple[dict[str, Candidate], dict[str, tuple[str, str]]]:
    """Returns candidates of continual release that begin in these rounds, and the choices among them."""
    first, last = (f"powers of two from {start}" for start in (starts[0], starts[-1]))
    found = {name: Candidate(when, "sqrt_toeplitz") for name, when in _few(*starts).items()}
    found["a hundred, equal gaps"] = Candidate({"name": "fixed_gap", "gap": 0.01}, "blt")
    found["one a round"] = Candidate({"name": "every_round"}, "blt")
    found |= {f"{first}, {name}": Candidate(_doubling(starts[0]), name) for name in ("tree", "honaker")}
    return found, {
        "the first of these starts over the last": (first, last),
        "the square root's noise over the tree's": (first, f"{first}, tree"),
        "few over a hundred at equal gaps": (first, "a hundred, equal gaps"),
        "few over one a round": (first, "one a round"),
    }


_PAPERS = _doubling(200, 40_000)
_DECREASING, _EQUAL = "P-FCB's rounds and shares", "P-FCB's rounds, equal shares"

PROBLEMS = {
    "procurement": BudgetProblem(
        "Procurement",
        "FedProcurement-v0",
        0.3,
        2,
        {
            _DECREASING: Candidate(_PAPERS, "decreasing", _GIVEN),
            _EQUAL: Candidate(_PAPERS, "equal", _GIVEN),
            f"{_EQUAL}, pair": Candidate(_PAPERS, "equal", _GOOD),
            **{name: Candidate(when, "equal", _GOOD) for name, when in _few(32, 1024, 8192).items()},
            "ten, equal gaps": Candidate({"name": "fixed_gap", "gap": 0.1}, "equal", _GOOD),
        },
        {
            "equal shares over decreasing ones": (_EQUAL, _DECREASING),
            "noise on good and defective units over noise on units and good ones": (
                f"{_EQUAL}, pair",
                _EQUAL,
            ),
            "a first release in round 32 over one in 1024": (
                "powers of two from 32",
                "powers of two from 1024",
            ),
        },
    ),
    "linear": BudgetProblem("Linear contextual bandits", "FedLinear-v0", 0.1, 1, *_continual(1, 64, 512)),
    "exposure": BudgetProblem("Exposure fairness", "FedExposure-v0", 0.2, 1, *_continual(1, 64, 1024)),
    "arms": BudgetProblem("Bernoulli arms", "FedArms-v0", 0.2, 10, *_continual(1, 64, 1024)),
}


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: tuned silence and the candidates."""
    problem, names = PROBLEMS[plan.panel], BASELINE_OF[plan.panel]
    rounds, trials = max(1, round(plan.scale.rounds * problem.rounds)), plan.scale.trials * problem.trials
    silence = RunSpec(names[TUNED], problem.env_id, rounds, trials, delta=DELTA, labels={"line": TUNED})
    return [silence] + [
        replace(
            silence,
            baseline=names[OURS],
            wrapper_kwargs={
                "privatizer": candidate.privatizer(rounds),
                "channel": {"schedule": candidate.schedule(rounds)},
            },
            labels={"line": name},
        )
        for name, candidate in problem.candidates.items()
    ]


EXPERIMENTS = {
    "private-budget": Experiment(
        "Private federation: what one budget buys",
        {"x": "releases", "y": "regret / tuned silence's", **LOG_LINEAR},
        {"tiny": Scale(600, 2), "small": Scale(100_000, 4), "paper": Scale(100_000, 20)},
        {name: problem.title for name, problem in PROBLEMS.items()},
        runs,
        "panel.md.j2",
    )
}
