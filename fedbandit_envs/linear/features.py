"""Features of the linear problem; see :mod:`fedbandit_envs.features`."""

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.features import Features, Heard, highest, time_left
from fedbandit_envs.federation import Array, Arrays, Spaces
from fedbandit_envs.linear.ridge import factorise


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

    What was heard through noise may be no sum of z z^T; the nearest positive semidefinite matrix stands for it. A
    server's downloads with `echo` hold own data, which then counts twice.
    """

    shared = ("time_left",)

    def __init__(self, spaces: Spaces) -> None:
        """Reads sizes and bounds from the spaces; see :class:`~fedbandit_envs.features.Features`."""
        contexts = spaces.observation.spaces["contexts"]
        self.items, dim = contexts.shape or (0, 0)
        self._longest = highest(contexts)
        # Turns sums of [x; y][x; y]^T into those of [z; y][z; y]^T.
        unit = np.append(np.full(dim, 1.0 / self._longest), 1.0)
        self._units = np.outer(unit, unit)
        self._horizon = spaces.horizon
        self._heard = Heard(spaces, "statistic")
        told = ("pooled_estimate", "pooled_width") if self._heard.some else ()
        self.each = ("estimate", "width", "length", *told)

    def _begin(self, rows: tuple[int, int]) -> None:
        self._heard.reset(rows)
        self._likely = self._heard.total

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        own = observation["total_statistic"]
        contexts = np.ascontiguousarray(observation["contexts"]) / self._longest
        each[..., 0], each[..., 1], length = self._judged(contexts, own)
        each[..., 2] = 2.0 * np.minimum(length, 1.0) - 1.0
        if self._heard.some:
            if observation["inbox_mask"].any():
                self._heard.take_in(observation)
                self._likely = _nearest_sum(self._heard.total)
            each[..., 3], each[..., 4], _ = self._judged(contexts, own + self._likely)
        shared[..., 0] = time_left(observation, self._horizon)

    def _judged(self, contexts: Array, statistic: Array) -> tuple[Array, Array, Array]:
        """Returns estimates, widths and norms of arms, ``(replicas, agents, arms)``."""
        judged = np.empty((3, *contexts.shape[:3]))
        _judge(contexts, statistic * self._units, *judged)
        return np.clip(judged[0], -1.0, 1.0), np.minimum(judged[1], 1.0), judged[2]


def _nearest_sum(statistic: Array) -> Array:
    """Replaces sum x x^T in a noisy sum of [x; y][x; y]^T by the nearest positive semidefinite matrix."""
    likely = (statistic + statistic.swapaxes(-1, -2)) / 2.0
    values, vectors = np.linalg.eigh(likely[..., :-1, :-1])
    likely[..., :-1, :-1] = (vectors * np.maximum(values, 0.0)[..., np.newaxis, :]) @ vectors.swapaxes(-1, -2)
    return likely


@kernel
def _judge(contexts, statistic, estimate, width, length):
    """Judges arms by ridge regression, with V = I + sum z z^T = L L^T: <z, V^-1 b> = <L^-1 z, L^-1 b>.

    Args:
        contexts: z, ``(replicas, agents, arms, dim)``.
        statistic: Sum of [z; y][z; y]^T, ``(replicas, agents, dim + 1, dim + 1)``.
        estimate: Receives <z, V^-1 b>, ``(replicas, agents, arms)``.
        width: Receives ||L^-1 z||, likewise.
        length: Receives ||z||, likewise.
    """
    replicas, agents, arms, dim = contexts.shape
    matrix, factor = np.empty((dim, dim)), np.empty((dim, dim))
    moment, white = np.empty(dim), np.empty(dim)
    for r in range(replicas):
        for j in range(agents):
            for i in range(dim):
                for h in range(dim):
                    matrix[i, h] = statistic[r, j, i, h]
                matrix[i, i] += 1.0
            factorise(matrix, factor)
            for i in range(dim):
                value = statistic[r, j, i, dim]
                for h in range(i):
                    value -= factor[i, h] * moment[h]
                moment[i] = value / factor[i, i]
            for k in range(arms):
                mean, square, own = 0.0, 0.0, 0.0
                for i in range(dim):
                    z = contexts[r, j, k, i]
                    value = z
                    for h in range(i):
                        value -= factor[i, h] * white[h]
                    white[i] = value / factor[i, i]
                    mean += white[i] * moment[i]
                    square += white[i] * white[i]
                    own += z * z
                estimate[r, j, k] = mean
                width[r, j, k] = np.sqrt(square)
                length[r, j, k] = np.sqrt(own)
