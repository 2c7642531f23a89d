"""The numbers of the page's curves, as they are kept: one JSON file, small enough to lie in the repository."""

import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.board.report.pictures import short
from fedbandit_envs.leaderboard.lab.page.grid import PROBLEMS, SEEDS, Point, points, run_of
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.leaderboard.sweep.backends import Backend
from fedbandit_envs.leaderboard.sweep.engine import play
from fedbandit_envs.leaderboard.sweep.runs import Result
from fedbandit_envs.leaderboard.sweep.store import load, missing_shards


class NumbersError(ValueError):
    """A file does not hold the numbers of this page's grid: the message says what is wrong."""


def size_left(folder: Path) -> float:
    """Returns how many agent-rounds are to be played of what is not among the shards of a folder."""
    return float(sum(shard.size for shard in missing_shards(_shards(), folder)))


def played(folder: Path, backend: Backend, advance: Callable[[float], None]) -> dict[str, Any]:
    """Plays what is missing of the grid, and returns all of its numbers.

    Args:
        folder: Where shards are kept; see :func:`~fedbandit_envs.leaderboard.sweep.engine.play`.
        backend: Where to play.
        advance: Told of agent-rounds played, for progress bars.

    Returns:
        As JSON: ``version``, ``cpu_seconds`` (what playing took), ``seeds``, and ``problems``: of each its ``rounds``
        (where curves have points) and ``curves``, each with ``algorithm``, ``epsilon`` and ``schedule`` (null where
        there is none), ``mean``, ``low`` and ``high`` (cumulative regret per agent and its 95 % interval over seeds),
        ``claim`` (what was spent, null where nothing is private), ``messages`` and ``bytes`` (of an agent).
    """
    play(_shards(), folder, backend, advance)
    problems: dict[str, Any] = {}
    seconds = 0.0
    for point in points():
        result: Result = load(run_of(point).split(), folder)
        seconds += result.cpu_seconds
        own = problems.setdefault(point.problem, {"rounds": result.rounds.tolist(), "curves": []})
        own["curves"].append(curve(point, result))
    return {
        "version": version("fedbandit-envs"),
        "cpu_seconds": round(seconds),
        "seeds": SEEDS,
        "problems": problems,
    }


def _shards() -> list[Any]:
    return [shard for point in points() for shard in run_of(point).split()]


def curve(point: Point, result: Result) -> dict[str, Any]:
    """Returns the numbers of one curve; see :func:`played`."""
    mean, half = mean_and_half_width(result.regret.mean(axis=2))
    return {
        "algorithm": point.algorithm,
        "epsilon": point.epsilon,
        "schedule": point.schedule,
        "mean": [short(number) for number in mean],
        "low": [short(number) for number in mean - half],
        "high": [short(number) for number in mean + half],
        "claim": _claim(result) if point.epsilon is not None else None,
        "messages": _total(result, "messages"),
        "bytes": _total(result, "bytes"),
    }


def _claim(result: Result) -> dict[str, Any]:
    """Returns what was spent, exactly composed, under the first adjacency that the environment names."""
    found = next(claim for claim in result.claims if claim["composition"] == "exact")
    epsilon = found["epsilon"]
    return {
        "epsilon": epsilon if epsilon is None else float(f"{epsilon:.4g}"),
        **{name: found[name] for name in ("delta", "adjacency", "composition", "trust", "noise", "reason")},
    }


def _total(result: Result, name: str) -> float:
    return round(float(np.mean(result.traffic[name]))) if result.traffic else 0


def written(numbers: Mapping[str, Any]) -> str:
    """Returns the text of the file: a line a curve, so that changes can be seen."""
    between = ",\n"
    parts = []
    for name, own in numbers["problems"].items():
        curves = between.join(json.dumps(one, allow_nan=False) for one in own["curves"])
        parts.append(
            f'{json.dumps(name)}: {{"rounds": {json.dumps(own["rounds"])}, "curves": [\n{curves}\n]}}'
        )
    said = {name: value for name, value in numbers.items() if name != "problems"}
    return f'{json.dumps(said)[:-1]}, "problems": {{\n{between.join(parts)}\n}}}}\n'


def read(path: Path) -> dict[str, Any]:
    """Reads a file of numbers.

    Raises:
        NumbersError: It is no such file, or that of another grid.
        OSError: It cannot be read.
    """
    try:
        numbers: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kept = [
            Point(name, one["algorithm"], one["epsilon"], one["schedule"])
            for name, own in numbers["problems"].items()
            for one in own["curves"]
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NumbersError(f"{path} holds no numbers of the lab's page: {error!r}") from error
    if kept != list(points()):
        raise NumbersError(
            f"{path} holds {len(kept)} curves of another grid than the page's, which has {len(list(points()))} in "
            f"{', '.join(PROBLEMS)}; play it again: fedbandit lab-page --out DIR"
        )
    return numbers
