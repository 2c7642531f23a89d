"""Tuning of baselines by expected regret, and the choice of the best silent baseline of a suite.

Regret that a policy saves by tuning is not saved by communication. So the baseline that does not communicate is tuned,
too. All are tuned on the tasks of the problem's suite at their full horizon, on seeds that no experiment plays. The
score of a point of a grid is the geometric mean over tasks of the mean regret of an agent. A private form is tuned for
each epsilon of the tracks apart.

A form's points race. They play half of the seeds, then three quarters, then all; what has clearly lost is dropped in
between (:func:`behind`). A constant that explores too little has little regret in most runs and is lost in a few. So a
leader that has had no such run yet is charged with as many of them as are likely to exist.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, gmean

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.leaderboard.plays import baselines_of
from fedbandit_envs.leaderboard.suites import SUITES, Suite, Task, Track, suites_of, tracks_of
from fedbandit_envs.registry.problems import TuningSpec
from fedbandit_envs.registry.registration import PROBLEMS, REGISTRY, Registry, problem_of

FIRST_SEED = 1_000_000
"""The first seed that is used for tuning; experiments play smaller seeds."""

SILENCE = "silence"
"""Stands for the choice of the best silent baseline, in place of a baseline's name."""

TUNINGS: Registry[TuningSpec] = Registry(
    {name: problem.tuning for name, problem in PROBLEMS.items() if problem.tuning},
    problems=lambda plugin: {plugin.name: tuning} if (tuning := problem_of(plugin).tuning) else {},
)
"""How each problem's baselines are tuned, by the name of the problem's folder or plug-in."""

_SHARES = (0.5, 0.75, 1.0)
_STANDARD_ERRORS = 3.0
# Seeds on which the reference baseline shows what a failed run loses.
_REFERENCE_SEEDS = 10
# A grid is extended at most so often.
_EXTENSIONS = 8
_TIMED = {"rounds": 300, "seeds": 10}
_TINY = 1e-9

Point = tuple[str, Mapping[str, Any]]
"""Name of a baseline, and constants of its policy."""


def score(means: Array) -> Array:
    """Returns the geometric means of mean regrets over tasks; where one is not positive, the smallest.

    Args:
        means: Mean regrets; the last axis is that of tasks.
    """
    least = means.min(axis=-1)
    return np.where(least > 0.0, gmean(np.maximum(means, _TINY), axis=-1), least)


def behind(regrets: Array, halves: Array, lost: Array) -> Array:
    """Returns which points of a grid have lost the race, on the seeds that all of them have played.

    The leader is the point with the least score. On each task its mean is charged with failed runs, in addition to
    those that it has had: the one-sided 95 % upper bound (Clopper and Pearson) of their share times the loss of one. A
    run has failed if its regret in the second half of its rounds alone exceeds twice the leader's mean over all rounds.
    It loses as much as any run of any point has lost on the task, and at least ``lost``. A point has lost if its score
    is larger than the charged one by three standard errors, of paired differences of logarithms.

    Args:
        regrets: Regret of an agent at the horizon, float64 ``(points, tasks, seeds)``.
        halves: The same after half of the rounds.
        lost: Mean regret of a policy that acts at random, on each task, ``(tasks,)``.

    Returns:
        bool ``(points,)``.
    """
    means, seeds = regrets.mean(axis=2), regrets.shape[2]
    first = int(np.argmin(score(means)))
    failed = (regrets[first] - halves[first] > 2.0 * means[first, :, np.newaxis]).sum(axis=1)
    share = np.where(failed < seeds, beta.ppf(0.95, failed + 1, np.maximum(seeds - failed, 1)), 1.0)
    charged = means[first] + share * np.maximum(lost, regrets.max(axis=(0, 2)))
    means, charged = np.maximum(means, _TINY), np.maximum(charged, _TINY)
    gaps = np.log(means / charged).mean(axis=1)
    parts = regrets / means[..., np.newaxis] - regrets[first] / charged[:, np.newaxis]
    errors = parts.mean(axis=1).std(axis=1, ddof=min(1, seeds - 1)) / np.sqrt(seeds)
    return np.asarray(gaps > _STANDARD_ERRORS * errors)


