"""One round of Gaussian arms for all rows: pulls, rewards and regret (compiled)."""

from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.randomness.draws import normal_pair, threefry, u32


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
