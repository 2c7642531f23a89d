"""Tuning of baselines by expected regret, and the choice of the best silent baseline of a suite.

Regret that a policy saves by tuning is not saved by communication. So the baseline that does not communicate is tuned,
too. All are tuned on the tasks of the problem's suite at their full horizon, on seeds that no experiment plays. The
score of a point of a grid is the geometric mean over tasks of the mean regret of an agent. A private form is tuned for
each epsilon of the tracks apart.

A form's points race. They play half of the seeds, then three quarters, then all; what has clearly lost is dropped in
between (:func:`behind`). A constant that explores too little has little regret in most runs and is lost in a few. So a
leader that has had no such run yet is charged with as many of them as are likely to exist.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, product
from math import ceil, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import gmean

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.experiments.measures import failures, most_failures
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.leaderboard.plays import baselines_of
from fedbandit_envs.leaderboard.suites import SUITES, Suite, Task, Track, suites_of, tracks_of
from fedbandit_envs.registry.problems import TuningSpec
from fedbandit_envs.registry.registration import PROBLEMS, REGISTRY, Registry, problem_of

FIRST_SEED = 1_000_000
"""The first seed that is used for tuning; experiments play smaller seeds."""

SILENCE = "silence"
"""Stands for the choice of the best silent baseline, where otherwise a baseline's name stands."""

TUNINGS: Registry[TuningSpec] = Registry(
    {name: problem.tuning for name, problem in PROBLEMS.items() if problem.tuning},
    problems=lambda plugin: {plugin.name: tuning} if (tuning := problem_of(plugin).tuning) else {},
)
"""How each problem's baselines are tuned, by the name of the problem's folder or plug-in."""

_SHARES = (0.5, 0.75, 1.0)
_STANDARD_ERRORS = 3.0
# Seeds on which the reference baseline shows what a run loses that is lost from the start.
_REFERENCE_SEEDS = 10
_EXTENSIONS = 8
# As many rows as a shard has, so that calls weigh as little.
_TIMED = {"rounds": 300, "seeds": 50}
_TINY = 1e-9

Point = tuple[str, Mapping[str, Any]]
"""Name of a baseline, and constants of its policy."""

Values = Mapping[str, Sequence[Any]]
"""Values by argument."""

Player = Callable[[str, Sequence[RunSpec], Path], None]
"""A function that plays those runs, given after a label, that have no shards in a folder yet."""


@dataclass(frozen=True)
class Race:
    """One choice: of the constants of a form on a track, or of the best silent baseline of a suite.

    Attributes:
        problem: One of :data:`TUNINGS`.
        suite: The suite on whose tasks points are played.
        track: The track, which sets the privatizer.
        form: Name of the baseline that is tuned, or :data:`SILENCE`.
        seeds: Number of seeds.
        points: What is compared.
        grid: The values of which a form's points are the combinations.
    """

    problem: str
    suite: Suite
    track: Track
    form: str
    seeds: int
    points: Sequence[Point]
    grid: Values

    def extended(self, best: int) -> "Race":
        """Returns the race with a further value beyond each end of the grid that was chosen and is not natural.

        It differs from the end by the ratio of the end and the value beside it, or by the factor 2 if that value is 0.

        Args:
            best: Index of the chosen point.
        """
        natural, grid = TUNINGS[self.problem].natural, dict(self.grid)
        for name, values in self.grid.items():
            end, numbers = self.points[best][1][name], [one for one in values if type(one) in (int, float)]
            numbers.sort()
            beside = {numbers[0]: numbers[1], numbers[-1]: numbers[-2]} if len(numbers) > 1 else {}
            if end in beside and end not in (0, *natural.get(name, ())):
                further = float(f"{end**2 / beside[end] if beside[end] else 2 * end:.4g}")
                grid[name] = (*values, round(further) if isinstance(end, int) else further)
        return replace(self, grid=grid, points=_combined(self.form, grid) if grid else self.points)

    def runs(self, points: Sequence[Point], seeds: range) -> list[list[RunSpec]]:
        """Returns for each point its runs, one for each task, with seeds counted from :data:`FIRST_SEED`."""
        return [[self._run(*point, task, seeds) for task in self.suite.tasks] for point in points]

    def _run(self, name: str, constants: Mapping[str, Any], task: Task, seeds: range) -> RunSpec:
        base = BASELINES[name]
        form = base.tuned_by(constants)
        changes = {part: dict(given) for part, given in self.track.changes(task.federation(), base).items()}
        kwargs: dict[str, Any] = {"env_kwargs": task.env_kwargs, "policy_kwargs": constants}
        if form.wrappers != base.wrappers:
            changes["server"] = {"policy": form.wrappers["server"].kwargs["policy"]}
            kwargs["policy_kwargs"] = {}
        first = FIRST_SEED + seeds.start
        return RunSpec(name, task.env_id, task.rounds, len(seeds), first, **kwargs, wrapper_kwargs=changes)

    def cost(self) -> tuple[float, float]:
        """Returns the number of agent-rounds if nothing is dropped or added, and about how many CPU seconds they take.

        The time follows from a short run of each baseline, in proportion to the agent-rounds.
        """
        speeds: dict[tuple[object, ...], float] = {}
        size = seconds = 0.0
        for run in chain.from_iterable(self.runs(self.points, range(self.seeds))):
            if (key := (run.baseline, run.env_id, str(run.env_kwargs))) not in speeds:
                short = replace(run, **{name: min(most, getattr(run, name)) for name, most in _TIMED.items()})
                short.run()  # Kernels are compiled, which does not count.
                speeds[key] = short.run().cpu_seconds / short.size
            size, seconds = size + run.size, seconds + run.size * speeds[key]
        return size, seconds


