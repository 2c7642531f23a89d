"""SupLinUCB: LinUCB whose estimates rest on independent observations (Chu et al. 2011).

LinUCB picks contexts by the rewards seen, so that its observations depend on each other. SupLinUCB sorts rounds into
levels: the observations of a level were chosen by widths alone, which do not depend on the rewards of that level.
"""

from math import ceil, log, sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.forms import add_shared_forms, add_shared_products
from fedbandit_envs.linear.ridge import arms_last, correct, largest


@kernel
def _observe(pulled, reward, level, inverse, parameter):
    """Takes in the last round of all rows at the level at which its arm was chosen; a negative level learns nothing."""
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
        inverse: V^-1 of every level s, with V = I + sum x x^T over the rounds Psi^s, ``(replicas, agents, levels, dim,
            dim)`` (Chu et al. 2011, Algorithm BaseLinUCB).
        parameter: theta = V^-1 b with b = sum y x, ``(replicas, agents, levels, dim)``.
        alpha: Factor of the widths.
        narrow: 1/sqrt(T), the width below which the upper bound decides; at least 2^-S.
        arm: Receives the arms, ``(replicas, agents)``.
        level: Receives the level, from 0, that learns from the round, or -1.
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
    """SupLinUCB on own data, one parameter for all arms (Chu et al. 2011, Algorithm SupLinUCB).

    A round goes through levels s = 1 to S = ceil(ln T), starting with all arms. Where all widths alpha sqrt(x^T V^-1 x)
    are at most 1/sqrt(T), it pulls the arm with the largest upper bound and no level learns; otherwise, where all are
    at most 2^-s, it keeps the arms whose upper bound is within 2^(1-s) of the largest and goes on to the next level;
    otherwise it pulls the widest arm, from which level s alone learns. (The paper leaves open which wide arm.) Ties go
    to the lowest index. There is at least one level. Every round ends at a level: 2^-S is below 1/sqrt(T), so that what
    is not wide there is narrow.

    References:
        W. Chu, L. Li, L. Reyzin, R. E. Schapire: Contextual Bandits with Linear Payoff Functions. AISTATS 2011.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import SupLinUCB
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = SupLinUCB(alpha=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, alpha: float | None = None, failure: float = 0.01) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Factor of the widths, >= 0; None for the paper's sqrt(ln(2 T K / failure) / 2) with T rounds and K
                arms, which holds for rewards in [0, 1] and contexts of norm at most 1.
            failure: delta of that formula, in (0, 1].

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._failure = require_number("failure", failure, 0, 1, open_below=True)
        self._alpha = None if alpha is None else require_number("alpha", alpha, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        horizon = spec.horizon
        levels = max(ceil(log(horizon)), 1)
        self._inverse = np.tile(np.eye(dim), (*seeds.shape, levels, 1, 1))
        self._parameter = np.zeros((*seeds.shape, levels, dim))
        self._radius = (
            sqrt(log(2 * horizon * arms / self._failure) / 2) if self._alpha is None else float(self._alpha)
        )
        self._narrow = 1 / sqrt(horizon)
        self._arm = np.zeros(seeds.shape, np.int64)
        self._level = np.full(seeds.shape, -1, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        regressions = (self._inverse, self._parameter)
        _observe(observation["pulled_context"], observation["last_reward"], self._level, *regressions)
        _choose(
            arms_last(observation["contexts"]), *regressions, self._radius, self._narrow, self._arm, self._level
        )  # fmt: skip
        return self._arm
