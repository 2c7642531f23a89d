"""Products <x, parameter>, whose last bit does not depend on the memory layout of the contexts."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import inlined_kernel, kernel
from fedbandit_envs.linear.ridge import arms_last


@inlined_kernel
def expect(contexts, parameter, means):
    """Computes the expected reward <x, parameter> of each arm of one row (an agent of a replica).

    Args:
        contexts: Contexts x of the arms, ``(dim, arms)``.
        parameter: The parameter or an estimate of it, ``(dim,)``.
        means: Output: the expected rewards, ``(arms,)``.
    """
    for k in range(contexts.shape[1]):
        means[k] = 0.0
    for i in range(contexts.shape[0]):
        x, weight = contexts[i], parameter[i]
        for k in range(contexts.shape[1]):
            means[k] += weight * x[k]


@kernel
def _expect_rows(contexts, parameter, means):
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            expect(contexts[r, j], parameter[r, j], means[r, j])


def expected_rewards(contexts: Array, parameter: Array, out: Array | None = None) -> Array:
    """Returns the expected reward <x, parameter> of every agent's arms, float64 ``(replicas, agents, arms)``.

    Args:
        contexts: Contexts x of the arms, ``(replicas, agents, arms, dim)``.
        parameter: Each agent's parameter or estimate of it, ``(replicas, agents, dim)``.
        out: The array to fill and return; None for a new one.
    """
    means = np.empty(contexts.shape[:3]) if out is None else out
    _expect_rows(arms_last(contexts), np.ascontiguousarray(parameter, np.float64), means)
    return means


@kernel
def expect_by_arm(active, contexts, parameters, means):
    """Computes the expected reward <x, theta_k> of each arm k of active agents, where each arm has its own parameter.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; rows of others stay as they are.
        contexts: Contexts x of the arms, ``(replicas, agents, dim, arms)``.
        parameters: The parameters theta_k, ``(arms, dim)``.
        means: Output: the expected rewards, ``(replicas, agents, arms)``.
    """
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            if active[r, j]:
                means[r, j] = 0.0
                for i in range(contexts.shape[2]):
                    for k in range(contexts.shape[3]):
                        means[r, j, k] += parameters[k, i] * contexts[r, j, i, k]
