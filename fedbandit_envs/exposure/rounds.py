"""One round of the exposure problem for all rows: which arms are drawn, and what is regretted."""

from fedbandit_envs.compiled import kernel
from fedbandit_envs.exposure.merit import share_row
from fedbandit_envs.threefry import threefry, u32
from fedbandit_envs.variates import uniform


@kernel(forceinline=True)
def arm_at(shares, rest):
    """Returns the arm where cumulative shares exceed a number; the last one with a share, where rounding says none."""
    drawn = 0
    for k in range(shares.shape[0]):
        if shares[k] > 0.0:
            drawn = k
            rest -= shares[k]
            if rest < 0.0:
                break
    return drawn


@kernel
def expose(acting, action, logarithms, means, key, round_, deserved, arm, fairness, reward, pulls, due):
    """Draws arms and writes regrets; those who do not act draw nothing and regret 0.

    Args:
        acting: Who acts, bool ``(replicas, agents)``.
        action: Shares, ``(replicas, agents, arms)``; what they sum to stands for 1.
        logarithms: Of the arms' true merits, same shape.
        means: Expected rewards, same shape.
        key: Of the arms' draws, see :class:`~fedbandit_envs.draws.Draws`: the arm is where cumulative shares exceed it.
        round_: Likewise.
        deserved: Receives the shares that arms deserve, as ``action``.
        arm: Receives the arms drawn, int64 ``(replicas, agents)``.
        fairness: Receives sum_i |deserved_i - share_i|, ``(replicas, agents)``.
        reward: Receives sum_i deserved_i mu_i - sum_i share_i mu_i, likewise.
        pulls: Counts the arms drawn, as ``action``.
        due: Adds up what arms deserve, likewise.
    """
    arms = means.shape[2]
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            arm[r, j] = 0
            fairness[r, j] = 0.0
            reward[r, j] = 0.0
            if not acting[r, j]:
                for k in range(arms):
                    deserved[r, j, k] = 0.0
                continue
            share_row(logarithms[r, j], deserved[r, j])
            total = 0.0
            for k in range(arms):
                total += action[r, j, k]
            apart, lost = 0.0, 0.0
            for k in range(arms):
                due[r, j, k] += deserved[r, j, k]
                less = deserved[r, j, k] - action[r, j, k] / total
                apart += abs(less)
                lost += less * means[r, j, k]
            fairness[r, j] = apart
            reward[r, j] = lost
            x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(0))
            drawn = arm_at(action[r, j], uniform(x, y) * total)
            arm[r, j] = drawn
            pulls[r, j, drawn] += 1.0
