"""One round of Bernoulli arms for all rows (compiled), and how much one pull changes the released counts."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Pair, Sensitivity, pairs_of
from fedbandit_envs.randomness.draws import fill_bits, padded, threefry, u32


@inner_kernel
def _in_order(chosen, arms):
    """Writes the sorted ``chosen`` arms to ``arms``, so that sums over a superarm do not depend on their order."""
    for s in range(chosen.shape[0]):
        place = s
        while place > 0 and arms[place - 1] > chosen[s]:
            arms[place] = arms[place - 1]
            place -= 1
        arms[place] = chosen[s]


@allocating_kernel
def wake(active, key, round_, cutoff, awake):
    """Draws which arms are awake in a round, for active agents; those of others stay as they are.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        cutoff: An arm is awake if its random 32-bit word is below this number.
        awake: Output: which arms are awake, bool ``(replicas, agents, arms)``.
    """
    arms = awake.shape[2]
    bits = np.empty(padded(arms), np.uint32)
    for r in range(awake.shape[0]):
        for j in range(awake.shape[1]):
            if active[r, j]:
                fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], bits)
                for k in range(arms):
                    awake[r, j, k] = bits[k] < cutoff


@allocating_kernel
def add_values(chosen, awake, values, total):
    """Computes the value of each agent's superarm: the sum of the values of its arms that are awake.

    Args:
        chosen: The superarms' arms, ``(replicas, agents, slots)``.
        awake: Which arms are awake, bool ``(replicas, agents, arms)``.
        values: Values of all arms, same shape.
        total: Output: the superarms' values, each arm counted once, ``(replicas, agents)``.
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


@allocating_kernel
def play_round(
    active, action, key, round_, awake, cutoffs, values, best, pulls, successes, reward, regret, wasted
):
    """Plays one round; see :class:`~fedbandit_envs.arms.env.ArmsEnv` for the quantities.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; others pull nothing, and their outputs are 0.
        action: The arms to pull, ``(replicas, agents, slots)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        awake: Which arms are awake, bool ``(replicas, agents, arms)``.
        cutoffs: A pull succeeds if its random 32-bit word is below the arm's cutoff, int64, same shape.
        values: The means by which regret is measured, same shape.
        best: Value of the best superarm, ``(replicas, agents)``.
        pulls: Numbers of pulls of each arm, to which this round's are added, ``(replicas, agents, arms)``.
        successes: Numbers of successes of each arm, to which this round's are added, same shape.
        reward: Output: the number of successes, ``(replicas, agents)``.
        regret: Output: regret, same shape.
        wasted: Output: the number of slots that pulled nothing, same shape.
    """
    arms = np.empty(action.shape[2], np.int64)
    for r in range(action.shape[0]):
        for j in range(action.shape[1]):
            reward[r, j], regret[r, j], wasted[r, j] = 0.0, 0.0, 0
            if not active[r, j]:
                continue
            _in_order(action[r, j], arms)
            worth, good, idle = 0.0, 0, 0
            for s in range(arms.shape[0]):
                arm = arms[s]
                if not awake[r, j, arm] or (s > 0 and arm == arms[s - 1]):
                    idle += 1
                    continue
                # The random word depends on arm and round only, not on the other arms pulled, so that all policies get
                # the same outcome of the same arm in the same round.
                word, _ = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(arm))
                success = word < cutoffs[r, j, arm]
                pulls[r, j, arm] += 1
                successes[r, j, arm] += success
                good += success
                worth += values[r, j, arm]
            reward[r, j], regret[r, j], wasted[r, j] = good, best[r, j] - worth, idle


def sensitivity(pulls: Array) -> Sensitivity:
    """Returns the sensitivity of the released counts ``pulls`` and ``successes``, in units of 1.

    If one observation is replaced, another arm may be pulled: a pull, and at most a success, move from one arm to
    another, so one arm has one (good or defective) outcome less, and the other arm one more. If only the outcome is
    replaced, a good outcome becomes defective or the reverse.

    Args:
        pulls: An array with the shape of the released ones, ``(replicas, agents, arms)``.
    """
    one, two, four = Change(1, 1.0), Change(2, sqrt(2)), Change(4, 2.0)
    return Sensitivity(
        {"pulls": np.ones(pulls.shape), "successes": np.ones(pulls.shape)},
        {"one-observation": four, "one-outcome": one},
        pair=Pair("pulls", "successes", {"one-observation": two, "one-outcome": two}),
    )


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most; none if the environment does not name the adjacency.

    They differ in one pull. Under ``one-observation`` two different arms are pulled and both succeed; under
    ``one-outcome`` the same arm fails or succeeds. In windows that do not differ, a third arm is pulled, which fails.
    """
    idle = np.array(2)

    def history(arm: int, good: bool) -> History:
        return History({"means": [float(good), float(good), 0.0]}, np.array(arm))

    pairs = {
        "one-observation": [(history(0, True), history(1, True))],
        "one-outcome": [(history(0, False), history(0, True))],
    }
    return pairs_of(pairs, adjacency, idle)
