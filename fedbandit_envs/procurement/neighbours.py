"""How neighbouring histories of procurement show in what is released."""

from math import sqrt

from fedbandit_envs.claim import Adjacency
from fedbandit_envs.sensitivity import Change


def changes(num_producers: int) -> dict[Adjacency, Change]:
    """Returns by how much ``delivered`` and ``good`` change, in units of capacity.

    Delivered and good units of a producer change together, by the capacity at most each. One outcome changes good
    units only.

    Args:
        num_producers: All of them differ under ``one-round``.
    """
    both = Change(2, sqrt(2))
    return {
        "one-quantity": both,
        "one-round": Change(2 * num_producers, sqrt(2 * num_producers)),
        "one-observation": both,
        "one-outcome": Change(1, 1.0),
    }
