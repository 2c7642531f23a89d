"""One round of Bernoulli arms for all rows: what is pulled, what comes of it, and regret."""

import numpy as np

from fedbandit_envs.compiled import kernel
from fedbandit_envs.threefry import fill_bits, padded, threefry, u32


@kernel
def _in_order(chosen, arms):
    """Copies arms, ascending: a superarm is then worth the same however it is said, and the best one's regret is 0."""
    for s in range(chosen.shape[0]):
        place = s
        while place > 0 and arms[place - 1] > chosen[s]:
            arms[place] = arms[place - 1]
            place -= 1
        arms[place] = chosen[s]


@kernel
def wake(acting, key, round_, cutoff, awake):
    """Draws which arms can be had in a round, of those who act; the others' stay as they are.

    Args:
        acting: Who acts, bool ``(replicas, agents)``.
        key: Of the draws, see :class:`~fedbandit_envs.draws.Draws`.
        round_: Likewise.
        cutoff: Arms whose word is below it are awake.
        awake: Receives which are, bool ``(replicas, agents, arms)``.
    """
    arms = awake.shape[2]
    bits = np.empty(padded(arms), np.uint32)
    for r in range(awake.shape[0]):
        for j in range(awake.shape[1]):
            if acting[r, j]:
                fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], bits)
                for k in range(arms):
                    awake[r, j, k] = bits[k] < cutoff


@kernel
def add_values(chosen, awake, values, total):
    """Writes what superarms are worth.

    Args:
        chosen: Arms, ``(replicas, agents, slots)``.
        awake: Which can be had, bool ``(replicas, agents, arms)``.
        values: Of arms, same shape.
        total: Receives the sum over a superarm's arms, each counted once, ``(replicas, agents)``.
    """
    arms = np.empty(chosen.shape[2], np.int64)
    for r in range(chosen.shape[0]):
        for j in range(chosen.shape[1]):
            _in_order(chosen[r, j], arms)
            worth = 0.0
            for s in range(arms.shape[0]):
                if awake[r, j, arms[s]] and (s == 0 or arms[s] != arms[s - 1]):
                    worth += values[r, j, arms[s]]
            total[r, j] = worth


@kernel
def play_round(
    acting, action, key, round_, awake, cutoffs, values, best, pulls, successes, reward, regret, wasted
):
    """Plays one round; see :class:`~fedbandit_envs.arms.env.ArmsEnv` for the quantities.

    Args:
        acting: Who acts, bool ``(replicas, agents)``; the others pull nothing, and get 0 in what is received.
        action: Arms, ``(replicas, agents, slots)``.
        key: Of the draws, see :class:`~fedbandit_envs.draws.Draws`.
        round_: Likewise.
        awake: Which arms can be had, bool ``(replicas, agents, arms)``.
        cutoffs: Draws below succeed, int64, same shape.
        values: What regret is measured by, same shape.
        best: Of the best superarm, ``(replicas, agents)``.
        pulls: Added to, ``(replicas, agents, arms)``.
        successes: Added to, same shape.
        reward: Receives the number of successes, ``(replicas, agents)``.
        regret: Receives regret, same shape.
        wasted: Receives the number of slots that pulled nothing, same shape.
    """
    arms = np.empty(action.shape[2], np.int64)
    for r in range(action.shape[0]):
        for j in range(action.shape[1]):
            reward[r, j], regret[r, j], wasted[r, j] = 0.0, 0.0, 0
            if not acting[r, j]:
                continue
            _in_order(action[r, j], arms)
            worth, good, idle = 0.0, 0, 0
            for s in range(arms.shape[0]):
                arm = arms[s]
                if not awake[r, j, arm] or (s > 0 and arm == arms[s - 1]):
                    idle += 1
                    continue
                # Luck hangs on arm and round, not on what else is pulled, so that policies meet the same.
                luck, _ = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(arm))
                success = luck < cutoffs[r, j, arm]
                pulls[r, j, arm] += 1
                successes[r, j, arm] += success
                good += success
                worth += values[r, j, arm]
            reward[r, j], regret[r, j], wasted[r, j] = good, best[r, j] - worth, idle