def extended(
    grid: Mapping[str, tuple[Any, ...]], chosen: Mapping[str, Any], natural: Mapping[str, Sequence[Any]]
) -> dict[str, tuple[Any, ...]]:
    """Returns a grid with a further value beyond each end that was chosen and is not natural.

    It differs from the end by the ratio of the end and the value beside it, or by the factor 2 if that value is 0.

    Args:
        grid: Values by argument.
        chosen: The chosen point of the grid.
        natural: Values by argument that are natural ends, besides 0.
    """
    found = {}
    for name, values in grid.items():
        one = chosen[name]
        numbers = sorted(value for value in values if type(value) in (int, float))
        if one in numbers and len(numbers) > 1 and one not in (0, *natural.get(name, ())):
            beside = {numbers[0]: numbers[1], numbers[-1]: numbers[-2]}.get(one)
            if beside is not None:
                new = float(f"{one * one / beside if beside else 2 * one:.4g}")
                values += (round(new) if isinstance(one, int) else new,)
        found[name] = tuple(dict.fromkeys(values))
    return found


class Race(NamedTuple):
    """One choice: of the constants of a form on a track, or of the best silent baseline.

    Attributes:
        suite: The suite on whose tasks points are played.
        track: The track, which sets the privatizer.
        form: Name of the baseline that is tuned, or :data:`SILENCE`.
        grid: Values by argument.
        natural: Values by argument that are natural ends of the grid, besides 0.
        points: What is compared.
    """

    suite: Suite
    track: Track
    form: str
    grid: Mapping[str, tuple[Any, ...]]
    natural: Mapping[str, Sequence[Any]]
    points: Sequence[Point]

    @property
    def epsilon(self) -> float:
        """The epsilon that constants are for; infinity without noise."""
        return self.track.epsilon if self.track.private else inf


class Outcome(NamedTuple):
    """What a race has found.

    Attributes:
        points: What was compared, with points by which the grid was extended.
        best: Index of the point with the least score among those that have played all seeds; the first one in a tie.
        tried: For each point its constants, the means and standard errors of regret by task, and the number of seeds.
        ended: Whether the choice lies at an end of the grid that is not natural, so that the grid must be extended.
    """

    points: Sequence[Point]
    best: int
    tried: list[list[Any]]
    ended: bool


