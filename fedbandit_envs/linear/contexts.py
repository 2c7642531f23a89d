"""Where contexts come from: the laws that draw one for each arm, agent and round, and fixed feature matrices.

Laws are scaled to the bound L that every context's norm keeps. A law that is begun draws a round at a time into the
arrays of the environment; arms mean nothing across rounds, but for fixed features.
"""

from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.federation import Array
from fedbandit_envs.luck import Luck
from fedbandit_envs.streams import Purpose
from fedbandit_envs.threefry import padded
from fedbandit_envs.variates import fill_exponentials, fill_normals, fill_uniforms

LawName = Literal["band", "unit_ball", "hypercube", "signed_hypercube"]

# The paper's: suboptimal arms have means in [LOW, HIGH], the optimal one WIDTH wide above the gap.
LOW, HIGH, WIDTH = 0.5, 0.6, 0.1


class Offer(NamedTuple):
    """What is offered in a round.

    Attributes:
        contexts: float64 ``(replicas, agents, arms, dim)``.
        means: Expected rewards, ``(replicas, agents, arms)``.
    """

    contexts: Array
    means: Array


class ContextLaw(Protocol):
    """Draws contexts."""

    def begin(self, luck: Luck, parameter: Array, offer: Offer) -> None:
        """Prepares for one episode a seed.

        Args:
            luck: Where draws come from.
            parameter: theta*, ``(replicas, dim)``.
            offer: The arrays that :meth:`draw` will fill.
        """

    def draw(self, offer: Offer, acting: Array) -> None:
        """Draws the next round of those who act, bool ``(replicas, agents)``; other rows may be left as they are."""


