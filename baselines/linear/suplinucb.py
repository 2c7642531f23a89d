"""SupLinUCB: LinUCB whose estimates rest on independent observations (Chu et al. 2011).

LinUCB picks contexts by the rewards seen, so its observations depend on each other. SupLinUCB sorts rounds into levels:
what a level learns from was chosen by widths alone, which no reward of that level enters.
"""

from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.forms import add_shared_forms, add_shared_products
from fedbandit_envs.linear.ridge import arms_last, correct, largest
from fedbandit_envs.spaces import Spaces


class BaseLinUCB(NamedTuple):
    """A ridge regression for every level s, over the rounds Psi^s (Chu et al. 2011, Algorithm BaseLinUCB).

    Attributes:
        inverse: V^-1 with V = I + sum x x^T, ``(replicas, agents, levels, dim, dim)``.
        parameter: theta = V^-1 b with b = sum y x, ``(replicas, agents, levels, dim)``.
    """

    inverse: Array
    parameter: Array

    @classmethod
    def without_data(cls, shape: tuple[int, ...], dim: int) -> "BaseLinUCB":
        """Starts with empty Psi^s.

        Args:
            shape: ``(replicas, agents, levels)``.
            dim: Dimension of contexts.
        """
        inverse = np.zeros((*shape, dim, dim))
        inverse[...] = np.eye(dim)
        return cls(inverse, np.zeros((*shape, dim)))


@kernel
def _observe(pulled, reward, level, inverse, parameter):
    """Takes in the last round of all rows, at the level at which its arm was chosen; below 0 at none."""
    product = np.empty(pulled.shape[2])
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            s = level[r, j]
            if s >= 0:
                correct(inverse[r, j, s], parameter[r, j, s], pulled[r, j], reward[r, j, 0], product)


@kernel
def _choose(contexts, inverse, parameter, alpha, narrow, arm, level):
    """Chooses arms for all rows.

    Args:
        contexts: ``(replicas, agents, dim, arms)``.
        inverse: See :class:`BaseLinUCB`.
        parameter: Likewise.
        alpha: Multiplies the widths.
        narrow: 1/sqrt(T), the width at which the upper bound decides; at least 2^-S.
        arm: Receives the arms, ``(replicas, agents)``.
        level: Receives the level, from 0, at which the round is to be learnt from, or -1.
    """
    dim, arms = contexts.shape[2:]
    across = np.empty((dim, arms))
    product, width, bound = np.empty(arms), np.empty(arms), np.empty(arms)
    candidate = np.empty(arms, np.int64)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            across[...] = contexts[r, j]
            count = arms
            for k in range(arms):
                candidate[k] = k
            for s in range(inverse.shape[2]):
                width[:count] = 0.0
                add_shared_forms(inverse[r, j, s], across, count, product, width)
                for k in range(count):
                    # Rounding may leave a tiny negative square.
                    width[k] = alpha * np.sqrt(max(width[k], 0.0))
                    bound[k] = width[k]
                add_shared_products(parameter[r, j, s], across, count, bound)
                widest, best = largest(width[:count]), largest(bound[:count])
                wide = 0.5 ** (s + 1)
                if width[widest] <= narrow:
                    arm[r, j] = candidate[best]
                    level[r, j] = -1
                    break
                elif width[widest] <= wide:
                    least = bound[best] - 2.0 * wide
                    kept = 0
                    for k in range(count):
                        if bound[k] >= least:
                            candidate[kept] = candidate[k]
                            for i in range(dim):
                                across[i, kept] = across[i, k]
                            kept += 1
                    count = kept
                else:
                    arm[r, j] = candidate[widest]
                    level[r, j] = s
                    break


class SupLinUCB:
    """SupLinUCB on own data, theta* shared by all arms (Chu et al. 2011, Algorithm SupLinUCB).

    A round goes through levels s = 1 to S = ceil(ln T), from all arms. Where all widths alpha sqrt(x^T V^-1 x) are at
    most 1/sqrt(T), it pulls the arm with the largest upper bound and no level learns; otherwise, where all are at most
    2^-s, it keeps the arms whose upper bound is within 2^(1-s) of the largest and goes on to the next level; otherwise
    it pulls a wide arm and level s alone learns. The paper leaves open which wide arm: here it is the widest. Ties go
    to the lowest index. At T = 1 there is one level. Nothing lies beyond the last one: 2^-S is below 1/sqrt(T), so what
    is not wide there is narrow.

    References:
        W. Chu, L. Li, L. Reyzin, R. E. Schapire: Contextual Bandits with Linear Payoff Functions. AISTATS 2011.
    """

    def __init__(self, alpha: float | None = None, failure: float = 0.01) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Multiplies the widths, >= 0; None for the paper's sqrt(ln(2 T K / failure) / 2), with T rounds and K
                arms, which is made for rewards in [0, 1] and contexts of norm at most 1.
            failure: delta, in (0, 1], of that formula.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        if alpha is not None:
            require_number("alpha", alpha, 0, np.inf)
        require_number("failure", failure, 0, 1, open_below=True)
        self._alpha = alpha
        self._failure = float(failure)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        arms, dim = spaces.observation["contexts"].shape or (0, 0)
        horizon = spaces.horizon
        levels = max(ceil(log(horizon)), 1)
        self._base = BaseLinUCB.without_data((*seeds.shape, levels), dim)
        self._radius = (
            sqrt(log(2 * horizon * arms / self._failure) / 2) if self._alpha is None else float(self._alpha)
        )
        self._narrow = 1 / sqrt(horizon)
        self._arm = np.zeros(seeds.shape, np.int64)
        self._level = np.full(seeds.shape, -1, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        _observe(observation["pulled_context"], observation["last_reward"], self._level, *self._base)
        _choose(
            arms_last(observation["contexts"]), *self._base, self._radius, self._narrow, self._arm, self._level
        )  # fmt: skip
        return self._arm
