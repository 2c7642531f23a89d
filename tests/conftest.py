"""Fixtures over the registry: a new id or baseline is covered by being registered."""

import gc
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
import typer.testing
from hypothesis import settings
from joblib import parallel_config
from numba.core.caching import IndexDataCacheFile
from registered import few

from fedbandit_envs.baselines import peers_of
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.registry import registration
from fedbandit_envs.registry.registration import REGISTRY

# A worker of pytest-xdist inherits a width, which the command line would take once and for all.
os.environ.pop("COLUMNS", None)

# Processes that share the tests share a cache of kernels. Numba gives a kernel's files numbers: of two processes that
# compile it at the same time for different arguments, one would load what the other has compiled. So a number begins
# with the process; what may get lost of the index is compiled again.
IndexDataCacheFile._data_name = lambda self, number: self._data_name_pattern.format(
    number=10_000 * os.getpid() + number
)

# A first call may compile kernels, and machines may be busy: seconds say nothing.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

# Typer's runner makes all commands anew for each call, which takes longer than most calls; they are the same.
typer.testing._get_command = cache(typer.testing._get_command)


def pytest_configure(config):
    """Does not show what many tests, which are short, are warned of."""
    for message in ("schedule is .*; nobody sends", "topology is a graph without edges"):
        config.addinivalue_line("filterwarnings", f"ignore:{message}")


def pytest_collection_finish():
    """Takes what imports have left out of garbage collection, which took a quarter of the tests' CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_sessionfinish():
    """Leaves garbage to the end of the process; pytest would collect it five times."""
    gc.freeze()


@pytest.fixture
def in_this_process():
    """Plays shards here: a new process imports and loads kernels for longer than tests play."""
    with parallel_config(backend="sequential"):
        yield


@pytest.fixture
def blank_pictures(request, monkeypatch):
    """Matplotlib's figures are built, but stay blank in ordinary runs: to draw them takes longer than other checks."""
    if "slow" not in request.keywords:
        monkeypatch.setattr("matplotlib.figure.Figure.draw", lambda figure, renderer: None)


@pytest.fixture(params=sorted(REGISTRY))
def env_id(request) -> str:
    return request.param


@pytest.fixture
def make_federation(env_id) -> Callable[..., FederatedEnv]:
    """Makes a small instance of a registered environment, with its stack."""

    def make(**kwargs: Any) -> FederatedEnv:
        return registration.make_federation(env_id, **{**few(env_id), **kwargs})

    return make


@pytest.fixture
def make_peers(env_id) -> Callable[[], Policy]:
    return peers_of(REGISTRY[env_id].federation.split(".")[1])


def random_actions(env: FederatedEnv, replicas: int, seed: int, rounds: int) -> list[Array]:
    """Actions drawn from the action space, one array ``(replicas, agents, ...)`` a round."""
    space = gymnasium.vector.utils.batch_space(env.single_action_space, replicas * env.max_num_agents)
    space.seed(seed)
    shape = (replicas, env.max_num_agents, *env.single_action_space.shape)
    return [np.asarray(space.sample()).reshape(shape) for _ in range(rounds)]


@pytest.fixture(scope="session")
def sample_actions():
    return random_actions
