"""How much a release can betray: what an environment tells of neighbouring histories."""

from collections.abc import Mapping
from typing import NamedTuple

from fedbandit_envs.arrays import Array
from fedbandit_envs.claim import Adjacency


class Change(NamedTuple):
    """By how much the values of one release differ between neighbours, in units of their scale.

    Attributes:
        values: In how many values they differ at most, each by its scale at most.
        norm: Euclidean length of the difference at most; what counts for Gaussian noise.
    """

    values: int
    norm: float


class Pair(NamedTuple):
    """Two released arrays of binary outcomes: how many there were, and how many of these were good.

    Attributes:
        total: Name of the array that counts outcomes.
        good: Name of the array that counts good ones among them, value by value.
        changes: How neighbours show in good outcomes and defective ones, where these two are released in place of
            ``total`` and ``good``; in units of the scale of ``good``.
    """

    total: str
    good: str
    changes: Mapping[Adjacency, Change]


class Sensitivity(NamedTuple):
    """What :meth:`FederatedEnv.sensitivity` returns.

    Attributes:
        scale: Of each value that is released, float64, same names and shapes as
            :meth:`FederatedEnv.release`'s arrays; mechanisms add noise in proportion to it.
        changes: How neighbouring histories show in the one release whose window they differ in, by adjacency. An
            adjacency that is missing cannot be protected.
        symmetric: Whether every array is a symmetric matrix on its last two axes, and each change as well.
        pair: The two arrays that make up the statistic, where it counts binary outcomes.
    """

    scale: dict[str, Array]
    changes: Mapping[Adjacency, Change]
    symmetric: bool = False
    pair: Pair | None = None
