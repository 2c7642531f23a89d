"""Sweeps by a real scheduler of Dask: two workers in processes of their own, of which one is killed in the middle."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from sweep_cells import Drawn, contents, plays
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.experiments.execute import BackendError, play
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import Store

_PATHS = [str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")]
SUPPORT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, _PATHS))}


@contextmanager
def running(*words):
    """A process, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        env=SUPPORT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Cluster:
    """A scheduler and its workers on the loopback interface."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack = stack
        self._file = folder / "scheduler.json"
        self.folder = folder
        self._run("dask_scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--no-show")
        self.address = self._announced(time.monotonic() + 60)
        self._workers = []

    def _announced(self, until: float) -> str:
        """The address in the scheduler's file, which exists a moment before it is written."""
        while True:
            try:
                return json.loads(self._file.read_text())["address"]
            except (FileNotFoundError, json.JSONDecodeError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def _run(self, program, *words):
        file = ("--scheduler-file", self._file)
        return self._stack.enter_context(running(f"distributed.cli.{program}", *file, *words))

    def workers(self, least):
        """All workers that live, after as many were started as are missing: each imports for longer than it plays."""
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        self._workers += [self._worker() for _ in range(least - len(self._workers))]
        return self._workers

    def _worker(self):
        here = ("--host", "127.0.0.1", "--local-directory", self.folder)
        return self._run("dask_worker", *here, "--no-nanny", "--nthreads", 1, "--no-dashboard")


@pytest.fixture(autouse=True, scope="module")
def library():
    pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ExitStack() as stack:
        yield Cluster(stack, tmp_path_factory.mktemp("dask"))


@pytest.mark.ci
def test_a_scheduler_without_workers_is_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("fedbandit_envs.experiments.execute._TIMEOUT", 0.2)
    with pytest.raises(BackendError, match=f"at {cluster.address} has no workers"):
        play([Drawn((1, 2))], tmp_path, scheduler=cluster.address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ci
def test_two_workers_of_which_one_is_killed_give_what_one_process_gives(cluster, tmp_path):
    """A suite in miniature, and slow shards, during which the worker that is playing one of them is killed."""
    log = tmp_path / "log"
    log.mkdir()
    slow = Drawn(tuple(range(16)), seconds=0.25, log=str(log))
    runs = [RunSpec(name, "FedArms-v0", 100, 2, 0, rows=10) for name in ("UCB1", "uniform-arms")]
    cells = [slow, *runs]
    shards = [shard for cell in cells for shard in cell.split()]
    workers = cluster.workers(2)
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    killed = []

    def kill():
        while len(plays(log)) < 5:
            time.sleep(0.02)
        # The one that has just begun a slow shard: between two shards there would be nothing to begin again.
        newest = max(log.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        killed.extend(sorted(workers, key=lambda worker: str(worker.pid) not in newest.read_text()))
        killed[0].kill()

    killer = Thread(target=kill)
    killer.start()
    told = []
    play(cells, tmp_path / "dask", scheduler=cluster.address, advance=told.append)
    killer.join()
    # What the dead one had begun has been begun again by the other.
    assert killed[0].poll() is not None
    assert killed[1].poll() is None
    counts = plays(log).values()
    assert max(counts) == 2
    assert sum(told) == sum(shard.size for shard in shards)
    assert len(list((tmp_path / "dask").iterdir())) == len(shards)
    play(cells, tmp_path / "here")
    for cell in cells:
        assert list(contents(cell, tmp_path / "dask")) == list(contents(cell, tmp_path / "here"))
    np.testing.assert_array_equal(Store(tmp_path / "dask").load(slow), slow.expected())
    # What is kept needs no workers any more; a shard that is lost is played alone.
    Store(tmp_path / "dask").path(slow.split()[3]).unlink()
    before = sum(plays(log).values())
    play(cells, tmp_path / "dask", scheduler=cluster.address)
    assert sum(plays(log).values()) == before + 1


@pytest.mark.ci
def test_errors_of_workers_are_raised_here(cluster, tmp_path):
    cluster.workers(1)
    with pytest.raises(ValueError, match="seed 4 fails"):
        play([Drawn((3, 4), failing=(4,))], tmp_path / "other", scheduler=cluster.address)


@pytest.mark.ci
def test_the_command_line_takes_a_scheduler(cluster, tmp_path):
    cluster.workers(1)
    words = ["tune", "arms", "--rounds", "30", "--seeds", "1"]
    found = []
    for name, backend in (
        ("dask", ["--scheduler", cluster.address]),
        ("joblib", ["--workers", "1"]),
    ):
        ran = CliRunner().invoke(app, [*words, "--out", str(tmp_path / name), *backend], env={"TERM": "dumb"})
        assert ran.exit_code == 0, ran.output
        found.append((tmp_path / name / "tuned.json").read_text())
    assert found[0] == found[1]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_a_scheduler_that_is_not_there_is_explained(tmp_path, monkeypatch, address):
    monkeypatch.setattr("fedbandit_envs.experiments.execute._TIMEOUT", 0.2)
    words = ["tune", "arms", "--out", str(tmp_path), "--scheduler", address]
    ran = CliRunner().invoke(app, words, env={"TERM": "dumb", "COLUMNS": "200"})
    assert ran.exit_code == 2, ran.output
    assert isinstance(ran.exception, SystemExit)
    assert f"scheduler is '{address}', where none" in " ".join(ran.output.replace("│", " ").split())
