"""What agents of FedGLB-UCB tell the server: Gram matrices and, when the server asks at a model, gradients."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.logistic.fit import PoolFeatures, derive
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec


def gradients(env: FederatedEnv) -> Mapping[str, Mapping[str, object]]:
    """Returns arguments of :class:`~fedbandit_envs.wrappers.Messages` for a :class:`GradientReporter`."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    gradient = {"shape": [dim], "asked": True}
    return {"arrays": {"gram": {"shape": [dim, dim]}, "count": {"shape": []}, "gradient": gradient}}


class GradientReporter:
    """Reports sums over all of an agent's observations (x, y) so far.

    These are ``gram``, sum x x^T, and ``count``, the number of observations; and, when the server asks with a ``model``
    w, ``gradient``, weight times sum (1 / (1 + exp(-<x, w>)) - y) x.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Messages
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> env = Messages(env, **gradients(env), reporter=GradientReporter())
        >>> reset = env.reset_batch([0])
        >>> env.release(np.ones((1, 3), bool))["gram"].shape
        (1, 3, 2, 2)
    """

    def __init__(self, gradient_weight: float = 1.0) -> None:
        """Sets the weight of gradients, by which a server divides.

        Args:
            gradient_weight: The weight, > 0. Gradients near the best model are small beside the other sums. Where a
                clip bounds all messages and noise is in proportion to it, a weight above 1 lets gradients fill it.

        Raises:
            TypeError: It is no number.
            ValueError: It is not positive, or not finite.
        """
        self._weight = require_number(
            "gradient_weight", gradient_weight, 0, np.inf, open_below=True, open_above=True
        )

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        self._pool = PoolFeatures(spec, len(seeds))

    def observe(self, observation: Arrays) -> None:
        """Keeps the agents' data, and what they see of the pool; see :meth:`.Reporter.observe`."""
        self._pool.add(observation["pool_index"], observation["contexts"])
        self._seen = observation

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns sums over observations; see :meth:`.Reporter.report`.

        Args:
            question: ``model``, ``(replicas, agents, dim)``. None for a report that has 0 in place of gradients.
        """
        seen, dim = self._seen, self._pool.known.shape[-1]
        gradient = np.zeros((*seen["round"].shape[:2], dim))
        if question is not None:
            derive(self._pool.known, seen["pool_pulls"], seen["pool_rewards"], question["model"], gradient)
        return {
            "gram": seen["total_statistic"][..., :dim, :dim],
            "count": seen["pool_pulls"].sum(axis=-1, dtype=np.float64),
            "gradient": self._weight * gradient,
        }
