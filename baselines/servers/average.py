"""The server policy that averages agents' uploads."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import zeros
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import COVARIANCE, variance_of


class AverageServer:
    """Answers the mean of the agents' latest uploads, over all agents that have uploaded (federated averaging).

    With models as messages (:class:`~fedbandit_envs.wrappers.Messages`) this is the server of federated averaging
    (McMahan et al. 2017) with equal weights. With statistics it is the mean of their latest growth. Where uploads
    announce the variance of independent noise, the answer announces that of the mean.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(arms_v0.parallel_env(num_agents=4), schedule="every_round", policy="average")
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.array([[0, 0, 0, 1]]))
        >>> step.observation["server_pulls"][0, 0, :2].tolist()
        [0.75, 0.25]
    """

    def downloads(self, spec: PolicySpec) -> dict[str, spaces.Box]:
        """Returns a space for each array that agents release, of the same shape, float64."""
        return {
            name: spaces.Box(-np.inf, np.inf, space.shape, np.float64) for name, space in spec.release.items()
        }

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all uploads."""
        rows = len(seeds), spec.agents
        self._last = zeros(spec.release, rows, np.float64)
        self._seen = np.zeros(rows, np.bool_)

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Returns the means by name, ``(replicas, ...)``; 0 where nobody has uploaded yet."""
        self._seen |= mask
        number = np.maximum(self._seen.sum(axis=1), 1)
        means = {}
        for name, last in self._last.items():
            last[mask] = uploads[name][mask]
            # The variance of a mean of independent noises is the sum of their variances over the number squared.
            divisor = number**2 if name == COVARIANCE or name.endswith(variance_of("")) else number
            means[name] = last.sum(axis=1) / divisor.reshape(-1, *(1,) * (last.ndim - 2))
        return means
