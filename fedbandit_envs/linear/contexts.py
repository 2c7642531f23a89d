"""Distributions of contexts for each arm, agent and round.

All contexts have norms of at most L. A distribution draws the contexts of one round at a time into arrays of the
environment; except for those of a pool (:mod:`fedbandit_envs.linear.pools`), contexts of different rounds are
independent. Random numbers have 24 or 32 bits;
contexts are float64 and stored with the arms' axis last, for vector instructions.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel, kernel
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.linear.expectation import expect
from fedbandit_envs.linear.instances import Instances
from fedbandit_envs.linear.labelled import LabelledContexts
from fedbandit_envs.linear.pools import FixedContexts, PoolContexts
from fedbandit_envs.linear.queries import FeatureSet, read_queries
from fedbandit_envs.linear.tables import TableContexts
from fedbandit_envs.randomness.draws import fill_bits, fill_exponentials, fill_normals, padded, padded_size
from fedbandit_envs.randomness.streams import Purpose

DistributionName = Literal[
    "band", "unit_ball", "hypercube", "signed_hypercube", "sphere_and_bias", "separated", "pool"
]

# Constants of the FedUCB paper: suboptimal arms have means in [LOW, HIGH], the best arm has a mean in an interval of
# length WIDTH that begins at HIGH plus the gap.
LOW, HIGH, WIDTH = 0.5, 0.6, 0.1


class _Band:
    """The distribution of the FedUCB paper (section 4.4), with a gap between the best arm and all others.

    All arms but one have <x, theta*> uniform on [0.5, 0.6], and one, at a place drawn anew each round, on
    [0.6 + gap, 0.7 + gap]. Given a = <x, theta*>, the part of x orthogonal to theta* is uniform in a ball of radius
    sqrt(L^2 - a^2).
    """

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
        self._normals, self._exponentials, self._words = (
            instances.randomness.draws(Purpose.CONTEXT, k) for k in range(3)
        )
        dim, arms = instances.contexts.shape[2:]
        # The last random word determines which arm is the best one.
        numbers = (arms * (dim - 1), np.float32), (arms, np.float32), (arms + 1, np.uint32)
        self._scratch = (*(np.empty(padded_size(size), kind) for size, kind in numbers), *np.empty((2, arms)))
        self._mirror = instances.parameter.copy()
        self._mirror[:, 0] -= 1.0
        length = np.linalg.norm(self._mirror, axis=1, keepdims=True)
        self._mirror = np.divide(self._mirror, length, out=np.zeros_like(self._mirror), where=length > 0)

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Draws the next round of the active agents.

        Args:
            active: Whether each agent acts, bool ``(replicas, agents)``; rows of others stay as they are.
            contexts: Output: contexts, ``(replicas, agents, dim, arms)``.
            means: Output: expected rewards, ``(replicas, agents, arms)``.
        """
        _fill_band(
            active, self._normals.round, self._normals.key, self._exponentials.key, self._words.key,
            self._mirror, self._bound, self._best, *self._scratch, contexts, means,
        )  # fmt: skip


