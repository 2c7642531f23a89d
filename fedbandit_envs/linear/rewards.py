"""Laws of rewards, given their mean; all of them are clipped to [-B, B], and clips are counted."""

from typing import Literal, get_args

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.arcsine import TERMS, arcsine_quantile
from fedbandit_envs.luck import Luck
from fedbandit_envs.streams import Purpose
from fedbandit_envs.threefry import threefry, u32
from fedbandit_envs.variates import normal_pair, uniform

RewardName = Literal["beta", "bernoulli", "normal"]

_BERNOULLI, _NORMAL = (get_args(RewardName).index(name) for name in ("bernoulli", "normal"))


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
        self._law = get_args(RewardName).index(name)
        self._sd = float(sd)
        self._bound = float(bound)

    def begin(self, luck: Luck) -> None:
        """Prepares the draws of one episode a seed."""
        self._draws = luck.draws(Purpose.OUTCOME)

    def draw(self, acting: Array, arm: Array, means: Array, reward: Array, clipped: Array) -> None:
        """Draws the rewards of one round.

        Args:
            acting: Who acts, bool ``(replicas, agents)``; the others get 0.
            arm: Arms pulled, int64, likewise.
            means: Expected rewards of all arms, ``(replicas, agents, arms)``.
            reward: Receives what they pay, clipped to [-B, B], ``(replicas, agents)``.
            clipped: Receives whether it was clipped, likewise.
        """
        _draw(
            acting, arm, means, self._law, self._sd, self._bound, self._draws.key, self._draws.round,
            reward, clipped,
        )  # fmt: skip


@kernel
def _draw(acting, arm, means, law, sd, bound, key, round_, reward, clipped):
    scratch = np.empty(TERMS)
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            paid = 0.0
            if acting[r, j]:
                mean = means[r, j, arm[r, j]]
                x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(0))
                if law == _NORMAL:
                    paid = mean + sd * np.float64(normal_pair(x, y)[0])
                elif law == _BERNOULLI:
                    paid = np.float64(uniform(x, y) >= 1.0 - mean)
                elif 0.0 < mean < 1.0:
                    paid = arcsine_quantile(mean, uniform(x, y), scratch)
                else:
                    # At the ends the law is the mean itself.
                    paid = mean
            reward[r, j] = min(max(paid, -bound), bound)
            clipped[r, j] = abs(paid) > bound
