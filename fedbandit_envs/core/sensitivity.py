"""Sensitivity of releases: by how much neighbouring histories of an agent can differ in one release."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import AGENT, Adjacency


class Change(NamedTuple):
    """Bounds on how much one release differs between neighbouring histories, in units of each number's scale.

    Attributes:
        values: The largest number of entries of the release that differ, each by at most its scale; where entries may
            differ by more, a number that is at least the sum of the differences and of their squares, in that unit.
        norm: The largest Euclidean norm of the difference, on which the privacy of Gaussian noise depends.

    In a clipped release (:meth:`Sensitivity.clipped`) single entries may differ by twice their scale. The sum of all
    absolute differences is at most sqrt(values) norm.
    """

    values: int
    norm: float


Changes = Mapping[Adjacency, Change]
"""Bounds on how much one release differs between neighbours, by adjacency; others cannot be protected."""


class Pair(NamedTuple):
    """The two arrays of a statistic that counts binary outcomes: the numbers of all outcomes and of good outcomes.

    Attributes:
        total: Name of the array that counts all outcomes.
        good: Name of the array, of the same shape, that counts the good outcomes among them.
        changes: By how much a release differs between neighbours, by adjacency, if the numbers of good and of defective
            outcomes are released instead of ``total`` and ``good``; in units of the scale of
            ``good``; ``values`` bounds the sum of the differences.
    """

    total: str
    good: str
    changes: Changes


class Sensitivity(NamedTuple):
    """The sensitivity of a release: the largest differences between neighbouring histories of an agent.

    Attributes:
        scale: The largest difference in each released number, float64, with the names and shapes of the arrays of
            :meth:`FederatedEnv.release`; mechanisms add noise in proportion to it.
        changes: By how much the release after the altered part differs between neighbours, by adjacency. An adjacency
            that is missing cannot be protected. Authored messages have none, and infinite scales, unless clipped.
        symmetric: Whether the last two axes of every array, and of every difference, are symmetric matrices.
        pair: The two arrays that count outcomes and good outcomes; None for statistics of another kind.
    """

    scale: dict[str, Array]
    changes: Changes
    symmetric: bool = False
    pair: Pair | None = None

    def clipped(self, clip: float) -> "Sensitivity":
        """Returns the sensitivity of the same release after it was scaled down to a Euclidean norm of at most ``clip``.

        The norm is that of all numbers of a release together. Every number has the scale ``clip``, whatever the data.
        Neighbours under the adjacency ``agent`` differ by a norm of 2 in this unit. Under the other adjacencies they
        differ by no more than before, since clipping never increases a distance, and by 2 at most. They may differ in
        all entries, since all are multiplied by the same factor. So the release is not a :class:`Pair` of counts any
        more.

        Args:
            clip: The largest norm of a release, > 0.
        """
        entries = sum(array[0, 0].size for array in self.scale.values())
        largest = max(float(array.max()) for array in self.scale.values())
        changes = {
            adjacency: Change(entries, min(change.norm * largest / clip, 2.0))
            for adjacency, change in self.changes.items()
        }
        return Sensitivity(
            {name: np.full(array.shape, float(clip)) for name, array in self.scale.items()},
            {**changes, AGENT: Change(entries, 2.0)},
            self.symmetric,
        )
