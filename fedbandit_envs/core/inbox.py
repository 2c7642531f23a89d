"""Inboxes: what each agent has received, read from messages that exist once for all agents.

The messages of a round are stored once, ``(replicas, senders, ...)``. In the batch API the inbox of every agent is a
view of this store, and ``inbox_mask`` says which of the messages the agent has received. Whoever reads a batch must
therefore read by the mask; :func:`add_received` does. Copies that are handed to single agents are passed through
:func:`conceal`.
"""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import allocating_kernel, kernel


def conceal(copies: Arrays) -> Arrays:
    """Sets inboxes to 0 where nothing was received, in copies of observations, and returns the copies.

    Args:
        copies: Arrays by name, with any leading axes; they must be writable.
    """
    mask = copies.get("inbox_mask")
    if mask is not None:
        for name, array in copies.items():
            if name.startswith("inbox_") and array.dtype != np.bool_:
                array[~mask] = 0.0
    return copies


def stored(messages: Array) -> Array:
    """Returns inboxes as they are stored, ``(replicas, agents or 1, senders, numbers)``.

    Args:
        messages: Inboxes ``(replicas, agents, senders, ...)``. If they are views of one store for all agents, the
            agents' axis of the result has one entry.
    """
    once = messages[:, :1] if messages.strides[1] == 0 else messages
    return once.reshape(*once.shape[:3], -1)


def add_received(observation: Arrays, totals: Arrays, mask: Array, weight: float = 1.0) -> None:
    """Adds to each agent's totals, in place, the sums of the messages that the agent has received.

    A sum is that of a binary tree: the sums of the two halves of all senders are added, and each of these is such a sum
    again. A message that was not received is 0 in this tree. So the bits of a sum depend on what was received, and not
    on how messages are stored or on what else was sent. Where agents receive all that anybody does but for their own
    message, the sums of the tree are computed once. Each agent then adds up those that its own message is not in, log2
    n of them for n senders. No message is added and subtracted again, so that a huge one spoils nobody else's sum.

    Args:
        observation: Holds the array ``x`` of each message as ``inbox_x``, ``(replicas, agents, senders, ...)``.
        totals: Output: the totals by ``x``, float64 ``(replicas, agents, ...)``. Where messages have more axes, those
            after the senders' are added up as well.
        mask: The messages that are added, bool ``(replicas, agents, senders)``.
        weight: Factor of the sums.
    """
    heard = np.asarray(mask.any(axis=1))
    missed = heard[:, np.newaxis] > mask
    # Bytes are added up much faster than truth values.
    number = missed.view(np.uint8).sum(axis=2, dtype=np.uint32)
    # The one sender whom others have heard and the agent has not; all senders' number if there is none.
    without = np.where(number == 1, missed.argmax(axis=2), np.where(number == 0, mask.shape[2], _SEVERAL))
    for name, total in totals.items():
        flat, messages = total.reshape(*total.shape[:2], -1), stored(observation[f"inbox_{name}"])
        if messages.shape[3] > flat.shape[2]:
            messages = messages.reshape(*messages.shape[:3], -1, flat.shape[2]).sum(axis=3)
        _add_received(messages, mask, heard, without, weight, flat)


_SEVERAL = -1


@allocating_kernel
def _add_received(messages, mask, heard, without, weight, total):
    replicas, agents, senders = mask.shape
    numbers, size = total.shape[2], 1
    while size < senders:
        size *= 2
    # Node k of the tree is the sum of nodes 2 k and 2 k + 1; the message of sender s is node size + s.
    tree = np.empty((2 * size, numbers))
    # Sums that wait for their other half, and the sender with which each of them ends.
    waiting, ends = np.empty((66, numbers)), np.empty(66, np.int64)
    for r in range(replicas):
        grown = False
        for j in range(agents):
            if messages.shape[1] > 1 or without[r, j] == _SEVERAL:
                _sum_of(messages[r, min(j, messages.shape[1] - 1)], mask[r, j], waiting, ends)
            else:
                if not grown:
                    _grow(messages[r, 0], heard[r], tree)
                    grown = True
                _sum_without(tree, without[r, j], senders, waiting[0])
            for k in range(numbers):
                total[r, j, k] += weight * waiting[0, k]


@kernel
def _grow(messages, heard, tree):
    """Fills a tree of sums with the messages that anybody has heard."""
    size = tree.shape[0] // 2
    for s in range(size):
        for k in range(tree.shape[1]):
            tree[size + s, k] = messages[s, k] if s < heard.size and heard[s] else 0.0
    for node in range(size - 1, 0, -1):
        for k in range(tree.shape[1]):
            tree[node, k] = tree[2 * node, k] + tree[2 * node + 1, k]


@kernel
def _sum_without(tree, sender, senders, found):
    """Writes a tree's sum without the message of one sender; the whole sum if the sender is none of ``senders``."""
    node = tree.shape[0] // 2 + sender if sender < senders else 1
    for k in range(found.size):
        found[k] = tree[1, k] if sender == senders else 0.0
    while node > 1:
        for k in range(found.size):
            found[k] += tree[node ^ 1, k]
        node //= 2


@kernel
def _sum_of(messages, mask, waiting, ends):
    """Writes the tree's sum of the messages received to the first row of ``waiting``."""
    count, numbers = 0, waiting.shape[1]
    for k in range(numbers):
        waiting[0, k] = 0.0
    for s in range(mask.size + 1):
        if s < mask.size and not mask[s]:
            continue
        # Two sums are added as soon as no later message comes between them in the tree: the next one differs from the
        # second in a higher bit than the first does. After the last message all are added.
        while count > 1 and (s == mask.size or ends[count - 2] ^ ends[count - 1] < ends[count - 1] ^ s):
            count -= 1
            ends[count - 1] = ends[count]
            for k in range(numbers):
                waiting[count - 1, k] += waiting[count, k]
        if s < mask.size:
            ends[count] = s
            for k in range(numbers):
                waiting[count, k] = messages[s, k]
            count += 1
