"""The vector-sum protocol: every round's data become one-bit messages, whose sums have binomial noise.

References:
    * A. Cheu, M. Joseph, J. Mao, B. Peng: Shuffle Private Stochastic Convex Optimization. ICLR 2022.
    * X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits. ICLR 2024, and the
      authors' released program, of which the constants are.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, floor, inf, log, prod, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_epsilon, require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Change, Sensitivity, variance_of, with_variances
from fedbandit_envs.randomness.draws import fill_bits, padded, u32
from fedbandit_envs.wrappers.privacy.accounting.event import Event, alone, exact
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Generators, Mechanism, require_one_of
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import TreeNoise

# Probability that a bit of noise is 1.
_P = 0.25
# Beyond this many standard deviations (and as many steps) binomial noise has a probability below 1e-30, which counts as
# 0 (Bernstein's inequality). Rounding of losses may add less than this to one.
_REACH, _SLACK = 12, 1e-9
# Some outcomes are possible under one history alone, and have an infinite loss. If all others together have less than
# the first probability, they count as that probability with a loss of the second number.
_CERTAIN, _LARGE = 1e-9, 1e3


@dataclass(frozen=True)
class BinomialSums(Event):
    """An agent's first releases under :class:`VectorSum`: its data lie in one node of each level of a tree.

    Neighbours differ by ``norm`` in the Euclidean norm of all numbers of a node. They may differ in any of them, and
    rounding makes whole steps of the differences: on average its square grows by at most 1/4 for each number. The curve
    is that of one number that differs by all of this, rounded up to whole steps: of binomials of equal variance, shifts
    of equal norm have in the limit of many trials the same loss, however many numbers share them. This limit, and the
    average over rounding, are approximations; the rest is a bound.

    Example:
        >>> changes = (("one-observation", Change(3, 2.0)),)
        >>> BinomialSums("binomial", 0.1, inf, 0.0, changes, nodes=((1200, 1.5),)).rescaled(4).nodes
        ((300, 1.5),)

    Attributes:
        nodes: For each level the number of trials of the binomial noise in each number of its node, and the number of
            steps that a difference of norm 1 has.
    """

    nodes: tuple[tuple[int, float], ...] = ()

    @property
    def adds_up(self) -> bool:
        """Whether agents can share one noise: binomials of one probability add up to one."""
        return True

    def rescaled(self, ratio: float) -> "BinomialSums":
        """Returns the event of the same sums with ``1/ratio`` times as many trials."""
        # Rounded down; the margin, far below a trial, is for quotients that are integers but for rounding errors.
        nodes = tuple((floor(trials / ratio + 1e-3), step) for trials, step in self.nodes)
        return replace(self, nodes=nodes, loss=_loss(nodes))

    def loss_distribution(self, change: Change, interval: float) -> Any:
        """Returns the privacy loss distribution of all nodes together; see :meth:`.Event.loss_distribution`."""
        shifts = (
            (trials, ceil(sqrt((change.norm * step) ** 2 + change.values / 4))) for trials, step in self.nodes
        )
        return _binomial_losses(tuple(shifts), interval)


def _loss(nodes: tuple[tuple[int, float], ...]) -> float:
    """Returns the mu of Gaussian noise of the variance of binomial noise, for a difference of norm 1 in all nodes."""
    return sqrt(sum(step**2 / (trials * _P * (1 - _P)) if trials else inf for trials, step in nodes))


# Cached by levels, since after each release all earlier ones are composed again.
@lru_cache(maxsize=64)
def _binomial_losses(shifts: tuple[tuple[int, int], ...], interval: float) -> Any:
    """Returns the loss distribution of binomial noise that is seen once for each of some ``(trials, shift)``."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    (trials, shift), rest = shifts[-1], shifts[:-1]
    parts = [
        PrivacyLossDistribution(*(_losses(trials, shift, interval, upwards) for upwards in (False, True)))
    ]
    if rest:
        parts.append(_binomial_losses(rest, interval))
    # The chance that neighbours cannot be told apart with certainty.
    if prod(1 - part.get_delta_for_epsilon(inf) for part in parts) < _CERTAIN:
        return PrivacyLossDistribution(_certain(interval))
    return parts[0].compose(parts[1]) if rest else parts[0]