class Outcome(NamedTuple):
    """What a race has found.

    Attributes:
        race: The race, with the points by which its grid was extended.
        best: Index of the point with the least score among those that have played all seeds; the first in a tie.
        tried: For each point its constants, the mean regret on each task, the standard errors, and the number of seeds.
        ended: Whether the best point lies at an end of the grid that is not natural, so that the grid must be extended.
    """

    race: Race
    best: int
    tried: list[list[Any]]
    ended: bool


def races(
    problem: str,
    data: Mapping[str, Any],
    form: str | None = None,
    rounds: int | None = None,
    seeds: int | None = None,
) -> Iterator[Race]:
    """Returns the races of a problem: of its forms on their tracks, then of silent baselines on its suites.

    Args:
        problem: One of :data:`TUNINGS`.
        data: Content of ``tuned.json``. Silent forms that were tuned race with the constants that it has once all
            other races have been asked for.
        form: Name of the only baseline that is tuned, or :data:`SILENCE`; None for all.
        rounds: Horizon; None for the suites'.
        seeds: Number of seeds; None for the problem's.

    Raises:
        ValueError: No such problem or baseline is tuned.
    """
    require_choice("PROBLEM", problem, TUNINGS)
    every = [*TUNINGS[problem].grids, SILENCE]
    forms = every if form is None else [require_choice("baseline", form, every)]
    suites, number = _suites(problem, rounds), TUNINGS[problem].seeds if seeds is None else seeds

    def of_form(name: str) -> Iterator[Race]:
        suite, grid = suites[0], TUNINGS[problem].grids[name]
        for track in tracks_of(suite).values():
            if not track.name.endswith("-few") and track.fits(BASELINES[name], suite):
                yield Race(problem, suite, track, name, number, _combined(name, grid), grid)

    def of_silence() -> Iterator[Race]:
        for suite in suites if TUNINGS[problem].tasks is None else ():
            track, tuned = tracks_of(suite)["silent"], data["baselines"]
            silent = [name for name in baselines_of(suite) if track.fits(BASELINES[name], suite)]
            points: list[Point] = [(name, {}) for name in silent if name not in tuned]
            points += [
                (one["of"], one["at"]["inf"]["chosen"]) for one in tuned.values() if one["of"] in silent
            ]
            yield Race(problem, suite, track, SILENCE, number, points, {})

    return chain.from_iterable(of_silence() if one == SILENCE else of_form(one) for one in forms)


def _suites(problem: str, rounds: int | None) -> list[Suite]:
    """Returns the full suites of a problem's environments, first that on which constants are tuned."""
    if (tasks := TUNINGS[problem].tasks) is not None:
        found = [suites_of({problem: tasks})[problem]]
    else:
        federation = REGISTRY[SUITES[problem].tasks[0].env_id].federation
        full = [one for name, one in SUITES.items() if not name.endswith("-quick")]
        found = [one for one in full if REGISTRY[one.tasks[0].env_id].federation == federation]
    return [
        replace(one, tasks=tuple(replace(task, rounds=rounds or task.rounds) for task in one.tasks))
        for one in found
    ]


def _combined(name: str, grid: Values) -> list[Point]:
    return [(name, dict(zip(grid, values, strict=True))) for values in product(*grid.values())]


def run(race: Race, play: Player, folder: Path) -> Outcome:
    """Plays a race, and extends its grid until the chosen constants do not lie at an end that is not natural.

    Args:
        race: The race.
        play: Plays the runs.
        folder: Folder of their shards.

    Raises:
        SettingsError: A run cannot be set up.
    """
    for _ in range(_EXTENSIONS):
        best, tried = _raced(race, play, folder)
        further = race.extended(best)
        if len(further.points) == len(race.points):
            return Outcome(race, best, tried, ended=False)
        race, before = further, race
    return Outcome(before, best, tried, ended=True)


