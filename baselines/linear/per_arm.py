"""LinUCB where every arm has a parameter of its own (Li et al. 2010): alone, or beside a shared one.

Per-arm arrays keep arms in their last axis, so that arms fill vector lanes when all of them are judged.
"""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.checks import require_integer, require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.linear.forms import (
    add_own_forms,
    add_own_products,
    add_shared_forms,
    add_shared_products,
)
from fedbandit_envs.linear.ridge import arms_last, correct, largest
from fedbandit_envs.spaces import Spaces


class OwnRidges(NamedTuple):
    """A ridge regression for every arm; A_a = ridge I + sum x x^T and b_a = sum y x over its pulls.

    Attributes:
        inverse: A_a^-1, ``(replicas, agents, dim, dim, arms)``.
        parameter: A_a^-1 b_a, ``(replicas, agents, dim, arms)``.
    """

    inverse: Array
    parameter: Array

    @classmethod
    def without_data(cls, rows: tuple[int, ...], dim: int, arms: int, ridge: float) -> "OwnRidges":
        """Starts with A_a = ridge I.

        Args:
            rows: ``(replicas, agents)``.
            dim: Dimension of contexts.
            arms: Number of arms.
            ridge: > 0.
        """
        inverse = np.zeros((*rows, dim, dim, arms))
        inverse[...] = (np.eye(dim) / ridge)[..., np.newaxis]
        return cls(inverse, np.zeros((*rows, dim, arms)))


class HybridRidges(NamedTuple):
    """A ridge regression on [z; x at the arm's own place], kept as blocks; B_a = sum x z^T over the arm's pulls.

    In Algorithm 2's names, A_0 and b_0 are what is left of the shared block once own parameters are eliminated.
    Nothing keeps B_a or the moments themselves.

    Attributes:
        inverse: A_a^-1, ``(replicas, agents, dim, dim, arms)``.
        parameter: A_a^-1 b_a, ``(replicas, agents, dim, arms)``: theta_a, were beta 0.
        coupling: B_a^T A_a^-1, ``(replicas, agents, shared, dim, arms)``.
        shared_inverse: A_0^-1, ``(replicas, agents, shared, shared)``.
        shared_parameter: beta = A_0^-1 b_0, ``(replicas, agents, shared)``.
    """

    inverse: Array
    parameter: Array
    coupling: Array
    shared_inverse: Array
    shared_parameter: Array

    @classmethod
    def without_data(
        cls, rows: tuple[int, ...], dim: int, arms: int, shared: int, ridge: float
    ) -> "HybridRidges":
        """Starts with A_0 = ridge I, A_a = ridge I and B_a = 0.

        Args:
            rows: ``(replicas, agents)``.
            dim: Dimension of contexts.
            arms: Number of arms.
            shared: Dimension of z, at most ``dim``.
            ridge: > 0.
        """
        shared_inverse = np.zeros((*rows, shared, shared))
        shared_inverse[...] = np.eye(shared) / ridge
        return cls(
            *OwnRidges.without_data(rows, dim, arms, ridge),
            np.zeros((*rows, shared, dim, arms)),
            shared_inverse,
            np.zeros((*rows, shared)),
        )


@kernel
def observe_own(round_, pulled, reward, arm, inverse, parameter):
    """Takes in the last round of all rows.

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``; nothing happens before the first.
        pulled: Contexts of the last round, ``(replicas, agents, dim)``.
        reward: Its rewards, ``(replicas, agents, 1)``.
        arm: Its arms, ``(replicas, agents)``.
        inverse: See :class:`OwnRidges`.
        parameter: Likewise.
    """
    product = np.empty(pulled.shape[2])
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            if round_[r, j, 0] == 0:
                continue
            a = arm[r, j]
            correct(inverse[r, j, :, :, a], parameter[r, j, :, a], pulled[r, j], reward[r, j, 0], product)


@kernel
def predict_own(contexts, inverse, parameter, product, mean, variance):
    """Writes <x, theta_a> and x^T A_a^-1 x for every arm of one row.

    Args:
        contexts: ``(dim, arms)``.
        inverse: A_a^-1, ``(dim, dim, arms)``.
        parameter: theta_a, ``(dim, arms)``.
        product: Scratch, ``(arms,)``.
        mean: Receives the estimates, ``(arms,)``.
        variance: Receives the forms, ``(arms,)``.
    """
    mean[:] = 0.0
    variance[:] = 0.0
    add_own_products(parameter, contexts, 1.0, mean)
    add_own_forms(inverse, contexts, product, variance)


