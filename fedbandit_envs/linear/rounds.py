"""Contexts, rewards and rounds of linear problems (compiled), and how much a round changes the released statistic."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import ceil, comb, sqrt
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import inner_kernel, kernel
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Sensitivity, pairs_of
from fedbandit_envs.randomness.draws import EpisodeRandomness, normal_pair, threefry, u32, uniform
from fedbandit_envs.randomness.streams import Purpose


class Instances(NamedTuple):
    """The linear bandits of an episode, one for each replica.

    Attributes:
        randomness: Generator of the random numbers of the episode's rounds.
        parameter: theta*, ``(replicas, dim)``; where each arm has its own, the first arm's.
        contexts: The array that the distribution fills with contexts, ``(replicas, agents, dim, arms)``.
        means: The array that the distribution fills with <x, theta*>, ``(replicas, agents, arms)``.
        seeds: Seed of each replica's instance, for quantities that are drawn once and stay fixed during the episode.
    """

    randomness: EpisodeRandomness
    parameter: Array
    contexts: Array
    means: Array
    seeds: Sequence[int]


class Contexts:
    """A distribution of the contexts that agents are offered; the base class of all of them.

    Attributes:
        shape: Shape of given contexts, ``(dim,)``, ``(arms, dim)`` or ``(agents, arms, dim)``; () if they are drawn.
        parameter: theta*, where it follows from data; else None.
        longest: The largest norm of a context, where contexts are the user's data; else None.
        exact: Whether data say the expected rewards of arms, so that no theta* can be chosen.
        pool_size: Number of vectors in the pool that contexts come from; 0 without one, and where arms are the pool.
        index: The number in the pool of each vector that is offered, ``(replicas, agents, arms)``; only with a pool.
        fill: The kernel that draws a round. It takes ``active``, the key and the round of random numbers, theta*, the
            entries of ``data``, and the arrays that it fills: contexts and <x, theta*>.
        data: What the kernel needs further, at the latest since :meth:`begin`.
    """

    shape: tuple[int, ...] = ()
    parameter: Array | None = None
    longest: float | None = None
    exact = False
    pool_size = 0
    index: Array
    fill: ClassVar[Callable[..., None]]
    data: tuple[Any, ...] = ()

    def means(self, parameter: Array | None) -> Array | None:
        """Returns all expected rewards that there can be; None where they are not known in advance.

        Args:
            parameter: theta*, ``(dim,)``, or one for each arm, ``(arms, dim)``; None where it is drawn.
        """
        return None

    def parameter_of(self, seed: int, parameter: Array) -> Array:
        """Returns theta* in the instance of a seed, given the parameter of all instances."""
        return parameter

    def deal(self, agents: int, arms: int, rounds: int) -> None:
        """Deals data to the agents, and raises a ``ValueError`` if there are too few for all rounds."""

    def begin(self, instances: Instances) -> None:
        """Starts an episode."""
        self._draws = instances.randomness.draws(Purpose.CONTEXT)
        self._parameter = instances.parameter

    def draw(self, active: Array, contexts: Array, means: Array) -> None:
        """Writes the contexts of the next round.

        Args:
            active: Whether each agent acts, bool ``(replicas, agents)``; rows of others stay as they are.
            contexts: Output: contexts, ``(replicas, agents, dim, arms)``.
            means: Output: <x, theta*>, ``(replicas, agents, arms)``.
        """
        self.fill(active, *self._draws, self._parameter, *self.data, contexts, means)


@kernel(inline="always")
def fraction(word):
    """Returns a float64 number uniform on (0, 1), with 32 random bits, from one random 32-bit word."""
    return (np.float64(word) + 0.5) * 2.0**-32


TERMS = 20
"""Number of terms of the polynomial."""

_STEPS = 8
"""Largest number of steps of the iteration; three suffice, unless F is too steep for float64."""
_ENOUGH = 1e-5
"""The iteration ends after a step in ln w that is smaller than this: the remaining error is of its third power."""


def _polynomial() -> list[float]:
    """Returns the coefficients c_n of a polynomial in t that approximates 1 / (1 + t) on [0, 1].

    The polynomial is (1 - P(t) / P(-1)) / (1 + t) with P(t) = T_n(1 - 2 t), where T_n is Chebyshev's polynomial of
    degree n = ``TERMS``; its error is at most 2 / 5.8^n (Cohen, Rodriguez Villegas, Zagier: Convergence acceleration of
    alternating series, Experimental Mathematics 2000).
    """
    chebyshev = [(-4) ** k * TERMS * comb(TERMS + k, 2 * k) // (TERMS + k) for k in range(TERMS + 1)]
    at_minus_one = sum(map(abs, chebyshev))
    # The coefficients of P(-1) - P(t), but for the highest power; the division by 1 + t is Horner's.
    rest = [at_minus_one - chebyshev[0], *(-factor for factor in chebyshev[1:TERMS])]
    return [factor / at_minus_one for factor in accumulate(rest, lambda last, factor: factor - last)]


_C = np.array(_polynomial())


@kernel(inline="always")
def _below_half(probability, log_scale, mu, factor):
    """Returns the quantile x, if it is at most 1/2: the solution of F(x) = probability.

    ``factor[n]`` is c_n / (mu + n), and ``log_scale`` is ln(sin(pi mu)/pi).
    """
    log_target = np.log(probability) - log_scale
    # The starting point solves F(x) = probability with F approximated by a power of w. Halley's method then improves
    # it in ln w, of which ln F is a concave and nearly linear function.
    y = (log_target + np.log(mu)) / mu
    y = 0.0 if y > 0.0 else y
    for _ in range(_STEPS):
        w = np.exp(y)
        square = w * w
        even, odd = factor[TERMS - 2], factor[TERMS - 1]
        for n in range(TERMS - 4, -1, -2):
            even = even * square + factor[n]
            odd = odd * square + factor[n + 1]
        series = even + w * odd
        slope = 1.0 / ((1.0 + w) * series)
        newton = (mu * y + np.log(series) - log_target) / slope
        step = newton / (1.0 - 0.5 * newton * (mu - slope - w / (1.0 + w)))
        y -= step
        if abs(step) < _ENOUGH:
            break
    w = np.exp(0.0 if y > 0.0 else y)
    return w / (1.0 + w)


@inner_kernel
def arcsine_quantile(mu, probability, factor):
    """Returns the quantile of Beta(mu, 1 - mu).

    Args:
        mu: Mean of the distribution, in (0, 1).
        probability: Value of the distribution function at the quantile, in [0, 1).
        factor: Scratch array, ``(TERMS,)``.
    """
    if probability <= 0.0:
        return 0.0
    log_scale = np.log(np.sin(np.pi * (mu if mu < 0.5 else 1.0 - mu)) / np.pi)
    half = 0.0
    for n in range(TERMS):
        factor[n] = _C[n] / (mu + n)
    for n in range(TERMS):
        half += factor[n]
    half *= np.exp(log_scale)
    above = probability > half
    if above:
        mu, probability = 1.0 - mu, 1.0 - probability
        for n in range(TERMS):
            factor[n] = _C[n] / (mu + n)
    quantile = _below_half(probability, log_scale, mu, factor)
    return 1.0 - quantile if above else quantile


RewardName = Literal["beta", "bernoulli", "normal", "logistic"]

_BETA, _NORMAL = (get_args(RewardName).index(name) for name in ("beta", "normal"))


@kernel
def draw_rewards(active, arm, means, law, sd, bound, offset, scratch, key, round_, reward, clipped):
    """Draws the rewards of one round.

    The reward of an agent in a round is a monotone function of the mean and of one random number. So with common random
    numbers, an arm with a larger mean never gives a smaller reward.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; rewards of others are 0.
        arm: Arms pulled, int64 ``(replicas, agents)``.
        means: Expected rewards mu of all arms, ``(replicas, agents, arms)``.
        law: The place of a distribution in :data:`RewardName`: Beta(mu, 1 - mu), as in the FedUCB paper; Bernoulli(mu);
            N(mu, sd^2); or Bernoulli(mu) again where mu is a logistic function of <x, theta*>.
        sd: Standard deviation of normal rewards.
        bound: B; rewards are clipped to [-B, B].
        offset: Number that is added to every reward before it is clipped.
        scratch: Scratch array, ``(TERMS,)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        reward: Output: rewards, ``(replicas, agents)``.
        clipped: Output: whether each was clipped, bool ``(replicas, agents)``.
    """
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            paid = 0.0
            if active[r, j]:
                mean = means[r, j, arm[r, j]]
                x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(0))
                if law == _NORMAL:
                    paid = mean + sd * np.float64(normal_pair(x, y)[0])
                elif law != _BETA:
                    paid = np.float64(uniform(x, y) >= 1.0 - mean)
                elif 0.0 < mean < 1.0:
                    paid = arcsine_quantile(mean, uniform(x, y), scratch)
                else:
                    # With a mean of 0 or 1 the reward is the mean.
                    paid = mean
                paid += offset
            clipped[r, j] = abs(paid) > bound
            reward[r, j] = (bound if paid > 0.0 else -bound) if clipped[r, j] else paid


@kernel(inline="always")
def add_square(x, y, statistic):
    """Adds the matrix v v^T with v = [x; y] to a statistic ``(dim + 1, dim + 1)``.

    x is the context of the arm that was pulled, ``(dim,)``, and y its reward.
    """
    dim = x.shape[0]
    for i in range(dim):
        for h in range(dim):
            statistic[i, h] += x[i] * x[h]
        statistic[i, dim] += x[i] * y
        statistic[dim, i] += x[i] * y
    statistic[dim, dim] += y * y


@kernel
def take_in(active, arm, contexts, reward, last, pulled, total):
    """Writes rewards and contexts of a round to the observations, and adds [x; y][x; y]^T of them to the statistic.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``. For others ``pulled`` is set to 0 and ``total``
            stays as it is; their rewards are 0.
        arm: The arms pulled, ``(replicas, agents)``.
        contexts: Contexts of all arms, ``(replicas, agents, dim, arms)``.
        reward: Realised rewards, ``(replicas, agents)``.
        last: Output: a copy of the rewards, ``(replicas, agents, 1)``.
        pulled: Output: contexts of the arms pulled, ``(replicas, agents, dim)``.
        total: Statistic to which [x; y][x; y]^T is added, ``(replicas, agents, dim + 1, dim + 1)``.
    """
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            last[r, j, 0] = reward[r, j]
            for i in range(contexts.shape[2]):
                pulled[r, j, i] = contexts[r, j, i, arm[r, j]] if active[r, j] else 0.0
            if active[r, j]:
                add_square(pulled[r, j], reward[r, j], total[r, j])


@kernel
def pseudo_regret(active, arm, means, regret):
    """Computes max <x, theta*> - <x_t, theta*> of active agents, and 0 for others.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``.
        arm: The arms pulled, ``(replicas, agents)``.
        means: Expected rewards <x, theta*> of all arms, ``(replicas, agents, arms)``.
        regret: Output: the regret of the round, ``(replicas, agents)``.
    """
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            regret[r, j] = 0.0
            if not active[r, j]:
                continue
            # Four searches that do not depend on each other let the processor work in parallel.
            mean = means[r, j]
            a = b = c = d = mean[0]
            k = 0
            while k + 4 <= mean.shape[0]:
                w, x, y, z = mean[k], mean[k + 1], mean[k + 2], mean[k + 3]
                a, b = w if w > a else a, x if x > b else b
                c, d = y if y > c else c, z if z > d else d
                k += 4
            while k < mean.shape[0]:
                a = mean[k] if mean[k] > a else a
                k += 1
            a, c = b if b > a else a, d if d > c else c
            regret[r, j] = (c if c > a else a) - mean[arm[r, j]]


def of_outer(shape: tuple[int, ...], context_bound: float, reward_bound: float) -> Sensitivity:
    """Returns the sensitivity of the sum of [x; y][x; y]^T, in units of L^2 + B^2.

    Here x is a context of norm at most L, and y a reward in [-B, B]. Adding one observation changes the statistic by
    [x; y][x; y]^T, whose Frobenius norm is at most L^2 + B^2. Replacing one observation by another changes it by at
    most sqrt(2) times as much, which is reached if the two vectors [x; y] are orthogonal.

    Args:
        shape: The statistic's shape ``(replicas, agents, dim + 1, dim + 1)``.
        context_bound: L.
        reward_bound: B.
    """
    return _symmetric(np.full(shape, context_bound**2 + reward_bound**2), shape[2] * shape[3], sqrt(2), 1.0)


def of_moments(shape: tuple[int, ...], context_bound: float, reward_bound: float) -> Sensitivity:
    """Returns the sensitivity of the sums of x x^T and y x, in units of L^2; see :func:`of_outer` for the arguments.

    The two copies of y x in the statistic count once in the norm: their scale is sqrt(2) L^2. With W = B / L, adding an
    observation changes the norm by at most sqrt(1 + W^2). Two observations with rewards W and -W and contexts of norm 1
    with inner product c differ by the norm sqrt(2 - 2 c^2 + 2 W^2 (1 + c)). This is largest at c = W^2 / 2, where it is
    (2 + W^2) / sqrt(2), or, if W^2 > 2, at c = 1, where it is 2 W.
    """
    bound = reward_bound / context_bound
    entries = shape[2] * shape[3] - 1
    replaced = (2 + bound**2) / sqrt(2) if bound**2 <= 2 else 2 * bound
    scale = np.full(shape, context_bound**2)
    scale[..., -1] *= sqrt(2)
    scale[..., -1, :] = scale[..., -1]
    scale[..., -1, -1] = 0.0
    # Entries of y x may differ by more than their scale. A Gaussian release that differs by k scales in an entry is as
    # private as k^2 releases that differ by one, and a Laplace release as k: norm^2 entries or more cover both.
    return _symmetric(scale, entries, replaced, sqrt(1 + bound**2))


def _symmetric(scale: Array, entries: int, replaced: float, added: float) -> Sensitivity:
    """Returns the sensitivity whose norms are ``replaced`` and ``added``, in units of ``scale``."""
    norms = {"one-observation": replaced, "one-observation-added": added}
    changes = {name: Change(max(entries, ceil(norm**2 - 1e-9)), norm) for name, norm in norms.items()}
    return Sensitivity({"statistic": scale}, changes, symmetric=True)


def worst_neighbours(adjacency: Adjacency, as_shares: bool = False) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most in the sum of [x; y][x; y]^T; none for other adjacencies.

    Two arms have contexts and rewards of the largest size (L = 1, B = 1/sqrt(3)), and their vectors [x; y] are
    orthogonal. Under ``one-observation`` one history pulls the first of them where the other pulls the second. Under
    ``one-observation-added`` one history pulls the first where the other pulls an arm with context 0 and reward 0,
    which means no observation. The contexts are rotated against the axes, so that the statistics differ both on the
    diagonal and off it.

    Args:
        adjacency: The part in which the histories differ.
        as_shares: Whether an action is a distribution over the arms; otherwise it is the number of an arm.
    """
    # Lengths of contexts along the parameter and orthogonal to it. Parameter and contexts are rotated by 45 degrees.
    along, across = sqrt(1 / 3) * sqrt(1 / 2), sqrt(2 / 3) * sqrt(1 / 2)
    settings = {
        "contexts": [[along - across, along + across], [along + across, along - across], [0.0, 0.0]],
        "parameter": [sqrt(1 / 2), sqrt(1 / 2)],
        "reward": "normal",
        "reward_sd": 0.0,
        "reward_bound": sqrt(1 / 3),
    }
    pulls = np.eye(3) if as_shares else np.arange(3)
    first, second, nothing = (History(settings, np.asarray(pull)) for pull in pulls)
    pairs = {"one-observation": [(second, first)], "one-observation-added": [(nothing, first)]}
    return pairs_of(pairs, adjacency, nothing.action)