def _losses(trials: int, shift: int, interval: float, upwards: bool) -> Any:
    """Returns the distribution of the loss between X and X + shift, or X - shift, for X ~ Bin(trials, p).

    Losses are rounded up to multiples of the interval.
    """
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    middle, reach = round(trials * _P), ceil(_REACH * sqrt(trials * _P * (1 - _P))) + 10 * _REACH
    low, high = max(middle - reach, 0), min(middle + reach, trials)
    ones = np.arange(low, high)
    # The logarithm of the ratio of neighbouring probabilities is exact to the last digits, unlike that of factorials.
    ratios = np.log((trials - ones) / (ones + 1.0) * (_P / (1 - _P)))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    ahead, behind = slice(shift, None), slice(None, max(len(logs) - shift, 0))
    here, there = (behind, ahead) if upwards else (ahead, behind)
    cells = np.ceil((logs[here] - logs[there] + _SLACK) / interval).astype(np.int64)
    if not len(cells):
        return _certain(interval)
    start = int(cells.min())
    losses = np.bincount(cells - start, weights=weights[here])
    return DensePLDPmf(interval, start, losses, max(1.0 - losses.sum(), 0.0), True)


def _certain(interval: float) -> Any:
    """Returns the distribution of a loss that is infinite, but for a probability with which it is very large."""
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    return DensePLDPmf(interval, ceil(_LARGE / interval), np.full(1, _CERTAIN), 1.0 - _CERTAIN, True)


class _Node(NamedTuple):
    """A level of the tree: ``fine`` steps for the bound, an agent's trials and their expected sum, rounds of it."""

    fine: float
    trials: int
    expected: float
    rounds: int


