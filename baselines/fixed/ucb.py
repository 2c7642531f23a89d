"""Asymptotically optimal UCB for arms that keep their features, which it does not look at."""

import numpy as np

from fedbandit_envs.baselines.policy import require_fixed
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec


class LocalUCB:
    """Pulls the arm with the largest mean + radius_scale sd sqrt(2 ln(1 + t ln(t)^2) / n) of an agent's own rewards.

    n is the number of pulls of the arm, t of all arms. Arms without pulls come first. With normal rewards sd is their
    standard deviation, with others 0.5. It is the asymptotically optimal UCB with which the program of Huang et al.
    (2021) compares Fed-PE.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedFixed-v0", num_agents=3, num_arms=4)
        >>> policy = LocalUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).tolist()
        [[0, 0, 0]]
    """

    def __init__(self, radius_scale: float = 1.0) -> None:
        """Sets the factor of the confidence radius, >= 0.

        Raises:
            TypeError: ``radius_scale`` is no number.
            ValueError: It is below 0.
        """
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Reads sd; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Arms do not stay the same.
        """
        require_fixed(spec)
        # Rewards that are not normal lie in an interval of length 1.
        self._width = self._scale * float(spec.public.get("reward_sd", 0.5)) * np.sqrt(2.0)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        pulls = observation["pool_pulls"]
        t = np.maximum(pulls.sum(axis=-1, keepdims=True), 1)
        many = np.maximum(pulls, 1)
        bound = observation["pool_rewards"] / many + self._width * np.sqrt(
            np.log1p(t * np.log(t) ** 2) / many
        )
        return np.where(pulls > 0, bound, np.inf).argmax(axis=-1)
