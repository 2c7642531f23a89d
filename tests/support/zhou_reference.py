"""A twin of the program that Zhou and Chowdhury released (ICLR 2024), in plain numpy and without this package.

Arrays begin with the axes of runs and agents. A node of the tree, the pool of all live nodes and an agent's own sum are
``(..., dim, dim + 1)``: the Gram matrix, and the moment beside it.
"""

from math import floor, log, log2, sqrt

import numpy as np


def noise_and_ridge(noise, epsilon, delta, horizon, gap, agents, dim, alpha=0.01):
    """The "noise" of a node's entry and lambda, for ``noise`` None, "local", "amplified" or "vector_sum"."""
    if noise is None:
        return 0.0, sqrt(agents)
    levels = floor(log2(horizon // gap)) + 1
    sd = {
        "local": sqrt(levels * (log(1 / delta) + epsilon)) / epsilon,
        "amplified": sqrt(
            levels * log(1 / delta) * log(1 + levels / (horizon * delta)) * log(agents * levels / delta)
        ) / (epsilon * sqrt(agents)),
        "vector_sum": sqrt(levels * log(1 / delta)) * log(levels * dim**2 / delta) / epsilon,
    }[noise]  # fmt: skip
    summands = levels if noise == "vector_sum" else agents * levels
    return sd, sqrt(summands) * sd * (sqrt(levels + log(1 / alpha)) + sqrt(dim))


class Program:
    """Algorithm 1 with the released constants; ``ridge`` and ``scale`` replace lambda and the radius' factor.

    Nodes are exact: with noise the pool is to be set to what has arrived.
    """

    def __init__(
        self, noise, runs, agents, dim, horizon, gap=25, epsilon=0.2, delta=0.1, ridge=None, scale=1.0
    ):
        self.gap, self.scale, self.agents, self.dim = gap, scale, agents, dim
        _, released = noise_and_ridge(noise, epsilon, delta, horizon, gap, agents, dim)
        self.ridge = released if ridge is None else ridge
        self.own = np.zeros((runs, agents, dim, dim + 1))
        self.pool, self.nodes, self.rows = np.zeros((runs, dim, dim + 1)), {}, []

    def bounds(self, t, contexts):
        """What the arms of round t = 1, 2, ... are judged by, given contexts ``(runs, agents, arms, dim)``."""
        grown = log(1 + t * self.agents / (self.dim * self.ridge))
        radius = sqrt(self.ridge) * sqrt(self.dim) + 0.5 * sqrt(self.dim * grown + log(1 / 0.01))
        total = self.own + self.pool[:, np.newaxis]
        inverse = np.linalg.inv(total[..., :-1] + self.ridge * np.eye(self.dim))
        estimate = inverse @ total[..., -1:]
        # The program takes roots of negative numbers, where noise makes V indefinite.
        square = np.maximum(((contexts @ inverse) * contexts).sum(axis=-1), 0)
        return (contexts @ estimate)[..., 0] + self.scale * radius * np.sqrt(square)

    def learn(self, t, x, y):
        """Adds the contexts ``(runs, agents, dim)`` and rewards ``(runs, agents)`` of round t."""
        both = np.concatenate([x, y[..., np.newaxis]], axis=-1)
        self.own += x[..., np.newaxis] * both[..., np.newaxis, :]
        self.rows.append(both)
        if t % self.gap == 0:
            self.own[:] = 0
            self.synchronise(t // self.gap)

    def synchronise(self, k):
        """Closes the k-th batch: its node replaces those that it covers, and the pool is the sum of the live ones."""
        level = (k & -k).bit_length() - 1
        both = np.stack(self.rows[-self.gap * 2**level :], axis=2)
        both = both.reshape(len(both), -1, self.dim + 1)
        self.nodes[level] = np.swapaxes(both[..., :-1], -1, -2) @ both
        self.nodes = {at: node for at, node in self.nodes.items() if k >> at & 1}
        self.pool = sum(self.nodes.values())