@kernel
def observe_hybrid(
    round_, pulled, reward, arm, inverse, parameter, coupling, shared_inverse, shared_parameter
):  # fmt: skip
    """Takes in the last round of all rows, by rank-one updates alone.

    The arm's own parameter explains <x, A_a^-1 b_a> of the reward, and B_a^T A_a^-1 x of z, with an error whose
    variance is 1 + x^T A_a^-1 x times the noise's. What is left of both is one observation for the shared regression:
    A_0 += r r^T / (1 + x^T A_a^-1 x) with r = z - B_a^T A_a^-1 x. That is what lines 17, 18, 22 and 23 come to
    (eliminating the arm's block before and after the observation, by Schur complements).

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``; nothing happens before the first.
        pulled: Contexts of the last round, ``(replicas, agents, dim)``.
        reward: Its rewards, ``(replicas, agents, 1)``.
        arm: Its arms, ``(replicas, agents)``.
        inverse: See :class:`HybridRidges`; so are the others.
        parameter: Likewise.
        coupling: Likewise.
        shared_inverse: Likewise.
        shared_parameter: Likewise.
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


@kernel
def predict_hybrid(
    contexts, inverse, parameter, coupling, shared_inverse, shared_parameter, residual, product, mean, variance
):  # fmt: skip
    """Writes <z, beta> + <x, theta_a> and its variance (line 13) for every arm of one row.

    With r = z - B_a^T A_a^-1 x these are <r, beta> + <x, A_a^-1 b_a> and r^T A_0^-1 r + x^T A_a^-1 x.

    Args:
        contexts: ``(dim, arms)``.
        inverse: A_a^-1, ``(dim, dim, arms)``.
        parameter: A_a^-1 b_a, ``(dim, arms)``.
        coupling: B_a^T A_a^-1, ``(shared, dim, arms)``.
        shared_inverse: A_0^-1, ``(shared, shared)``.
        shared_parameter: beta, ``(shared,)``.
        residual: Scratch, ``(shared, arms)``.
        product: Scratch, ``(arms,)``.
        mean: Receives the estimates, ``(arms,)``.
        variance: Receives the variances, in units of the noise's, ``(arms,)``.
    """
    predict_own(contexts, inverse, parameter, product, mean, variance)
    for c in range(residual.shape[0]):
        residual[c] = contexts[c]
        add_own_products(coupling[c], contexts, -1.0, residual[c])
    add_shared_products(shared_parameter, residual, residual.shape[1], mean)
    add_shared_forms(shared_inverse, residual, residual.shape[1], product, variance)


@kernel
def _most_hopeful(mean, variance, alpha):
    """Returns the arm with the largest mean + alpha sqrt(variance); ``mean`` is used up."""
    for k in range(mean.shape[0]):
        # Rounding may leave a tiny negative variance.
        mean[k] += alpha * np.sqrt(max(variance[k], 0.0))
    return largest(mean)


@kernel
def _choose_own(contexts, inverse, parameter, alpha, arm):
    arms = contexts.shape[3]
    product, mean, variance = np.empty(arms), np.empty(arms), np.empty(arms)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            predict_own(contexts[r, j], inverse[r, j], parameter[r, j], product, mean, variance)
            arm[r, j] = _most_hopeful(mean, variance, alpha)


@kernel
def _choose_hybrid(contexts, inverse, parameter, coupling, shared_inverse, shared_parameter, alpha, arm):
    arms = contexts.shape[3]
    residual = np.empty((coupling.shape[2], arms))
    product, mean, variance = np.empty(arms), np.empty(arms), np.empty(arms)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            predict_hybrid(
                contexts[r, j], inverse[r, j], parameter[r, j], coupling[r, j], shared_inverse[r, j],
                shared_parameter[r, j], residual, product, mean, variance,
            )  # fmt: skip
            arm[r, j] = _most_hopeful(mean, variance, alpha)


class DisjointLinUCB:
    """LinUCB with a parameter for each arm (Li et al. 2010, Algorithm 1), on own data.

    Pulls the arm that maximises <x, A_a^-1 b_a> + alpha sqrt(x^T A_a^-1 x) with A_a = ridge I + sum x x^T and
    b_a = sum y x over the rounds in which arm a was pulled; ties go to the lowest index. Made for fixed features, where
    an arm is the same arm in every round; where contexts are drawn anew it learns the shared parameter K times over.
    """

    def __init__(self, alpha: float = 1.0, ridge: float = 1.0) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Multiplies the bound's width, >= 0.
            ridge: > 0; the paper's is 1.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        require_number("alpha", alpha, 0, np.inf)
        require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._alpha = float(alpha)
        self._ridge = float(ridge)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        arms, dim = spaces.observation["contexts"].shape or (0, 0)
        self._ridges = OwnRidges.without_data(seeds.shape, dim, arms, self._ridge)
        self._arm = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        observe_own(
            observation["round"], observation["pulled_context"], observation["last_reward"], self._arm,
            *self._ridges,
        )  # fmt: skip
        _choose_own(arms_last(observation["contexts"]), *self._ridges, self._alpha, self._arm)
        return self._arm


class HybridLinUCB:
    """LinUCB with a shared parameter and one for each arm (Li et al. 2010, Algorithm 2), on own data.

    Models the reward as <z, beta> + <x, theta_a>, where z is x or its first dimensions, and pulls the arm that
    maximises the ridge estimate of that plus alpha times the root of its variance; ties go to the lowest index. Nothing
    is inverted: a round costs O(K d^2).
    """

    def __init__(self, alpha: float = 1.0, ridge: float = 1.0, shared: int | None = None) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Multiplies the bound's width, >= 0.
            ridge: > 0; the paper's is 1.
            shared: Dimension of z, the first so many dimensions of x; None for all of them.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        require_number("alpha", alpha, 0, np.inf)
        require_number("ridge", ridge, 0, np.inf, open_below=True)
        if shared is not None:
            require_integer("shared", shared, 1)
        self._alpha = float(alpha)
        self._ridge = float(ridge)
        self._shared = shared

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Contexts have fewer dimensions than are to be shared.
        """
        arms, dim = spaces.observation["contexts"].shape or (0, 0)
        shared = dim if self._shared is None else self._shared
        if shared > dim:
            raise UnfitError(f"shared is {shared}; at most {dim}, the dimension of contexts, is required")
        self._ridges = HybridRidges.without_data(seeds.shape, dim, arms, shared, self._ridge)
        self._arm = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        ridges = self._ridges
        observe_hybrid(
            observation["round"],
            observation["pulled_context"],
            observation["last_reward"],
            self._arm,
            *ridges,
        )
        _choose_hybrid(
            arms_last(observation["contexts"]), ridges.inverse, ridges.parameter, ridges.coupling,
            ridges.shared_inverse, ridges.shared_parameter, self._alpha, self._arm,
        )  # fmt: skip
        return self._arm
