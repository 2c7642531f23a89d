"""Episodes of the twin as a data set: what agents saw, did and got, with the best actions as labels.

Whoever trains a policy without playing, such as a Decision-Pretrained Transformer (Lee et al., NeurIPS 2023), reads
them. What agents know in a round but could compute from the same row is not kept: sums over past rounds (``total_...``)
and the number of the round.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.experiments.croissant import Column, croissant
from fedbandit_envs.functional.environment import COMMON, Environment, axes
from fedbandit_envs.functional.federation import Arrays
from fedbandit_envs.functional.policies import PurePolicy
from fedbandit_envs.functional.rollouts import checked, play_round, started

CHUNK_BYTES = 2**26
"""How many bytes of episodes are played and written at a time."""

_TOLD = {
    "seed": "Seed of the episode, of which the package makes the same instance and outcomes.",
    "agent": "Number of the agent in its federation.",
    "action": "The agent's action in each round.",
    "reward": "Its reward in each round.",
    "best": "The label: the best action, of the whole episode or in each round.",
    "message_round": "The number of rounds played when each message arrived.",
    "epsilon": "Epsilon of the privacy claim up to each message; infinite without noise.",
}


def trajectories(
    env: Environment, policy: PurePolicy, seeds: Sequence[int], rounds: int | None = None
) -> dict[str, np.ndarray]:
    """Plays one episode for each seed, and returns what agents saw, did and got.

    Args:
        env: The environment.
        policy: The policy of all agents.
        seeds: The seeds, one for each episode, all different.
        rounds: Number of rounds to play; None for the horizon, which it must not exceed.

    Returns:
        Arrays by name, all of which begin with the axes ``(episodes, agents)``. ``action``, ``reward`` and what agents
        observe anew before each action have an axis of rounds next; what never changes has none. The label ``best`` is
        the best action; it has an axis of rounds where contexts change. Messages, ``inbox_...``, are sums over all
        other agents, and have an axis of messages next, as ``message_round`` (after how many rounds one arrived) and
        ``epsilon`` (of the privacy claim of all messages until then). ``seed`` and ``agent`` say whose row it is.

    Raises:
        UnfitError: The policy does not play this environment.
        ValueError: A seed is there twice, or ``rounds`` is out of its range.

    Example:
        >>> from fedbandit_envs.functional import PureUCB1, make, trajectories
        >>> kept = trajectories(make("FedArms-v0", num_agents=2, max_cycles=50), PureUCB1(), seeds=range(3))
        >>> sorted(kept), kept["action"].shape
        (['action', 'agent', 'best', 'reward', 'seed'], (3, 2, 50))
    """
    seeds, rounds = checked(env, policy, seeds, rounds)
    instances, keys, host = env.params(seeds), env.keys(seeds), env.host.unwrapped
    # Where nothing changes from round to round, the package knows the best actions.
    best = host.clairvoyant(host._observation).astype(np.int32)
    with env.precision():
        every, messages = jax.device_get(_kept(env, policy, rounds, instances, policy.params(), keys))
    shape = len(seeds), env.num_agents
    kept = {
        "seed": np.broadcast_to(np.asarray(seeds)[:, np.newaxis], shape),
        "agent": np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape),
        **{name: np.asarray(instances[name]) for name in env.problem.seen if name in instances},
        "best": best,
        **{name: np.moveaxis(array, 0, 2) for name, array in (every | messages).items()},
    }
    if messages:
        told = {
            "message_round": env.federation.arrivals(rounds),
            "epsilon": env.federation.spent(rounds),
        }
        kept |= {name: np.broadcast_to(array, (*shape, len(array))) for name, array in told.items()}
    return kept


@partial(jax.jit, static_argnames=("env", "policy", "rounds"))
def _kept(
    env: Environment, policy: PurePolicy, rounds: int, params: Arrays, constants: Arrays, keys: Array
) -> tuple[Arrays, Arrays]:
    """Returns what is kept of every round, ``(rounds, replicas, agents, ...)``, and the messages, of which first."""

    def play(loop: tuple[Any, Any], round_: Array) -> tuple[Any, tuple[Arrays, Arrays]]:
        state, memory, happened = play_round(env, policy, params, constants, *loop, round_)
        every = {name: happened[name] for name in ("action", "reward")}
        messages = {}
        for name, array in happened["seen"].items():
            if name.startswith("inbox_") and name not in COMMON:
                messages[name] = array
            elif not (name in params or name in COMMON or name.startswith("total_")):
                every[name] = array
        if happened["offered"]:
            best = jax.vmap(env.problem.best, (axes(params, env.problem.shared), 0))
            every["best"] = jax.vmap(best)(params, happened["offered"])
        return (state, memory), (every, messages)

    start = started(env, policy, params, keys)
    every, messages = lax.scan(play, start, jnp.arange(rounds, dtype=jnp.int32))[1]
    return every, {name: array[env.federation.arrivals(rounds)] for name, array in messages.items()}


def write_trajectories(
    env: Environment,
    policy: PurePolicy,
    seeds: Sequence[int],
    folder: Path,
    rounds: int | None = None,
    done: Callable[[int], Any] = lambda episodes: None,
) -> list[Path]:
    """Plays one episode for each seed, and writes what :func:`trajectories` returns, a row an agent of an episode.

    Episodes are played and written some at a time, so that memory does not grow with their number.

    Args:
        env: The environment.
        policy: The policy of all agents.
        seeds: The seeds, one for each episode, all different.
        folder: Where ``episodes.parquet`` and its description ``croissant.json`` are written.
        rounds: Number of rounds to play; None for the horizon, which it must not exceed.
        done: Called with the number of episodes that have been written since its last call.

    Returns:
        The paths of both files.

    Raises:
        UnfitError: The policy does not play this environment.
        ValueError: A seed is there twice, or ``rounds`` is out of its range.
    """
    from pyarrow import parquet

    seeds, rounds = checked(env, policy, seeds, rounds)
    one = trajectories(env, policy, seeds[:1], rounds)
    episodes = max(1, CHUNK_BYTES // sum(array.nbytes for array in one.values()))
    path, about = folder / "episodes.parquet", folder / "croissant.json"
    with parquet.ParquetWriter(path, _table(one).schema, compression="zstd") as writer:
        for start in range(0, len(seeds), episodes):
            part = seeds[start : start + episodes]
            writer.write_table(_table(trajectories(env, policy, part, rounds)))
            done(len(part))
    kinds = {"i": "Integer", "u": "Integer", "f": "Float", "b": "Boolean"}
    columns = {
        name: Column(kinds[array.dtype.kind], array.shape[2:], _TOLD.get(name, "What the agent observes."))
        for name, array in one.items()
    }
    settings = json.dumps(env.settings, default=str)
    description = f"A row an agent of an episode of {rounds} rounds, played by {policy} in {settings}."
    name = f"fedbandit-envs-{env.settings['env_id']}-trajectories"
    data = croissant(path, "application/x-parquet", name, description, "episodes", columns)
    about.write_text(json.dumps(data, indent=1) + "\n")
    return [path, about]


def _table(kept: dict[str, np.ndarray]) -> Any:
    """Returns a table of Arrow with a row for each agent of each episode."""
    import pyarrow

    columns = {}
    for name, array in kept.items():
        column = pyarrow.array(np.ascontiguousarray(array).reshape(-1))
        for size in array.shape[:1:-1]:
            column = pyarrow.FixedSizeListArray.from_arrays(column, size)
        columns[name] = column
    return pyarrow.table(columns)
