"""What the page shows, as data: problem, algorithm, epsilon and schedule. Frozen: the page's numbers are kept by it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run
from fedbandit_envs.wrappers.privacy.accounting.claimed import equal_shares
from fedbandit_envs.wrappers.transport.schedule import make_schedule

EPSILONS = (0.1, 1.0, 10.0)
"""Of all releases of an agent together, exactly composed."""

SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    "powers of two": {"name": "doubling", "start": 1, "stop": None},
    "powers of two from 256": {"name": "doubling", "start": 256, "stop": None},
    "every 100 rounds": {"name": "fixed_gap", "gap": 100},
    "every round": {"name": "every_round"},
}

SEEDS = 10


@dataclass(frozen=True)
class Problem:
    """What is played in one problem.

    Attributes:
        title: What it is called.
        env_id: The environment.
        rounds: Horizon.
        delta: At which epsilon is claimed.
        silent: Baselines that send nothing.
        sharing: Baselines that send true data, when the schedule says so.
        private: Baselines that send noisy data, likewise.
        shared: Whether the privatizer shares epsilon out over its releases, so that the claim has to be worked out.
    """

    title: str
    env_id: str
    rounds: int
    delta: float
    silent: tuple[str, ...]
    sharing: tuple[str, ...]
    private: tuple[str, ...]
    shared: bool = False


PROBLEMS: Mapping[str, Problem] = {
    "procurement": Problem(
        "Procurement under a quality constraint",
        "FedProcurement-v0",
        2000,
        0.01,
        ("SS-UCB", "SS-UCB-tuned"),
        ("FCB", "P-FCB-weighted-true"),
        ("P-FCB", "P-FCB-weighted", "P-FCB-weighted-placebo"),
        shared=True,
    ),
    "linear": Problem(
        "Linear contextual bandits",
        "FedLinear-v0",
        1000,
        0.1,
        ("LinUCB", "LinUCB-tuned"),
        ("FedUCB-nonprivate", "FedUCB-weighted-true"),
        ("FedUCB-min", "FedUCB-weighted", "FedUCB-weighted-placebo"),
    ),
    "exposure": Problem(
        "Exposure fairness",
        "FedExposure-v0",
        1000,
        0.1,
        ("FairX-LinUCB", "FairX-tuned"),
        ("Fed-FairX-LinUCB", "Priv-FairX-weighted-true"),
        ("Priv-FairX-LinUCB", "Priv-FairX-weighted", "Priv-FairX-weighted-placebo"),
    ),
    "arms": Problem(
        "Bernoulli arms",
        "FedArms-v0",
        2000,
        1e-5,
        ("UCB1", "UCB1-tuned"),
        ("Fed-UCB1", "UCB1-weighted-true"),
        ("Priv-UCB1", "UCB1-weighted", "UCB1-weighted-placebo"),
    ),
}


class Point(NamedTuple):
    """One point of the grid.

    Attributes:
        problem: A name of :data:`PROBLEMS`.
        algorithm: A baseline.
        epsilon: None where nothing is private, and where nothing is sent.
        schedule: A name of :data:`SCHEDULES`; None where nothing is sent.
    """

    problem: str
    algorithm: str
    epsilon: float | None
    schedule: str | None


def points() -> Iterator[Point]:
    """Yields all points, silent ones first in each problem."""
    for name, problem in PROBLEMS.items():
        for silent in problem.silent:
            yield Point(name, silent, None, None)
        for schedule in SCHEDULES:
            for sharing in problem.sharing:
                yield Point(name, sharing, None, schedule)
            for private in problem.private:
                for epsilon in EPSILONS:
                    yield Point(name, private, epsilon, schedule)


def run_of(point: Point) -> Run:
    """Returns the run of a point."""
    problem = PROBLEMS[point.problem]
    wrappers: dict[str, dict[str, Any]] = {}
    if point.schedule is not None:
        when = dict(SCHEDULES[point.schedule])
        wrappers["channel"] = {"schedule": when}
        if point.epsilon is not None and problem.shared:
            # Good and defective units grow by the capacity together: so neighbours differ by one scale.
            releases = make_schedule(when).count(problem.rounds)
            shares = equal_shares(point.epsilon, problem.delta, releases)
            wrappers["privatizer"] = {**shares, "pair": "good_and_defective"}
        elif point.epsilon is not None:
            wrappers["privatizer"] = {"epsilon": point.epsilon, "delta": problem.delta, "releases": when}
    settings = Settings(point.algorithm, problem.env_id, problem.rounds, SEEDS, wrapper_kwargs=wrappers)
    return Run(settings, delta=problem.delta)
