"""Laws of rewards, given their mean; all of them are clipped to [-B, B], and clips are counted."""

from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.special import betaincinv

from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.federation import Array
from fedbandit_envs.luck import Luck
from fedbandit_envs.streams import Purpose

RewardName = Literal["beta", "bernoulli", "normal"]


class Rewards(NamedTuple):
    """The rewards of one round, ``(replicas, agents)``.

    Attributes:
        reward: Clipped to [-B, B].
        clipped: Whether it was.
    """

    reward: Array
    clipped: Array


class RewardLaw:
    """Draws rewards by inversion or by shifting: one draw an agent and round, whatever the mean is.

    So a larger mean never has a smaller reward under the same luck.
    """

    def __init__(self, name: RewardName, sd: float, bound: float) -> None:
        """Sets the law.

        Args:
            name: ``"beta"`` (Beta(mu, 1 - mu), the paper's), ``"bernoulli"``, both of which need means in [0, 1], or
                ``"normal"`` (N(mu, sd^2)).
            sd: Of the normal law, >= 0.
            bound: B > 0.

        Raises:
            TypeError: A number is none.
            ValueError: A name is unknown, or a number out of its range.
        """
        require_choice("reward", name, get_args(RewardName))
        require_number("reward_sd", sd, 0, np.inf)
        require_number("reward_bound", bound, 0, np.inf, open_below=True)
        self.needs_probabilities = name != "normal"
        self._name = name
        self._sd = sd
        self._bound = bound

    def begin(self, luck: Luck) -> None:
        """Prepares the draws of one episode a seed."""
        self._draws = luck.draws(Purpose.OUTCOME)

    def draw(self, mean: Array, acting: Array) -> Rewards:
        """Draws the rewards of one round.

        Args:
            mean: Expected rewards, ``(replicas, agents)``.
            acting: Who acts, likewise; the others get 0.
        """
        if self._name == "normal":
            reward = mean + self._sd * self._draws.normals()
        elif self._name == "bernoulli":
            reward = (self._draws.uniforms() >= 1.0 - mean).astype(np.float64)
        else:
            # At the ends the law is the mean itself.
            inside = (mean > 0.0) & (mean < 1.0)
            shape = np.where(inside, mean, 0.5)
            reward = np.where(inside, betaincinv(shape, 1.0 - shape, self._draws.uniforms()), mean)
        reward[~acting] = 0.0
        clipped = np.abs(reward) > self._bound
        return Rewards(np.clip(reward, -self._bound, self._bound), clipped)