def _raced(race: Race, play: Player, folder: Path) -> tuple[int, list[list[Any]]]:
    """Plays a race without extending its grid; returns the index of the best point, and what was tried."""

    def played(points: Sequence[Point], start: int, stop: int) -> Array:
        """Returns regret in all rounds and in their second half, ``(2, points, tasks, seeds)``."""
        runs = race.runs(points, range(start, stop))
        play(f"{race.form}, {race.track.name}", list(chain.from_iterable(runs)), folder)
        results = [map(Store(folder).load, own) for own in runs]
        found = [[(one.regret.mean(axis=2)[-1], one.late) for one in own] for own in results]
        return np.moveaxis(np.array(found), 2, 0)

    lost = np.zeros(len(race.suite.tasks))
    if race.suite.reference:
        lost = played([(race.suite.reference, {})], 0, min(_REFERENCE_SEEDS, race.seeds))[0, 0].mean(axis=1)
    left, stop = list(range(len(race.points))), 0
    regrets = np.full((2, len(left), len(lost), race.seeds), np.nan)
    for share in _SHARES:
        start, stop = stop, ceil(race.seeds * share)
        if start < stop:
            regrets[:, left, :, start:stop] = played([race.points[one] for one in left], start, stop)
        if stop < race.seeds:
            whole, late = regrets[:, left, :, :stop]
            drop = behind(whole, late, lost)
            left = [one for one, out in zip(left, drop, strict=True) if not out]
    tried = []
    for (_, constants), own in zip(race.points, regrets[0], strict=True):
        kept = own[:, np.isfinite(own[0])]
        errors = kept.std(axis=1, ddof=min(1, kept.shape[1] - 1)) / np.sqrt(kept.shape[1])
        rounded = ([float(f"{value:.6g}") for value in values] for values in (kept.mean(axis=1), errors))
        tried.append([dict(constants), *rounded, kept.shape[1]])
    return left[int(np.argmin(_score(np.array([tried[one][1] for one in left]))))], tried


def _score(means: Array) -> Array:
    """Returns geometric means over the last axis, that of tasks; where a mean is not positive, the smallest one."""
    least = means.min(axis=-1)
    return np.where(least > 0.0, gmean(np.maximum(means, _TINY), axis=-1), least)


def behind(regrets: Array, late: Array, lost: Array) -> Array:
    """Returns which points of a grid have lost the race, on the seeds that all of them have played.

    The leader is the point with the least score. On each task its mean is charged with failed runs, in addition to
    those that it has had: the one-sided 95 % upper bound (Clopper and Pearson) of their share times the loss of one. A
    run has failed if its regret in the second half of its rounds alone exceeds twice the leader's mean over all rounds.
    It loses as much as any run of any point has lost on the task, and at least ``lost``. A point has lost if its score
    is larger than the charged one by three standard errors, of paired differences of logarithms.

    Args:
        regrets: Regret of an agent at the horizon, float64 ``(points, tasks, seeds)``.
        late: The part of it in the second half of the rounds, same shape.
        lost: Mean regret of a policy that acts at random, on each task, ``(tasks,)``.

    Returns:
        bool ``(points,)``.
    """
    means, seeds = regrets.mean(axis=2), regrets.shape[2]
    first, of_one = int(np.argmin(_score(means))), np.zeros(seeds)
    failed = [failures(*pair, of_one) for pair in zip(late[first], regrets[first], strict=True)]
    share = np.array([most_failures(one, seeds) for one in failed])
    charged = np.maximum(means[first] + share * np.maximum(lost, regrets.max(axis=(0, 2))), _TINY)
    means = np.maximum(means, _TINY)
    parts = regrets / means[..., np.newaxis] - regrets[first] / charged[:, np.newaxis]
    errors = parts.mean(axis=1).std(axis=1, ddof=min(1, seeds - 1)) / np.sqrt(seeds)
    return np.asarray(np.log(means / charged).mean(axis=1) > _STANDARD_ERRORS * errors)


def keep(data: Mapping[str, Any], found: Outcome) -> None:
    """Adds what a race has found to the content of ``tuned.json``.

    Constants for other epsilons stay if they were tuned on the same tasks for as many rounds.

    Args:
        data: The content, which is changed.
        found: The outcome.
    """
    race, tuning, today = found.race, TUNINGS[found.race.problem], datetime.now(UTC).date().isoformat()
    tasks = race.suite.tasks
    if race.form == SILENCE:
        names = [tuning.tuned_name(name) if constants else name for name, constants in race.points]
        tried = {name: row[1:] for name, row in zip(names, found.tried, strict=True)}
        data["silence"][race.suite.name] = {"name": names[found.best], "date": today, "tried": tried}
        return
    head = {"of": race.form, "tasks": [task.id for task in tasks], "rounds": tasks[0].rounds}
    before = data["baselines"].get(tuning.tuned_name(race.form), {})
    at = before["at"] if head.items() <= before.items() else {}
    epsilon = race.track.epsilon if race.track.private else inf
    at = {**at, f"{epsilon:g}": {"chosen": found.tried[found.best][0], "tried": found.tried}}
    data["baselines"][tuning.tuned_name(race.form)] = {**head, "date": today, "at": at}