@kernel
def _fill_band(
    active, round_, of_normals, of_exponentials, of_words, mirror, bound, best_low, normals, exponentials, words,
    square, along, contexts, means,
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
                mean[k] = LOW + WIDTH * _fraction(words[k])
            best = np.int64(_fraction(words[arms]) * arms)
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


@kernel(inline="always")
def _fraction(word):
    """Returns a float64 number uniform on (0, 1), with 32 random bits, from one random 32-bit word."""
    return (np.float64(word) + 0.5) * 2.0**-32


class _Independent:
    """Contexts that are independent and uniform in a ball or a cube.

    The ball has radius L; the cube is [0, L / sqrt(d)]^d or, with signs, [-L / sqrt(d), L / sqrt(d)]^d (He et al.
    2022).
    """

    def __init__(self, name: str, bound: float) -> None:
        """Takes the name of the shape (``unit_ball``, ``hypercube`` or ``signed_hypercube``) and the bound L."""
        self._name = name
        self._bound = bound

    def begin(self, instances: Instances) -> None:
        """Starts an episode: prepares the draws."""
        self._draws = instances.randomness.draws(Purpose.CONTEXT)
        self._parameter = instances.parameter

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Draws the contexts of the next round and their means; the arguments are those of :meth:`_Band.draw`."""
        episode = (active, self._draws.round, self._draws.key, self._parameter)
        if self._name == "unit_ball":
            _fill_ball(*episode, self._bound, contexts, means)
            return
        side = self._bound / np.sqrt(contexts.shape[2])
        low, width = (-side, 2.0 * side) if self._name == "signed_hypercube" else (0.0, side)
        words = np.empty(padded_size(contexts[0, 0].size), np.uint32)
        _fill_cube(*episode, low, width, words, contexts, means)


@allocating_kernel
def _fill_ball(active, round_, key, parameter, bound, contexts, means):
    dim, arms = contexts.shape[2:]
    # The first d coordinates of a point on the sphere in d + 2 dimensions are uniform in the ball.
    normals = np.empty(padded(arms * (dim + 2)), np.float32)
    scale = np.empty(arms)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_normals(key[r, j, 0], key[r, j, 1], round_[r, j], normals)
            _shrink(normals, dim + 2, bound, scale)
            for i in range(dim):
                g, x = normals[i * arms : (i + 1) * arms], contexts[r, j, i]
                for k in range(arms):
                    x[k] = scale[k] * np.float64(g[k])
            expect(contexts[r, j], parameter[r], means[r, j])


@inner_kernel
def _shrink(normals, numbers, length, scale):
    """Writes for each arm the factor that gives the vector of its first normal numbers a length.

    Args:
        normals: Normal numbers, those of one coordinate of all arms after the other.
        numbers: How many coordinates count.
        length: The length.
        scale: Output: the factors, ``(arms,)``.
    """
    arms = scale.shape[0]
    scale[:] = 0.0
    for i in range(numbers):
        g = normals[i * arms : (i + 1) * arms]
        for k in range(arms):
            scale[k] += np.float64(g[k]) * np.float64(g[k])
    for k in range(arms):
        scale[k] = length / np.sqrt(scale[k])


@kernel
def _fill_cube(active, round_, key, parameter, low, width, words, contexts, means):
    dim, arms = contexts.shape[2:]
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
            for i in range(dim):
                some, x = words[i * arms : (i + 1) * arms], contexts[r, j, i]
                for k in range(arms):
                    x[k] = low + width * _fraction(some[k])
            expect(contexts[r, j], parameter[r], means[r, j])


class _SphereAndBias:
    """The distribution of Zhou and Chowdhury (ICLR 2024): points of a sphere with a bias, and d arms that never change.

    Before they are scaled to norm L, arm i < d - 1 has the features e_i + e_d, arm d - 1 has e_d, and every other arm
    has (u, 1), with u uniform on the unit sphere in d - 1 dimensions and drawn anew in every round.
    """

    def __init__(self, bound: float) -> None:
        """Takes the bound L."""
        self._bound = bound

    def begin(self, instances: Instances) -> None:
        """Starts an episode: writes the arms that never change."""
        dim = instances.contexts.shape[2]
        self._draws = instances.randomness.draws(Purpose.CONTEXT)
        self._parameter = instances.parameter
        basis = np.eye(dim)
        basis[-1] = 1.0
        instances.contexts[..., :dim] = self._bound * basis / np.linalg.norm(basis, axis=0)
        instances.contexts[..., -1, dim:] = self._bound * np.sqrt(0.5)

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Draws the contexts of the next round and their means; the arguments are those of :meth:`_Band.draw`."""
        _fill_sphere(
            active, self._draws.round, self._draws.key, self._parameter, self._bound * np.sqrt(0.5), contexts,
            means,
        )  # fmt: skip


@allocating_kernel
def _fill_sphere(active, round_, key, parameter, radius, contexts, means):
    dim, arms = contexts.shape[2:]
    some = arms - dim
    normals = np.empty(padded(max(some * (dim - 1), 1)), np.float32)
    scale = np.empty(some)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j]:
                continue
            fill_normals(key[r, j, 0], key[r, j, 1], round_[r, j], normals)
            _shrink(normals, dim - 1, radius, scale)
            for i in range(dim - 1):
                g, x = normals[i * some : (i + 1) * some], contexts[r, j, i]
                for k in range(some):
                    x[dim + k] = scale[k] * np.float64(g[k])
            expect(contexts[r, j], parameter[r], means[r, j])


