"""What agents of FedGLB-UCB tell the server: Gram matrices and, when the server asks at a model, gradients."""

from collections.abc import Mapping

import numpy as np
from scipy.special import expit

from fedbandit_envs.baselines.logistic.fit import PoolFeatures
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec


def gradients(hessian: bool, env: FederatedEnv) -> Mapping[str, Mapping[str, object]]:
    """Returns the argument ``arrays`` of :class:`~fedbandit_envs.wrappers.Messages` for :class:`GradientReporter`."""
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
        self._pulls: Array | None = None

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns sums over observations; see :meth:`.Reporter.report`.

        Args:
            question: ``model``, ``(replicas, agents, dim)``. None for a report that has 0 in place of gradients.
        """
        rows, dim = self._seen["round"].shape[:2], self._pool.known.shape[-1]
        message = {"gradient": np.zeros((*rows, dim)), "hessian": np.zeros((*rows, dim, dim))}
        if question is not None:
            self._derive(question["model"], message)
        message["gram"] = self._seen["total_statistic"][..., :dim, :dim]
        message["count"] = self._seen["pool_pulls"].sum(axis=-1, dtype=np.float64)
        return {name: message[name] for name in self._names}

    def _derive(self, model: Array, message: dict[str, Array]) -> None:
        if self._pulls is None:
            self._pulls = self._seen["pool_pulls"].astype(np.float64)
        features = self._pool.known
        # If all agents of a replica are asked at the same model, chances are computed once.
        models = model[:, :1] if (model == model[:, :1]).all() else model
        chance = expit(models @ features.swapaxes(1, 2))
        message["gradient"] = (self._pulls * chance - self._seen["pool_rewards"]) @ features
        if "hessian" in self._names:
            squares = (features[..., np.newaxis] * features[..., np.newaxis, :]).reshape(
                *features.shape[:2], -1
            )
            summed = (self._pulls * (chance * (1 - chance))) @ squares
            message["hessian"] = summed.reshape(*model.shape, -1)
