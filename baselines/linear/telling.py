"""The reporter of agents that tell the server every observation: context, its number in the pool, and reward."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.policy import require_pool
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec


def observations(env: FederatedEnv) -> Mapping[str, Mapping[str, object]]:
    """Returns arguments of :class:`~fedbandit_envs.wrappers.Messages` for a :class:`TellingReporter`."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    index = {"shape": [], "dtype": "int32"}
    return {"arrays": {"context": {"shape": [dim]}, "index": index, "reward": {"shape": []}}}


def told(uploads: Arrays, mask: Array, size: int) -> tuple[Array, Array, Array, Array]:
    """Returns the observations in uploads: replica, context, number in the pool and reward of each.

    Args:
        uploads: The uploads by name, ``(replicas, agents, ...)``.
        mask: Whose uploads these are, ``(replicas, agents)``.
        size: Number of vectors in the pool; larger numbers, which no honest agent sends, are left out.
    """
    index = uploads["index"].astype(np.int64)
    replica, agent = np.nonzero(mask & (index >= 0) & (index < size))
    rows = replica, agent
    return replica, uploads["context"][rows], index[rows], uploads["reward"][rows]


class TellingReporter:
    """Reports each agent's last observation; a server that is told in every round has them all.

    An agent that has not acted in the last round reports the number -1.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Messages
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> env = Messages(env, **observations(env), reporter=TellingReporter())
        >>> reset = env.reset_batch([0])
        >>> env.release(np.ones((1, 3), bool))["context"].shape
        (1, 3, 2)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks the environment; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        require_pool(spec)
        self._pulls = np.zeros((*seeds.shape, *(spec.observation["pool_pulls"].shape or ())), np.int64)

    def observe(self, observation: Arrays) -> None:
        """Keeps the last observation; see :meth:`.Reporter.observe`."""
        grown = observation["pool_pulls"] - self._pulls
        self._told = {
            "context": observation["pulled_context"],
            "index": np.where(grown.any(axis=-1), grown.argmax(axis=-1), -1),
            "reward": observation["last_reward"][..., 0],
        }
        self._pulls[...] = observation["pool_pulls"]

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns the last observation; see :meth:`.Reporter.report`."""
        return self._told
