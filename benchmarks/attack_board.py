"""Submits entries that pool rows, and honest ones, to the silent track of a suite, and counts how many are refuted.

python benchmarks/attack_board.py --suite arms-quick --times 20 [--workers 2] [--only locks Honest]

Each time is an edition of its own, in a folder that is removed afterwards. An entry is refused if its policy fails or a
system call that it needs is not allowed, refuted by rows played alone or by its regret, and holds otherwise. Honest are
an entry on totals and the suite's silent baselines, submitted by their entry points.
"""

import argparse
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from runpy import run_path

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.experiments import execute
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.leaderboard import engine
from fedbandit_envs.leaderboard.entries import baselines_of, submission_of
from fedbandit_envs.leaderboard.pooling import PooledRowsError
from fedbandit_envs.leaderboard.records import Records
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.sandbox import EntryError
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of

ENTRIES = Path(__file__).parents[1] / "tests" / "support" / "pooling_entries.py"
CHANNELS = ("", "locks", "atime", "utime", "load", "file")


def entries(suite):
    """Code and settings of every entry, by its name."""
    found = {f"pools {channel}".strip(): (f"{ENTRIES}:Pooler", {"channel": channel}) for channel in CHANNELS}
    found["pools file"][1]["path"] = "/tmp/pooling-word"
    found["Honest"] = (f"{ENTRIES}:Honest", {})
    silent = tracks_of(suite)["silent"]
    for name in baselines_of(suite):
        policy = BASELINES[name].policy
        if not BASELINES[name].wrappers and all(silent.fits(BASELINES[name], task) for task in suite.tasks):
            found[name] = (f"{policy.__module__}:{policy.__qualname__}", dict(BASELINES[name].policy_kwargs))
    return found


def compile_kernels(suite, found):
    """Plays two rounds with every honest entry, so that no child process has to compile what the entry uses."""
    for name, (code, settings) in found.items():
        if not name.startswith("pools"):
            path, _, attribute = code.rpartition(":")
            module = run_path(path) if path.endswith(".py") else vars(import_module(path))
            for task in suite.tasks:
                simulate(replace(task, rounds=2).federation(), module[attribute](**settings), [0, 1])


def outcome(suite, name, code, settings, workers):
    """What becomes of an entry in a new edition."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        entry = submission_of(code, name.replace(" ", "-"), {"policy": settings}, out / engine.SOURCES)
        row = engine.Row(suite, tracks_of(suite)["silent"], *entry)
        play = partial(execute.play, backend=execute.Local(workers))
        try:
            engine.run([row], Records(out).edition(suite), out, play)
        except MixedRowsError:
            return "refuted: rows alone"
        except PooledRowsError:
            return "refuted: regret"
        except EntryError as error:
            return f"refused: {str(error)[:60]}"
        return "holds"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="arms-quick", choices=list(SUITES))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="names, or channels of entries that pool")
    options = parser.parse_args()
    suite = SUITES[options.suite]
    found = entries(suite)
    compile_kernels(suite, found)
    for name, (code, settings) in found.items():
        if options.only and not {name, name.removeprefix("pools ")} & {*options.only}:
            continue
        counts = Counter(outcome(suite, name, code, settings, options.workers) for _ in range(options.times))
        outcomes = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        print(f"{options.suite:18} {name:24} {outcomes}", flush=True)


if __name__ == "__main__":
    main()
