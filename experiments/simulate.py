"""Plays a policy on all agents of a federation, and records cumulative regret at log-spaced rounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.transport.transport import Transport

ROWS_PER_SHARD = 500
"""Default number of rows that are played at the same time; a row is one agent in one replica.

Arrays with so many rows fit into a processor's cache.
"""


def split_seeds(
    seeds: Sequence[int], agents: int, rows: int = ROWS_PER_SHARD, multiple: int = 1
) -> list[Sequence[int]]:
    """Splits the seeds of a run into shards, and returns the seeds of each shard.

    Args:
        seeds: All seeds of the run.
        agents: Number of agents.
        rows: About how many rows a shard shall have; a row is one agent under one seed.
        multiple: Number of which the number of seeds in a shard shall be a multiple, except for the last shard.
    """
    size = max(1, rows // agents // multiple) * multiple
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def log_spaced(rounds: int, per_decade: int = 10) -> Array:
    """Returns distinct integers from 1 to ``rounds`` in about geometric progression.

    Args:
        rounds: The last integer.
        per_decade: About how many of them there are between a number and its tenfold.
    """
    count = 1 + int(np.ceil(per_decade * np.log10(rounds)))
    return np.unique(np.rint(np.geomspace(1, rounds, count)).astype(np.int64))


def simulate(
    env: FederatedEnv,
    policy: Policy,
    seeds: Sequence[int],
    advance: Callable[[float], None] = lambda played: None,
) -> RunResult:
    """Plays one episode for each seed and returns the result.

    Episodes are played at the same time, but only as many as fit into a processor's cache (500 agents); then
    environment and policy are reset for the next ones. An episode is the same, whichever are played beside it.

    Args:
        env: The federation, with its wrappers; its ``max_cycles`` is the horizon.
        policy: The policy that chooses the actions of all agents.
        seeds: The seeds, one for each replica (episode).
        advance: Called with the number of agent-rounds played since its last call, for progress bars.

    Returns:
        Regret of every agent at log-spaced rounds; memory does not grow with the horizon. The result's ``env_id`` is
        the environment's name, and its ``baseline`` the class of the policy.
    """
    results = []
    for own in split_seeds(seeds, env.max_num_agents) or [seeds]:
        start = env.reset_batch(own)
        policy.reset(env.policy_spec, row_seeds(own, env.max_num_agents))
        results.append(play_started(env, policy, own, start, advance))
    if len(results) == 1:
        return results[0]
    return replace(RunResult.joined([part.as_arrays() for part in results]), labels=results[0].labels)


def play_started(
    env: FederatedEnv,
    policy: Policy,
    seeds: Sequence[int],
    start: BatchReset,
    advance: Callable[[float], None],
) -> RunResult:
    """Plays episodes, all at the same time, for which environment and policy have been reset; see :func:`simulate`.

    Args:
        env: The federation.
        policy: The policy.
        seeds: The seeds with which both were reset.
        start: What the environment's reset returned.
        advance: Called with the number of agent-rounds played since its last call.
    """
    rounds = log_spaced(env.max_cycles)
    observation = start.observation
    shape = start.info["regret"].shape
    sums: Arrays = {}
    kept, messages = np.empty((2, rounds.size, *shape))
    played = 0
    for checkpoint, until in enumerate(rounds):
        for _ in range(until - played):
            observation, _, _, info = env.step_batch(policy.act(observation))
            for name, values in info.items():
                if name not in sums:
                    sums[name] = np.zeros(shape)
                sums[name] += values
        kept[checkpoint] = sums["regret"]
        messages[checkpoint] = sums.get("messages", 0.0)
        advance(float((int(until) - played) * start.info["regret"].size))
        played = int(until)
    transport, noise = find_layer(env, "transport"), find_layer(env, "noise")
    return RunResult(
        rounds=rounds,
        regret=kept,
        seeds=seeds,
        info={name: values / played for name, values in sums.items() if name != "regret"},
        messages=messages if "messages" in sums else None,
        traffic=transport.traffic if isinstance(transport, Transport) else {},
        totals=env.totals,
        groups=env.groups,
        privacy=env.privacy(),
        labels={
            "env_id": env.metadata["name"],
            "baseline": type(policy).__name__,
            "epsilon": getattr(getattr(noise, "mechanism", None), "epsilon", None),
        },
    )
