"""Inboxes: the messages that each agent has received. All agents share one stored copy of each message.

A transport stores each message of a round once, in arrays ``(replicas, senders, ...)``. In the batch API every agent's
inbox is a read-only view of these arrays, and ``inbox_mask`` says which messages the agent has received. A policy that
reads a batch must apply the mask; :func:`add_received` does so. A single agent sees a copy, which :func:`concealed`
makes: it is 0 where the agent has received nothing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays, spread, stored
from fedbandit_envs.basics.compiled import allocating_kernel, kernel


def concealed(observation: Mapping[str, Array], part: Any = ...) -> Arrays:
    """Copies inboxes, and sets every message that the agent has not received to 0.

    Args:
        observation: Arrays by name, of all agents of a batch.
        part: Index of the entries to return, such as one agent's; by default all.

    Returns:
        The inboxes by name. The dict is empty if no agent has received a message: every inbox is then 0.
    """
    mask = observation.get("inbox_mask")
    if mask is None or not mask.any():
        return {}
    received, shown = mask[part], {}
    for name, array in observation.items():
        if name.startswith("inbox_") and array.dtype != np.bool_:
            shown[name] = np.zeros(array[part].shape)
            np.copyto(shown[name], array[part], where=spread(received, array[part]))
    return shown


def add_received(observation: Arrays, totals: Arrays, mask: Array, weight: float = 1.0) -> None:
    """Adds the messages that each agent has received to its totals, in place.

    The function sums messages pairwise, over a binary tree whose leaves are the senders. Each node is the sum of its
    two children. A leaf is 0 if the agent has not received that message. So a sum depends, to the last bit, only on the
    messages received: neither the storage nor other messages change it. Often an agent receives every message but its
    own. For agents that lack at most one message the function computes the tree once. Each of them then adds the
    subtrees beside the path from its own leaf to the root, about log2 n for n senders. The function never subtracts a
    message, so that a huge message costs no precision in a sum that leaves it out.

    Args:
        observation: Holds the array ``x`` of each message as ``inbox_x``, ``(replicas, agents, senders, ...)``.
        totals: Output: the totals by ``x``, float64 ``(replicas, agents, ...)``. If a message has more axes than its
            total, the function also sums over the axes that follow the senders'.
        mask: True for each message to add, bool ``(replicas, agents, senders)``.
        weight: Factor of the sums.
    """
    heard, without = _missed(mask)
    for name, total in totals.items():
        flat, messages = total.reshape(*total.shape[:2], -1), stored(observation[f"inbox_{name}"])
        if messages.shape[3] > flat.shape[2]:
            messages = messages.reshape(*messages.shape[:3], -1, flat.shape[2]).sum(axis=3)
        _add_received(messages, mask, heard, without, weight, flat)


_SEVERAL = -1


@allocating_kernel
def _missed(mask):
    """Finds the senders that any agent has received, and the one of them that an agent lacks.

    Args:
        mask: True where an agent has received a sender's message, bool ``(replicas, agents, senders)``.

    Returns:
        Two arrays:

        * True for each sender whose message some agent has received, bool ``(replicas, senders)``.
        * The one such sender that an agent lacks, int64 ``(replicas, agents)``. If the agent lacks none, the entry is
          the number of senders; if it lacks several, :data:`_SEVERAL`.
    """
    replicas, agents, senders = mask.shape
    heard, without = np.zeros((replicas, senders), np.bool_), np.full((replicas, agents), _SEVERAL)
    for r in range(replicas):
        for j in range(agents):
            for s in range(senders):
                heard[r, s] |= mask[r, j, s]
        for j in range(agents):
            missed, place = 0, 0
            for s in range(senders):
                missed += heard[r, s] > mask[r, j, s]
            # At most one term is not 0, so that the sum is the index. A sum is vectorised, a search is not.
            for s in range(senders if missed == 1 else 0):
                place += s * (heard[r, s] > mask[r, j, s])
            if missed <= 1:
                without[r, j] = place if missed else senders
    return heard, without


@allocating_kernel
def _add_received(messages, mask, heard, without, weight, total):
    replicas, agents, senders = mask.shape
    numbers, size = total.shape[2], 1
    while size <= senders:
        size *= 2
    # The tree is a heap: node k is the sum of nodes 2 k and 2 k + 1. The leaf of sender s is node size + s. At least
    # one leaf has no sender and is 0.
    tree = np.empty((2 * size, numbers))
    # A stack of partial sums that wait for their sibling, and the last sender of each.
    waiting, ends = np.empty((66, numbers)), np.empty(66, np.int64)
    once = messages.shape[1] == 1
    for r in range(replicas):
        for s in range(size if once else 0):
            for k in range(numbers):
                tree[size + s, k] = messages[r, 0, s, k] if s < senders and heard[r, s] else 0.0
        for node in range(size - 1 if once else 0, 0, -1):
            for k in range(numbers):
                tree[node, k] = tree[2 * node, k] + tree[2 * node + 1, k]
        for j in range(agents):
            if once and without[r, j] != _SEVERAL:
                for k in range(numbers):
                    waiting[0, k] = 0.0
                node = size + without[r, j]
                while node > 1:
                    for k in range(numbers):
                        waiting[0, k] += tree[node ^ 1, k]
                    node //= 2
            else:
                _sum_of(messages[r, 0 if once else j], mask[r, j], waiting, ends)
            for k in range(numbers):
                total[r, j, k] += weight * waiting[0, k]


@kernel
def _sum_of(messages, mask, waiting, ends):
    """Sums the received messages in the tree's order, into the first row of ``waiting``."""
    count, numbers = 0, waiting.shape[1]
    for k in range(numbers):
        waiting[0, k] = 0.0
    for s in range(mask.size + 1):
        if s < mask.size and not mask[s]:
            continue
        # The two last sums join in the tree before either joins s if they first differ in a lower bit than the last
        # one and s do. Then the loop adds them. After the last message it adds all.
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
