"""Optimal designs of many agents: how agents with different features divide their pulls among shared parameters."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel

# Eigenvalues below this multiple of the largest one count as 0: directions that no agent's features have.
_RANK = 1e-9


def pseudo_inverse(matrices: Array) -> Array:
    """Returns the pseudo-inverses of symmetric positive semidefinite matrices, ``(..., dim, dim)``."""
    return np.linalg.pinv(matrices, rcond=_RANK, hermitian=True)


def optimal_design(directions: Array, kept: Array, sweeps: int = 10, gap: float = 0.1) -> Array:
    """Returns shares of pulls that nearly minimise the sum over agents of their largest variance.

    Arm a has one parameter for all agents, of which pulls by agent i show the component along its direction e_ia. With
    shares pi_ia, which add up to 1 for each agent, V_a = sum_i pi_ia e_ia e_ia^T. The sum over agents i of max_a e_ia^T
    V_a^+ e_ia is smallest, namely sum_a rank V_a, where sum_a log det V_a is largest (V^+ is the pseudo-inverse, det
    the product of the eigenvalues above 0). That sum is concave, and is raised for one agent after another: for agent i
    it is sum_a log(pi_ia + h_ia) up to a constant, with h_ia = 1 / (e_ia^T V_a^+ e_ia) - pi_ia, so that the best shares
    are max(0, level - h_ia) (Huang et al. 2021, what Fed-PE's server solves; the method is this project's).

    Args:
        directions: Unit vectors e_ia, ``(agents, arms, dim)``.
        kept: Which arms an agent pulls, bool ``(agents, arms)``; at least one each.
        sweeps: The largest number of times that each agent's shares are improved.
        gap: The distance of that sum from its minimum at which to stop.

    Returns:
        Shares, ``(agents, arms)``; 0 where an arm is not kept.
    """
    shares = kept / kept.sum(axis=1, keepdims=True)
    matrices = np.einsum("ia,iad,iae->ade", shares, directions, directions)
    inverse = pseudo_inverse(matrices)
    ranks = np.einsum("ade,aed->", matrices, inverse)
    for _ in range(sweeps):
        if _sweep(directions, kept, shares, inverse) - ranks <= gap:
            break
    return shares


@allocating_kernel
def _sweep(directions, kept, shares, inverse):
    """Improves the shares of each agent once, and returns the sum of the agents' largest variances afterwards.

    Args:
        directions: Unit vectors, ``(agents, arms, dim)``.
        kept: Which arms an agent pulls, ``(agents, arms)``.
        shares: Shares, ``(agents, arms)``, which are replaced.
        inverse: V_a^+, ``(arms, dim, dim)``, which are kept up to date.
    """
    agents, arms, dim = directions.shape
    rest, product = np.empty(arms), np.empty((arms, dim))
    variance = np.empty(arms)
    for i in range(agents):
        for a in range(arms):
            if not kept[i, a]:
                continue
            variance[a] = 0.0
            for k in range(dim):
                product[a, k] = 0.0
                for m in range(dim):
                    product[a, k] += inverse[a, k, m] * directions[i, a, m]
                variance[a] += directions[i, a, k] * product[a, k]
            # Without other pulls along e the variance is 1 / pi: rounding must not make the rest negative.
            rest[a] = max(1.0 / max(variance[a], 1e-300) - shares[i, a], 0.0)
        level = _level(rest, kept[i])
        for a in range(arms):
            if not kept[i, a]:
                continue
            new = max(level - rest[a], 0.0)
            change = new - shares[i, a]
            weight = change / (1.0 + change * variance[a])
            shares[i, a] = new
            for k in range(dim):
                for m in range(dim):
                    inverse[a, k, m] -= weight * product[a, k] * product[a, m]
    total = 0.0
    for i in range(agents):
        worst = 0.0
        for a in range(arms):
            if kept[i, a]:
                form = 0.0
                for k in range(dim):
                    for m in range(dim):
                        form += directions[i, a, k] * inverse[a, k, m] * directions[i, a, m]
                worst = max(worst, form)
        total += worst
    return total


@inner_kernel
def _level(rest, kept):
    """Returns the level at which the sum of max(0, level - rest) over the kept arms is 1."""
    # If it is known which arms lie below the level, it is (1 + the sum of their rests) / their number. It falls from
    # infinity to the solution, in at most as many steps as there are arms.
    level, filled = np.inf, -1
    for _ in range(rest.shape[0]):
        many, total = 0, 0.0
        for a in range(rest.shape[0]):
            if kept[a] and rest[a] < level:
                many += 1
                total += rest[a]
        if many == filled:
            break
        filled = many
        level = (1.0 + total) / many
    return level
