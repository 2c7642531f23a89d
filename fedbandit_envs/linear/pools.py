"""Contexts from a pool, a finite set of vectors that stays the same throughout an episode.

Agents see the number of each vector that they are offered and, for each vector, the number of its pulls and the sum of
their rewards. With P vectors these two arrays of length P are all of an agent's data, however many rounds it plays.
"""

from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_integer, require_valid
from fedbandit_envs.basics.compiled import allocating_kernel, kernel
from fedbandit_envs.linear.expectation import expect, expected_rewards
from fedbandit_envs.linear.instances import Instances
from fedbandit_envs.randomness.draws import fill_bits, padded
from fedbandit_envs.randomness.streams import Purpose, stream


class FixedContexts:
    """Contexts that are the same in every round, so that an arm is the same arm in all rounds: pools of K vectors.

    Attributes:
        matrix: The contexts if they are given, float64 ``(arms, dim)``, or ``(agents, arms, dim)`` where each agent has
            its own; None if they are drawn.
        shape: The shape of the matrix; () if contexts are drawn.
        index: The number of each arm's vector, its place; ``(replicas, agents, arms)``.
    """

    def __init__(self, matrix: Any, bound: float) -> None:
        """Checks the contexts.

        Args:
            matrix: The contexts, an array or nested lists, ``(arms, dim)`` or ``(agents, arms, dim)``. None draws
                those of Huang et al. (2021) for each agent: one arm, never the last one, has a first entry uniform on
                [0.7, 0.8] and others uniform on [0, 0.6/(dim - 1)]; all other arms have a first entry uniform on [0.5,
                0.6] and others uniform on [0, 0.8/(dim - 1)]. They are multiplied by L.
            bound: L, the largest allowed norm.

        Raises:
            ValueError: The shape is wrong, an entry is not finite, or a context is longer than L.
        """
        self._bound = bound
        self.matrix: Array | None = None
        self.shape: tuple[int, ...] = ()
        if matrix is None:
            return
        self.matrix = np.array(matrix, np.float64)
        if self.matrix.ndim not in (2, 3) or 0 in self.matrix.shape:
            raise ValueError(
                f"contexts has shape {self.matrix.shape}; (arms, dim) or (agents, arms, dim) is required"
            )
        require_valid("contexts", self.matrix, np.isfinite(self.matrix), "finite numbers")
        lengths = np.linalg.norm(self.matrix, axis=-1)
        if lengths.max() > bound * (1 + 1e-12):
            where = [int(i) for i in np.argwhere(lengths == lengths.max())[0]]
            raise ValueError(
                f"contexts{where} has norm {lengths.max():.6g}; at most context_bound = {bound:g} is required"
            )
        self.shape = self.matrix.shape

    def size(self, arms: int) -> int:
        """Returns the number of vectors in a pool, which is the number of arms."""
        return arms

    def means(self, parameter: Array | None) -> Array | None:
        """Returns the expected rewards <x, theta*>, ``(..., arms)``; None where contexts or theta* are drawn."""
        return None if self.matrix is None or parameter is None else (self.matrix * parameter).sum(axis=-1)

    def begin(self, instances: Instances) -> None:
        """Writes the contexts and their means for all agents."""
        _, parameter, contexts, means, seeds = instances
        matrix = self.matrix
        if matrix is None:
            matrix = self._bound * np.stack([_separated(seed, *contexts.shape[1:]) for seed in seeds])
        contexts[...] = matrix.swapaxes(-1, -2)
        own = np.broadcast_to(parameter[:, np.newaxis], (*means.shape[:2], parameter.shape[1]))
        expected_rewards(contexts.swapaxes(2, 3), own, means)
        self.index = np.zeros(means.shape, np.int64) + np.arange(means.shape[2])

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Does nothing: contexts are fixed."""


def _separated(seed: int, agents: int, dim: int, arms: int) -> Array:
    """Returns contexts of Huang et al., ``(agents, arms, dim)``; an agent's do not depend on the number of agents."""
    drawn = np.empty((agents, arms, dim))
    for agent, x in enumerate(drawn):
        draws = stream(seed, Purpose.POOL, agent)
        best = draws.integers(max(arms - 1, 1))
        x[:] = draws.random((arms, dim)) * (0.8 / (dim - 1))
        x[best] *= 0.6 / 0.8
        x[:, 0] = 0.5 + 0.1 * draws.random(arms)
        x[best, 0] += 0.2
    return drawn


