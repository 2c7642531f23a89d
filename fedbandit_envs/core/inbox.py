"""Inboxes: what each agent has received, read from messages that exist once for all agents.

The messages of a round are stored once, ``(replicas, senders, ...)``. In the batch API the inbox of every agent is a
view of this store, and ``inbox_mask`` says which of the messages the agent has received. Whoever reads a batch must
therefore read by the mask; :func:`add_received` does. Single agents are shown what :func:`concealed` returns.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import allocating_kernel, kernel


def concealed(observation: Mapping[str, Array], part: Any = ...) -> Arrays:
    """Returns inboxes as agents by themselves see them: copies that are 0 where an agent has received nothing.

    Args:
        observation: Arrays by name, of all agents of a batch.
        part: The index of the part that is returned, such as an agent's.

    Returns:
        The inboxes by name; empty if nobody has received anything, since all inboxes are then 0.
    """
    mask = observation.get("inbox_mask")
    if mask is None or not mask.any():
        return {}
    received, shown = mask[part], {}
    for name, array in observation.items():
        if name.startswith("inbox_") and array.dtype != np.bool_:
            shown[name] = np.zeros(array[part].shape)
            who = received.reshape(received.shape + (1,) * (array.ndim - mask.ndim))
            np.copyto(shown[name], array[part], where=who)
    return shown


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
    heard, without = _missed(mask)
    for name, total in totals.items():
        flat, messages = total.reshape(*total.shape[:2], -1), stored(observation[f"inbox_{name}"])
        if messages.shape[3] > flat.shape[2]:
            messages = messages.reshape(*messages.shape[:3], -1, flat.shape[2]).sum(axis=3)
        _add_received(messages, mask, heard, without, weight, flat)


_SEVERAL = -1


@allocating_kernel
def _missed(mask):
    """Returns whom anybody has heard, and whom alone an agent has not, of those.

    Args:
        mask: Whose messages each agent has received, bool ``(replicas, agents, senders)``.

    Returns:
        Whether any agent has received a sender's message, bool ``(replicas, senders)``; and the one sender whom others
        have heard and the agent has not, int64 ``(replicas, agents)``: the number of senders if there is none, and
        :data:`_SEVERAL` if there are several.
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
            # A sum over all senders, which vector instructions compute, is faster than a search.
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
    # Node k of the tree is the sum of nodes 2 k and 2 k + 1; the message of sender s is node size + s. There is a node
    # more than senders, whose message is 0.
    tree = np.empty((2 * size, numbers))
    # Sums that wait for their other half, and the sender with which each of them ends.
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
