"""Measurements of FedUCB besides regret: the rounds in which its agents first send, and how their noise adds up."""

from collections.abc import Callable
from math import ceil, log, log1p, nan, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.noise import regularise
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import highest
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds

ATTACKED = 2
"""Number of agents in a federation whose first messages are observed."""

_DIM, _FAILURE = 2, 0.01
# The two arms: a context of the largest norm, with reward 1, and the zero context, with reward 0.
_LONG, _NOTHING = 0, 1


def _federation(baseline: str, agents: int, horizon: int, **wrappers: dict[str, Any]) -> FederatedEnv:
    """Returns a linear bandit with a baseline's wrappers, in which only the noise of privatizers is random."""
    env = parallel_env(
        num_agents=agents, contexts=[[1.0, 0.0], [0.0, 0.0]], parameter=[1.0, 0.0], reward="normal",
        reward_sd=0.0, reward_bound=1.0, max_cycles=horizon,
    )  # fmt: skip
    return BASELINES[baseline].wrap(env, wrappers)


class _ScriptedFedUCB(FedUCB):
    """FedUCB whose agents always pull the zero context, except that the first agent's first pull is prescribed."""

    def __init__(self, first: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._first = first

    def _pull(self, observation: Arrays) -> Array:
        arm = np.full(observation["round"].shape[:2], _NOTHING)
        if observation["round"].flat[0] == 0:
            arm[:, 0] = self._first
        return arm


def first_messages(
    seeds: range,
    advance: Callable[[float], None],
    baseline: str,
    epsilon: float,
    horizons: tuple[int, int],
    made_for: int | None = None,
) -> dict[str, Any]:
    """Measures when a federation synchronises first, under two histories of one agent that differ in one observation.

    In one history the agent observes a context of the largest norm in round 1, in the other the zero context. Agents
    have received no noise before the first synchronisation, so its round is a function of the history. An attacker sees
    that round and nothing else.

    Args:
        seeds: One seed for each run without the observation; the runs with it have as many seeds that follow these.
        advance: Called with the share of the work that was done since its last call.
        baseline: Name of the federation's baseline.
        epsilon: The epsilon that all releases together promise.
        horizons: First and last horizon T. The paper's threshold depends on T: the first T is played at which the
            trigger fires in different rounds under the two histories, or the last if there is no such T.
        made_for: If given, the first T is played with a threshold that is chosen so that the trigger fires in this
            round under one history only; None for the paper's threshold.

    Returns:
        ``without`` and ``including``: rounds of the first synchronisation without the observation and with it,
        ``(seeds,)`` each, 0 for none; ``horizon``: T that was played; ``share``: share of the horizons at which the two
        histories' rounds differ, NaN if ``made_for`` is given; ``reason``: why the federation claims no privacy, empty
        if it claims some.
    """
    horizon, share, threshold = horizons[0], nan, None
    if made_for is None:
        tried = range(horizons[0], horizons[1] + 1)
        betraying = [T for T in tried if len(set(printed_rounds(baseline, epsilon, T))) == 2]
        horizon, share = (betraying or [horizons[1]])[0], len(betraying) / len(tried)
    else:
        threshold = made_for * sum(printed_trigger(baseline, epsilon, horizon)[1:]) / 2
    rounds = []
    for pull, own in ((_NOTHING, seeds), (_LONG, range(seeds.stop, seeds.stop + len(seeds)))):
        env = _federation(baseline, ATTACKED, horizon, privatizer={"epsilon": epsilon})
        policy = _ScriptedFedUCB(pull, **{**BASELINES[baseline].policy_kwargs, "threshold": threshold})
        observation = env.reset_batch(own).observation
        policy.reset(env.policy_spec, row_seeds(own, ATTACKED))
        first = np.zeros(len(own), np.int64)
        for t in range(1, horizon + 1):
            observation = env.step_batch(policy.act(observation)).observation
            first[(first == 0) & observation["inbox_mask"].any(axis=(1, 2))] = t
            if first.all():
                break
        rounds.append(first)
        advance(1 / 2)
    without, including = rounds
    return {
        "without": without, "including": including, "horizon": horizon, "share": share,
        "reason": env.privacy().reason,
    }  # fmt: skip


def printed_trigger(baseline: str, epsilon: float, horizon: int) -> tuple[float, float, float]:
    """Returns both sides of FedUCB's condition for a synchronisation, at the start of an episode.

    Agents synchronise when the number of rounds since the last synchronisation, times a difference of log determinants,
    reaches the threshold D. The values are computed from the noise variance that the federation announces, without the
    policy, for the federation of :func:`first_messages`.

    Args:
        baseline: Name of the federation's baseline.
        epsilon: The epsilon that all releases together promise.
        horizon: Horizon T, on which D depends.

    Returns:
        The threshold D; and log det(V + (rho_max - rho_min) I) - log det S without any data, and with one context of
        the largest norm.
    """
    env = _federation(baseline, ATTACKED, horizon, privatizer={"epsilon": epsilon})
    worst = sqrt(highest(env.policy_spec.release[variance_of("statistic")]))
    made = regularise(
        shift="per_agent",
        bias="printed",
        sd=np.array(worst),
        worst_sd=worst,
        heads=np.array(float(ATTACKED)),
        # Logarithm of the union bound over agents and releases, at the first release: release k of each of M agents has
        # the share 6 / (M pi^2 k^2) of half of the policy's failure probability.
        log_union=np.array(log(2 * ATTACKED * np.pi**2 / (6 * _FAILURE))),
        dim=_DIM,
        ridge=1.0,
        parameter_bound=1.0,
    )
    least, most = float(made.least), float(made.most)
    without = _DIM * log(most / least)
    threshold = 2 * horizon * _DIM / (log(most / least + horizon / (_DIM * least)) + 1)
    return threshold, without, without + log1p(1 / most)


def printed_rounds(baseline: str, epsilon: float, horizon: int) -> tuple[int, int]:
    """Returns the rounds in which FedUCB's trigger fires first, without the attacked observation and with it.

    Args:
        baseline: Name of the federation's baseline.
        epsilon: The epsilon that all releases together promise.
        horizon: Horizon T, on which the trigger's threshold depends.
    """
    threshold, *sides = printed_trigger(baseline, epsilon, horizon)
    without, including = (ceil(threshold / side) for side in sides)
    return without, including


def added_noise(
    seeds: range, advance: Callable[[float], None], baseline: str, agents: int, rounds: int
) -> dict[str, Any]:
    """Measures the noise in the sum of messages from which FedUCB's agents learn.

    Agents pull the zero context in every round, so that the messages contain noise alone.

    Args:
        seeds: One seed for each federation.
        advance: Called with the share of the work that was done since its last call.
        baseline: Name of the federation's baseline; messages have to reach their senders as well, so that all agents'
            noise is in the sum.
        agents: Number of agents M.
        rounds: Number of rounds T.

    Returns:
        Diagonals of the noise that the first agent received, added up over all rounds: ``summed`` over senders,
        ``(seeds, dim + 1)``, and ``single`` of each sender, ``(seeds, agents, dim + 1)``.
    """
    env = _federation(baseline, agents, rounds)
    env.reset_batch(seeds)
    idle = np.full((len(seeds), agents), _NOTHING)
    received = np.zeros((len(seeds), agents, _DIM + 1, _DIM + 1))
    for _ in range(rounds):
        received += env.step_batch(idle).observation["inbox_statistic"][:, 0]
        advance(1 / rounds)
    single = np.diagonal(received, axis1=-2, axis2=-1)
    return {"summed": single.sum(axis=1), "single": single}
