"""Compiled loops of aggregators over the messages of all agents: trimmed means."""

import numpy as np

from fedbandit_envs.basics.compiled import allocating_kernel


@allocating_kernel
def trim_groups(arrived, sent, known, own, groups, share, total):
    """Writes the trimmed mean of the means of groups of senders, times the number of senders, number by number.

    Sender s is in group s modulo ``groups``. The group means are sorted, and the ``share`` at either end is dropped,
    though never all of them: with a share of one half the median of the group means remains. Only numbers for which
    something has arrived in this round are computed anew. The totals that an agent has sent to itself are added in
    full and are in no group.

    Args:
        arrived: Which numbers have arrived in this round, bool ``(replicas, agents, senders, numbers)``, or
            ``(..., 1)`` for whole messages.
        sent: Total that each sender has sent so far, ``(replicas, agents, senders, numbers)``.
        known: Which numbers have arrived at least once so far, bool, same shape as ``sent``.
        own: Which senders are the receiving agents themselves, bool ``(replicas, agents, senders)``.
        groups: Number of groups.
        share: Share of the group means that is dropped at either end, in [0, 1/2].
        total: Receives the result, ``(replicas, agents, numbers)``.
    """
    rows, agents, senders, numbers = sent.shape
    means, sizes = np.empty(groups), np.empty(groups, np.int64)
    for r in range(rows):
        for j in range(agents):
            for i in range(numbers):
                if not arrived[r, j, :, i % arrived.shape[3]].any():
                    continue
                means[:] = 0.0
                sizes[:] = 0
                trusted, others = 0.0, 0
                for s in range(senders):
                    if own[r, j, s]:
                        trusted += sent[r, j, s, i]
                    elif known[r, j, s, i]:
                        means[s % groups] += sent[r, j, s, i]
                        sizes[s % groups] += 1
                        others += 1
                found = 0
                for g in range(groups):
                    if sizes[g] > 0:
                        means[found] = means[g] / sizes[g]
                        found += 1
                total[r, j, i] = trusted
                if found > 0:
                    means[:found].sort()
                    # The small constant undoes rounding errors: 0.29 * 100 is slightly below 29 in floating point, and
                    # would be cut to 28.
                    dropped = min(int(share * found + 1e-9), (found - 1) // 2)
                    middle = means[dropped : found - dropped].sum()
                    total[r, j, i] += others * middle / (found - 2 * dropped)


@allocating_kernel
def keep_nearest(arrived, sent, known, own, share, total):
    """Writes the mean of the senders nearest to the coordinate-wise median, times the number of senders.

    Only agents for which something has arrived in this round are computed anew. The totals that an agent has sent to
    itself are added in full.

    Args:
        arrived: Which numbers have arrived in this round, bool ``(replicas, agents, senders, numbers)``, or
            ``(..., 1)`` for whole messages.
        sent: Total that each sender has sent so far, ``(replicas, agents, senders, numbers)``.
        known: Which numbers have arrived at least once so far, bool, same shape as ``sent``.
        own: Which senders are the receiving agents themselves, bool ``(replicas, agents, senders)``.
        share: Share of the senders that is dropped, those furthest from the median, in [0, 1/2).
        total: Receives the result, ``(replicas, agents, numbers)``.
    """
    rows, agents, senders, numbers = sent.shape
    values, distance = np.empty(senders), np.empty(senders)
    centre, others = np.empty(numbers), np.empty(numbers, np.int64)
    for r in range(rows):
        for j in range(agents):
            if not arrived[r, j].any():
                continue
            for i in range(numbers):
                others[i] = 0
                for s in range(senders):
                    if known[r, j, s, i] and not own[r, j, s]:
                        values[others[i]] = sent[r, j, s, i]
                        others[i] += 1
                values[: others[i]].sort()
                # A number that no other agent has sent has no median; 0 is written, and nothing is added to the total.
                centre[i] = (
                    0.5 * (values[(others[i] - 1) // 2] + values[others[i] // 2]) if others[i] else 0.0
                )
            found = 0
            for s in range(senders):
                count, square = 0, 0.0
                for i in range(numbers):
                    if known[r, j, s, i]:
                        count += 1
                        square += (sent[r, j, s, i] - centre[i]) ** 2
                counted = count > 0 and not own[r, j, s]
                distance[s] = square / count if counted else np.inf
                found += counted
            kept = np.argsort(distance, kind="mergesort")[: found - int(share * found + 1e-9)]
            for i in range(numbers):
                trusted, middle, count = 0.0, 0.0, 0
                for s in range(senders):
                    if own[r, j, s]:
                        trusted += sent[r, j, s, i]
                for s in kept:
                    if known[r, j, s, i]:
                        middle += sent[r, j, s, i]
                        count += 1
                total[r, j, i] = trusted + others[i] * (middle / count if count else centre[i])
