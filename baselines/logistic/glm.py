"""UCB-GLM: logistic bandits with confidence bounds around the likeliest model."""

from math import log, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.logistic.fit import PoolFeatures, maximise
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import observe


def slope_of(spec: PolicySpec, slope: float | None) -> float:
    """Returns the lower bound of the logistic function's slope that a policy has been given, or else the environment's.

    Raises:
        UnfitError: Rewards are not logistic.
    """
    if spec.public.get("reward") != "logistic":
        raise UnfitError(f"reward is {spec.public.get('reward')!r}; 'logistic' is required")
    return float(spec.public["least_slope"]) if slope is None else slope


class UCBGLM(LinUCB):
    """Pulls the arm with the largest <x, w> + beta ||x||_{V^-1} of own data, or of all data that a server is told.

    w maximises the likelihood with a ridge penalty, V = ridge I + sum x x^T, and beta = beta_scale (R / c) sqrt((d / 2)
    ln(1 + 2 n / d) + ln(1 / failure)), where R is ``noise_sd``, c ``slope`` and n the number of observations at the end
    of the episode (Li, Lu and Zhou 2017). With ``Server(policy="glm")`` and a
    :class:`~fedbandit_envs.baselines.linear.TellingReporter` around the environment, w and V come from the server.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> policy = UCBGLM()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, ridge: float = 2.0, slope: float | None = None, **linucb: Any) -> None:
        """Sets the policy's constants.

        Args:
            ridge: The ridge, > 0.
            slope: c, a lower bound of the logistic function's slope, in (0, 1/4]; None for the environment's.
            **linucb: Other arguments of :class:`LinUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(ridge, **linucb)
        self._slope = None if slope is None else require_number("slope", slope, 0, 0.25, open_below=True)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Rewards are not logistic, contexts do not come from a pool, or there is another server.
        """
        super().reset(spec, seeds)
        self._pool = PoolFeatures(spec, len(seeds))
        dim = self._pool.known.shape[-1]
        seen = spec.observation.spaces
        self._served = "server_moment" in seen
        if "server_mask" in seen and not self._served:
            raise UnfitError(
                f"observations are {sorted(seen)}; a Server with policy='glm', or none, is required around them"
            )
        observations = spec.horizon * (spec.agents if self._served else 1)
        inside = dim / 2 * log(1 + 2 * observations / dim) - log(self._failure)
        self._confidence.bias[...] = self._noise_sd / slope_of(spec, self._slope) * sqrt(inside)
        self._confidence.inflation[...] = 0.0
        self._model = np.zeros((*seeds.shape, dim))

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        if self._served:
            new = observation["server_mask"][..., 0]
            self._ridges.inverse[new, 0] = observation["server_inverse"][new]
            self._ridges.moment[new, 0] = observation["server_moment"][new]
        else:
            last = observation["pulled_context"], observation["last_reward"], np.empty(self._model.shape[-1])
            observe(observation["round"], *last, *self._ridges)
            self._pool.add(observation["pool_index"], observation["contexts"])
            maximise(
                self._pool.known,
                observation["pool_pulls"],
                observation["pool_rewards"],
                self._ridge,
                self._model,
            )
            # The centre of the bounds is V^-1 times the moment.
            dim = self._model.shape[-1]
            gram = observation["total_statistic"][..., :dim, :dim] + self._ridge * np.eye(dim)
            self._ridges.moment[...] = (gram @ self._model[..., np.newaxis]).swapaxes(-1, -2)
        return self._choose(observation, -log(self._failure))