class PoolContexts:
    """In every round each agent is offered K vectors of one pool, drawn independently, so that some may be the same.

    The pool is that of Li and Wang (2022), one for all agents of a replica. Its vectors, before they are scaled to norm
    L: the first d - 1 are e_i + e_d, the next one is e_d, and all others are (u, 1) with u uniform on the unit sphere
    in d - 1 dimensions.

    Attributes:
        index: The number of each vector offered now, ``(replicas, agents, arms)``.
    """

    def __init__(self, bound: float, size: int = 1000) -> None:
        """Sets the law.

        Args:
            bound: L.
            size: P, number of vectors in the pool.

        Raises:
            TypeError: ``size`` is no integer.
            ValueError: ``size`` is below 1.
        """
        self._bound = bound
        self._size = require_integer("contexts size", size, 1)

    def size(self, arms: int) -> int:
        """Returns the number of vectors in the pool."""
        return self._size

    def begin(self, instances: Instances) -> None:
        """Draws the pools."""
        self._draws = instances.randomness.draws(Purpose.CONTEXT)
        self._parameter = instances.parameter
        self._pool = np.stack([self._drawn(seed, instances.contexts.shape[2]) for seed in instances.seeds])
        self.index = np.zeros(instances.means.shape, np.int64)

    def _drawn(self, seed: int, dim: int) -> Array:
        """Returns a pool, ``(size, dim)``."""
        pool = np.ones((self._size, dim))
        directions = stream(seed, Purpose.POOL).standard_normal((self._size, dim - 1))
        pool[:, :-1] = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        some = min(dim, self._size)
        pool[:some, :-1] = np.eye(dim)[:some, :-1]
        return self._bound * pool / np.linalg.norm(pool, axis=1, keepdims=True)

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Draws which vectors agents are offered in the next round.

        Args:
            active: Whether each agent acts, bool ``(replicas, agents)``; rows of others stay as they are.
            contexts: Output: contexts, ``(replicas, agents, dim, arms)``.
            means: Output: <x, theta*>, ``(replicas, agents, arms)``.
        """
        _offer(
            active, self._draws.round, self._draws.key, self._parameter, self._pool, contexts, means, self.index,
        )  # fmt: skip


@allocating_kernel
def _offer(active, round_, key, parameter, pool, contexts, means, index):
    dim, arms = contexts.shape[2:]
    words = np.empty(padded(arms), np.uint32)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
            for k in range(arms):
                place = int((np.float64(words[k]) + 0.5) * 2.0**-32 * pool.shape[1])
                index[r, j, k] = place
                for i in range(dim):
                    contexts[r, j, i, k] = pool[r, place, i]
            expect(contexts[r, j], parameter[r], means[r, j])


@kernel
def count(active, arm, reward, index, pulls, rewards):
    """Adds the last round to the numbers of pulls and sums of rewards of the pool's vectors.

    Args:
        active: Whether each agent has acted, bool ``(replicas, agents)``.
        arm: The arms pulled, ``(replicas, agents)``.
        reward: Their rewards, ``(replicas, agents)``.
        index: The number of each arm's vector, ``(replicas, agents, arms)``.
        pulls: Number of pulls of each vector, ``(replicas, agents, size)``.
        rewards: Sum of their rewards, ``(replicas, agents, size)``.
    """
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            if active[r, j]:
                place = index[r, j, arm[r, j]]
                pulls[r, j, place] += 1
                rewards[r, j, place] += reward[r, j]
