"""Distributions of contexts for each arm, agent and round.

All contexts have norms of at most L. A distribution draws the contexts of one round at a time into arrays of the
environment; except for those of a pool (:mod:`fedbandit_envs.linear.contexts`), contexts of different rounds are
independent. Random numbers have 24 or 32 bits;
contexts are float64 and stored with the arms' axis last, for vector instructions.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_array, require_integer, require_number, require_valid
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel, kernel
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.linear.labelled import LabelledContexts
from fedbandit_envs.linear.ridge import expect, expected_rewards
from fedbandit_envs.linear.rounds import Contexts, Instances, fraction
from fedbandit_envs.linear.tables import QueryContexts, TableContexts
from fedbandit_envs.randomness.draws import fill_bits, fill_exponentials, fill_normals, padded, padded_size
from fedbandit_envs.randomness.streams import Purpose, stream


class FixedContexts(Contexts):
    """Contexts that are the same in every round, so that an arm is the same arm in all rounds: pools of K vectors.

    Attributes:
        matrix: The contexts if they are given, float64 ``(arms, dim)``, or ``(agents, arms, dim)`` where each agent has
            its own; None if they are drawn.
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
        if matrix is None:
            return
        self.matrix = require_array("contexts", matrix, {2: "(arms, dim)", 3: "(agents, arms, dim)"})
        lengths = np.linalg.norm(self.matrix, axis=-1)
        allowed = f"norms of at most context_bound = {bound:g}"
        require_valid("contexts", lengths, lengths <= bound * (1 + 1e-12), allowed)
        self.shape, self.longest = self.matrix.shape, float(lengths.max())

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


@allocating_kernel
def _offer(active, key, round_, parameter, pool, index, contexts, means):
    dim, arms = contexts.shape[2:]
    words = np.empty(padded(arms), np.uint32)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
            for k in range(arms):
                place = int(fraction(words[k]) * pool.shape[1])
                index[r, j, k] = place
                for i in range(dim):
                    contexts[r, j, i, k] = pool[r, place, i]
            expect(contexts[r, j], parameter[r], means[r, j])


class PoolContexts(Contexts):
    """In every round each agent is offered K vectors of one pool, drawn independently, so that some may be the same.

    The pool is that of Li and Wang (2022), one for all agents of a replica. Its vectors, before they are scaled to norm
    L: the first d - 1 are e_i + e_d, the next one is e_d, and all others are (u, 1) with u uniform on the unit sphere
    in d - 1 dimensions.
    """

    fill = staticmethod(_offer)

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
        self.pool_size = require_integer("contexts size", size, 1)

    def begin(self, instances: Instances) -> None:
        """Draws the pools."""
        super().begin(instances)
        self._pool = np.stack([self._drawn(seed, instances.contexts.shape[2]) for seed in instances.seeds])
        self.index = np.zeros(instances.means.shape, np.int64)
        self.data = self._pool, self.index

    def _drawn(self, seed: int, dim: int) -> Array:
        """Returns a pool, ``(size, dim)``."""
        pool = np.ones((self.pool_size, dim))
        directions = stream(seed, Purpose.POOL).standard_normal((self.pool_size, dim - 1))
        pool[:, :-1] = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        some = min(dim, self.pool_size)
        pool[:some, :-1] = np.eye(dim)[:some, :-1]
        return self._bound * pool / np.linalg.norm(pool, axis=1, keepdims=True)


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


# Constants of the FedUCB paper: suboptimal arms have means in [LOW, HIGH], the best arm has a mean in an interval of
# length WIDTH that begins at HIGH plus the gap.
LOW, HIGH, WIDTH = 0.5, 0.6, 0.1


@kernel
def _fill_band(
    active, of_normals, round_, parameter, of_exponentials, of_words, mirror, bound, best_low, normals, exponentials,
    words, square, along, contexts, means,
):  # fmt: skip
    dim, arms = contexts.shape[2:]
    for r in range(contexts.shape[0]):
        v = mirror[r]
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            now = round_[r, j]
            fill_normals(of_normals[r, j, 0], of_normals[r, j, 1], now, normals)
            fill_exponentials(of_exponentials[r, j, 0], of_exponentials[r, j, 1], now, exponentials)
            fill_bits(of_words[r, j, 0], of_words[r, j, 1], now, words)
            mean, x = means[r, j], contexts[r, j]
            for k in range(arms):
                mean[k] = LOW + WIDTH * fraction(words[k])
            best = np.int64(fraction(words[arms]) * arms)
            mean[best] += best_low - LOW
            _add_up(normals, v, square, along)
            for k in range(arms):
                # To be uniform in a ball, the vector is divided by its norm with two more normal numbers; the sum of
                # their squares is twice an exponential number.
                length = square[k] + 2.0 * np.float64(exponentials[k])
                rest = bound * bound - mean[k] * mean[k]
                shrink = np.sqrt((0.0 if rest < 0.0 else rest) / length)
                turn = 2.0 * (shrink * along[k] + mean[k] * v[0])
                square[k], along[k] = shrink, turn
                x[0, k] = mean[k] - turn * v[0]
            for i in range(dim - 1):
                g, row, w = normals[i * arms : (i + 1) * arms], x[i + 1], v[i + 1]
                for k in range(arms):
                    row[k] = square[k] * np.float64(g[k]) - along[k] * w


