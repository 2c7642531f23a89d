"""Sweeps: the same whoever plays them, killed as often as one likes, several on one folder."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from joblib import delayed
from sweep_cells import Drawn, players, plays

from fedbandit_envs.experiments.execute import BackendError, Local, _played, play
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import ShardLock, Store

FORK = get_context("fork")


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


def arrays(cell, folder):
    """All that shards keep, but for how long they took."""
    for shard in cell.split():
        kept = Store.read(Store(folder).path(shard))
        yield {name: values.tolist() for name, values in kept.items() if name != "cpu_seconds"}


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
        play(cell.split(), tmp_path / f"{jobs}", Local(jobs))
    one, two = (list(arrays(cell, tmp_path / f"{jobs}")) for jobs in (1, 2))
    assert one == two
    assert len(one) == 4


def test_what_is_kept_is_not_played(tmp_path, log):
    cell = Drawn(tuple(range(6)), log=str(log))
    play(cell.split()[:3], tmp_path / "shards")
    play(cell.split() + cell.split(), tmp_path / "shards", Local(1))
    play(cell.split(), tmp_path / "shards", Local(2))
    assert plays(log) == dict.fromkeys(range(6), 1)
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_that_is_played_is_told(tmp_path, jobs):
    cell = Drawn(tuple(range(5)), seconds=0.3)
    told = []
    play(cell.split(), tmp_path, Local(jobs), told.append)
    assert sum(told) == cell.size
    assert len(told) > 1
    assert all(more > 0 for more in told)


def test_nothing_to_play_needs_nobody(tmp_path):
    class Nobody:
        def run(self, tasks):
            raise AssertionError

    play([], tmp_path, Nobody())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_ends_a_sweep_and_loses_nothing_finished(tmp_path, log, jobs):
    cell = Drawn(tuple(range(9)), seconds=0.05, log=str(log), failing=(3,))
    with pytest.raises(ValueError, match="seed 3 fails") as raised:
        play(cell.split(), tmp_path / "shards", Local(jobs))
    assert "in play" in raised.value.__notes__[0]
    names = {file.name for file in (tmp_path / "shards").iterdir()}
    assert all(name.endswith(".npz") for name in names)
    before = plays(log)
    play(replace(cell, failing=()).split(), tmp_path / "shards")
    kept = [seed for seed, shard in enumerate(cell.split()) if Store(tmp_path).path(shard).name in names]
    # All that was begun, but for what failed; and not all was.
    assert set(kept) == set(before) - {3} >= {0, 1, 2}
    assert len(kept) < 8
    assert all(plays(log)[seed] == before[seed] for seed in kept)
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


@pytest.mark.ci
def test_a_worker_that_is_killed_is_named_and_the_sweep_goes_on_from_there(tmp_path, log):
    """By the kernel, for want of memory say: two jobs, of which the third shard's is killed."""
    cell = Drawn(tuple(range(6)), log=str(log), deadly=(2,))
    with pytest.raises(BackendError, match="has been ended; what is finished is kept"):
        play(cell.split(), tmp_path / "shards", Local(2))
    finished = {file.name for file in (tmp_path / "shards").iterdir()}
    play(replace(cell, deadly=()).split(), tmp_path / "shards")
    for shard in cell.split():
        if Store(tmp_path).path(shard).name in finished:
            assert plays(log)[shard.seeds[0]] == 1
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


