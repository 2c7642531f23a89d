"""The server policy of Fed-PE, which plans with an optimal design which arms each agent explores in a phase.

R. Huang, W. Wu, J. Yang, C. Shen: Federated Linear Contextual Bandits, NeurIPS 2021.
"""

from itertools import count
from math import log

import numpy as np

from fedbandit_envs.baselines.policy import downloads_of, require_uploads
from fedbandit_envs.baselines.servers.plans import complete
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag, require_number
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import dot, estimate
from fedbandit_envs.wrappers.transport.server_policy import Ask

# 2 to this power is the length of the longest phase, far longer than any episode.
_LONGEST = 40


class PhasedServer:
    r"""Eliminates arms of agents in phases that double, for fixed features and a parameter $\theta_a$ for each arm $a$.

    At the start each agent $i$ pulls each of its $K$ arms once. Phase $p = 1, 2, \ldots$ has $2^p + K$ rounds. Before
    each:

    1. Each agent uploads its sums of rewards, times $x_{ia} / (x_{ia}^\top x_{ia})$ for its features $x_{ia}$ of arm
       $a$. The server divides their growth by the numbers of pulls of the phase, which it knows: $u_{ia}$. The first
       upload tells it the directions $e_{ia}$ of $u_{ia}$, of length 1, up to their signs, which do not matter.
    2. The server estimates $\theta_a = V_a^+ \sum_i f_{ia} u_{ia}$ with $V_a = \sum_i f_{ia} e_{ia} e_{ia}^\top$, where
       $f_{ia}$ are the pulls that it planned, and sends $\theta_a$ and $V_a^+$ to all agents. Data of earlier phases
       are not used.
    3. Each agent drops arms by confidence bounds and reports which arms are left and which is the best one
       (:class:`~fedbandit_envs.baselines.linear.served.PhasedReporter`).
    4. The server divides $2^p$ pulls of each agent among its arms by an optimal design
       (:func:`~fedbandit_envs.baselines.servers.phases.optimal_design`), rounded up: $f_{ia}$. In what is left of the
       phase's rounds an agent pulls its best arm; these rewards count in $u_{ia}$.

    The squared radius is $\alpha \sigma^2 x^\top V_a^+ x / l^2$ for the standard deviation $\sigma$ of rewards and the
    smallest norm $l$ of features. For $M$ agents and the $H$ phases that begin within the episode

    $$\alpha = \min \left( 2 \ln(2 M K H / \delta), \; 2 \ln(K H / \delta) + d \ln k + d \right)$$

    where $k$ is the smallest of 1, 1.1, 1.2, ... with $k d \ge 2 \ln(K H / \delta) + d \ln k + d$.

    With ``enhanced`` bounds come from all phases together: data of the start have the weight $n = 1$, data of phase $p$
    the weight $n = 2^p$, $N$ is the sum of the weights, and the radius is $\sigma \sqrt{S \ln(a S)} / N$ with
    $S = d K / M + \sum n^2 x^\top V_a^+ x / l^2$ and $a = M (M K / \delta)^2 / (K d)$. With ``collaborative`` the
    server is told the norms of features, observations count in $V_a = \sum_i f_{ia} x_{ia} x_{ia}^\top$ by their
    features' norm, and $l$ is 1.

    Agents upload totals, so that no message may be lost. They are written by a reporter; ``BASELINES["Fed-PE"].wrap``
    puts both around an environment.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["Fed-PE"].wrap(make_federation("FedFixed-v0"))
        >>> env.reset_batch([0]).observation["server_pulls"].shape
        (1, 100, 1, 10)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(self, failure: float = 0.1, enhanced: bool = False, collaborative: bool = False) -> None:
        """Sets the server's constants.

        Args:
            failure: delta, the probability that confidence bounds fail, in (0, 1).
            enhanced: Whether bounds come from all phases.
            collaborative: Whether the server weighs observations by the norms of features.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._failure = require_number("failure", failure, 0, 1, open_below=True, open_above=True)
        self._enhanced = require_flag("enhanced", enhanced)
        self._collaborative = require_flag("collaborative", collaborative)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of a plan: pulls of arms, rounds of the phase, and the arm to rest on.

        Raises:
            UnfitError: Agents' messages are not those of a :class:`PhasedReporter`.
        """
        known = ("lengths",) if self._collaborative else ()
        require_uploads(spec, "rewards", "shortest", "left", "best", *known)
        arms = (spec.release["rewards"].shape or (0,))[0]
        return downloads_of("int64", pulls=[1, arms], rounds=[], rest=[])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with one pull of each arm; see :meth:`.ServerPolicy.reset`."""
        arms, dim = spec.release["rewards"].shape or (0, 0)
        rows = len(seeds), spec.agents
        self._variance = float(spec.public["reward_sd"]) ** 2
        self._squared = self._theory(spec.agents, arms, dim, spec.horizon)
        self._base = dim * arms / spec.agents
        self._logarithm = log(spec.agents * (spec.agents * arms / self._failure) ** 2 / (arms * dim))
        self._phase, self._weight = np.zeros(rows[0], np.int64), np.zeros(rows[0])
        self._heard, self._asked = np.zeros((2, *rows), np.bool_)
        self._pulls, self._left = np.ones((*rows, arms), np.int64), np.ones((*rows, arms), np.bool_)
        self._best, self._rounds = np.zeros(rows, np.int64), np.full(rows[0], arms)
        self._sums, self._before, self._directions = np.zeros((3, *rows, arms, dim))
        self._lengths, self._shortest = np.ones((*rows, arms)), np.ones(rows)
        self._estimate = np.zeros((rows[0], arms, dim))
        self._spread = np.zeros((rows[0], arms, dim, dim))
        return self._plan()

    def _theory(self, agents: int, arms: int, dim: int, horizon: int) -> float:
        """Returns the squared radius in units of the variance of rewards and of ||x||^2_{V^+} / l^2."""
        phases = next(p for p in count(1) if 2 ** (p + 1) - 2 + (p + 1) * arms >= horizon)
        own = 2 * log(arms * phases / self._failure)
        k = next(k for k in (1 + i / 10 for i in count()) if k * dim >= own + dim * log(k) + dim)
        return min(2 * log(2 * agents * arms * phases / self._failure), own + dim * log(k) + dim)

    def answer(self, uploads: Arrays, mask: Array) -> Arrays | Ask:
        """Estimates, asks which arms are left, and plans the next phase; see :meth:`.ServerPolicy.answer`."""
        reported = mask & self._asked
        arms = np.arange(self._left.shape[-1])
        best = np.clip(uploads["best"], 0, arms[-1]).astype(np.int64)
        self._best[reported] = best[reported]
        # The best arm is left, whatever a faulty message says.
        left = (uploads["left"] > 0.5) | (arms == best[..., np.newaxis])
        self._left[reported] = left[reported]
        for r in np.flatnonzero(reported.any(axis=1)).tolist():
            self._begin(r)
        self._asked[reported.any(axis=1)] = False
        new = mask & ~reported
        self._sums[new], self._shortest[new] = uploads["rewards"][new], uploads["shortest"][new]
        if self._collaborative:
            self._lengths[new] = uploads["lengths"][new]
        done = complete(self._heard, new)
        if not done.any():
            return self._plan()
        for r in np.flatnonzero(done).tolist():
            self._estimate_arms(r)
        self._asked[done] = True
        weight = np.maximum(self._weight, 1e-100)[:, np.newaxis, np.newaxis]
        question = {
            "estimate": self._estimate / weight,
            "spread": self._spread / (weight**2)[..., np.newaxis],
            "radius": np.array([self._radius(w) for w in weight.ravel().tolist()]),
        }
        told = {name: array[:, np.newaxis] for name, array in question.items()}
        return Ask({"left": self._left, **told}, self._asked)

    def _estimate_arms(self, r: int) -> None:
        """Estimates the parameters of a replica from its last phase."""
        pulls, rested = self._pulls[r], self._rounds[r] - self._pulls[r].sum(axis=-1, keepdims=True)
        pulled = pulls + rested * (np.arange(pulls.shape[-1]) == self._best[r, :, np.newaxis])
        means = (self._sums[r] - self._before[r]) / np.maximum(pulled, 1)[..., np.newaxis]
        self._before[r] = self._sums[r]
        if self._phase[r] == 0:
            norms = np.linalg.norm(means, axis=-1, keepdims=True)
            self._directions[r] = means / np.maximum(norms, 1e-300)
        weights, e = pulls * self._lengths[r] ** 2, self._directions[r]
        gram = np.einsum("ia,iad,iae->ade", weights, e, e)
        inverse = np.linalg.pinv(gram, rcond=_RANK, hermitian=True)
        estimate = np.einsum("ade,iae->ad", inverse, weights[..., np.newaxis] * means)
        # With the norms of features known, variances are those of observations, and need no bound.
        shortest = 1.0 if self._collaborative else np.abs(self._shortest[r]).min()
        # The data are those with which phase self._phase + 1 begins.
        weight, kept = (2.0 ** self._phase[r], 1.0) if self._enhanced else (1.0, 0.0)
        self._weight[r] = kept * self._weight[r] + weight
        self._estimate[r] = kept * self._estimate[r] + weight * estimate
        self._spread[r] = kept * self._spread[r] + weight**2 * inverse / max(shortest, 1e-9) ** 2

    def _begin(self, r: int) -> None:
        """Plans the next phase of a replica."""
        self._phase[r] += 1
        length = 2 ** min(int(self._phase[r]), _LONGEST)
        shares = optimal_design(self._directions[r], self._left[r])
        # Rounding must not turn a share of 1 + 1e-16 into one pull more.
        self._pulls[r] = np.ceil(shares * length - 1e-9)
        self._rounds[r] = length + self._left.shape[-1]

    def _radius(self, weight: float) -> list[float]:
        """Returns base, constant and slope of the squared radius (base + s) (constant + slope ln(base + s)).

        Here s is x^T (spread) x for an agent's features x.

        Args:
            weight: The sum of the weights of all phases in the estimate.
        """
        if not self._enhanced:
            return [0.0, self._variance * self._squared, 0.0]
        return [self._base / weight**2, self._variance * (self._logarithm + 2 * log(weight)), self._variance]

    def _plan(self) -> Arrays:
        return {"pulls": self._pulls[:, :, np.newaxis], "rounds": self._rounds, "rest": self._best}


# Eigenvalues below this multiple of the largest one count as 0: directions that no agent's features have.
_RANK = 1e-9


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
    inverse = np.linalg.pinv(matrices, rcond=_RANK, hermitian=True)
    ranks = np.einsum("ade,aed->", matrices, inverse)
    for _ in range(sweeps):
        _sweep(directions, kept, shares, inverse)
        variance = np.einsum("iad,ade,iae->ia", directions, inverse, directions)
        if np.where(kept, variance, 0.0).max(axis=1).sum() - ranks <= gap:
            break
    return shares


@allocating_kernel
def _sweep(directions, kept, shares, inverse):
    """Improves the shares of each agent once.

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
            estimate(inverse[a], directions[i, a], product[a])
            variance[a] = dot(directions[i, a], product[a])
            # Without other pulls along e the variance is 1 / pi: rounding must not make the rest negative.
            rest[a] = max(1.0 / max(variance[a], 1e-300) - shares[i, a], 0.0)
        # At the level the sum of max(0, level - rest) over the kept arms is 1: it lies above the least of them.
        level, total = np.inf, 1.0
        for n, least in enumerate(np.sort(rest[kept[i]])):
            if least < level:
                total += least
                level = total / (n + 1)
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
