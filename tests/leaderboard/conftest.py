"""Fixtures of the leaderboard's tests."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fedbandit_envs.leaderboard.sweep import store


class ThisProcess(ThreadPoolExecutor):
    """Stands in for a pool of processes."""

    def __init__(self, workers, context, initializer, arguments):
        super().__init__(1, initializer=initializer, initargs=arguments)


@pytest.fixture
def in_this_process(monkeypatch):
    """Plays shards here: a new process imports and loads kernels for longer than tests play."""
    monkeypatch.setattr(store, "_played", None)
    monkeypatch.setattr(store, "ProcessPoolExecutor", ThisProcess)
