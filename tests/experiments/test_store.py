"""Shards: known by what determines them, whole or noticed, killed at any moment, the same whoever plays them."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from sweep_cells import Drawn, contents, players, plays

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.experiments import execute, store
from fedbandit_envs.experiments.execute import BackendError, play
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import Store, source_digest, write_whole
from fedbandit_envs.papers.feducb_critique import first_messages

FORK = get_context("fork")
CELL = Drawn(tuple(range(4)), numbers=50)


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def test_one_shard_that_is_missing_is_named_and_played_again(tmp_path):
    play([CELL], tmp_path)
    kept = [Store(tmp_path).path(shard) for shard in CELL.split()]
    with np.load(kept[3]) as arrays:
        np.testing.assert_array_equal(arrays["numbers"], CELL.expected()[3])
    stamps = [file.stat().st_mtime_ns for file in kept]
    kept[2].unlink()
    assert Store(tmp_path).missing([CELL, CELL]) == [CELL.split()[2]]
    with pytest.raises(FileNotFoundError, match=str(kept[2])):
        Store(tmp_path).load(CELL)
    play([CELL], tmp_path)
    np.testing.assert_array_equal(Store(tmp_path).load(CELL), CELL.expected())
    assert [kept[i].stat().st_mtime_ns for i in (0, 1, 3)] == [stamps[i] for i in (0, 1, 3)]


# A run, a function that a paper measures with, one of the leaderboard, and one of another package.
MODULES = (RunSpec.__module__, first_messages.__module__, "fedbandit_envs.leaderboard.plays", "json")


@pytest.mark.parametrize(("folder", "which"), [
    ("", "yes yes yes yes"),
    ("baselines", "yes yes yes yes"),
    ("wrappers", "yes yes yes yes"),
    ("experiments", "yes yes yes yes"),
    ("papers", "no yes no no"),
    ("leaderboard", "no no yes no"),
    ("cli", "no no no no"),
])  # fmt: skip
def test_changed_code_reads_no_shards_of_before(folder, which):
    for module, word in zip(MODULES, which.split(), strict=True):
        changes = any(name.startswith(f"{folder}/") for name in store._files(module))
        assert changes is (word == "yes"), module


def test_the_digest_takes_in_every_source_and_all_data(monkeypatch, tmp_path):
    """That other processes find the same digest is required where they play."""
    root, wanted = Path(__file__).parents[2], set()
    for name in ("", "wrappers", "baselines", "samba", "experiments", "papers"):
        folder = root / (name or "fedbandit_envs")
        for kind in ("py", "csv", "json", "npz"):
            wanted |= {f"{name}/{file.relative_to(folder).as_posix()}" for file in folder.rglob(f"*.{kind}")}
    files = store._files(first_messages.__module__)
    assert files.keys() == wanted
    run = RunSpec("SS-UCB", "FedProcurement-v0", 9, 2, 0)
    before, digest = Store(tmp_path).path(run), source_digest()
    monkeypatch.setattr(store, "_files", lambda module: {**files, next(iter(files)): "changed"})
    assert source_digest.__wrapped__() != digest
    monkeypatch.setattr(store, "source_digest", lambda module: f"other {module}")
    assert Store(tmp_path).path(run) != before


@contextmanager
def full_after(size):
    """No file of this process gets larger than this: as on a full disk, a write is cut or refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_a_file_stays_as_it_was(tmp_path):
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("file")
    with full_after(5000), pytest.raises(OSError, match=r"File too large: .*file\..*partial"):
        write_whole(tmp_path / "link", bytes(20_000))
    assert (tmp_path / "file").read_bytes() == b"before"
    write_whole(tmp_path / "link", b"after")
    assert (tmp_path / "file").read_bytes() == b"after"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "link"]


@pytest.mark.parametrize(
    "cell",
    [
        Drawn((0, 1, 2, 3)),
        pytest.param(RunSpec("UCB1", "FedArms-v0", 200, 4, 0, rows=10), marks=pytest.mark.slow),
    ],
    ids=["numbers", "run"],
)
def test_one_job_and_two_have_the_same_numbers(tmp_path, cell):
    """Slow ones play a run, for which each process imports all of the package; Dask's workers do so in any case."""
    for jobs in (1, 2):
        play([cell], tmp_path / f"{jobs}", jobs)
    one, two = (list(contents(cell, tmp_path / f"{jobs}")) for jobs in (1, 2))
    assert one == two
    assert len(one) == 4


def test_what_is_kept_is_not_played(tmp_path, log):
    cell = Drawn(tuple(range(6)), log=str(log))
    told = []
    play(cell.split()[:3], tmp_path / "shards", advance=told.append)
    play([cell, cell], tmp_path / "shards", 2, advance=told.append)
    play([cell], tmp_path / "shards", 2, advance=told.append)
    assert told == [1.0] * 6
    assert plays(log) == dict.fromkeys(range(6), 1)
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