class QueryContexts:
    """Contexts of documents: in every round each agent is given one of its own queries, and K of its documents as arms.

    Queries with fewer than K documents are left out. Of the Q others, in the order of the file, agent j of M has those
    from floor(j Q / M) to floor((j + 1) Q / M) - 1. A round's query is drawn uniformly, and its arms are K consecutive
    documents, from one drawn uniformly on; the first document follows the last one. Contexts have norm 1 and are
    multiplied by L.

    Attributes:
        parameter: theta*, ``(dim,)``.
        shape: Shape of a context, ``(dim,)``.
    """

    def __init__(self, bound: float, path: str, features: FeatureSet = "all") -> None:
        """Reads a file.

        Args:
            bound: L.
            path: Path of the file.
            features: See :func:`~fedbandit_envs.linear.queries.read_queries`.

        Raises:
            OSError: The file cannot be read.
            ValueError: ``features`` is unknown, or the file is malformed.
        """
        self._queries = read_queries(path, features)
        self.parameter = self._queries.parameter
        self.shape = self.parameter.shape
        self._bound = bound
        self._path = path

    def check(self, agents: int, arms: int) -> None:
        """Checks that each agent has a query with enough documents.

        Args:
            agents: M, number of agents.
            arms: K, number of arms.

        Raises:
            ValueError: There are fewer such queries than agents.
        """
        many = int((np.diff(self._queries.first) >= arms).sum())
        if many < agents:
            raise ValueError(
                f"num_arms is {arms} and num_agents {agents}; {self._path} has {many} queries with as many documents "
                "as arms, and at least one for each agent is required"
            )

    def begin(self, instances: Instances) -> None:
        """Starts an episode: computes expected rewards."""
        sizes = np.diff(self._queries.first)
        enough = sizes >= instances.contexts.shape[3]
        self._ranges = np.stack([self._queries.first[:-1], sizes], axis=1)[enough]
        self._draws = instances.randomness.draws(Purpose.CONTEXT)
        self._parameter = instances.parameter

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Draws the queries of the next round and their documents; the arguments are those of :meth:`_Band.draw`."""
        _fill_queries(
            active, self._draws.round, self._draws.key, self._parameter, self._bound, self._queries.contexts,
            self._ranges, contexts, means,
        )  # fmt: skip


@allocating_kernel
def _fill_queries(active, round_, key, parameter, bound, documents, ranges, contexts, means):
    agents, dim, arms = contexts.shape[1:]
    words = np.empty(padded(2), np.uint32)
    for r in range(contexts.shape[0]):
        for j in range(agents):
            if not active[r, j]:
                continue
            fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], words)
            low, high = j * ranges.shape[0] // agents, (j + 1) * ranges.shape[0] // agents
            first, size = ranges[low + int(_fraction(words[0]) * (high - low))]
            start = int(_fraction(words[1]) * size)
            for k in range(arms):
                document = documents[first + (start + k) % size]
                for i in range(dim):
                    contexts[r, j, i, k] = bound * document[i]
            expect(contexts[r, j], parameter[r], means[r, j])


_Read = QueryContexts | TableContexts | LabelledContexts | PoolContexts
_Drawn = _Band | _Independent | _SphereAndBias | PoolContexts | FixedContexts


def make_distribution(contexts: Any, bound: float, gap: float) -> _Read | _Drawn:
    """Returns the distribution of contexts with a name, or fixed contexts.

    Args:
        contexts: A name; ``{"name": "queries", "path": ..., "features": ...}`` for :class:`QueryContexts`; ``{"name":
            "table", "table": ..., "features": ...}`` for :class:`~fedbandit_envs.linear.tables.TableContexts`;
            ``{"name": "classification", "data": ...}`` for :class:`~fedbandit_envs.linear.labelled.LabelledContexts`;
            ``{"name": "pool", "size": ...}`` for :class:`~fedbandit_envs.linear.pools.PoolContexts`; or fixed contexts
            ``(arms, dim)`` or ``(agents, arms, dim)``.
        bound: Largest norm of a context, L.
        gap: For the band: the smallest difference between the best mean and any other.

    Raises:
        OSError: A file cannot be read.
        TypeError: An argument has the wrong type.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if isinstance(contexts, Mapping):
        laws: dict[str, Any] = {
            "queries": partial(QueryContexts, bound),
            "table": partial(TableContexts, bound),
            "pool": partial(PoolContexts, bound),
            "classification": partial(LabelledContexts, bound),
        }
        made: _Read = make("contexts", contexts, laws, QueryContexts)
        return made
    if not isinstance(contexts, str):
        return FixedContexts(contexts, bound)
    require_choice("contexts", contexts, get_args(DistributionName))
    if contexts == "band":
        return _Band(bound, gap)
    if contexts == "sphere_and_bias":
        return _SphereAndBias(bound)
    if contexts == "separated":
        return FixedContexts(None, bound)
    if contexts == "pool":
        return PoolContexts(bound)
    return _Independent(contexts, bound)