@dataclass
class VectorSum(Mechanism):
    """Randomises every round's numbers on their own, as messages of one bit, of which only sums over all are read.

    Each round of each agent is one user, who has the numbers of [x; y][x; y]^T that the statistic contains, each of
    them once. For a number v, and for each node of a binary tree over the releases (:class:`.TreeNoise`) in which the
    round lies, the user sends ``floor(u) + Bernoulli(u - floor(u)) + Bin(b, 1/4)`` ones, where u = (v + L) g/L. Of a
    node's sum, n users times L and the expected noise are subtracted: L/g (sum - n b/4) - n L. A release is the growth
    of the sum of the nodes at the bits of the number of releases, like those of :class:`.MatrixMechanism`.

    At level l there are n = M B 2^l users, for M agents and a gap of B rounds between releases. The constants are those
    of the program that Zhou and Chowdhury released: g = max(2 sqrt(n), d, 4), and b = (g ln(d^2/delta)/e)^2/n for its
    epsilon e. The theorem of Cheu et al. has a factor of 24e4 in b. So e is not guaranteed, and for all levels together
    it could not be: claims are computed from the noise, and for an ``epsilon`` that all releases are to have, e is
    searched for.

    Noise is drawn as one binomial for all users of an agent in a node, which has exactly the distribution of their
    noises' sum. The numbers themselves are rounded one by one, for each level anew, with 32 random bits. What a release
    adds to the statistic is the deviation of these sums from the exact ones: data that come too late for a node are
    therefore sent later. A round in which an agent is absent counts as a user with v = 0. Numbers outside [-L, L]
    are not clipped: then u lies outside [0, 2g], where no real messages could be sent, but sums have no bias.

    Without a stage in the transport, the noise of each agent's own users makes up the whole: b has n/M in place of n.
    With the stage ``aggregator`` and ``honest`` agents h it is n h/M, so that the protocol of the paper is h = M. The
    noise of their sum is then what protects everybody, and an agent's own release has only its own users' noise. If
    agents are absent from a sum, no claim is made for sums. The announced variance is that of the binomial noise and
    the largest variance of rounding, n/4 steps for n users.

    Example:
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Channel, Privatizer
        >>> env = parallel_env(num_agents=4, num_arms=5, dim=2, max_cycles=20, statistic="moments")
        >>> env = Privatizer(env, VectorSum(epsilon=1.0, delta=0.1, gap=5))
        >>> env = Channel(env, schedule={"name": "fixed_gap", "gap": 5}, stage={"name": "aggregator", "honest": 4})

    Attributes:
        epsilon: Epsilon of all releases of an agent together, > 0; infinity adds no noise. One of it and
            ``epsilon_per_release`` is given.
        delta: Delta of all releases together, and in the constant b.
        gap: B, the number of rounds from one release to the next. An agent can release as often as they fit into the
            horizon.
        draw: ``"exact"`` rounds b up. ``"printed"`` draws Bin(floor(b), 1/4) like the released program, whose NumPy
            cuts b off, but subtracts b/4 for each user, so that all sums are too small.
        bound: L, the largest size of a number for which messages can be sent, > 0.
        epsilon_per_release: The printed epsilon e in the constant b, > 0; infinity adds no noise.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range.
    """

    correlated = True
    epsilon: float | None
    delta: float
    gap: int
    draw: Literal["exact", "printed"] = "exact"
    bound: float = 1.0
    epsilon_per_release: float | None = None

    def __post_init__(self) -> None:
        """Checks the arguments; the errors are those of the class."""
        name, _ = require_one_of(epsilon=self.epsilon, epsilon_per_release=self.epsilon_per_release)
        self._size = self.epsilon or self.epsilon_per_release or 0.0
        require_epsilon(self._size, name)
        self.total_delta = self.delta
        require_number("delta", self.delta, 0, 1, open_below=True, open_above=True)
        require_integer("gap", self.gap, 1)
        require_choice("draw", self.draw, ("exact", "printed"))
        require_number("bound", self.bound, 0, np.inf, open_below=True)

    def prepare(self, env: FederatedEnv) -> None:
        """Computes the constants; refuses environments without contexts and rewards; see :meth:`Mechanism.prepare`."""
        seen, released = env.single_observation_space, env.single_release_space
        sized = {name: space.shape for name, space in released.items()}
        self._dim = (seen["pulled_context"].shape or (0,))[0] if "pulled_context" in seen.spaces else 0
        if list(sized.values()) != [(self._dim + 1,) * 2] or "last_reward" not in seen.spaces:
            raise ValueError(
                f"what the environment releases has the shapes {sized}; one sum of [x; y][x; y]^T, with pulled_context "
                "and last_reward in observations, is required"
            )
        self._agents = env.max_num_agents
        # A copy is reset, since the space of releases is needed before the first reset.
        trial = deepcopy(env)
        trial.reset_batch([0])
        self._calibrate(trial.sensitivity(), env.max_cycles, 1)

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of noisy releases; no sum has more variance than nodes of all levels together."""
        worst = sum(map(self._variance, self._nodes))
        return with_variances(released, -worst, worst)

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode with the whole noise in each agent's releases; see :meth:`Mechanism.start`."""
        self.start_share(sensitivity, horizon, generators, 1)

    def start_share(
        self, sensitivity: Sensitivity, horizon: int, generators: Generators, honest: int
    ) -> None:
        """Starts an episode in which ``honest`` agents make up the noise; see :meth:`Mechanism.start_share`.

        Raises:
            ValueError: The noise is to be a trusted server's.
        """
        ((self._name, scale),) = sensitivity.scale.items()
        if scale.shape[1] != self._agents:
            raise ValueError(
                f"stage is 'server', which sees no single rounds of {self._agents} agents; another one is required"
            )
        self._calibrate(sensitivity, horizon, honest)
        self._generators = generators
        rows, columns = np.triu_indices(self._dim + 1)
        used = scale[0, 0][rows, columns] > 0
        self._entries = rows[used], columns[used]
        self._tree = TreeNoise(max(self.max_releases or 0, 1))
        self._tree.start(len(generators), int(used.sum()))
        self._errors = np.zeros((len(generators), len(self._nodes), int(used.sum())))
        self._done = np.zeros(len(generators), np.int64)
        words = [each.integers(0, 2**32, 2, np.uint32) for each in generators]
        self._keys, self._round = np.array(words, np.uint32), 0

    def _calibrate(self, sensitivity: Sensitivity, horizon: int, honest: int) -> None:
        """Sets the constants of all levels, for noise that ``honest`` agents make up."""
        (scale,) = sensitivity.scale.values()
        self._honest, self._unit = honest, scale[0, 0, 0, 0]
        self._changes = tuple(sensitivity.changes.items())
        self.max_releases = horizon // self.gap
        self._plan(self._size)
        if self.epsilon is None or self.epsilon == inf or not self.max_releases:
            return
        size, valid, invalid, power = self._size, 0.0, inf, 1.0
        tried: tuple[float, float] | None = None
        protected = self._protected(sensitivity.changes)
        while invalid > valid * 1.001:
            self._plan(size)
            spent = float(exact(alone(self.joint_event(self.max_releases)), protected, self.delta)[0, 0])
            valid, invalid = (size, invalid) if spent <= self.epsilon else (valid, size)
            if 0.99 * self.epsilon <= spent <= self.epsilon:
                return
            # Epsilon is about in proportion to a power of the constant, which the last two constants show.
            spent = min(max(spent, 1e-9), 1e9)
            if tried is not None:
                power = min(max(log(spent / tried[1]) / log(size / tried[0]), 1.0), 4.0)
            tried = size, spent
            size *= min(max((0.995 * self.epsilon / spent) ** (1 / power), 0.5), 2.0)
            if not valid < size < invalid:
                size = sqrt(valid * invalid)
        self._plan(valid)

    def _plan(self, size: float) -> None:
        """Sets the constants of all levels for the epsilon of the program."""
        self._nodes = []
        for level in range(max(self.max_releases or 0, 1).bit_length()):
            rounds = self.gap * 2**level
            fine = max(2 * sqrt(self._agents * rounds), self._dim, 4)
            bits = (fine * log(self._dim**2 / self.delta) / size) ** 2 / (self._honest * rounds)
            whole = floor(bits) if self.draw == "printed" else ceil(bits)
            expected = _P * rounds * (bits if self.draw == "printed" else whole)
            self._nodes.append(_Node(fine, whole * rounds, expected, rounds))

    def _variance(self, node: _Node) -> float:
        return (self.bound / node.fine) ** 2 * (node.trials * _P * (1 - _P) + node.rounds / 4)

    def observe(self, observation: Arrays) -> None:
        """Rounds the numbers of one round, for each node in which it lies; see :meth:`Mechanism.observe`."""
        fine = np.array([node.fine for node in self._nodes])
        x, y = observation["pulled_context"], observation["last_reward"]
        _round_off(self._keys, self._round, self._done, x, y, *self._entries, fine, self.bound, self._errors)
        self._round += 1

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a release with the deviation of its nodes' sums; see :meth:`Mechanism.randomise`."""
        values = statistic[self._name].astype(np.float64)
        variance = np.zeros(values.shape)
        flat, grown = (array.reshape(-1, *values.shape[2:]) for array in (values, variance))
        i, j = self._entries
        for done in sorted(set(index[sends].tolist())):
            rows, z = np.flatnonzero(sends & (index == done)), done + 1
            level = (z & -z).bit_length() - 1
            node = self._nodes[level]
            noise = np.array(
                [self._generators[row].binomial(node.trials, _P, len(i)) for row in rows.tolist()]
            )
            deviation = (self._errors[rows, level] + noise - node.expected) * (self.bound / node.fine)
            added = self._tree.advance(rows, z, deviation[np.newaxis])
            flat[rows[:, np.newaxis], i, j] += added
            growth = self._variance(node) - sum(map(self._variance, self._nodes[:level]))
            grown[rows[:, np.newaxis], i, j] = grown[rows[:, np.newaxis], j, i] = growth
            flat[rows[:, np.newaxis], j, i] = flat[rows[:, np.newaxis], i, j]
            self._errors[rows, level], self._done[rows] = 0.0, z
        return {self._name: values, variance_of(self._name): variance}

    def joint_event(self, z: int) -> Event:
        """Returns the event of an agent's first z releases, with the noise of all honest agents."""
        levels = self._nodes[: z.bit_length()]
        nodes = tuple(
            (node.trials * self._honest, float(self._unit * node.fine / self.bound)) for node in levels
        )
        return BinomialSums("binomial", _loss(nodes), inf, 0.0, self._changes, releases=z, nodes=nodes)