@dataclass(frozen=True)
class Tuner:
    """Plays races; what was played is kept by its owner, so that an interrupted race goes on.

    Attributes:
        play: Plays those runs, given under a label, that were not played yet.
        load: Returns the result of a run that was played.
        rounds: Horizon; None for the suite's.
        seeds: Number of seeds; None for the problem's.
    """

    play: Callable[[str, Sequence[RunSpec]], None]
    load: Callable[[RunSpec], RunResult]
    rounds: int | None = None
    seeds: int | None = None

    def suites(self, problem: str) -> list[Suite]:
        """Returns the full suites of a problem's environments; that on which constants are tuned is the first.

        Raises:
            ValueError: No such problem is tuned.
        """
        require_choice("PROBLEM", problem, TUNINGS)
        if (tasks := TUNINGS[problem].tasks) is not None:
            found = [suites_of({problem: tasks})[problem]]
        else:
            full = [suite for name, suite in SUITES.items() if not name.endswith("-quick")]
            found = sorted(full, key=lambda suite: suite.name != problem)
            found = [suite for suite in found if _federation(suite) == _federation(found[0])]
        if (rounds := self.rounds) is not None:
            tasks_of = [tuple(replace(task, rounds=rounds) for task in suite.tasks) for suite in found]
            found = [replace(suite, tasks=tasks) for suite, tasks in zip(found, tasks_of, strict=True)]
        return found

    def races(self, problem: str, form: str | None = None) -> Iterator[Race]:
        """Yields the races of a problem's forms.

        Args:
            problem: One of :data:`TUNINGS`.
            form: Name of the only baseline that is tuned; None for all.

        Raises:
            ValueError: No such problem or baseline is tuned.
        """
        suite, tuning = self.suites(problem)[0], TUNINGS[problem]
        if form is not None:
            require_choice("baseline", form, (*tuning.grids, SILENCE))
        for name, values in tuning.grids.items():
            grid = {argument: tuple(given) for argument, given in values.items()}
            if form in (None, name):
                for track in tracks_of(suite).values():
                    limited = track.messages not in (None, 0)
                    if not limited and not track.revealed and track.fits(BASELINES[name], suite):
                        yield Race(suite, track, name, grid, tuning.natural, points_of(name, grid))

    def silences(self, problem: str, found: Mapping[str, Any]) -> Iterator[Race]:
        """Yields the races of silent baselines, one for each suite of a problem.

        Args:
            problem: One of :data:`TUNINGS`.
            found: What was found for tuned forms, by their names, as in ``tuned.json``; best constants take part.
        """
        for suite in self.suites(problem) if TUNINGS[problem].tasks is None else ():
            track = tracks_of(suite)["silent"]
            silent = [name for name in baselines_of(suite) if track.fits(BASELINES[name], suite)]
            points: list[Point] = [(name, {}) for name in silent if name not in found]
            points += [
                (one["of"], one["at"]["inf"]["chosen"]) for one in found.values() if one["of"] in silent
            ]
            yield Race(suite, track, SILENCE, {}, {}, points)

    def seeds_of(self, problem: str) -> int:
        """Returns the number of seeds of a problem's races."""
        return TUNINGS[problem].seeds if self.seeds is None else self.seeds

    def run(self, race: Race, seeds: int) -> Outcome:
        """Plays a race, and extends its grid until the chosen constants do not lie at an end that is not natural.

        Args:
            race: The race.
            seeds: Number of seeds.

        Raises:
            SettingsError: A run cannot be set up.
        """
        for _ in range(_EXTENSIONS):
            found = self._played(race, seeds)
            if not found.ended:
                break
            grid = extended(race.grid, found.tried[found.best][0], race.natural)
            race = race._replace(grid=grid, points=points_of(race.form, grid))
        return found

    def _played(self, race: Race, seeds: int) -> Outcome:
        tasks, label = race.suite.tasks, f"{race.form}, {race.track.name}"
        random = [(race.suite.reference, {})] if race.suite.reference else []
        shown = self._regrets(race, random, label, 0, min(_REFERENCE_SEEDS, seeds))
        lost = shown[0].mean(axis=(0, 2)) if random else np.zeros(len(tasks))
        left, stop = list(range(len(race.points))), 0
        shape = (2, len(race.points), len(tasks), seeds)
        played = np.full(shape, np.nan)
        for share in _SHARES:
            start, stop = stop, ceil(seeds * share)
            if start < stop:
                points = [race.points[point] for point in left]
                played[:, left, :, start:stop] = self._regrets(race, points, label, start, stop)
                drop = behind(*played[:, left, :, :stop], lost)
                left = [point for point, out in zip(left, drop, strict=True) if not (out and stop < seeds)]
        tried = []
        for (_, constants), regrets in zip(race.points, played[0], strict=True):
            kept = regrets[:, np.isfinite(regrets[0])]
            errors = kept.std(axis=1, ddof=min(1, kept.shape[1] - 1)) / np.sqrt(kept.shape[1])
            tried.append([dict(constants), _rounded(kept.mean(axis=1)), _rounded(errors), kept.shape[1]])
        best = left[int(np.argmin(score(np.array([tried[point][1] for point in left]))))]
        ended = extended(race.grid, tried[best][0], race.natural) != race.grid
        return Outcome(race.points, best, tried, ended)

    def _regrets(self, race: Race, points: Sequence[Point], label: str, start: int, stop: int) -> Array:
        """Plays some seeds of points and returns regrets at the horizon and after half of it, see :func:`behind`."""
        runs = [
            [run_of(race.track, task, point, range(start, stop)) for task in race.suite.tasks]
            for point in points
        ]
        self.play(label, [run for own in runs for run in own])
        found = np.empty((2, len(points), len(race.suite.tasks), stop - start))
        for point, own in enumerate(runs):
            for task, run in enumerate(own):
                result = self.load(run)
                means = result.regret.mean(axis=2)
                found[0, point, task] = means[-1]
                found[1, point, task] = [np.interp(run.rounds / 2, result.rounds, seed) for seed in means.T]
        return found

    def plan(self, race: Race, seeds: int) -> tuple[float, float]:
        """Returns the largest number of agent-rounds of a race, without extensions, and about how many CPU seconds.

        The time is that of a short run of each baseline, longer for more agent-rounds in proportion.
        """
        speed, rounds, seconds = {}, 0.0, 0.0
        for point in race.points:
            for task in race.suite.tasks:
                whole = run_of(race.track, task, point, range(seeds))
                if (key := (point[0], task.id)) not in speed:
                    short = {name: min(most, getattr(whole, name)) for name, most in _TIMED.items()}
                    timed = replace(whole, **short)
                    timed.run()  # Kernels are compiled, which does not count.
                    speed[key] = timed.run().cpu_seconds / timed.size
                rounds += whole.size
                seconds += whole.size * speed[key]
        return rounds, seconds