def test_workers_follow_this_process_to_another_folder(tmp_path, monkeypatch):
    """A policy's file may be given by a path from here."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert list(Local(2).run(delayed(os.getcwd)() for _ in range(2))) == [str(tmp_path / name)] * 2


def test_a_full_disk_ends_a_sweep(tmp_path, monkeypatch):
    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ShardLock, "write", full)
    with pytest.raises(OSError, match="No space left"):
        play(Drawn((1, 2)).split(), tmp_path)
    assert [file for file in tmp_path.iterdir() if file.suffix != ".partial"] == []


def test_a_worker_of_another_source_is_refused(tmp_path):
    (shard,) = Drawn((1,)).split()
    _, error = _played(shard, tmp_path / "other.npz")
    assert isinstance(error, BackendError)
    assert "a worker has another source" in str(error)


def test_two_sweeps_on_one_folder_at_once_agree_and_share(tmp_path, log):
    """Each in a process of its own; and one after them finds everything there."""
    cell = Drawn(tuple(range(24)), seconds=0.02, log=str(log))
    folder = tmp_path / "shards"
    sweeps = [FORK.Process(target=play, args=(cell.split(), folder)) for _ in range(2)]
    for sweep in sweeps:
        sweep.start()
    for sweep in sweeps:
        sweep.join()
        assert sweep.exitcode == 0
    assert plays(log) == dict.fromkeys(range(24), 1)
    assert len(players(log)) == 2
    assert sorted(folder.iterdir()) == sorted(Store(folder).path(shard) for shard in cell.split())
    np.testing.assert_array_equal(Store(folder).load(cell), cell.expected())


def test_what_another_was_playing_when_it_died_is_played(tmp_path, log):
    """It holds a claim when the sweep begins, and is killed while the sweep waits."""
    cell = Drawn((0, 1, 2), log=str(log))
    play([], tmp_path / "shards")
    claimed = Store(tmp_path / "shards").path(cell.split()[1])
    other = FORK.Process(target=lambda: (ShardLock.take(claimed), time.sleep(60))[0])
    other.start()
    while not claimed.with_name(f"{claimed.name}.partial").exists():
        time.sleep(0.01)
    sweep = FORK.Process(target=play, args=(cell.split(), tmp_path / "shards"))
    sweep.start()
    time.sleep(0.3)
    assert set(plays(log)) == {0, 2}
    other.kill()
    sweep.join()
    assert plays(log) == dict.fromkeys(range(3), 1)
    np.testing.assert_array_equal(Store(tmp_path / "shards").load(cell), cell.expected())


class Killed:
    """A sweep that is killed again and again, and what is to hold all along."""

    def __init__(self, cell: Drawn, folder: Path, log: Path) -> None:
        self.cell, self.folder, self.log = cell, folder, log
        self.finished = {}
        # Of which seed a file is.
        self.seeds = {Store(folder).path(shard): seed for seed, shard in enumerate(cell.split())}

    def look(self):
        """What was finished is there as it was, and has not been begun again."""
        begun = plays(self.log)
        for file, (stamp, number, begins) in self.finished.items():
            assert (file.stat().st_mtime_ns, file.stat().st_ino) == (stamp, number)
            assert begun[self.seeds[file]] == begins
        for file in self.folder.glob("*.npz"):
            if file not in self.finished:
                self.finished[file] = (
                    file.stat().st_mtime_ns, file.stat().st_ino, begun[self.seeds[file]],
                )  # fmt: skip

    def end(self):
        """After an uninterrupted run everything is there, as if nothing had ever been killed."""
        play(self.cell.split(), self.folder)
        self.look()
        assert len(self.finished) == len(self.cell.seeds)
        np.testing.assert_array_equal(Store(self.folder).load(self.cell), self.cell.expected())
        assert {file.suffix for file in self.folder.iterdir()} == {".npz"}


@pytest.mark.parametrize(
    "kills", [5, pytest.param(15, marks=pytest.mark.ci), pytest.param(50, marks=pytest.mark.slow)]
)
def test_killed_at_random_moments_nothing_is_lost_or_repeated(tmp_path, log, kills):
    """Killed while shards are claimed, played, packed and written. Each child is a copy of this process."""
    cell = Drawn(tuple(range(6 * kills)), numbers=20_000, seconds=0.004, log=str(log))
    killed = Killed(cell, tmp_path / "shards", log)
    killed.folder.mkdir()
    rng = random.Random(0)
    strays = 0
    for _ in range(kills):
        enough = sum(plays(log).values()) + rng.randrange(4)
        sweep = FORK.Process(target=play, args=(cell.split(), killed.folder))
        sweep.start()
        # A copy of a process with threads, which other tests have left, may fail by itself.
        while sum(plays(log).values()) < enough and sweep.is_alive():
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.04))
        os.kill(sweep.pid, signal.SIGKILL)
        sweep.join()
        assert sweep.exitcode == -signal.SIGKILL, "all is played before it has been killed often enough"
        strays += any(killed.folder.glob("*.npz.partial"))
        killed.look()
    print(f"\n{len(killed.finished)} of {len(cell.seeds)} finished; {strays} times a partial file was left")
    assert len(killed.finished) > kills // 5
    assert strays > kills // 5
    killed.end()


SCRIPT = """
import sys
from pathlib import Path
from sweep_cells import Drawn
from fedbandit_envs.experiments.execute import Local, play
cell = Drawn(tuple(range(int(sys.argv[3]))), numbers=20_000, seconds=0.1, log=sys.argv[2])
print("begins", flush=True)
play(cell.split(), Path(sys.argv[1]), Local(2))
"""


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.ci), pytest.param(50, marks=pytest.mark.slow)]
)
def test_killed_with_two_jobs_its_workers_end_and_nothing_is_lost_or_repeated(tmp_path, log, kills):
    """The process that was started alone is killed; what it has started notices."""
    cell = Drawn(tuple(range(12 * kills)), numbers=20_000, seconds=0.1, log=str(log))
    killed = Killed(cell, tmp_path / "shards", log)
    killed.folder.mkdir()
    rng = random.Random(1)
    words = [sys.executable, "-c", SCRIPT, str(killed.folder), str(log), str(len(cell.seeds))]
    paths = [str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")]
    support = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    for kill in range(kills):
        sweep = subprocess.Popen(words, stdout=subprocess.PIPE, env=support)
        sweep.stdout.readline()
        # Some are killed before their second process has begun to play, but not the first.
        begun = sum(plays(log).values()) + rng.randrange(1, 4)
        while sum(plays(log).values()) < begun or (kill == 0 and len(players(log)) < 2):
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.5))
        sweep.kill()
        sweep.communicate()
        assert sweep.returncode == -signal.SIGKILL
        killed.look()
    workers = players(log)
    assert len(workers) > kills
    until = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
    killed.end()
