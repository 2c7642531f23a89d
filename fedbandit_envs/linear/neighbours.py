"""Sensitivity of the linear bandit's released statistics, and the neighbouring histories that differ most."""

from math import ceil, sqrt

import numpy as np

from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Sensitivity, pairs_of


def of_outer(shape: tuple[int, ...], context_bound: float, reward_bound: float) -> Sensitivity:
    """Returns the sensitivity of the sum of [x; y][x; y]^T, in units of L^2 + B^2.

    Here x is a context of norm at most L, and y a reward in [-B, B]. Adding one observation changes the statistic by
    [x; y][x; y]^T, whose Frobenius norm is at most L^2 + B^2. Replacing one observation by another changes it by at
    most sqrt(2) times as much, which is reached if the two vectors [x; y] are orthogonal.

    Args:
        shape: The statistic's shape ``(replicas, agents, dim + 1, dim + 1)``.
        context_bound: L.
        reward_bound: B.
    """
    changes = {
        "one-observation": Change(shape[2] * shape[3], sqrt(2)),
        "one-observation-added": Change(shape[2] * shape[3], 1.0),
    }
    return Sensitivity(
        {"statistic": np.full(shape, context_bound**2 + reward_bound**2)}, changes, symmetric=True
    )


def of_moments(shape: tuple[int, ...], context_bound: float, reward_bound: float) -> Sensitivity:
    """Returns the sensitivity of the sums of x x^T and y x, in units of L^2; see :func:`of_outer` for the arguments.

    The two copies of y x in the statistic count once in the norm: their scale is sqrt(2) L^2. With W = B / L, adding an
    observation changes the norm by at most sqrt(1 + W^2). Two observations with rewards W and -W and contexts of norm 1
    with inner product c differ by the norm sqrt(2 - 2 c^2 + 2 W^2 (1 + c)). This is largest at c = W^2 / 2, where it is
    (2 + W^2) / sqrt(2), or, if W^2 > 2, at c = 1, where it is 2 W.
    """
    bound = reward_bound / context_bound
    entries = shape[2] * shape[3] - 1
    replaced = (2 + bound**2) / sqrt(2) if bound**2 <= 2 else 2 * bound
    scale = np.full(shape, context_bound**2)
    scale[..., -1] *= sqrt(2)
    scale[..., -1, :] = scale[..., -1]
    scale[..., -1, -1] = 0.0
    # Entries of y x may differ by more than their scale. A Gaussian release that differs by k scales in an entry is as
    # private as k^2 releases that differ by one, and a Laplace release as k: norm^2 entries or more cover both.
    norms = {"one-observation": replaced, "one-observation-added": sqrt(1 + bound**2)}
    changes = {name: Change(max(entries, ceil(norm**2 - 1e-9)), norm) for name, norm in norms.items()}
    return Sensitivity({"statistic": scale}, changes, symmetric=True)


def worst_neighbours(adjacency: Adjacency, as_shares: bool = False) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most in the sum of [x; y][x; y]^T; none for other adjacencies.

    Two arms have contexts and rewards of the largest size (L = 1, B = 1/sqrt(3)), and their vectors [x; y] are
    orthogonal. Under ``one-observation`` one history pulls the first of them where the other pulls the second. Under
    ``one-observation-added`` one history pulls the first where the other pulls an arm with context 0 and reward 0,
    which means no observation. The contexts are rotated against the axes, so that the statistics differ both on the
    diagonal and off it.

    Args:
        adjacency: The part in which the histories differ.
        as_shares: Whether an action is a distribution over the arms; otherwise it is the number of an arm.
    """
    # Lengths of contexts along the parameter and orthogonal to it. Parameter and contexts are rotated by 45 degrees.
    along, across = sqrt(1 / 3) * sqrt(1 / 2), sqrt(2 / 3) * sqrt(1 / 2)
    settings = {
        "contexts": [[along - across, along + across], [along + across, along - across], [0.0, 0.0]],
        "parameter": [sqrt(1 / 2), sqrt(1 / 2)],
        "reward": "normal",
        "reward_sd": 0.0,
        "reward_bound": sqrt(1 / 3),
    }
    pulls = np.eye(3) if as_shares else np.arange(3)
    first, second, nothing = (History(settings, np.asarray(pull)) for pull in pulls)
    pairs = {"one-observation": [(second, first)], "one-observation-added": [(nothing, first)]}
    return pairs_of(pairs, adjacency, nothing.action)
