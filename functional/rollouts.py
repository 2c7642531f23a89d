"""Plays a policy of the twin on all agents of many episodes at once, in one compiled loop."""

from collections.abc import Sequence
from functools import partial
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import plain
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments import RunResult
from fedbandit_envs.experiments.result import log_spaced
from fedbandit_envs.functional.environment import COMMON, Environment, axes
from fedbandit_envs.functional.federation import Arrays
from fedbandit_envs.functional.policies import PurePolicy


def rollout(
    env: Environment,
    policy: PurePolicy,
    seeds: Sequence[int],
    rounds: int | None = None,
    params: Arrays | None = None,
    delta: float = 1e-5,
) -> RunResult:
    """Plays one episode for each seed, and returns what :func:`~fedbandit_envs.experiments.simulate` would.

    Instances and outcomes are those of the batch API under the same seeds, so that results in float64 are the same up
    to rounding; noise of messages has the same law. The first call compiles.

    Args:
        env: The environment.
        policy: The policy of all agents.
        seeds: The seeds, one for each replica (episode), all different.
        rounds: Number of rounds to play; None for the horizon, which it must not exceed.
        params: The policy's parameters; None for its own.
        delta: The delta of the privacy claims that are not by basic composition.

    Returns:
        The result, with regret at log-spaced rounds.

    Raises:
        UnfitError: The policy does not play this environment.
        ValueError: A seed is there twice, or ``rounds`` is out of its range.
    """
    began = process_time()
    seeds, rounds = checked(env, policy, seeds, rounds)
    instances, keys = env.params(seeds), env.keys(seeds)
    with env.precision():
        constants = policy.params() if params is None else params
        kept, means = jax.device_get(_played(env, policy, rounds, instances, constants, keys))
    federation, checkpoints = env.federation, log_spaced(rounds)
    sent: Arrays = {}
    if federation.size:
        releases = np.broadcast_to(federation.releases[checkpoints, np.newaxis, np.newaxis], kept.shape)
        sent["messages"] = messages = federation.messages * releases.astype(np.float64)
        sent["traffic"] = {"messages": messages[-1], "bytes": federation.size * messages[-1]}
    privacy, claims = federation.claims(rounds, delta)
    mechanism = getattr(find_layer(env.host, "noise"), "mechanism", None)
    return RunResult(
        rounds=checkpoints,
        regret=kept.astype(np.float64),
        seeds=seeds,
        info={name: values.astype(np.float64) for name, values in means.items()},
        privacy=privacy,
        claims=claims,
        cpu_seconds=process_time() - began,
        labels={
            "env_id": env.host.metadata["name"],
            "baseline": type(policy).__name__,
            "epsilon": getattr(mechanism, "epsilon", None),
        },
        **sent,
    )


def checked(
    env: Environment, policy: PurePolicy, seeds: Sequence[int], rounds: int | None
) -> tuple[Sequence[int], int]:
    """Returns the seeds and the number of rounds, if the policy can play them; see :func:`rollout`."""
    seeds = plain(seeds)
    if len({*seeds}) < len(seeds):
        raise ValueError(f"seeds is {seeds!r}; different seeds are required, since each counts as a run")
    seen = {*env.released, *env.problem.seen}
    if missing := [name for name in policy.needs if name not in seen]:
        raise UnfitError(f"{type(policy).__name__} needs {missing}, where agents know {sorted(seen)}")
    return seeds, require_integer("rounds", env.max_cycles if rounds is None else rounds, 1, env.max_cycles)


@partial(jax.jit, static_argnames=("env", "policy", "rounds"))
def _played(
    env: Environment, policy: PurePolicy, rounds: int, params: Arrays, constants: Arrays, keys: Array
) -> tuple[Array, Arrays]:
    """Returns cumulative regret at checkpoints, ``(checkpoints, replicas, agents)``, and means of other information."""
    checkpoints = log_spaced(rounds)
    slots = jnp.asarray(np.searchsorted(checkpoints, np.arange(1, rounds + 1)))
    state, memory = started(env, policy, params, keys)
    # The information of a round, all 0, to begin the sums with.
    play_first = partial(play_round, env, policy, params, constants, state, memory)
    blank = jax.eval_shape(play_first, jnp.int32(0))[2]["info"]
    sums = jax.tree.map(lambda info: jnp.zeros(info.shape, env.dtype), blank)

    def play(loop: Any, now: tuple[Array, Array]) -> tuple[Any, None]:
        state, memory, sums, kept = loop
        state, memory, played = play_round(env, policy, params, constants, state, memory, now[0])
        sums = jax.tree.map(jnp.add, sums, played["info"])
        # Every round overwrites the next checkpoint, so that the last one to do so is the checkpoint itself.
        return (state, memory, sums, lax.dynamic_update_index_in_dim(kept, sums["regret"], now[1], 0)), None

    kept = jnp.zeros((checkpoints.size, *keys.shape[:2]), env.dtype)
    (_, _, sums, kept), _ = lax.scan(
        play, (state, memory, sums, kept), (jnp.arange(rounds, dtype=jnp.int32), slots)
    )
    return kept, {name: total / rounds for name, total in sums.items() if name != "regret"}


def started(env: Environment, policy: PurePolicy, params: Arrays, keys: Array) -> tuple[Any, Any]:
    """Returns states of all replicas, and the memories of the policies of all their agents."""
    own = axes(params, env.problem.shared)
    return jax.vmap(env.start)(params), jax.vmap(jax.vmap(partial(policy.start, env), (own, 0)))(params, keys)


def play_round(
    env: Environment,
    policy: PurePolicy,
    params: Arrays,
    constants: Arrays,
    state: Any,
    memory: Any,
    round_: Array,
) -> tuple[Any, Any, Arrays]:
    """Plays a round of all replicas, and returns states, the policies' memories, and what happened.

    These are what was ``offered`` and ``seen``, the ``action``, the ``reward`` and other ``info``, ``(replicas, agents,
    ...)``. What the caller does not use is not computed.
    """
    offered = jax.vmap(env.offer, (0, None))(params, round_)
    seen = {**jax.vmap(env.observe)(params, offered, state), **env.common(round_)}
    mapped = None, 0, axes(seen, COMMON)
    memory, action = jax.vmap(jax.vmap(policy.act, mapped), mapped)(constants, memory, seen)
    state, reward, info = jax.vmap(env.play, (0, 0, 0, 0, None))(params, offered, state, action, round_)
    happened = {"offered": offered, "seen": seen, "action": action, "reward": reward, "info": info}
    return state, memory, happened
