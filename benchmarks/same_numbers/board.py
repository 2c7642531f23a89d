"""Plays committed rows of the leaderboard again; exit code 1 if some number is not what its file holds.

OMP_NUM_THREADS=1 python board.py RESULTS_FOLDER [--seeds N] [--only PART_OF_A_FILE_NAME]

`fedbandit leaderboard verify` does the same for one row, and more: it looks at digests first, and plays nothing where
they differ. Tasks' digests have modules' names in them: where files have moved it says nothing of numbers.
"""

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from capture import first_of

_BOARD = "fedbandit_envs.leaderboard"
_plays, _result = import_module(f"{_BOARD}.plays"), import_module(f"{_BOARD}.result")
# By the names of today, or those of before.
Play = getattr(_plays, "EntryRun", None) or _plays.Play
Result = getattr(_result, "ResultFile", None) or _result.Result
SUITES = first_of("SUITES", _BOARD, f"{_BOARD}.suites")
tracks_of = first_of("tracks_of", _BOARD, f"{_BOARD}.tracks")

ROUNDING = 1e-12
"""Other processors round otherwise. Whoever compares two commits on one of them compares what is printed."""


def play(result: Any, task: Any, said: Any, seeds: int | None) -> Any:
    """Plays the first seeds of one task of a row, or all of them, with the noise that the row had."""
    track = tracks_of(SUITES[result.suite])[result.track]
    chosen = tuple(int(seed, 16) for seed in said.seeds[:seeds])
    # The last two are about rows that are also played alone: none here.
    again = Play(task, track, result.entry, chosen, int(said.noise_entropy or "0", 16), 0, 0)
    return again.join([part.play(lambda played: None) for part in again.split()])


def differences(played: Any, said: Any, seeds: int | None) -> dict[str, float]:
    """Returns what differs, and by how much: see :func:`distance`.

    Claims are for all seeds together, and compared where all are played.
    """
    found = {
        "rounds": (played.rounds, said.rounds),
        "regret": (played.regret, [row[:seeds] for row in said.regret]),
        "messages": (played.messages, said.messages[:seeds]),
        "bytes": (played.bytes, said.bytes[:seeds]),
        **{
            name: (played.extra.get(name), said.extra[name][:seeds] if name in said.extra else None)
            for name in played.extra.keys() | said.extra.keys()
        },
    }
    if seeds is None:
        found["claims"] = (played.claims, said.claims)
    sizes = {name: distance(_plain(new), _plain(old)) for name, (new, old) in sorted(found.items())}
    return {name: size for name, size in sizes.items() if size}


def distance(new: Any, old: Any) -> float:
    """Returns the largest difference of numbers, over the largest of them or 1: 0 where equal, infinity for words."""
    if new == old:
        return 0.0
    try:
        was, now = np.array(old, np.float64), np.array(new, np.float64)
    except (TypeError, ValueError):
        return np.inf
    if was.shape != now.shape:
        return np.inf
    return float(np.abs(now - was).max() / max(1.0, np.abs(was).max()))


def _plain(value: Any) -> Any:
    """Returns the same of lists and dictionaries alone."""
    if hasattr(value, "items"):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument(
        "--seeds", type=int, help="the first so many of each task; by default all, and claims"
    )
    parser.add_argument("--only", default="", help="files whose name has this in it")
    options = parser.parse_args()
    start = time.time()
    files = [file for file in sorted(options.results.glob("*.json")) if options.only in file.name]
    wrong = rounded = tasks = 0
    for count, file in enumerate(files, 1):
        result = Result.load(file)
        by_id = {task.id: task for task in SUITES[result.suite].tasks}
        for said in result.tasks:
            tasks += 1
            try:
                differ = differences(play(result, by_id[said.task], said, options.seeds), said, options.seeds)
            except Exception as error:
                differ = {f"{type(error).__name__}: {error}": np.inf}
            if differ:
                beyond = max(differ.values()) > ROUNDING
                wrong += beyond
                rounded += not beyond
                sizes = ", ".join(f"{name} {size:.3g}" for name, size in differ.items())
                mark = "DIFFERS" if beyond else "last bits"
                print(f"{mark}: {file.name}, {said.task}: {sizes}", flush=True)
        if count % 20 == 0:
            print(f"{time.time() - start:.0f} s: {count} of {len(files)} rows", file=sys.stderr, flush=True)
    print(
        f"{len(files)} rows of {tasks} tasks: {tasks - wrong - rounded} are equal to the last bit, {rounded} differ by "
        f"{ROUNDING:g} of the largest number (or of 1) at most, {wrong} by more"
    )
    print(f"{time.time() - start:.0f} s", file=sys.stderr)
    sys.exit(1 if wrong or not files else 0)


if __name__ == "__main__":
    main()
