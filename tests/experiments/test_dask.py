"""Sweeps by a real scheduler of Dask: two workers in processes of their own, of which one is killed in the middle."""

import os
import signal
import time
from threading import Thread

import numpy as np
import pytest
from sweep_cells import Drawn, contents, plays
from typed import assert_explained, call

from fedbandit_envs.experiments.execute import BackendError, play
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import Store


@pytest.fixture(autouse=True, scope="module")
def distributed():
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(distributed):
    """A scheduler on the loopback interface, without workers yet."""
    with distributed.LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def scheduler(cluster, distributed):
    """The address of the scheduler, with two workers: each imports for longer than it plays."""
    cluster.scale(2)
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    return cluster.scheduler_address


@pytest.mark.ci
def test_a_scheduler_without_workers_is_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("fedbandit_envs.experiments.execute._TIMEOUT", 0.2)
    with pytest.raises(BackendError, match=f"at {cluster.scheduler_address} has no workers"):
        play([Drawn((1, 2))], tmp_path, scheduler=cluster.scheduler_address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.ci
def test_two_workers_of_which_one_is_killed_give_what_one_process_gives(scheduler, tmp_path):
    """A suite in miniature, and slow shards, during which the worker that is playing one of them is killed."""
    log = tmp_path / "log"
    log.mkdir()
    slow = Drawn(tuple(range(16)), seconds=0.25, log=str(log))
    runs = [RunSpec(name, "FedArms-v0", 100, 2, 0, rows=10) for name in ("UCB1", "uniform-arms")]
    cells = [slow, *runs]
    shards = [shard for cell in cells for shard in cell.split()]

    def kill():
        while len(plays(log)) < 5:
            time.sleep(0.02)
        # The one that has just begun a slow shard: between two shards there would be nothing to begin again.
        newest = max(log.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        os.kill(int(newest.read_text().split()[-1]), signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    told = []
    play(cells, tmp_path / "dask", scheduler=scheduler, advance=told.append)
    killer.join()
    # What the dead one had begun has been begun again by another.
    assert max(plays(log).values()) == 2
    assert sum(told) == sum(shard.size for shard in shards)
    assert len(list((tmp_path / "dask").iterdir())) == len(shards)
    play(cells, tmp_path / "here")
    for cell in cells:
        assert list(contents(cell, tmp_path / "dask")) == list(contents(cell, tmp_path / "here"))
    np.testing.assert_array_equal(Store(tmp_path / "dask").load(slow), slow.expected())
    # What is kept needs no workers any more; a shard that is lost is played alone.
    Store(tmp_path / "dask").path(slow.split()[3]).unlink()
    before = sum(plays(log).values())
    play(cells, tmp_path / "dask", scheduler=scheduler)
    assert sum(plays(log).values()) == before + 1


@pytest.mark.ci
def test_errors_of_workers_are_raised_here(scheduler, tmp_path):
    with pytest.raises(ValueError, match="seed 4 fails"):
        play([Drawn((3, 4), failing=(4,))], tmp_path / "other", scheduler=scheduler)


@pytest.mark.ci
def test_the_command_line_takes_a_scheduler(scheduler, tmp_path):
    words = ("tune", "arms", "--baseline", "UCB1", "--rounds", 30, "--seeds", 1)
    found = []
    for name, backend in ("dask", ["--scheduler", scheduler]), ("joblib", ["--workers", "1"]):
        ran = call(*words, "--out", tmp_path / name, *backend)
        assert ran.exit_code == 0, ran.output
        found.append((tmp_path / name / "tuned.json").read_text())
    assert found[0] == found[1]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_a_scheduler_that_is_not_there_is_explained(tmp_path, monkeypatch, address):
    monkeypatch.setattr("fedbandit_envs.experiments.execute._TIMEOUT", 0.2)
    ran = call("tune", "arms", "--out", tmp_path, "--scheduler", address)
    assert_explained(ran, f"scheduler is '{address}', where none")
