"""LinUCB with a parameter for each arm (Li et al. 2010), alone or beside a parameter shared by all arms.

Arms are the last axis of arrays, so that processors compute several arms at once by vector instructions.
"""

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import (
    add_own_forms,
    add_own_products,
    add_shared_forms,
    add_shared_products,
    arms_last,
    correct,
    largest,
)


@allocating_kernel
def _observe_hybrid(
    round_, pulled, reward, arm, inverse, parameter, coupling, shared_inverse, shared_parameter
):  # fmt: skip
    """Adds the last round of all agents to the ridge regressions with arm parameters theta_a and a shared beta.

    The model of a reward is <z, beta> + <x, theta_a> for the pulled arm a with context x, where z is x or its first
    dimensions. In the notation of Li et al.'s Algorithm 2, A_0 and b_0 are the matrix and moment of beta once the arm
    parameters are eliminated. B_a and the moments themselves are not stored. Without shared dimensions these are the
    regressions of Algorithm 1.

    The arm's own regression predicts <x, A_a^-1 b_a> for the reward and B_a^T A_a^-1 x for z, with an error whose
    variance is 1 + x^T A_a^-1 x times that of the reward noise. The residuals of both are one observation of the shared
    regression: A_0 += r r^T / (1 + x^T A_a^-1 x) with r = z - B_a^T A_a^-1 x. This equals lines 17, 18, 22 and 23 of
    Algorithm 2 (Schur complements of the arm's block before and after the observation).

    Args:
        round_: Number of rounds played, ``(replicas, agents, 1)``; where it is 0 nothing is added.
        pulled: Contexts of the arms pulled in the last round, ``(replicas, agents, dim)``.
        reward: Rewards of the last round, ``(replicas, agents, 1)``.
        arm: Arms pulled in the last round, ``(replicas, agents)``.
        inverse: A_a^-1, ``(replicas, agents, dim, dim, arms)``.
        parameter: A_a^-1 b_a, which would be theta_a if beta were 0, ``(replicas, agents, dim, arms)``.
        coupling: B_a^T A_a^-1, ``(replicas, agents, shared, dim, arms)``, with B_a = sum x z^T over the pulls of arm a.
        shared_inverse: A_0^-1, ``(replicas, agents, shared, shared)``.
        shared_parameter: beta = A_0^-1 b_0, ``(replicas, agents, shared)``.
    """
    dim, shared = pulled.shape[2], shared_parameter.shape[2]
    product = np.empty(dim)
    residual, shared_product = np.empty(shared), np.empty(shared)
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            a = arm[r, j]
            x = pulled[r, j]
            surprise, weight = correct(
                inverse[r, j, :, :, a], parameter[r, j, :, a], x, reward[r, j, 0], product
            )
            root = np.sqrt(weight)
            for c in range(shared):
                left = x[c]
                for i in range(dim):
                    left -= coupling[r, j, c, i, a] * x[i]
                for i in range(dim):
                    coupling[r, j, c, i, a] += weight * left * product[i]
                residual[c] = root * left
            correct(shared_inverse[r, j], shared_parameter[r, j], residual, root * surprise, shared_product)


@inner_kernel
def _predict_hybrid(
    contexts, inverse, parameter, coupling, shared_inverse, shared_parameter, residual, product, mean, variance
):  # fmt: skip
    """Writes the estimated reward <z, beta> + <x, theta_a> of every arm of one agent, and the estimate's variance.

    With r = z - B_a^T A_a^-1 x the estimate is <r, beta> + <x, A_a^-1 b_a>, and its variance is
    r^T A_0^-1 r + x^T A_a^-1 x (Li et al. 2010, Algorithm 2, line 13), in units of the variance of the reward noise.

    Args:
        contexts: Contexts x of the arms, ``(dim, arms)``.
        inverse: A_a^-1, ``(dim, dim, arms)``.
        parameter: A_a^-1 b_a, ``(dim, arms)``.
        coupling: B_a^T A_a^-1, ``(shared, dim, arms)``.
        shared_inverse: A_0^-1, ``(shared, shared)``.
        shared_parameter: beta, ``(shared,)``.
        residual: Scratch, ``(shared, arms)``.
        product: Scratch, ``(arms,)``.
        mean: Receives the estimates, ``(arms,)``.
        variance: Receives the variances, ``(arms,)``.
    """
    mean[:] = 0.0
    variance[:] = 0.0
    add_own_products(parameter, contexts, 1.0, mean)
    add_own_forms(inverse, contexts, product, variance)
    for c in range(residual.shape[0]):
        for k in range(contexts.shape[1]):
            residual[c, k] = contexts[c, k]
        add_own_products(coupling[c], contexts, -1.0, residual[c])
    add_shared_products(shared_parameter, residual, residual.shape[1], mean)
    add_shared_forms(shared_inverse, residual, residual.shape[1], product, variance)