@inner_kernel
def _add_up(normals, mirror, square, along):
    """Computes, for each arm, the sum of the squares of its normal numbers and their inner product with the mirror.

    The first entry of the mirror (the vector of the reflection) is left out, since an arm has dim - 1 numbers.
    """
    arms, some = square.shape[0], mirror.shape[0] - 1
    for k in range(arms):
        square[k] = along[k] = 0.0
    i = 0
    # Four numbers are added at a time, so that the sums are read from and written to memory a quarter as often.
    while i + 4 <= some:
        w0, w1, w2, w3 = mirror[i + 1], mirror[i + 2], mirror[i + 3], mirror[i + 4]
        g = normals[i * arms : (i + 4) * arms]
        for k in range(arms):
            g0, g1 = np.float64(g[k]), np.float64(g[arms + k])
            g2, g3 = np.float64(g[2 * arms + k]), np.float64(g[3 * arms + k])
            square[k] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
            along[k] += (g0 * w0 + g1 * w1) + (g2 * w2 + g3 * w3)
        i += 4
    while i < some:
        w0 = mirror[i + 1]
        g = normals[i * arms : (i + 1) * arms]
        for k in range(arms):
            g0 = np.float64(g[k])
            square[k] += g0 * g0
            along[k] += g0 * w0
        i += 1


class _Band(Contexts):
    """The distribution of the FedUCB paper (section 4.4), with a gap between the best arm and all others.

    All arms but one have <x, theta*> uniform on [0.5, 0.6], and one, at a place drawn anew each round, on
    [0.6 + gap, 0.7 + gap]. Given a = <x, theta*>, the part of x orthogonal to theta* is uniform in a ball of radius
    sqrt(L^2 - a^2).
    """

    fill = staticmethod(_fill_band)

    def __init__(self, bound: float, gap: float) -> None:
        """Sets the parameters.

        Args:
            bound: L, at least 0.7 + gap.
            gap: Smallest difference between the best mean and any other, >= 0.

        Raises:
            TypeError: ``gap`` is no number.
            ValueError: The best means would not fit into the bound.
        """
        require_number("gap", gap, 0, np.inf)
        if HIGH + gap + WIDTH > bound * (1 + 1e-12):
            raise ValueError(
                f"gap is {gap!r}; at most {bound - HIGH - WIDTH:.6g} is required, so that means up to "
                f"{HIGH + WIDTH:g} + gap keep context_bound = {bound:g}"
            )
        self._bound = bound
        self._best = HIGH + gap

    def begin(self, instances: Instances) -> None:
        """Starts an episode: prepares the draws and the reflection that maps e_1 to theta*."""
        self._draws, exponentials, words = (instances.randomness.draws(Purpose.CONTEXT, k) for k in range(3))
        self._parameter = instances.parameter
        dim, arms = instances.contexts.shape[2:]
        # The last random word determines which arm is the best one.
        numbers = (arms * (dim - 1), np.float32), (arms, np.float32), (arms + 1, np.uint32)
        scratch = (*(np.empty(padded_size(size), kind) for size, kind in numbers), *np.empty((2, arms)))
        mirror = instances.parameter.copy()
        mirror[:, 0] -= 1.0
        length = np.linalg.norm(mirror, axis=1, keepdims=True)
        mirror = np.divide(mirror, length, out=np.zeros_like(mirror), where=length > 0)
        self.data = exponentials.key, words.key, mirror, self._bound, self._best, *scratch


@kernel
def _fill_cube(active, key, round_, parameter, low, width, words, contexts, means):
    dim, arms = contexts.shape[2:]
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
            for i in range(dim):
                some, x = words[i * arms : (i + 1) * arms], contexts[r, j, i]
                for k in range(arms):
                    x[k] = low + width * fraction(some[k])
            expect(contexts[r, j], parameter[r], means[r, j])


