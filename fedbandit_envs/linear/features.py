"""Features of the linear problem; see :mod:`fedbandit_envs.features`."""

import numpy as np

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.compiled import kernel
from fedbandit_envs.features import Heard, highest, time_left
from fedbandit_envs.linear.ridge import arms_last, factorise
from fedbandit_envs.linear.weighing import weighed
from fedbandit_envs.spaces import Features, Spaces


class LinearFeatures(Features):
    """What an agent knows of each arm that it is offered, by ridge regression.

    With z = x / L, L the largest norm a context can have: V = I + sum z z^T and b = sum y z over own data.

    | of each arm | meaning |
    |---|---|
    | `estimate` | <z, V^-1 b>, the estimated mean reward in units of L, the largest there is; clipped to [-1, 1] |
    | `width` | sqrt(z^T V^-1 z), how unsure it is: 0 to 1 |
    | `length` | 2 norm of z - 1 |
    | `pooled_estimate` | as `estimate`, over own and heard data; where agents hear of each other |
    | `pooled_width` | as `width`, likewise |

    | once | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |

    What was heard through noise counts for as many exact observations as it is worth
    (:func:`~fedbandit_envs.linear.weighing.weighed`), where a reward has the variance B^2 / 4, the largest that one in
    [0, B] can have. A server's downloads with `echo` hold own data, which then counts twice.
    """

    shared = ("time_left",)

    def __init__(self, spaces: Spaces) -> None:
        """Reads sizes and bounds from the spaces; see :class:`~fedbandit_envs.spaces.Features`."""
        contexts = spaces.observation.spaces["contexts"]
        self.items, dim = contexts.shape or (0, 0)
        self._longest = highest(contexts)
        # Turns sums of [x; y][x; y]^T into those of [z; y][z; y]^T.
        unit = np.append(np.full(dim, 1.0 / self._longest), 1.0)
        self._units = np.outer(unit, unit)
        self._horizon = spaces.horizon
        self._noise = variance_of("statistic")
        self._heard = Heard(spaces, dict.fromkeys(("statistic", self._noise), (dim + 1, dim + 1)))
        self._reward_variance = highest(spaces.observation["last_reward"]) ** 2 / 4.0
        told = ("pooled_estimate", "pooled_width") if self._heard.some else ()
        self.each = ("estimate", "width", "length", *told)

    def _begin(self, rows: tuple[int, int]) -> None:
        self._heard.reset(rows)
        self._worth = self._heard.totals["statistic"]

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        own = observation["total_statistic"] * self._units
        contexts = arms_last(observation["contexts"]) / self._longest
        each[..., 0], each[..., 1], length = self._judged(contexts, own)
        each[..., 2] = 2.0 * np.minimum(length, 1.0) - 1.0
        if self._heard.some:
            if observation["inbox_mask"].any():
                self._heard.take_in(observation)
                self._worth = self._weighed()
            each[..., 3], each[..., 4], _ = self._judged(contexts, own + self._worth)
        shared[..., 0] = time_left(observation, self._horizon)

    def _weighed(self) -> Array:
        """Returns the exact observations that what was heard is worth, in the units of z."""
        heard = self._heard.totals["statistic"] * self._units
        noise = np.diagonal(self._heard.totals[self._noise], axis1=-2, axis2=-1).max(axis=-1)
        # True sums are left as they are, which costs less; a liar's are none, without noise too.
        none = np.empty(noise.shape, np.bool_)
        _find_indefinite(heard, none)
        none |= noise > 0.0
        if none.any():
            variance = np.maximum(noise[none], 0.0) / self._longest**2
            heard[none] = weighed(heard[none], variance, self._reward_variance)
        return heard

    def _judged(self, contexts: Array, statistic: Array) -> tuple[Array, Array, Array]:
        """Returns estimates, widths and norms of arms, ``(replicas, agents, arms)``."""
        judged = np.empty((3, *contexts.shape[:2], contexts.shape[3]))
        _judge(contexts, statistic, *judged)
        return np.clip(judged[0], -1.0, 1.0), np.minimum(judged[1], 1.0), judged[2]


_SLACK = 1e-6
"""By how much a sum of z z^T may fall short of being one, beside the identity that is added to it: rounding."""


@kernel
def _find_indefinite(statistic, indefinite):
    """Finds matrices without their last row and column that are not positive semidefinite, up to the slack.

    Args:
        statistic: ``(replicas, agents, dim + 1, dim + 1)``; the lower triangles are read.
        indefinite: Receives which, bool ``(replicas, agents)``.
    """
    dim = statistic.shape[2] - 1
    matrix, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for r in range(statistic.shape[0]):
        for j in range(statistic.shape[1]):
            for i in range(dim):
                for h in range(dim):
                    matrix[i, h] = statistic[r, j, i, h]
                matrix[i, i] += _SLACK
            indefinite[r, j] = np.isnan(factorise(matrix, factor))


@kernel
def _judge(contexts, statistic, estimate, width, length):
    """Judges arms by ridge regression, with V = I + sum z z^T = L L^T: <z, V^-1 b> = <L^-1 z, L^-1 b>.

    Args:
        contexts: z, ``(replicas, agents, dim, arms)``.
        statistic: Sum of [z; y][z; y]^T, ``(replicas, agents, dim + 1, dim + 1)``.
        estimate: Receives <z, V^-1 b>, ``(replicas, agents, arms)``.
        width: Receives ||L^-1 z||, likewise.
        length: Receives ||z||, likewise.
    """
    replicas, agents, dim, arms = contexts.shape
    matrix, factor, moment = np.empty((dim, dim)), np.empty((dim, dim)), np.empty(dim)
    white = np.empty((dim, arms))
    for r in range(replicas):
        for j in range(agents):
            for i in range(dim):
                for h in range(dim):
                    matrix[i, h] = statistic[r, j, i, h]
                matrix[i, i] += 1.0
            factorise(matrix, factor)
            mean, square, own = estimate[r, j], width[r, j], length[r, j]
            for k in range(arms):
                mean[k] = 0.0
                square[k] = 0.0
                own[k] = 0.0
            for i in range(dim):
                scale = 1.0 / factor[i, i]
                value = statistic[r, j, i, dim]
                for h in range(i):
                    value -= factor[i, h] * moment[h]
                moment[i] = value * scale
                row = white[i]
                for k in range(arms):
                    z = contexts[r, j, i, k]
                    own[k] += z * z
                    row[k] = z
                for h in range(i):
                    weight, above = factor[i, h], white[h]
                    for k in range(arms):
                        row[k] -= weight * above[k]
                for k in range(arms):
                    row[k] *= scale
                    mean[k] += row[k] * moment[i]
                    square[k] += row[k] * row[k]
            for k in range(arms):
                square[k] = np.sqrt(square[k])
                own[k] = np.sqrt(own[k])
