"""What agents of FedGLB-UCB tell the server: Gram matrices and, when the server asks at a model, gradients."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.logistic.fit import PoolFeatures, derive
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec


def gradients(hessian: bool, env: FederatedEnv) -> Mapping[str, Mapping[str, object]]:
    """Returns arguments of :class:`~fedbandit_envs.wrappers.Messages` for a :class:`GradientReporter`."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    asked = {"gradient": [dim], **({"hessian": [dim, dim]} if hessian else {})}
    return {
        "arrays": {
            "gram": {"shape": [dim, dim]},
            "count": {"shape": []},
            **{name: {"shape": shape, "asked": True} for name, shape in asked.items()},
        }
    }


class GradientReporter:
    """Reports sums over all of an agent's observations (x, y) so far.

    These are ``gram``, sum x x^T, and ``count``, the number of observations; and, when the server asks with a ``model``
    w, ``gradient``, sum (1 / (1 + exp(-<x, w>)) - y) x, and ``hessian``, its derivative, if messages have it.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Messages
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> env = Messages(env, **gradients(False, env), reporter=GradientReporter())
        >>> reset = env.reset_batch([0])
        >>> env.release(np.ones((1, 3), bool))["gram"].shape
        (1, 3, 2, 2)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        self._names = spec.release.spaces.keys()
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
        seen, rows, dim = self._seen, self._seen["round"].shape[:2], self._pool.known.shape[-1]
        wanted = rows[1] if "hessian" in self._names else 0
        message = {"gradient": np.zeros((*rows, dim)), "hessian": np.zeros((rows[0], wanted, dim, dim))}
        if question is not None:
            derive(
                self._pool.known, seen["pool_pulls"], seen["pool_rewards"], question["model"], message["gradient"],
                message["hessian"],
            )  # fmt: skip
        message["gram"] = seen["total_statistic"][..., :dim, :dim]
        message["count"] = seen["pool_pulls"].sum(axis=-1, dtype=np.float64)
        return {name: message[name] for name in self._names}
