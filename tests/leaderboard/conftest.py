"""Fixtures of the leaderboard's tests."""

import pytest
from joblib import parallel_config


@pytest.fixture
def in_this_process():
    """Plays shards here: a new process imports and loads kernels for longer than tests play."""
    with parallel_config(backend="sequential"):
        yield
