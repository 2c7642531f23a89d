"""Sensitivity of releases: by how much neighbouring histories of an agent can differ in one release."""

from collections.abc import Mapping
from typing import NamedTuple

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency


class Change(NamedTuple):
    """Bounds on the difference between neighbours in the values of one release, in units of each value's scale.

    Attributes:
        values: The most values that differ, each by its scale at most.
        norm: The largest Euclidean norm of the difference; what counts for Gaussian noise.
    """

    values: int
    norm: float


Changes = Mapping[Adjacency, Change]
"""The largest differences between neighbours in one release, by adjacency; a missing adjacency cannot be protected."""


class Pair(NamedTuple):
    """Names of the two arrays of a statistic that counts binary outcomes: the number of all and of good outcomes.

    Attributes:
        total: Name of the array that counts outcomes.
        good: Name of the array that counts good ones among them, value by value.
        changes: By how much neighbours differ where good outcomes and defective ones are released in place of ``total``
            and ``good``, by adjacency; in units of the scale of ``good``, and ``values`` bounds the sum of differences.
    """

    total: str
    good: str
    changes: Changes


class Sensitivity(NamedTuple):
    """The sensitivity of a release: the largest differences between neighbouring histories of an agent.

    Attributes:
        scale: The largest difference in each value that is released, float64, names and shapes as those of
            :meth:`FederatedEnv.release`'s arrays; mechanisms add noise in proportion to it.
        changes: By how much neighbours differ in the one release whose window they differ in, by adjacency. An
            adjacency that is missing cannot be protected.
        symmetric: Whether every array is a symmetric matrix on its last two axes, and each change as well.
        pair: The two arrays that make up the statistic, where it counts binary outcomes.
    """

    scale: dict[str, Array]
    changes: Changes
    symmetric: bool = False
    pair: Pair | None = None