class _Cube(Contexts):
    """Contexts that are independent and uniform in a cube.

    The cube is [0, L / sqrt(d)]^d or, with signs, [-L / sqrt(d), L / sqrt(d)]^d (He et al. 2022).
    """

    fill = staticmethod(_fill_cube)

    def __init__(self, bound: float, signed: bool) -> None:
        """Takes the bound L, and whether entries may be negative."""
        self._bound, self._signed = bound, signed

    def begin(self, instances: Instances) -> None:
        """Starts an episode: prepares the cube's side and the random words of a row."""
        super().begin(instances)
        side = self._bound / np.sqrt(instances.contexts.shape[2])
        words = np.empty(padded_size(instances.contexts[0, 0].size), np.uint32)
        self.data = (-side, 2.0 * side, words) if self._signed else (0.0, side, words)


@allocating_kernel
def _fill_round(active, key, round_, parameter, radius, first, used, drawn, contexts, means):
    """Fills contexts from the arm ``first`` on with directions that are uniform in ``drawn`` dimensions.

    A direction, scaled to the length ``radius``, is cut off after its first ``used`` coordinates.
    """
    some = contexts.shape[3] - first
    normals = np.empty(padded(max(some * drawn, 1)), np.float32)
    scale = np.empty(some)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_normals(key[r, j, 0], key[r, j, 1], round_[r, j], normals)
            scale[:] = 0.0
            for i in range(drawn):
                g = normals[i * some : (i + 1) * some]
                for k in range(some):
                    scale[k] += np.float64(g[k]) * np.float64(g[k])
            for k in range(some):
                scale[k] = radius / np.sqrt(scale[k])
            for i in range(used):
                g, x = normals[i * some : (i + 1) * some], contexts[r, j, i]
                for k in range(some):
                    x[first + k] = scale[k] * np.float64(g[k])
            expect(contexts[r, j], parameter[r], means[r, j])


class _Ball(Contexts):
    """Contexts that are independent and uniform in a ball of radius L."""

    fill = staticmethod(_fill_round)

    def __init__(self, bound: float) -> None:
        """Takes the bound L."""
        self._bound = bound

    def begin(self, instances: Instances) -> None:
        """Starts an episode: sets the lengths and dimensions of directions."""
        super().begin(instances)
        dim = instances.contexts.shape[2]
        # The first d coordinates of a point on the sphere in d + 2 dimensions are uniform in the ball.
        self.data = self._bound, 0, dim, dim + 2


class _SphereAndBias(_Ball):
    """The distribution of Zhou and Chowdhury (ICLR 2024): points of a sphere with a bias, and d arms that never change.

    Before they are scaled to norm L, arm i < d - 1 has the features e_i + e_d, arm d - 1 has e_d, and every other arm
    has (u, 1), with u uniform on the unit sphere in d - 1 dimensions and drawn anew in every round.
    """

    def begin(self, instances: Instances) -> None:
        """Starts an episode: writes the arms that never change."""
        super().begin(instances)
        dim, radius = instances.contexts.shape[2], self._bound * np.sqrt(0.5)
        basis = np.eye(dim)
        basis[-1] = 1.0
        instances.contexts[..., :dim] = self._bound * basis / np.linalg.norm(basis, axis=0)
        instances.contexts[..., -1, dim:] = radius
        self.data = radius, dim, dim - 1, dim - 1


def make_distribution(contexts: Any, bound: float, gap: float) -> Contexts:
    """Returns the distribution of contexts with a name, or fixed contexts.

    Args:
        contexts: A name; ``{"name": "queries", "path": ..., "features": ...}`` for :class:`QueryContexts`; ``{"name":
            "table", "table": ..., "features": ...}`` for :class:`~fedbandit_envs.linear.tables.TableContexts`;
            ``{"name": "classification", "data": ...}`` for :class:`~fedbandit_envs.linear.labelled.LabelledContexts`;
            ``{"name": "pool", "size": ...}`` for :class:`PoolContexts`; or fixed contexts ``(arms, dim)`` or
            ``(agents, arms, dim)``.
        bound: Largest norm of a context, L.
        gap: For the band: the smallest difference between the best mean and any other.

    Raises:
        OSError: A file cannot be read.
        TypeError: An argument has the wrong type.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if not isinstance(contexts, str | Mapping):
        return FixedContexts(contexts, bound)
    laws: dict[str, Callable[..., Contexts]] = {
        "band": partial(_Band, bound, gap),
        "unit_ball": partial(_Ball, bound),
        "hypercube": partial(_Cube, bound, False),
        "signed_hypercube": partial(_Cube, bound, True),
        "sphere_and_bias": partial(_SphereAndBias, bound),
        "separated": partial(FixedContexts, None, bound),
        "queries": partial(QueryContexts, bound),
        "table": partial(TableContexts, bound),
        "pool": partial(PoolContexts, bound),
        "classification": partial(LabelledContexts, bound),
    }
    return make("contexts", contexts, laws, Contexts)