@allocating_kernel
def _choose_hybrid(contexts, inverse, parameter, coupling, shared_inverse, shared_parameter, alpha, arm):
    arms = contexts.shape[3]
    residual = np.empty((coupling.shape[2], arms))
    product, mean, variance = np.empty(arms), np.empty(arms), np.empty(arms)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            _predict_hybrid(
                contexts[r, j], inverse[r, j], parameter[r, j], coupling[r, j], shared_inverse[r, j],
                shared_parameter[r, j], residual, product, mean, variance,
            )  # fmt: skip
            for k in range(arms):
                # Rounding errors can make a tiny variance negative.
                mean[k] += alpha * np.sqrt(max(variance[k], 0.0))
            arm[r, j] = largest(mean)


class HybridLinUCB:
    """LinUCB with a shared parameter and one for each arm (Li et al. 2010, Algorithm 2), on own data.

    Models the reward as <z, beta> + <x, theta_a>, where z is x or its first dimensions, and pulls the arm with the
    largest ridge estimate of this reward plus alpha times the estimate's standard deviation; ties go to the lowest
    index. A round takes O(K d^2) operations for K arms and contexts of dimension d.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import HybridLinUCB
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = HybridLinUCB(alpha=0.5, shared=1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, alpha: float = 1.0, ridge: float = 1.0, shared: int | None = None) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Factor of the estimate's standard deviation in the upper bound, >= 0.
            ridge: Ridge of both regressions, > 0; the paper uses 1.
            shared: Number of the first dimensions of x that make up z; None for all of them.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._alpha = require_number("alpha", alpha, 0, np.inf)
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._shared = None if shared is None else require_integer("shared", shared, 1)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Contexts have fewer dimensions than ``shared``.
        """
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        shared = dim if self._shared is None else self._shared
        if shared > dim:
            raise UnfitError(f"shared is {shared}; at most {dim}, the dimension of contexts, is required")
        rows = seeds.shape
        # Before the first round A_a = ridge I, A_0 = ridge I and B_a = 0.
        inverse, shared_inverse = np.zeros((*rows, dim, dim, arms)), np.zeros((*rows, shared, shared))
        inverse[...] = (np.eye(dim) / self._ridge)[..., np.newaxis]
        shared_inverse[...] = np.eye(shared) / self._ridge
        own, coupling = np.zeros((*rows, dim, arms)), np.zeros((*rows, shared, dim, arms))
        self._ridges = (inverse, own, coupling, shared_inverse, np.zeros((*rows, shared)))
        self._arm = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        _observe_hybrid(
            observation["round"], observation["pulled_context"], observation["last_reward"], self._arm,
            *self._ridges,
        )  # fmt: skip
        _choose_hybrid(arms_last(observation["contexts"]), *self._ridges, self._alpha, self._arm)
        return self._arm


class DisjointLinUCB(HybridLinUCB):
    """LinUCB with a parameter for each arm (Li et al. 2010, Algorithm 1), on own data.

    Pulls the arm with the largest <x, A_a^-1 b_a> + alpha sqrt(x^T A_a^-1 x), where A_a = ridge I + sum x x^T and b_a =
    sum y x over the rounds in which arm a was pulled; ties go to the lowest index. It is made for contexts that belong
    to fixed arms. In environments that draw new contexts in each round and have one parameter for all arms, it learns
    this parameter separately for each arm index.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import DisjointLinUCB
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = DisjointLinUCB(alpha=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, alpha: float = 1.0, ridge: float = 1.0) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Factor of the estimate's standard deviation in the upper bound, >= 0.
            ridge: Ridge of the regressions, > 0; the paper uses 1.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(alpha, ridge)
        self._shared = 0