@allocating_kernel
def _round_off(keys, round_, done, x, y, rows, columns, fine, bound, errors):
    """Rounds the numbers of one round at random, and adds up by how much this changes them, in steps.

    Args:
        keys: Keys of the agents' random numbers, uint32 ``(replicas * agents, 2)``.
        round_: Number of the round in the episode.
        done: How often each agent has released before, ``(replicas * agents,)``.
        x: Contexts, ``(replicas, agents, dim)``.
        y: Rewards, ``(replicas, agents, 1)``.
        rows: For each number the place in [x; y] of one factor; that of the other is in ``columns``.
        columns: See ``rows``.
        fine: For each level, the number of steps in ``bound``.
        bound: L.
        errors: Output: the sums of changes, ``(replicas * agents, levels, numbers)``, of the nodes that are not
            complete.
    """
    numbers, dim = len(rows), x.shape[2]
    pair, bits = np.empty(dim + 1), np.empty(padded(len(fine) * numbers), np.uint32)
    for row in range(len(done)):
        replica, agent = divmod(row, x.shape[1])
        for i in range(dim):
            pair[i] = x[replica, agent, i]
        pair[dim] = y[replica, agent, 0]
        inside = 0
        for level in range(len(fine)):
            inside += 1 - (done[row] >> level & 1)
        fill_bits(keys[row, 0], keys[row, 1], u32(round_), bits[: padded(inside * numbers)])
        place = 0
        for level in range(len(fine)):
            # Of two successive nodes at a level, the second one is never read: the node above both of them is.
            if done[row] >> level & 1:
                continue
            for k in range(numbers):
                exact = (pair[rows[k]] * pair[columns[k]] + bound) * (fine[level] / bound)
                low = np.floor(exact)
                errors[row, level, k] += low + (bits[place] * 2.0**-32 < exact - low) - exact
                place += 1
