"""Policies for Gaussian arms without phases: upper confidence bounds, and arms that a server names."""

from math import sqrt

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import InboxTotals, PolicySpec


class GaussianUCB:
    """Pulls the arm with the largest mean + radius_scale sqrt(2 sd^2 ln t / n), from own and received rewards.

    n is the number of pulls, own and received, mean the average of their rewards, and sd their known standard
    deviation. Arms without pulls come first. Where all agents hear all others in every round, all pull the same arm,
    and the bound is that of the global mean.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> env = gaussian_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = GaussianUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, radius_scale: float = 1.0) -> None:
        """Sets the factor of the confidence radius, >= 0.

        Raises:
            TypeError: ``radius_scale`` is no number.
            ValueError: It is below 0.
        """
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets what was received; see :meth:`Policy.reset`."""
        arms = spec.observation["total_pulls"].shape or (0,)
        self._width = self._scale * sqrt(2.0) * spec.public["reward_sd"]
        self._inbox = InboxTotals(spec, {"pulls": arms, "rewards": arms})
        self._inbox.reset(seeds.shape)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        pulls, sums = observation["total_pulls"], observation["total_rewards"]
        if self._inbox.exists:
            if observation["inbox_mask"].any():
                self._inbox.add(observation)
            pulls, sums = pulls + self._inbox.totals["pulls"], sums + self._inbox.totals["rewards"]
        many = np.maximum(pulls, 1.0)
        radius = self._width * np.sqrt(np.log(observation["round"] + 1) / many)
        return np.where(pulls > 0, sums / many + radius, np.inf).argmax(axis=-1)


class NamedArm:
    """Pulls the arm that the server has named last.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(make_federation("FedMixed-v0"), "every_round", "every_round", policy="leader")
        >>> policy = NamedArm()
        >>> policy.reset(env.policy_spec, np.zeros((1, 4), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks that there is a server; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that names arms, or agents choose when to upload.
        """
        seen = spec.observation.spaces
        if "server_arm" not in seen or spec.chooses_sending:
            raise UnfitError(
                "a Server whose policy answers an arm, with a schedule fixed in advance, is required around the "
                f"environment; its observations are {sorted(seen)} and its actions {spec.action}"
            )

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        return observation["server_arm"].copy()
