"""How neighbouring histories of the linear bandit show in what is released, and the worst of them."""

from collections.abc import Callable
from math import sqrt

from fedbandit_envs.arrays import Array
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.neighbours import History, Neighbours
from fedbandit_envs.sensitivity import Change, Sensitivity


def sensitivity(scale: Array) -> Sensitivity:
    """Says by how much the statistic changes, in units of L^2 + B^2.

    An observation that is there or not adds [x; y][x; y]^T, whose Frobenius norm is L^2 + B^2 at most; one in the place
    of another changes the statistic by sqrt(2) times as much at most, if the two are orthogonal.

    Args:
        scale: L^2 + B^2 in the statistic's shape, ``(replicas, agents, dim + 1, dim + 1)``; every entry may differ.
    """
    entries = scale.shape[2] * scale.shape[3]
    changes = {"one-observation": Change(entries, sqrt(2)), "one-observation-added": Change(entries, 1.0)}
    return Sensitivity({"statistic": scale}, changes, symmetric=True)


def worst_neighbours(adjacency: Adjacency, pull: Callable[[int, int], Array]) -> list[Neighbours]:
    """Returns the worst neighbouring histories; none under adjacencies that are not the linear bandit's.

    Two arms with the longest contexts and the largest rewards there can be (L = 1, B = 1/sqrt(3)) whose [x; y] are
    orthogonal, in place of each other; or one of them in place of an arm with neither context nor reward, which stands
    for no observation. No context lies along an axis or mirrors the other in one, so that every change shows on the
    diagonal and off it.

    Args:
        adjacency: What they differ in.
        pull: The action that pulls an arm for sure, given its number and how many there are.
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
    first, second, nothing = (History(settings, pull(arm, 3)) for arm in range(3))
    pairs = {"one-observation": [(second, first)], "one-observation-added": [(nothing, first)]}
    return [Neighbours(before, after, nothing.action) for before, after in pairs.get(adjacency, [])]
