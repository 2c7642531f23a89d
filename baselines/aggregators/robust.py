"""The robust total of groups: what is used as the sum of the arrays of senders, some of which may be dishonest.

Arrays have the axes ``(rows, senders, numbers)``, where a row is one agent in one replica. Terms are added in a fixed
order, by ``cumsum``: the last bit of a row then does not depend on which rows are computed beside it.
"""

import numpy as np

from fedbandit_envs.basics.arrays import Array


def trim_groups(sent: Array, known: Array, groups: int, share: float) -> Array:
    """Returns the trimmed mean of the means of groups of senders, times the number of senders, number by number.

    Sender s is in group s modulo ``groups``. The group means are sorted, and the ``share`` at either end is dropped,
    though never all of them: with a share of one half the median of the group means remains.

    Args:
        sent: Total that each sender has sent so far.
        known: Which numbers each sender has sent, bool, same shape.
        groups: Number of groups.
        share: Share of the group means that is dropped at either end, in [0, 1/2].
    """
    rows, senders, numbers = sent.shape
    sums, sizes = np.zeros((2, rows, groups, numbers))
    for s in range(senders):
        sums[:, s % groups] += np.where(known[:, s], sent[:, s], 0.0)
        sizes[:, s % groups] += known[:, s]
    means = np.sort(np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf), axis=1)
    found = (sizes > 0).sum(axis=1, keepdims=True)
    # The small constant undoes rounding errors: 0.29 * 100 is slightly below 29 in floating point, and would be cut to
    # 28.
    dropped = np.minimum((share * found + 1e-9).astype(np.int64), np.maximum(found - 1, 0) // 2)
    place = np.arange(groups)[:, np.newaxis]
    kept = (place >= dropped) & (place < found - dropped)
    middle = np.cumsum(np.where(kept, means, 0.0), axis=1)[:, -1]
    return known.sum(axis=1) * middle / np.maximum(kept.sum(axis=1), 1)
