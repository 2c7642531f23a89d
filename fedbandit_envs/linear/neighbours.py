"""Sensitivity of the linear bandit's statistic, and its worst neighbouring histories."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.neighbours import History, Neighbours, pairs_of
from fedbandit_envs.core.sensitivity import Change, Sensitivity


def sensitivity(scale: Array) -> Sensitivity:
    """Returns the sensitivity of the statistic, in units of L^2 + B^2.

    An observation that is there or not adds [x; y][x; y]^T, whose Frobenius norm is L^2 + B^2 at most; one in the place
    of another changes the statistic by sqrt(2) times as much at most, if the two are orthogonal.

    Args:
        scale: L^2 + B^2 in the statistic's shape, ``(replicas, agents, dim + 1, dim + 1)``; every entry may differ.
    """
    entries = scale.shape[2] * scale.shape[3]
    changes = {"one-observation": Change(entries, sqrt(2)), "one-observation-added": Change(entries, 1.0)}
    return Sensitivity({"statistic": scale}, changes, symmetric=True)


def worst_neighbours(adjacency: Adjacency, as_shares: bool = False) -> list[Neighbours]:
    """Returns the worst neighbouring histories; none under adjacencies that are not the linear bandit's.

    Two arms with the longest contexts and the largest rewards there can be (L = 1, B = 1/sqrt(3)) whose [x; y] are
    orthogonal, in place of each other; or one of them in place of an arm with neither context nor reward, which stands
    for no observation. No context lies along an axis or mirrors the other in one, so that every change shows on the
    diagonal and off it.

    Args:
        adjacency: What they differ in.
        as_shares: Whether an action is a distribution over the arms, and not the number of an arm.
    """
    # Along the parameter and across it; both turned by 45 degrees.
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
