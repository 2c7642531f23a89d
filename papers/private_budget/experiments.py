"""Runs that compare ways to spend one privacy budget: the number of releases, their times and their shares."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, OURS, TUNED
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.private_federation.experiments import PROBLEMS as COMPARED
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale
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
    """One way to spend the privacy budget: when agents release, and how the budget is shared by the releases.

    Attributes:
        when: Rounds in which agents release: the specification of a schedule, without the horizon.
        how: If counts are released, how they share the budget: ``equal``; ``decreasing``, as in P-FCB; or ``growing``,
            P-FCB's shares in reverse. Else the name of the mechanism of continual release.
        pair: If counts are released, the two arrays to which noise is added: ``as_given`` (units and good units) or
            ``good_and_defective``; empty for continual release.
    """

    when: Mapping[str, Any]
    how: str
    pair: str = ""

    def __str__(self) -> str:
        """Returns as text how the budget is shared by the releases."""
        return f"{self.how}, {self.pair.replace('_', ' ')}" if self.pair else self.how

    def schedule(self, rounds: int) -> dict[str, Any]:
        """Returns the specification of the schedule of releases, for an episode of ``rounds`` rounds."""
        spec = dict(self.when)
        if spec["name"] == "geometric":
            spec["horizon"] = rounds
        if spec["name"] == "fixed_gap":
            spec["gap"] = max(1, round(spec["gap"] * rounds))
        if spec["name"] == "doubling":
            # In a short episode the first release comes at the last power of two, so that there is one at all.
            spec["start"] = min(spec["start"], 1 << (rounds.bit_length() - 1))
        return spec

    def releases(self, rounds: int) -> int:
        """Returns the number of releases of an agent in an episode of ``rounds`` rounds."""
        return make_schedule(self.schedule(rounds)).count(rounds)

    def privatizer(self, rounds: int) -> dict[str, Any]:
        """Returns the arguments of the privatizer, for an episode of ``rounds`` rounds."""
        if not self.pair:
            releases = self.schedule(rounds)
            return {"epsilon": EPSILON, "delta": DELTA, "mechanism": self.how, "releases": releases}
        # The L2 distance of neighbours under "one-quantity", in units of the capacity. One altered quantity changes the
        # number of units and the number of good units by up to the capacity each, hence sqrt(2); the numbers of good
        # and of defective units change by the capacity in total, hence 1.
        budget = (EPSILON, DELTA, 1.0 if self.pair == _GOOD else sqrt(2))
        if self.how == "equal":
            return {**equal_shares(*budget[:2], self.releases(rounds), budget[2]), "pair": self.pair}
        return {**uneven_shares(self._proportions(rounds), *budget), "pair": self.pair}

    def _proportions(self, rounds: int) -> Array:
        """Returns what the releases spend if their shares are not equal, up to a common factor, ``(releases,)``.

        P-FCB's shares decrease towards 1/(2 log2 T); releases beyond the last share that is computed get that share,
        too.
        """
        shares = decreasing(1.0, rounds)
        shares = shares[np.minimum(np.arange(self.releases(rounds)), shares.size - 1)]
        return shares[::-1] if self.how == "growing" else shares

    def deviations(self, rounds: int) -> tuple[float, float]:
        """Returns the standard deviations of the noise in an agent's first release, and in the sum of all its releases.

        They are for the count of good outcomes or, where a matrix is released, for an entry of its diagonal. The unit
        is the capacity in procurement, and the largest size of one observation elsewhere.

        Args:
            rounds: Number of rounds of the episode.
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
            sizes = multiplier * sum(given["releases"]) / np.array(given["releases"])
        return float(sizes[0]), float(np.sqrt(np.square(sizes).sum()))


# The classic calibration of Gaussian noise is proven for epsilon below 1 only. With a large delta for each released
# value, the epsilon of each release is below 1 for the same noise.
_LARGE_DELTA = 0.5


def uneven_shares(proportions: Array, epsilon: float, delta: float, norm: float) -> dict[str, Any]:
    """Returns arguments of ``GaussianPrivatizer`` for releases that spend different shares of its epsilon.

    Args:
        proportions: The share of each release, up to a common factor, ``(releases,)``.
        epsilon: Epsilon of all releases together, > 0.
        delta: Delta of all releases together, in (0, 1).
        norm: L2 distance of neighbouring data sets in one release, in units of the sensitivity, > 0.

    Returns:
        ``epsilon``, ``delta`` and ``releases``, from which the privatizer computes the noise by the classic
        calibration.
    """
    spent = proportions / proportions.sum() / classic_noise_multiplier(1.0, _LARGE_DELTA)
    mu = norm * float(np.sqrt(np.square(spent).sum()))
    largest = (1 - 1e-9) / (analytic_noise_multiplier(epsilon, delta) * mu)
    return {"epsilon": largest, "delta": _LARGE_DELTA, "releases": proportions.tolist()}


