"""How neighbouring histories of the linear bandit show in what is released."""

from math import sqrt

from fedbandit_envs.claim import Adjacency
from fedbandit_envs.sensitivity import Change


def changes(dim: int) -> dict[Adjacency, Change]:
    """Returns by how much the statistic changes, in units of L^2 + B^2.

    An observation that is there or not adds [x; y][x; y]^T, whose Frobenius norm is L^2 + B^2 at most; one in the place
    of another changes the statistic by sqrt(2) times as much at most, if the two are orthogonal.

    Args:
        dim: Dimension of contexts; every entry may differ.
    """
    entries = (dim + 1) ** 2
    return {"one-observation": Change(entries, sqrt(2)), "one-observation-added": Change(entries, 1.0)}
