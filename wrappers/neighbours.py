"""The worst neighbouring histories that an attacker may have to tell apart."""

from math import cos, pi, sin
from typing import NamedTuple

import numpy as np

from fedbandit_envs.checks import require_choice
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.federation import Arrays
from fedbandit_envs.linear import neighbours as linear
from fedbandit_envs.procurement import neighbours as procurement
from fedbandit_envs.sensitivity import Sensitivity


class Neighbours(NamedTuple):
    """Two neighbouring histories of one agent, as what leaves the environment.

    Attributes:
        before: Arrays by name; the first axis is the release, the others are those of the statistic.
        after: The same for the other history.
        sensitivity: What an environment says of them; scales have the axes of the statistic.
    """

    before: Arrays
    after: Arrays
    sensitivity: Sensitivity


def procurement_neighbours(
    adjacency: Adjacency,
    releases: int = 1,
    altered: int | None = None,
    num_producers: int = 1,
    capacity: int = 50,
) -> list[Neighbours]:
    """Returns the worst neighbouring histories of procurement, of which one is worst for each mechanism.

    Args:
        adjacency: What differs in a window.
        releases: Number of releases.
        altered: In how many of the windows, from the first on, that differs; in all by default, as basic and
            exact composition assume. Parallel composition speaks of 1.
        num_producers: Number of producers; all differ under ``one-round``, else the first.
        capacity: Of the agent, with every producer.
    """
    if adjacency == "one-outcome":
        capacity = 1
    nothing, all_good, all_defective = (0, 0), (capacity, capacity), (capacity, 0)
    pairs = {
        "one-quantity": [(nothing, all_good)],
        "one-round": [(nothing, all_good)],
        "one-observation": [(nothing, all_good), (all_defective, all_good)],
        "one-outcome": [(all_defective, all_good)],
    }[adjacency]
    differing = num_producers if adjacency == "one-round" else 1
    shape = (releases, num_producers)
    neighbours = []
    for before, after in pairs:
        histories: list[Arrays] = []
        for differs in (before, after):
            arrays = {}
            for name, old, new in zip(("delivered", "good"), before, differs, strict=True):
                arrays[name] = np.full(shape, old, np.int64)
                arrays[name][:altered, :differing] = new
            histories.append(arrays)
        scale = {name: np.full(num_producers, float(capacity)) for name in ("delivered", "good")}
        sensitivity = Sensitivity(scale, procurement.changes(num_producers))
        neighbours.append(Neighbours(histories[0], histories[1], sensitivity))
    return neighbours


def linear_neighbours(
    adjacency: Adjacency,
    releases: int = 1,
    altered: int | None = None,
    size: int = 2,
    bound: float = 1.0,
) -> list[Neighbours]:
    """Returns the worst neighbouring histories of the linear statistic, sums of v v^T with v = [context; reward].

    One observation of full norm is there in place of an orthogonal one, or of none. Neither lies along an axis, so the
    change shows on and off the diagonal.

    Args:
        adjacency: What differs in a window, ``"one-observation"`` or ``"one-observation-added"``.
        releases: Number of releases.
        altered: In how many of the windows, from the first on, that differs; in all by default, as basic and
            exact composition of independent releases assume. Parallel composition and continual release speak of 1.
        size: Rows of the statistic, >= 2.
        bound: The most that ||v||^2 can be, and so the scale of every value.

    Raises:
        ValueError: ``adjacency`` is another.
    """
    told = linear.changes(size - 1)
    require_choice("adjacency", adjacency, tuple(told))
    first, second = np.zeros((2, size))
    first[:2] = cos(pi / 8), sin(pi / 8)
    second[:2] = -sin(pi / 8), cos(pi / 8)
    before, after = np.zeros((2, releases, size, size))
    after[:altered] = bound * np.outer(first, first)
    if adjacency == "one-observation":
        before[:altered] = bound * np.outer(second, second)
    sensitivity = Sensitivity({"statistic": np.full((size, size), bound)}, told, symmetric=True)
    return [Neighbours({"statistic": before}, {"statistic": after}, sensitivity)]