@dataclass(frozen=True)
class BudgetProblem:
    """A problem in which candidates, that is, ways to spend the privacy budget, are compared.

    Environment, title and number of seeds are those of the experiment ``private-federation`` (:data:`COMPARED`), on
    whose first setting its sweeps are played.

    Attributes:
        rounds: Horizon, as a share of the scale's horizon.
        candidates: The candidates, by name.
        choices: Pairs of names of candidates that differ in one respect only, by a description of it.
    """

    rounds: float
    candidates: Mapping[str, Candidate]
    choices: Mapping[str, tuple[str, str]]


def _doubling(start: int, stop: int | None = None) -> dict[str, Any]:
    """Returns the specification of a schedule that sends in the rounds that are powers of two.

    Args:
        start: The first of these rounds.
        stop: Stop of the schedule ``doubling``; None for no end.
    """
    return {"name": "doubling", "start": start, "stop": stop}


def _few(*starts: int) -> dict[str, dict[str, Any]]:
    """Returns specifications of schedules with few releases, by name.

    There is one with the powers of two from each of the rounds ``starts`` on, and two with rounds in geometric
    progression.
    """
    few = {f"powers of two from {start}": _doubling(start) for start in starts}
    return few | {
        f"{count} in geometric progression": {"name": "geometric", "count": count} for count in (1, 3)
    }


def _continual(*starts: int) -> tuple[dict[str, Candidate], dict[str, tuple[str, str]]]:
    """Returns candidates of continual release, and pairs of them that differ in one respect.

    Args:
        *starts: Rounds of the first release, a power of two each; there is a candidate for each.

    Returns:
        The candidates by name, and pairs of names by a description of what is compared.
    """
    first, last = (f"powers of two from {start}" for start in (starts[0], starts[-1]))
    found = {name: Candidate(when, "sqrt_toeplitz") for name, when in _few(*starts).items()}
    found["a hundred, equal gaps"] = Candidate({"name": "fixed_gap", "gap": 0.01}, "blt")
    found["one a round"] = Candidate({"name": "every_round"}, "blt")
    found |= {f"{first}, {name}": Candidate(_doubling(starts[0]), name) for name in ("tree", "honaker")}
    return found, {
        f"{first} over those from {starts[-1]}": (first, last),
        "the square root's noise over the tree's": (first, f"{first}, tree"),
        f"{first} over a hundred at equal gaps": (first, "a hundred, equal gaps"),
        f"{first} over one a round": (first, "one a round"),
    }


_PAPERS = _doubling(200, 40_000)
_DECREASING, _EQUAL = "P-FCB's rounds and shares", "P-FCB's rounds, equal shares"
_GROWING = "P-FCB's rounds, growing shares, pair"

PROBLEMS = {
    "procurement": BudgetProblem(
        0.3,
        {
            _DECREASING: Candidate(_PAPERS, "decreasing", _GIVEN),
            _EQUAL: Candidate(_PAPERS, "equal", _GIVEN),
            f"{_EQUAL}, pair": Candidate(_PAPERS, "equal", _GOOD),
            _GROWING: Candidate(_PAPERS, "growing", _GOOD),
            **{name: Candidate(when, "equal", _GOOD) for name, when in _few(32, 1024, 8192).items()},
            "ten, equal gaps": Candidate({"name": "fixed_gap", "gap": 0.1}, "equal", _GOOD),
        },
        {
            "equal shares over decreasing ones": (_EQUAL, _DECREASING),
            "noise on good and defective units over noise on units and good ones": (
                f"{_EQUAL}, pair",
                _EQUAL,
            ),
            "growing shares over equal ones": (_GROWING, f"{_EQUAL}, pair"),
            "a first release in round 32 over one in 1024": (
                "powers of two from 32",
                "powers of two from 1024",
            ),
        },
    ),
    "linear": BudgetProblem(0.1, *_continual(1, 64, 512)),
    "exposure": BudgetProblem(0.2, *_continual(1, 64, 1024)),
    "arms": BudgetProblem(0.2, *_continual(1, 64, 1024)),
}


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: tuned agents who do not communicate, and each way to spend the privacy budget."""
    problem, compared, names = PROBLEMS[plan.panel], COMPARED[plan.panel], BASELINE_OF[plan.panel]
    rounds = max(1, round(plan.scale.rounds * problem.rounds))
    env_id = compared.cases[0].env_id
    silence = RunSpec(names[TUNED], env_id, rounds, plan.scale.trials, delta=DELTA, labels={"line": TUNED})
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
        {"x": "releases", "y": "regret / tuned silence's", "yscale": "linear"},
        {"tiny": Scale(600, 2), "small": Scale(100_000, 20), "paper": Scale(100_000, 20)},
        runs,
        {name: COMPARED[name].title for name in PROBLEMS},
    )
}
