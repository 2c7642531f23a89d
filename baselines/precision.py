"""Weighing what is heard by the noise that is known to be in it: each message counts for what it is worth.

Messages announce the variance of their noise (:mod:`fedbandit_envs.wrappers.privacy.announcement`). What is heard
becomes as many exact observations as tell as much, and is added to own data, which stay exact. So pure noise weighs
next to nothing, a placebo is as good as silence, and nothing need be checked, guarded, shifted or lifted. The estimates
of worth are plug-in ones, no bounds.

**Counts.** Of a message (w, y), how many outcomes there were and how many good ones, r = y / w, brought into [0, 1],
estimates the probability q of a good one. With variances v_w and v_y of the noise and their covariance v_wy the
variance of r is about (v_y - 2 r v_wy + r^2 v_w + q (1 - q) w) / w^2, that of n = q (1 - q) / variance exact outcomes;
so the message counts as n outcomes, n r of them good. q is put in as (Y + 1) / (W + 2), kept in [0.02, 0.98], W and Y
being own counts and what was heard before this round. Where w <= 4 sqrt(v_w) the quotient means nothing, and n is 0.

What the radius sqrt(ln(1 / failure) / (2 W)) is still worth with W = own counts + sum n: where w is exact (randomised
response) and the weights are taken as given, n r has a sub-Gaussian variance of at most n / 4, since
n <= 1 / (4 v_y / w^2 + 1 / w) whatever q is, if v_y is one of the noise; so the radius holds as it does for W exact
outcomes. But weights follow from the messages, r is clipped, and a noisy w makes it a quotient with a bias of second
order, up to a sixteenth at the cut: of this no bound is known, and none of a radius that was tuned.

**Gram matrices.** With everything heard summed, G + N = sum_i g_i v_i v_i^T, b and the noise's variance nu on the
diagonal, half of it elsewhere, the error h - N theta has about the variance nu in every direction, where
||theta|| <= 1, beside R^2 g_i of the rewards, R^2 being the variance of one. So in direction v_i it is worth
g_i^2 / (g_i + nu / R^2) observations, and nothing where g_i <= 0; the moment is shrunk by g_i / (g_i + nu / R^2). This
is done to the sum: message by message, the directions in which each has too large a g_i would be believed, and errors
would no longer cancel. No bound of the error is known.

Where noises of an agent's messages hang together, as in continual release, the sums alone have known noise: behind such
a mechanism counts are weighed as one sum, too.

Nothing here withstands liars: who announces less noise than there is counts for more than it should, as does who
multiplies what it tells.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedbandit_envs.baselines.heard import PooledCounts, PooledGrams
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.weighing import WeighedCounts, WeighedGrams
from fedbandit_envs.checks import require_number
from fedbandit_envs.spaces import Spaces


@dataclass(frozen=True)
class Precision:
    """Weighs what is heard by the noise known to be in it; see the module.

    Attributes:
        reward_variance: R^2 > 0, of one reward, for Gram matrices; counts know theirs. 1/4 is the most that a reward
            in [0, 1] can have.
    """

    reward_variance: float = 0.25
    additive: ClassVar[bool] = False
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuses a variance out of range.

        Raises:
            TypeError: It is no number.
            ValueError: It is not > 0, or infinite.
        """
        require_number("reward_variance", self.reward_variance, 0, np.inf, open_below=True)

    def counts(self, rows: tuple[int, ...], spaces: Spaces, names: tuple[str, str]) -> PooledCounts:
        """Starts an episode; see :meth:`~fedbandit_envs.baselines.pool.Pool.counts`.

        Raises:
            UnfitError: Agents hear themselves.
        """
        _refuse_echoes(spaces)
        return WeighedCounts(rows, spaces, names)

    def grams(self, rows: tuple[int, ...], spaces: Spaces) -> PooledGrams:
        """Starts an episode; see :meth:`~fedbandit_envs.baselines.pool.Pool.grams`.

        Raises:
            UnfitError: Agents hear themselves.
        """
        _refuse_echoes(spaces)
        return WeighedGrams(rows, spaces, float(self.reward_variance))


def _refuse_echoes(spaces: Spaces) -> None:
    if "sent" in spaces.observation.spaces:
        raise UnfitError(
            "agents hear what they have sent themselves, through noise, which the pool 'precision' would count beside "
            "the exact data; a transport with echo=False is required"
        )
