"""One round of Gaussian arms for all rows (compiled), and how much one pull changes the released sums."""

from math import sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.neighbours import History, Neighbours, pairs_of
from fedbandit_envs.core.sensitivity import Change, Sensitivity
from fedbandit_envs.randomness.threefry import threefry, u32
from fedbandit_envs.randomness.variates import normal_pair


@kernel
def play_round(
    active, arm, key, round_, means, deviation, bound, worths, best, pulls, sums, reward, regret, clipped
):
    """Plays one round; see :class:`~fedbandit_envs.gaussian.env.GaussianEnv` for the quantities.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; others pull nothing, and their outputs are 0.
        arm: The arms to pull, ``(replicas, agents)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        means: Each agent's own means, ``(replicas, agents, arms)``.
        deviation: Standard deviation of a reward.
        bound: Largest absolute value of a reward; infinity clips nothing.
        worths: The worths of arms, by which regret is measured, ``(replicas, agents, arms)``.
        best: Each agent's largest worth, ``(replicas, agents)``.
        pulls: Numbers of pulls of each arm, to which this round's are added, ``(replicas, agents, arms)``.
        sums: Sums of rewards of each arm, to which this round's are added, same shape.
        reward: Output: the rewards, ``(replicas, agents)``.
        regret: Output: regret, same shape.
        clipped: Output: whether the reward was clipped, same shape.
    """
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            reward[r, j], regret[r, j], clipped[r, j] = 0.0, 0.0, False
            if not active[r, j]:
                continue
            k = arm[r, j]
            # The draw depends on arm and round only, so that all policies get the same reward of the same arm in the
            # same round.
            x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(k))
            normal, _ = normal_pair(x, y)
            drawn = means[r, j, k] + deviation * normal
            given = min(max(drawn, -bound), bound)
            pulls[r, j, k] += 1
            sums[r, j, k] += given
            reward[r, j], regret[r, j], clipped[r, j] = given, best[r, j] - worths[r, j, k], given != drawn


def sensitivity(pulls: Array, bound: float) -> Sensitivity:
    """Returns the sensitivity of the released ``pulls``, in units of 1, and ``rewards``, in units of 2 ``bound``.

    If one observation is replaced, either a pull and its reward move from one arm to another, or the reward of the same
    arm changes by 2 bounds at most. If only the outcome is replaced, the latter. Without a bound the unit is infinite,
    so that a privatizer refuses to add noise unless releases are clipped.

    Args:
        pulls: An array with the shape of the released ones, ``(replicas, agents, arms)``.
        bound: Largest absolute value of a reward.
    """
    scale = {"pulls": np.ones(pulls.shape), "rewards": np.full(pulls.shape, 2 * bound)}
    # Under one-observation two pulls differ by 1 and two rewards by half a unit.
    return Sensitivity(scale, {"one-observation": Change(4, sqrt(2.5)), "one-outcome": Change(1, 1.0)})


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most; none if the environment does not name the adjacency.

    They differ in one pull, of rewards in [-1, 1] without randomness: of one arm with the least or the largest reward
    or, under ``one-observation``, also of two arms with the largest reward. In windows that do not differ, a third arm
    is pulled, whose reward is 0.
    """
    idle = np.array(2)

    def history(arm: int, mean: float) -> History:
        settings = {"means": [mean, mean, 0.0], "reward_sd": 0.0, "reward_bound": 1.0}
        return History(settings, np.array(arm))

    outcome = (history(0, -1.0), history(0, 1.0))
    pairs = {"one-observation": [(history(0, 1.0), history(1, 1.0)), outcome], "one-outcome": [outcome]}
    return pairs_of(pairs, adjacency, idle)
