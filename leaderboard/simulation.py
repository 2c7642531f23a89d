"""Plays a policy on all agents of a federation and keeps log-spaced regret."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.federation import BatchReset, FederatedEnv
from fedbandit_envs.streams import row_seeds


@dataclass(frozen=True)
class Simulation:
    """What a run leaves behind; memory does not grow with the horizon.

    Attributes:
        rounds: Log-spaced rounds at which regret was kept, ``(checkpoints,)``.
        regret: Cumulative regret, float64 ``(checkpoints, replicas, agents)``.
        info: Means over rounds of the environment's other information, by name, float64 ``(replicas, agents)``.
        messages: Cumulative messages, as regret; None without a transport.
        totals: What the episode added up to besides; see :attr:`FederatedEnv.totals`.
    """

    rounds: Array
    regret: Array
    info: Arrays
    messages: Array | None = None
    totals: Arrays = field(default_factory=dict)


def log_spaced(rounds: int, per_decade: int = 10) -> Array:
    """Returns distinct integers from 1 to ``rounds``, about ``per_decade`` of them a factor of ten."""
    count = 1 + int(np.ceil(per_decade * np.log10(rounds)))
    return np.unique(np.rint(np.geomspace(1, rounds, count)).astype(np.int64))


def simulate(
    env: FederatedEnv,
    policy: Policy,
    seeds: Sequence[int],
    advance: Callable[[int], None] = lambda rounds: None,
) -> Simulation:
    """Plays one episode a seed, all of them side by side.

    Args:
        env: The federation, with its wrappers; its ``max_cycles`` is the horizon.
        policy: Plays every agent.
        seeds: One seed a replica.
        advance: Called with the number of rounds played since its last call, for progress bars.

    Returns:
        Regret at log-spaced rounds.
    """
    start = env.reset_batch(seeds)
    policy.reset(env.policy_spaces, row_seeds(seeds, env.max_num_agents))
    return play_episodes(env, policy, start, advance)


def play_episodes(
    env: FederatedEnv,
    policy: Policy,
    start: BatchReset,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Simulation:
    """Plays the episodes of an environment and a policy that have just been reset; see :func:`simulate`.

    Args:
        env: The federation.
        policy: Plays every agent.
        start: What the environment's reset returned.
        advance: Called with the number of rounds played since its last call, for progress bars.

    Returns:
        Regret at log-spaced rounds.
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
        advance(int(until) - played)
        played = int(until)
    return Simulation(
        rounds,
        kept,
        {name: values / played for name, values in sums.items() if name != "regret"},
        messages if "messages" in sums else None,
        env.totals,
    )
