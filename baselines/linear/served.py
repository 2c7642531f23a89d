"""Agents that tell a server every observation, and LinUCB on what the server has computed from all of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError, require_pool
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec


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
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> reporter = TellingReporter()
        >>> reporter.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> reporter.observe(env.reset_batch([0]).observation)
        >>> reporter.report(None)["context"].shape
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


class ServedLinUCB:
    """Pulls the arm with the largest <x, theta> + beta ||x||_{V^-1}, with the server's estimate theta and V^-1.

    Both are the agent's last download from a :class:`~fedbandit_envs.baselines.servers.RidgeServer` or, with a theta
    and a V for each arm, a :class:`~fedbandit_envs.baselines.servers.DisjointServer`; before the first, theta is 0 and
    V = ridge I. An agent uses no own data but those that have been to the server, and does no linear algebra but
    products.

    Example:
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="every_round", policy="ridge")
        >>> policy = ServedLinUCB(beta=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, beta: float = 0.5, ridge: float = 1.0) -> None:
        """Sets the policy's constants.

        Args:
            beta: The radius, >= 0.
            ridge: Multiple of I in V before the first download, > 0.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._beta = require_number("beta", beta, 0, np.inf)
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all downloads; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that answers ``theta`` and ``inverse``, or agents choose when to upload.
        """
        seen = spec.observation.spaces
        if not {"server_theta", "server_inverse"} <= seen.keys() or spec.chooses_sending:
            raise UnfitError(
                "a Server with policy='ridge' and a schedule fixed in advance is required around the environment; its "
                f"observations are {sorted(seen)} and its actions {spec.action}"
            )
        shape = seen["server_inverse"].shape or (0,)
        self._inverse = np.zeros((*seeds.shape, *shape)) + np.eye(shape[-1]) / self._ridge

    def act(self, observation: Arrays) -> Any:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        new = observation["server_mask"][..., 0]
        self._inverse[new] = observation["server_inverse"][new]
        contexts, theta = observation["contexts"], observation["server_theta"]
        if theta.ndim == 4:
            mean = (contexts * theta).sum(axis=-1)
            squared_width = np.einsum("rjad,rjade,rjae->rja", contexts, self._inverse, contexts)
        else:
            mean = (contexts @ theta[..., np.newaxis])[..., 0]
            squared_width = ((contexts @ self._inverse) * contexts).sum(axis=-1)
        return np.argmax(mean + self._beta * np.sqrt(np.maximum(squared_width, 0.0)), axis=-1)