def points_of(baseline: str, grid: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Returns the points of a baseline's grid: all combinations of its values."""
    return [(baseline, dict(zip(grid, values, strict=True))) for values in product(*grid.values())]


def run_of(track: Track, task: Task, point: Point, seeds: range) -> RunSpec:
    """Returns the run of a point on a task, with the privatizer as the track sets it.

    Args:
        track: The track.
        task: The task.
        point: Name of the baseline, and its constants.
        seeds: The seeds, counted from :data:`FIRST_SEED`.
    """
    name, constants = point
    base = BASELINES[name]
    form = base.tuned_by(constants)
    changes = {part: dict(given) for part, given in track.changes(task.federation(), base).items()}
    kwargs: dict[str, Any] = {"policy_kwargs": dict(constants)}
    if form.wrappers != base.wrappers:
        changes["server"] = {"policy": form.wrappers["server"].kwargs["policy"]}
        kwargs = {}
    env_kwargs, first = dict(task.env_kwargs), FIRST_SEED + seeds.start
    return RunSpec(
        name, task.env_id, task.rounds, len(seeds), first, env_kwargs, wrapper_kwargs=changes, **kwargs
    )


def merged(data: Mapping[str, Any], problem: str, race: Race, found: Outcome) -> dict[str, Any]:
    """Returns the content of ``tuned.json`` with what a race has found.

    Constants for other epsilons stay if they were tuned on the same tasks for as many rounds.

    Args:
        data: The content.
        problem: Name of the problem.
        race: The race.
        found: Its outcome.
    """
    today = datetime.now(UTC).date().isoformat()
    tuning = TUNINGS[problem]
    if race.form == SILENCE:
        names = [tuning.tuned_name(one) if constants else one for one, constants in found.points]
        tried = {one: row[1:] for one, row in zip(names, found.tried, strict=True)}
        best = {"name": names[found.best], "date": today, "tried": tried}
        return {**data, "silence": {**data["silence"], race.suite.name: best}}
    head = {
        "of": race.form,
        "tasks": [task.id for task in race.suite.tasks],
        "rounds": race.suite.tasks[0].rounds,
        "date": today,
    }
    form = tuning.tuned_name(race.form)
    before = data["baselines"].get(form, {})
    same = all(before.get(key) == head[key] for key in ("of", "tasks", "rounds"))
    at = {
        **(before["at"] if same else {}),
        f"{race.epsilon:g}": {"chosen": found.tried[found.best][0], "tried": found.tried},
    }
    return {**data, "baselines": {**data["baselines"], form: {**head, "at": at}}}


def as_text(data: Mapping[str, Any]) -> str:
    """Returns the text of ``tuned.json``, with a line for each tuned form and each suite."""
    lines = {
        part: ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in data[part].items())
        for part in ("baselines", "silence")
    }
    parts = [f' "{part}": {{\n{inner}\n }}' for part, inner in lines.items()]
    heads = [f' "{name}": {json.dumps(data[name])}' for name in data if name not in lines]
    return "{\n" + ",\n".join([*heads, *parts]) + "\n}\n"


def _federation(suite: Suite) -> str:
    return REGISTRY[suite.tasks[0].env_id].federation


def _rounded(values: Array) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
