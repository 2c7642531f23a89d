"""LinUCB and SupLinUCB, with one regression parameter for all arms, and a policy that pulls arms at random.

LinUCB chooses contexts by the rewards observed so far, so that its observations depend on each other. SupLinUCB (Chu et
al. 2011) keeps several regressions, called levels, and assigns each round to at most one of them. Given the contexts of
a level, its rewards are independent: arms of a level were chosen by the widths of confidence intervals, which do not
depend on the rewards of that level.

LinUCB with a parameter for each arm (Li et al. 2010) is here, too, alone or beside a parameter shared by all arms.
Arms are then the last axis of arrays, so that processors compute several arms at once.
"""

from math import ceil, log, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.linear.regressions import Confidence, choose, is_due
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays, everyone
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import (
    Ridges,
    add_own_forms,
    add_own_products,
    add_shared_forms,
    add_shared_products,
    arms_last,
    correct,
    largest,
    last_of,
    observe,
)
from fedbandit_envs.randomness.draws import Draws


class UniformArm:
    """Pulls an arm uniformly at random.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear.linucb import UniformArm
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = UniformArm()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores the seed of each agent; see :meth:`Policy.reset`."""
        self._seeds = seeds

    def act(self, observation: Arrays) -> Array:
        """Returns random arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        drawn = Draws.of_policy(self._seeds, observation["round"]).uniforms()
        return (drawn * observation["contexts"].shape[2]).astype(np.int64)


class LinUCB:
    r"""LinUCB on an agent's own data: upper confidence bounds from one ridge regression for all arms (Li et al. 2010).

    From the contexts $x_s$ of the arms that were pulled and their rewards $y_s$, and with ``ridge`` as $\lambda$,

    $$V = \lambda I + \sum_s x_s x_s^\top, \qquad b = \sum_s y_s x_s$$

    it pulls the arm whose context $x$ has the largest

    $$\langle x, V^{-1} b \rangle + \beta \, \sqrt{x^\top V^{-1} x}$$

    For contexts of dimension $d$ the radius is (Abbasi-Yadkori et al. 2011, Theorem 2)

    $$\beta = c \left( \sigma \sqrt{2 \ln(1 / \delta) + \ln \det V - d \ln \lambda} + \sqrt{\lambda} \, S \right)$$

    with $c$ for ``beta_scale``, $\sigma$ for ``noise_sd``, $\delta$ for ``failure`` and $S$ for ``parameter_bound``; or
    it is Li et al.'s constant ``alpha``.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import LinUCB
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = LinUCB(beta_scale=0.3)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(
        self,
        ridge: float = 1.0,
        noise_sd: float | None = None,
        parameter_bound: float = 1.0,
        failure: float = 0.01,
        beta_scale: float = 1.0,
        alpha: float | None = None,
    ) -> None:
        """Sets the policy's constants.

        Args:
            ridge: Multiple of I in V, > 0.
            noise_sd: R, the sub-Gaussian constant of rewards; None for the environment's public ``noise_sd``, or where
                there is none for 0.5, which holds for all rewards in an interval of length 1.
            parameter_bound: S, an upper bound of ||theta*||.
            failure: Probability, in (0, 1], that the confidence bounds fail in some round.
            beta_scale: Factor of the radius of the formula; 1 is the theory's, 0 means no exploration.
            alpha: A constant radius that replaces the formula; None for the formula.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._given_sd = None if noise_sd is None else require_number("noise_sd", noise_sd, 0, np.inf)
        self._parameter_bound = require_number("parameter_bound", parameter_bound, 0, np.inf)
        self._failure = require_number("failure", failure, 0, 1, open_below=True)
        self._beta_scale = require_number("beta_scale", beta_scale, 0, np.inf)
        self._constant = -1.0 if alpha is None else require_number("alpha", alpha, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        self._start(spec, seeds.shape, 1)

    def _start(self, spec: PolicySpec, rows: tuple[int, ...], estimators: int, alone: int = 0) -> None:
        """Starts without data.

        Args:
            spec: The environment's spaces.
            rows: Numbers of replicas and agents.
            estimators: Number of estimators of each agent, which are used in turn.
            alone: 1 if each agent has one more estimator, whose bounds cap those of the others; else 0.
        """
        self._dim = (spec.observation["contexts"].shape or (0, 0))[1]
        self._noise_sd = float(spec.public.get("noise_sd", 0.5)) if self._given_sd is None else self._given_sd
        self._ridges, self._confidence = self._without_data((*rows, estimators))
        self._alone, self._alone_confidence = self._without_data((*rows, alone))
        self._parameter = np.zeros((*rows, self._dim))
        self._arm = np.zeros(rows, np.int64)
        self._everyone = everyone(*rows, 1)
        # Of algorithms whose agents may choose when to send; see `_wants`.
        self._asks, self._due = spec.chooses_sending, 0.0
        self._synchronised = self._ridges.log_det.copy()
        self._waited, self._spread = np.zeros((2, *rows))
        self._send = np.zeros(rows, np.bool_)

    def _without_data(self, shape: tuple[int, ...]) -> tuple[Ridges, Confidence]:
        """Returns regressions without data, and their confidence bounds without noise."""
        ridges = Ridges.without_data(shape, self._dim, self._ridge)
        bias = np.full(shape, np.sqrt(self._ridge) * self._parameter_bound)
        return ridges, Confidence(ridges.log_det.copy(), np.ones(shape), bias, np.zeros(shape))

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        observe(*last_of(observation), np.empty(self._dim), *self._ridges)
        return self._choose(observation, -np.log(self._failure))

    def _choose(self, observation: Arrays, log_failure: float) -> Array:
        """Returns the arms with the largest upper confidence bounds, int64 ``(replicas, agents)``.

        Args:
            observation: The observation of this round.
            log_failure: ln(1/failure), for bounds that fail with probability ``failure``.
        """
        caps = (*self._alone, *self._alone_confidence, -log(self._failure / 2))
        choose(
            observation.get("active", self._everyone), observation["round"], arms_last(observation["contexts"]),
            (*self._ridges, *self._confidence, log_failure), caps if self._alone.moment.size else None,
            self._noise_sd, self._beta_scale, self._constant, np.empty((5, observation["contexts"].shape[2])),
            self._parameter, self._arm,
        )  # fmt: skip
        return self._arm

    def _with_requests(self, observation: Arrays, action: Array) -> Any:
        """Returns the action, with the requests to send where agents choose when to send."""
        if not self._asks:
            return action
        self._wants(observation, action)
        return {"action": action, "send": self._send}

    def _wants(self, observation: Arrays, action: Array) -> None:
        """Writes into ``_send`` which agents ask to send, given the arms they are about to pull.

        The condition is that of FedUCB (Dubey and Pentland 2020, Algorithm 1, line 12).
        """
        is_due(
            observation.get("active", self._everyone), observation["round"], observation["contexts"], action,
            self._ridges.inverse, self._ridges.log_det,
            self._synchronised, self._waited, self._spread, self._due, self._send,
        )  # fmt: skip


@allocating_kernel
def _observe(pulled, reward, level, inverse, parameter):
    """Adds the last round of each agent to the regression of the level at which its arm was chosen; none if it is -1.

    ``inverse`` and ``parameter``, V^-1 and theta of all levels, are updated in place; see :func:`_choose`.
    """
    product = np.empty(pulled.shape[2])
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            s = level[r, j]
            if s >= 0:
                correct(inverse[r, j, s], parameter[r, j, s], pulled[r, j], reward[r, j, 0], product)


@allocating_kernel
def _choose(contexts, inverse, parameter, alpha, narrow, arm, level):
    """Writes the arm that each agent pulls, and the level (a separate ridge regression) that learns from the round.

    Args:
        contexts: Contexts of all arms, ``(replicas, agents, dim, arms)``.
        inverse: V^-1 of every level s, with V = I + sum x x^T over the rounds Psi^s, ``(replicas, agents, levels, dim,
            dim)`` (Chu et al. 2011, Algorithm BaseLinUCB).
        parameter: theta = V^-1 b with b = sum y x, ``(replicas, agents, levels, dim)``.
        alpha: Factor of the widths alpha sqrt(x^T V^-1 x) of confidence intervals.
        narrow: 1/sqrt(T) for T rounds: if no interval is wider, the arm with the largest upper bound is pulled. It is
            at least 2^-S for S levels.
        arm: Receives the arms, ``(replicas, agents)``.
        level: Receives the level that learns from the round, counted from 0, or -1 for none, ``(replicas, agents)``.
    """
    dim, arms = contexts.shape[2:]
    product, width, bound = np.empty(arms), np.empty(arms), np.empty(arms)
    candidate = np.empty(arms, np.int64)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            across = contexts[r, j].copy()
            count = arms
            for k in range(arms):
                candidate[k] = k
            for s in range(inverse.shape[2]):
                width[:count] = 0.0
                add_shared_forms(inverse[r, j, s], across, count, product, width)
                for k in range(count):
                    # Rounding errors can make a tiny square of the width negative.
                    width[k] = alpha * np.sqrt(max(width[k], 0.0))
                    bound[k] = width[k]
                add_shared_products(parameter[r, j, s], across, count, bound)
                widest, best = largest(width[:count]), largest(bound[:count])
                wide = 0.5 ** (s + 1)
                if width[widest] <= narrow:
                    arm[r, j] = candidate[best]
                    level[r, j] = -1
                    break
                elif width[widest] <= wide:
                    least = bound[best] - 2.0 * wide
                    kept = 0
                    for k in range(count):
                        if bound[k] >= least:
                            candidate[kept] = candidate[k]
                            for i in range(dim):
                                across[i, kept] = across[i, k]
                            kept += 1
                    count = kept
                else:
                    arm[r, j] = candidate[widest]
                    level[r, j] = s
                    break


class SupLinUCB:
    r"""SupLinUCB on own data, one parameter for all arms (Chu et al. 2011, Algorithm SupLinUCB).

    The policy keeps $S = \lceil \ln T \rceil$ ridge regressions, called levels, but at least one, for $T$ rounds. A
    round goes through the levels $s = 1$ to $S$, starting with all arms. At level $s$ an arm with context $x$ has a
    confidence interval of width $\alpha \sqrt{x^\top V_s^{-1} x}$ around $\langle x, V_s^{-1} b_s \rangle$:

    * If all widths are at most $1 / \sqrt{T}$, the arm with the largest upper bound is pulled, and no level learns.
    * Otherwise, if all widths are at most $2^{-s}$, the arms whose upper bound is within $2^{1 - s}$ of the largest are
      kept, and the round goes on to level $s + 1$.
    * Otherwise the arm with the largest width is pulled, and level $s$ alone learns from it. (The paper leaves open
      which one of the arms wider than $2^{-s}$ is pulled.)

    Ties go to the lowest index. Every round ends at one of the levels: $2^{-S}$ is below $1 / \sqrt{T}$, so that at
    level $S$ the second case cannot occur.

    References:
        W. Chu, L. Li, L. Reyzin, R. E. Schapire: Contextual Bandits with Linear Payoff Functions. AISTATS 2011.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear.linucb import SupLinUCB
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = SupLinUCB(alpha=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, alpha: float | None = None, failure: float = 0.01) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Factor of the widths, >= 0; None for R sqrt(2 ln(2 T K / failure)) with T rounds, K arms and the
                environment's public ``noise_sd`` R, which is the paper's for rewards in [0, 1], whose R is 1/2. It
                holds for contexts of norm at most 1.
            failure: Failure probability delta in the formula for ``alpha``, in (0, 1].

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._failure = require_number("failure", failure, 0, 1, open_below=True)
        self._alpha = None if alpha is None else require_number("alpha", alpha, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        horizon = spec.horizon
        levels = max(ceil(log(horizon)), 1)
        self._inverse = np.tile(np.eye(dim), (*seeds.shape, levels, 1, 1))
        self._parameter = np.zeros((*seeds.shape, levels, dim))
        self._noise_sd = float(spec.public.get("noise_sd", 0.5))
        theory = 2 * self._noise_sd * sqrt(log(2 * horizon * arms / self._failure) / 2)
        self._radius = theory if self._alpha is None else self._alpha
        self._narrow = 1 / sqrt(horizon)
        self._arm = np.zeros(seeds.shape, np.int64)
        self._level = np.full(seeds.shape, -1, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        regressions = (self._inverse, self._parameter)
        _observe(observation["pulled_context"], observation["last_reward"], self._level, *regressions)
        _choose(
            arms_last(observation["contexts"]), *regressions, self._radius, self._narrow, self._arm, self._level
        )  # fmt: skip
        return self._arm


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
    r"""LinUCB with a shared parameter and one for each arm (Li et al. 2010, Algorithm 2), on own data.

    Models the reward of arm $a$ as $\langle z, \beta \rangle + \langle x, \theta_a \rangle$, where $z$ is the context
    $x$ or its first dimensions. With the ridge estimate $r_a$ of this reward and its standard deviation $s_a$ it pulls
    the arm with the largest $r_a + \alpha s_a$; ties go to the lowest index. A round takes O(K d^2) operations for K
    arms and contexts of dimension d.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear.linucb import HybridLinUCB
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
            shared: Number of the first dimensions of x that make up z; None for all of them, 0 for no shared parameter.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._alpha = require_number("alpha", alpha, 0, np.inf)
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._shared = None if shared is None else require_integer("shared", shared, 0)

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
        inverse = np.zeros((*rows, dim, dim, arms)) + (np.eye(dim) / self._ridge)[..., np.newaxis]
        shared_inverse = np.zeros((*rows, shared, shared)) + np.eye(shared) / self._ridge
        own, coupling = np.zeros((*rows, dim, arms)), np.zeros((*rows, shared, dim, arms))
        self._ridges = (inverse, own, coupling, shared_inverse, np.zeros((*rows, shared)))
        self._arm = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        _observe_hybrid(*last_of(observation), self._arm, *self._ridges)
        _choose_hybrid(arms_last(observation["contexts"]), *self._ridges, self._alpha, self._arm)
        return self._arm


def disjoint_linucb(alpha: float = 1.0, ridge: float = 1.0) -> HybridLinUCB:
    r"""Returns LinUCB with a parameter for each arm and no shared one (Li et al. 2010, Algorithm 1), on own data.

    It pulls the arm $a$ with the largest

    $$\langle x_a, A_a^{-1} b_a \rangle + \alpha \sqrt{x_a^\top A_a^{-1} x_a}, \qquad
    A_a = \lambda I + \sum x x^\top, \quad b_a = \sum y x$$

    with $\lambda$ for ``ridge`` and sums over the rounds in which arm $a$ was pulled; ties go to the lowest index. It
    is made for contexts that belong to fixed arms. In environments that draw new contexts in each round and have one
    parameter for all arms, it learns this parameter separately for each arm index.

    Args:
        alpha: Factor of the estimate's standard deviation in the upper bound, >= 0.
        ridge: Ridge of the regressions, > 0; the paper uses 1.

    Raises:
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range.
    """
    return HybridLinUCB(alpha, ridge, shared=0)