def test_a_policy_that_was_changed_plays_anew_in_other_processes(tmp_path):
    """In those that have played the tests above, which need not begin and import the package again."""
    folder = tmp_path / "shards"
    for policy in (BASELINES[name].policy for name in ("UCB1", "uniform-arms")):
        (tmp_path / "mine.py").write_text(f"from {policy.__module__} import {policy.__name__} as Mine")
        run = RunSpec(f"{tmp_path}/mine.py:Mine", "FedArms-v0", 12, 3)
        play([run], folder, 2)
        np.testing.assert_array_equal(Store(folder).load(run).regret, run.run().regret)
    assert len([*folder.iterdir()]) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_ends_a_sweep_and_loses_nothing_finished(tmp_path, log, jobs):
    cell = Drawn(tuple(range(9)), seconds=0.05, log=str(log), failing=(2, 3, 4))
    with pytest.raises(ValueError, match=r"seed \d fails"):
        # The caller may be slower than those who play.
        play([cell], tmp_path / "shards", jobs, advance=lambda played: time.sleep(0.3))
    names = {file.name for file in (tmp_path / "shards").iterdir()}
    begun = set(plays(log))
    kept = {seed for seed, shard in enumerate(cell.split()) if Store(tmp_path).path(shard).name in names}
    # All that was begun, but for what failed and what another was playing; and not all was.
    assert len(begun - kept) <= jobs + 1
    assert kept <= begun - {2, 3, 4}
    assert len(kept) == len(names)
    assert jobs == 2 or len(begun) <= 7
    play([replace(cell, failing=())], tmp_path / "shards")
    assert all(plays(log)[seed] == 1 for seed in kept)
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


@pytest.mark.ci
def test_a_worker_that_is_killed_is_named_and_the_sweep_goes_on_from_there(tmp_path, log):
    """By the kernel, for want of memory say: two jobs, of which the third shard's is killed."""
    cell = Drawn(tuple(range(6)), log=str(log), deadly=(2,))
    with pytest.raises(BackendError, match="has been ended; what is finished is kept"):
        play([cell], tmp_path / "shards", 2)
    finished = {file.name for file in (tmp_path / "shards").iterdir()}
    play([replace(cell, deadly=())], tmp_path / "shards")
    for shard in cell.split():
        if Store(tmp_path).path(shard).name in finished:
            assert plays(log)[shard.seeds[0]] == 1
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


ALONE = """
import sys
from pathlib import Path
from sweep_cells import Drawn
from fedbandit_envs.experiments.execute import play
play([Drawn(tuple(range(99)), seconds=0.5, log=sys.argv[1])], Path(sys.argv[2]), 2)
"""


def words(pid):
    """What a process was started with; nothing after it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.ci
def test_workers_end_soon_after_a_sweep_that_is_killed(tmp_path, log):
    support = str(Path(__file__).parents[1] / "support")
    typed = [sys.executable, "-c", ALONE, str(log), str(tmp_path / "shards")]
    sweep = subprocess.Popen(typed, env={**os.environ, "PYTHONPATH": support})
    while len(players(log)) < 2:
        time.sleep(0.05)
    sweep.kill()
    sweep.wait()
    until = time.monotonic() + 20
    while any(words(pid) for pid in players(log)):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_worker_of_another_source_is_refused(tmp_path):
    with pytest.raises(BackendError, match="a worker has another source"):
        execute._play(Drawn((1,)), tmp_path / "other.npz")


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_random_moments_nothing_is_lost_or_repeated(tmp_path, log, kills):
    """Killed while shards are played, packed and written. Each child is a copy of this process."""
    cell = Drawn(tuple(range(6 * kills)), numbers=20_000, seconds=0.004, log=str(log))
    folder, finished, rng = tmp_path / "shards", {}, random.Random(0)
    seeds = {Store(folder).path(shard): seed for seed, shard in enumerate(cell.split())}
    folder.mkdir()

    def look():
        """What was finished is there as it was, and has not been begun again."""
        begun = plays(log)
        found = {
            file: (file.stat().st_mtime_ns, file.stat().st_ino, begun[seeds[file]])
            for file in folder.glob("*.npz")
        }
        assert finished.items() <= found.items()
        finished.update(found)

    for _ in range(kills):
        enough = sum(plays(log).values()) + rng.randrange(4)
        sweep = FORK.Process(target=play, args=([cell], folder))
        sweep.start()
        # A copy of a process with threads, which other tests have left, may fail by itself.
        while sum(plays(log).values()) < enough and sweep.is_alive():
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.04))
        os.kill(sweep.pid, signal.SIGKILL)
        sweep.join()
        assert sweep.exitcode == -signal.SIGKILL, "all is played before it has been killed often enough"
        look()
    assert len(finished) > kills // 5
    # After an uninterrupted run everything is there, as if nothing had ever been killed.
    play([cell], folder)
    look()
    assert len(finished) == len(cell.seeds)
    np.testing.assert_array_equal(Store(folder).load(cell), cell.expected())