class Band:
    """The paper's law: a gap between the best arm and all others (Dubey and Pentland 2020, section 4.4).

    All arms but one have <x, theta*> uniform on [0.5, 0.6], and one, at a place drawn anew each round, on
    [0.6 + gap, 0.7 + gap]. Given that, x is uniform on what the ball of radius L leaves: with a along theta* and the
    rest uniform in a ball of radius sqrt(L^2 - a^2) across it.
    """

    def __init__(self, bound: float, gap: float) -> None:
        """Sets the law.

        Args:
            bound: L, at least 0.7 + gap.
            gap: Least difference between the best mean and any other, >= 0.

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

    def begin(self, luck: Luck, parameter: Array, offer: Offer) -> None:
        """Turns e_1 into theta* by a reflection, which leaves the law across it as it is."""
        self._normals, self._exponentials, self._uniforms = (luck.draws(Purpose.CONTEXT, k) for k in range(3))
        self._mirror = parameter.copy()
        self._mirror[:, 0] -= 1.0
        length = np.linalg.norm(self._mirror, axis=1, keepdims=True)
        self._mirror = np.divide(self._mirror, length, out=np.zeros_like(parameter), where=length > 0)

    def draw(self, offer: Offer, acting: Array) -> None:
        """Draws the next round."""
        _fill_band(
            acting, self._normals.round, self._normals.key, self._exponentials.key, self._uniforms.key,
            self._mirror, self._bound, self._best, offer.contexts, offer.means,
        )  # fmt: skip


@kernel
def _fill_band(
    acting, round_, of_normals, of_exponentials, of_uniforms, mirror, bound, best_low, contexts, means
):
    arms, dim = contexts.shape[2:]
    normals = np.empty(padded(arms * (dim - 1)), np.float32)
    exponentials = np.empty(padded(arms), np.float32)
    # One more uniform an agent says where the best arm is.
    draws = np.empty(arms + 1)
    for r in range(contexts.shape[0]):
        v = mirror[r]
        for j in range(contexts.shape[1]):
            if not acting[r, j]:
                continue
            now = round_[r, j]
            fill_normals(of_normals[r, j, 0], of_normals[r, j, 1], now, normals)
            fill_exponentials(of_exponentials[r, j, 0], of_exponentials[r, j, 1], now, exponentials)
            fill_uniforms(of_uniforms[r, j, 0], of_uniforms[r, j, 1], now, draws)
            best = int(draws[arms] * arms)
            for k in range(arms):
                mean = (best_low if k == best else LOW) + WIDTH * draws[k]
                means[r, j, k] = mean
                g = normals[k * (dim - 1) : (k + 1) * (dim - 1)]
                x = contexts[r, j, k]
                square = 0.0
                along = 0.0
                for i in range(dim - 1):
                    square += g[i] * g[i]
                    along += g[i] * v[i + 1]
                # A ball's radius from two more normals' squares, which are an exponential (times two).
                shrink = np.sqrt(max(bound * bound - mean * mean, 0.0) / (square + 2.0 * exponentials[k]))
                turn = 2.0 * (shrink * along + mean * v[0])
                x[0] = mean - turn * v[0]
                for i in range(dim - 1):
                    x[i + 1] = shrink * g[i] - turn * v[i + 1]


class UnitBall:
    """Contexts uniform in the ball of radius L, all independent."""

    def __init__(self, bound: float) -> None:
        """Sets the radius L."""
        self._bound = bound

    def begin(self, luck: Luck, parameter: Array, offer: Offer) -> None:
        """Prepares the draws."""
        self._normals = luck.draws(Purpose.CONTEXT)
        self._parameter = parameter

    def draw(self, offer: Offer, acting: Array) -> None:
        """Draws the next round."""
        arms, dim = offer.contexts.shape[2:]
        # The first d coordinates of a point on the sphere in d + 2 dimensions are uniform in the ball.
        normals = self._normals.normals(arms, dim + 2)
        radius = np.sqrt((normals * normals).sum(axis=-1, keepdims=True))
        _lay_out(offer, acting, normals[..., :dim], self._bound / radius, self._parameter)


class Hypercube:
    """Contexts uniform on [0, L / sqrt(d)]^d, all independent; or on [-L / sqrt(d), L / sqrt(d)]^d (He et al. 2022)."""

    def __init__(self, bound: float, signed: bool) -> None:
        """Sets the bound L, and whether entries may be negative."""
        self._bound = bound
        self._signed = signed

    def begin(self, luck: Luck, parameter: Array, offer: Offer) -> None:
        """Prepares the draws."""
        self._uniforms = luck.draws(Purpose.CONTEXT)
        self._parameter = parameter

    def draw(self, offer: Offer, acting: Array) -> None:
        """Draws the next round."""
        side = self._bound / np.sqrt(offer.contexts.shape[-1])
        drawn = self._uniforms.uniforms(*offer.contexts.shape[2:])
        _lay_out(offer, acting, 2.0 * drawn - 1.0 if self._signed else drawn, side, self._parameter)


class Features:
    """Contexts given once and for all: an arm is the same arm in every round.

    Attributes:
        matrix: float64 ``(arms, dim)``, or ``(agents, arms, dim)`` where each agent has its own.
    """

    def __init__(self, matrix: Any, bound: float) -> None:
        """Checks the features.

        Args:
            matrix: Numbers, in arrays or nested lists of the shape above.
            bound: L.

        Raises:
            ValueError: The shape is wrong, an entry is not finite, or a context is longer than L.
        """
        self.matrix = np.array(matrix, np.float64)
        if self.matrix.ndim not in (2, 3) or 0 in self.matrix.shape:
            raise ValueError(
                f"contexts has shape {self.matrix.shape}; (arms, dim) or (agents, arms, dim) is required"
            )
        bad = ~np.isfinite(self.matrix)
        if bad.any():
            where = [int(i) for i in np.argwhere(bad)[0]]
            raise ValueError(f"contexts{where} is {self.matrix[tuple(where)]}; finite numbers are required")
        lengths = np.linalg.norm(self.matrix, axis=-1)
        if lengths.max() > bound * (1 + 1e-12):
            where = [int(i) for i in np.argwhere(lengths == lengths.max())[0]]
            raise ValueError(
                f"contexts{where} has norm {lengths.max():.6g}; at most context_bound = {bound:g} is required"
            )

    def begin(self, luck: Luck, parameter: Array, offer: Offer) -> None:
        """Lays the features out; they stay."""
        offer.contexts[...] = self.matrix
        _expect(offer, parameter)

    def draw(self, offer: Offer, acting: Array) -> None:
        """Leaves the offer as it is."""


def _lay_out(offer: Offer, acting: Array, drawn: Array, scale: Any, parameter: Array) -> None:
    """Offers what was drawn, times a scale, to those who act."""
    np.multiply(drawn, scale, out=offer.contexts, where=acting[..., np.newaxis, np.newaxis])
    _expect(offer, parameter)


def _expect(offer: Offer, parameter: Array) -> None:
    np.einsum("rjkd,rd->rjk", offer.contexts, parameter, out=offer.means)


def make_law(contexts: Any, bound: float, gap: float) -> ContextLaw:
    """Makes a law from its name, or from features.

    Args:
        contexts: A name, or features as :class:`Features` takes them.
        bound: L.
        gap: Of the band.

    Raises:
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if not isinstance(contexts, str):
        return Features(contexts, bound)
    require_choice("contexts", contexts, get_args(LawName))
    if contexts == "band":
        return Band(bound, gap)
    return UnitBall(bound) if contexts == "unit_ball" else Hypercube(bound, contexts == "signed_hypercube")
