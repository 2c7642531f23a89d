"""Statistics turned into as many exact observations as they are worth: what the pool ``precision`` does."""

import numpy as np

from fedbandit_envs.announcement import COVARIANCE, variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.heard import GramsApart
from fedbandit_envs.baselines.pooled import Added
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.weighing import weighed
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.wrappers.privacy.announcement import independent


@kernel
def weigh_counts(told, own_total, own_good, before_total, before_good, total, good):
    """Adds what messages are worth, sender by sender, value by value.

    Args:
        told: w, y, v_w, v_y and v_wy, ``(5, replicas, agents, senders, values)``; a w of 0 where nothing has arrived.
        own_total: Own counts, of all outcomes, ``(replicas, agents, values)``.
        own_good: Of good ones.
        before_total: What was heard before, same shape.
        before_good: Likewise.
        total: Is added to, same shape.
        good: Likewise.
    """
    for r in range(told.shape[1]):
        for j in range(told.shape[2]):
            for i in range(told.shape[4]):
                known = own_total[r, j, i] + before_total[r, j, i]
                quality = (own_good[r, j, i] + before_good[r, j, i] + 1.0) / (known + 2.0)
                quality = min(max(quality, 0.02), 0.98)
                spread = quality * (1.0 - quality)
                for s in range(told.shape[3]):
                    w, y = told[0, r, j, s, i], told[1, r, j, s, i]
                    of_total, of_good, of_both = told[2, r, j, s, i], told[3, r, j, s, i], told[4, r, j, s, i]
                    # Written so that a NaN is left out.
                    if not (w > 4.0 * np.sqrt(max(of_total, 0.0)) and w < np.inf):
                        continue
                    ratio = min(max(y / w, 0.0), 1.0)
                    noise = max(of_good - 2.0 * ratio * of_both + ratio * ratio * of_total, 0.0)
                    worth = w * (spread * w / (noise + spread * w))
                    total[r, j, i] += worth
                    good[r, j, i] += worth * ratio


class WeighedCounts:
    """What was heard of counts: each message by itself, or all in one where noises of messages hang together."""

    def __init__(self, rows: tuple[int, ...], spaces: Spaces, names: tuple[str, str]) -> None:
        """Prepares for an episode; ``names`` are those of both counts in releases."""
        values = (spaces.observation[f"inbox_{names[0]}"].shape or (0,))[-1]
        self._names = (*names, *(variance_of(name) for name in names), COVARIANCE)
        self.total, self.good = np.zeros((2, *rows, values))
        # All that was told, added up, where that is what has known noise.
        self._sums = None if independent(spaces.release) else np.zeros((5, *rows, 1, values))

    def add(self, observation: Arrays, own: tuple[Array, Array], arrived: Array, weight: float = 1.0) -> None:
        """Takes in an inbox; see :meth:`~fedbandit_envs.baselines.heard.PooledCounts.add`."""
        told = np.zeros((5, *observation[f"inbox_{self._names[0]}"].shape))
        for numbers, name in zip(told, self._names, strict=True):
            if f"inbox_{name}" in observation:
                np.copyto(numbers, observation[f"inbox_{name}"], where=arrived)
        if self._sums is not None:
            self._sums += told.sum(axis=3, keepdims=True)
            told = self._sums
        worth = np.zeros((2, *self.total.shape))
        weigh_counts(told, *own, self.total, self.good, *worth)
        if self._sums is not None:
            # In place of what the sums were worth before, where there is news.
            news = arrived.any(axis=(2, 3))
            self.total[news] = self.good[news] = 0.0
            worth[:, ~news] = 0.0
        self.total += weight * worth[0]
        self.good += weight * worth[1]


class WeighedGrams:
    """What was heard of Gram matrices, summed and then weighed."""

    def __init__(self, rows: tuple[int, ...], spaces: Spaces, reward_variance: float) -> None:
        """Prepares for an episode in which ``inbox_statistic`` is heard."""
        self._sum = GramsApart(lambda rows, senders, numbers: Added(rows, numbers), rows, spaces)
        self._reward_variance = reward_variance
        self.statistic = np.zeros_like(self._sum.statistic)
        # As the observations that they stand for have none.
        self.variance = np.zeros(rows)

    def add(self, observation: Arrays) -> None:
        """Takes in an inbox; see :meth:`~fedbandit_envs.baselines.heard.PooledGrams.add`."""
        self._sum.add(observation)
        news = observation["inbox_mask"].any(axis=-1)
        self.statistic[news] = weighed(
            self._sum.statistic[news], self._sum.variance[news], self._reward_variance
        )
