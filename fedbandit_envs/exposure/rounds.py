"""One round of exposure fairness for all rows (agents of replicas): draws of arms, and regrets (compiled)."""

from fedbandit_envs.basics.compiled import inlined_kernel, kernel
from fedbandit_envs.exposure.merit import share_row
from fedbandit_envs.randomness.draws import threefry, u32, uniform


@inlined_kernel
def _arm_at(shares, rest):
    """Returns the first arm at which the cumulative sum of shares exceeds the number ``rest``.

    If no sum exceeds it because of rounding, the last arm with a positive share is returned.
    """
    drawn = 0
    for k in range(shares.shape[0]):
        if shares[k] > 0.0:
            drawn = k
            rest -= shares[k]
            if rest < 0.0:
                break
    return drawn


@kernel
def expose(active, action, logarithms, means, key, round_, deserved, arm, fairness, reward, pulls, due):
    """Draws each agent's arm from its shares and computes regrets; all outputs are 0 for agents that do not act.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``.
        action: Each agent's shares of arms, ``(replicas, agents, arms)``, which are divided by their sum.
        logarithms: Logarithms of the arms' true merits, same shape.
        means: Expected rewards, same shape.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`. The arm drawn is
            the first at which the cumulative shares exceed a uniform random number.
        round_: Each row's round, as counted by the draws.
        deserved: Output: the shares that arms deserve, ``(replicas, agents, arms)``.
        arm: Output: the arms drawn, int64 ``(replicas, agents)``.
        fairness: Output: the fairness regret sum_i |deserved_i - share_i|, ``(replicas, agents)``.
        reward: Output: the reward regret sum_i deserved_i mu_i - sum_i share_i mu_i, ``(replicas, agents)``.
        pulls: Numbers of pulls of each arm, to which the arms drawn are added, ``(replicas, agents, arms)``.
        due: Sums of deserved shares, to which those of this round are added, ``(replicas, agents, arms)``.
    """
    arms = means.shape[2]
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            arm[r, j] = 0
            fairness[r, j] = 0.0
            reward[r, j] = 0.0
            if not active[r, j]:
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
            drawn = _arm_at(action[r, j], uniform(x, y) * total)
            arm[r, j] = drawn
            pulls[r, j, drawn] += 1.0
