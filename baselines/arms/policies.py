"""Policies for Bernoulli arms: the classic algorithms on own and received counts, and FAIR-LEARN around any of them.

Unless its constructor differs, a policy takes the constants of its rule, which are defined in
:mod:`fedbandit_envs.baselines.arms.rules`, and ``pool``, the aggregator of received counts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbandit_envs.arms.actions import Oracle, make_oracle
from fedbandit_envs.baselines.aggregators import AggregatorSpec, make_aggregator
from fedbandit_envs.baselines.aggregators.precision import count_inbox
from fedbandit_envs.baselines.arms.rules import (
    UCB,
    EpsilonDecreasing,
    EpsilonGreedy,
    Pursuit,
    Rule,
    Setting,
    Softmax,
    Thompson,
    arm_keys,
    open_unit,
)
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.compiled import inner_kernel, kernel
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.buffers import everyone
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.randomness.draws import Draws, threefry, u32


@kernel
def _know(own_pulls, own_successes, received_pulls, received_successes, pulls, sums):
    """Writes the sums of own and received pulls and successes, after clipping the received ones to 0 <= s <= n."""
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            # Noise in messages can make the received counts negative, or successes more than pulls.
            received = max(received_pulls[r, k], 0.0)
            pulls[r, k] = own_pulls[r, k] + received
            sums[r, k] = own_successes[r, k] + min(max(received_successes[r, k], 0.0), received)


@inner_kernel
def _best(free, pulls, scores, r):
    """Returns the first free arm of row r that was never pulled, else the free arm with the largest score.

    Free arms are available and not picked yet in this round. Ties go to the first arm; -1 means that no arm is free.
    """
    best, most = -1, -1.0
    for k in range(free.shape[1]):
        if free[r, k]:
            if not pulls[r, k] > 0.0:
                return k
            if scores[r, k] > most:
                best, most = k, scores[r, k]
    return best


@inner_kernel
def _draw(free, scores, same, r, uniform):
    """Returns a random free arm of row r, with probability proportional to its score, or uniformly if ``same``.

    Free arms are available and not picked yet in this round. ``uniform`` is a random number in (0, 1) that decides.
    """
    total = 0.0
    for k in range(free.shape[1]):
        if free[r, k]:
            total += 1.0 if same else scores[r, k]
    last, reach, threshold = 0, 0.0, uniform * total
    for k in range(free.shape[1]):
        if free[r, k]:
            last = k
            reach += 1.0 if same else scores[r, k]
            if reach > threshold:
                break
    return last


@kernel
def _pick(active, awake, pulls, scores, chance, proportional, key, round_, free, arms):
    """Picks the arms that each row (an agent of a replica) pulls; rows that do not act keep their last arms.

    Arms that were never pulled come first; then a random arm where the row explores, else arms by scores.

    Args:
        active: Rows that act, bool ``(rows,)``.
        awake: Arms that are available, bool ``(rows, all arms)``.
        pulls: Numbers of pulls, own and received, ``(rows, all arms)``.
        scores: Scores of the arms, same shape.
        chance: Probability of exploring, ``(rows,)``.
        proportional: Whether arms are drawn in proportion to scores; else those with the largest scores are picked.
        key: Keys of random numbers, uint32 ``(rows, 2)``. The generator gives a pair of 32-bit words for each slot of
            a round: the second word draws the arm, and the first word of slot 0 decides whether the row explores.
        round_: Round t, counted from 1, ``(rows,)``.
        free: Scratch, bool ``(rows, all arms)``.
        arms: Receives arms, int64 ``(rows, slots)``, with one slot for each arm that an agent pulls in a round; 0 for
            slots beyond the number of available arms.
    """
    slots = arms.shape[1]
    for r in range(arms.shape[0]):
        if not active[r]:
            continue
        draws, explores = proportional or chance[r] > 0.0, False
        if slots > 1:
            # An assignment of slices would make Numba compile its message for unlike shapes, which takes a second.
            for k in range(free.shape[1]):
                free[r, k] = awake[r, k]
        for s in range(slots):
            if draws:
                coin, word = threefry(key[r, 0], key[r, 1], u32(round_[r]), u32(s))
                if s == 0:
                    explores = open_unit(coin) <= chance[r]
            left = free if slots > 1 else awake
            arm = _best(left, pulls, scores, r)
            if (explores or proportional) and arm >= 0 and pulls[r, arm] > 0.0:
                arm = _draw(left, scores, explores, r, open_unit(word))
            arms[r, s] = max(arm, 0)
            if slots > 1 and arm >= 0:
                free[r, arm] = False


class ArmPolicy(Rule):
    """The base class of policies that pull the arms that a rule scores best, each arm once first (SAMBA, Figure 3).

    A policy inherits from this class and from its rule, whose arguments it takes. Counts that agents receive are
    aggregated and added to their own; received pulls that noise has made negative are set to 0, and received successes
    are clipped to between 0 and the received pulls. Where an agent pulls several arms in a round, these are the arms
    with the largest scores, or they are drawn one after the other in proportion to scores. Sleeping arms are not
    pulled. A policy may set an oracle, which replaces the choice by largest scores.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms.policies import ArmPolicy
        >>> from fedbandit_envs.baselines.arms.rules import UCB
        >>> class MyUCB(ArmPolicy, UCB):
        ...     pass
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = MyUCB(scale=0.5, pool="precision")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    _oracle: Oracle | None = None

    def __init__(self, *constants: Any, pool: AggregatorSpec = "sum", **named_constants: Any) -> None:
        """Sets the constants of the rule and the aggregator.

        Args:
            *constants: Positional arguments of the rule.
            pool: The aggregator of received counts, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`.
            **named_constants: Keyword arguments of the rule.

        Raises:
            TypeError: A parameter has the wrong type, or the rule has no such constant.
            ValueError: ``pool`` is unknown, or a constant is out of its range.
        """
        super().__init__(*constants, **named_constants)
        self._pool = make_aggregator(pool)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents receive their own messages, which would count their data twice.
        """
        seen = spec.observation.spaces
        if "sent" in seen:
            raise UnfitError(
                "own messages that agents receive would count their data twice; a transport with echo=False is required"
            )
        number = (seen["total_pulls"].shape or (0,))[0]
        action = spec.own_action
        self._shape = (*seeds.shape, *(action.shape or ()))
        rows, slots = seeds.size, int(np.prod(action.shape or ()))
        self._row_keys = Draws.of_policy(seeds, 0).key.reshape(rows, 2)
        arms = arm_keys(seeds, number).reshape(rows, number, 2)
        self.begin(Setting(rows, number, number, spec.horizon, arms))
        self._pulls, self._sums, self._scores = np.zeros((3, rows, number))
        self._arms = np.zeros((rows, slots), np.int64)
        self._marked = np.zeros((rows, 1), np.int64)
        self._marks = np.zeros((rows, number), np.bool_)
        self._chance, self._never = np.zeros((2, rows))
        self._everyone, self._all_awake = everyone(rows), everyone(rows, number)
        self._free = np.ones((rows, number), np.bool_)
        self._received = (
            self._pool.start(count_inbox(spec, seeds.shape, "pulls", "successes"))
            if "inbox_mask" in seen
            else None
        )

    def act(self, observation: Arrays) -> Array:
        """Returns the arms to pull; see :meth:`Policy.act`.

        Their shape is ``(replicas, agents)``, or ``(replicas, agents, slots)`` if agents pull several arms in a round.
        """
        self._learn(observation)
        round_ = observation.get("own_round", observation["round"]).reshape(-1) + 1
        active = observation["active"].reshape(-1) if "active" in observation else self._everyone
        awake = observation["awake"].reshape(self._pulls.shape) if "awake" in observation else self._all_awake
        self._chance[...] = self.exploration(round_)
        for iteration in range(self.iterations):
            self.scores(round_, self._pulls, self._sums, iteration, self._scores)
            if iteration < self.iterations - 1:
                self._mark(iteration, round_, active, awake)
        if self._oracle is None:
            _pick(
                active, awake, self._pulls, self._scores, self._chance, self.choice == "proportional",
                self._row_keys, round_, self._free, self._arms,
            )  # fmt: skip
        else:
            self._ask_oracle(active, awake)
        return self._arms.reshape(self._shape)

    def _learn(self, observation: Arrays) -> None:
        """Updates the numbers of pulls and successes of all arms: own counts plus the aggregate of received counts."""
        own = {name: observation[f"total_{name}"] for name in ("pulls", "successes")}
        if self._received is None:
            for known, counts in zip((self._pulls, self._sums), own.values(), strict=True):
                known[...] = counts.reshape(known.shape)
            return
        if observation["inbox_mask"].any():
            self._received.add(observation, exact=own)
        arrays = (*own.values(), *self._received.totals.values())
        _know(*(array.reshape(self._pulls.shape) for array in arrays), self._pulls, self._sums)

    def _mark(self, iteration: int, round_: Array, active: Array, awake: Array) -> None:
        _pick(
            active, awake, self._pulls, self._scores, self._never, False, self._row_keys, round_, self._free,
            self._marked,
        )  # fmt: skip
        self._marks.fill(False)
        np.put_along_axis(self._marks, self._marked, True, axis=1)
        self.mark(iteration, self._marks, active)

    def _ask_oracle(self, active: Array, awake: Array) -> None:
        assert self._oracle is not None
        known = np.where(self._pulls > 0, self._scores, np.inf)
        chosen = self._oracle(np.where(awake, known, -np.inf), self._arms.shape[1])
        self._arms[active] = chosen[active]


class EpsilonGreedyPolicy(ArmPolicy, EpsilonGreedy):
    """Epsilon-greedy: with a fixed probability ``epsilon`` a random arm, else the arm with the largest mean.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import EpsilonGreedyPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = EpsilonGreedyPolicy(epsilon=0.2)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class EpsilonDecreasingPolicy(ArmPolicy, EpsilonDecreasing):
    """Epsilon-decreasing: in round t a random arm with probability 1 / log2(t), else the arm with the largest mean.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import EpsilonDecreasingPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = EpsilonDecreasingPolicy()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class UCB1(ArmPolicy, UCB):
    """UCB1: the arm with the largest ``mean + sqrt(scale ln t / n)`` after n pulls, in round t.

    With ``logarithm="horizon"`` the horizon T replaces the round t.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import UCB1
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = UCB1(scale=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class ThompsonSampling(ArmPolicy, Thompson):
    """Thompson sampling: pulls the arm with the largest draw from its posterior, Beta(1 + successes, 1 + failures).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import ThompsonSampling
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = ThompsonSampling()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class SoftmaxPolicy(ArmPolicy, Softmax):
    """Boltzmann exploration: an arm is pulled with probability proportional to exp(mean / ``temperature``).

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import SoftmaxPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = SoftmaxPolicy(temperature=0.2)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class PursuitPolicy(ArmPolicy, Pursuit):
    """Pursuit: draws arms from probabilities that move, in each round, towards 1 for the arm with the largest mean.

    A probability moves by the share ``rate`` of its distance from 1 or, for the other arms, from 0.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import PursuitPolicy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = PursuitPolicy(rate=0.05)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """


class CUCB(ArmPolicy, UCB):
    """CUCB: an oracle picks arms by ``mean + sqrt(3 ln T / (2 n))`` (Chen et al. 2013; thesis, Algorithm 2.3).

    T is the horizon, and n the number of pulls of the arm.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import CUCB
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = CUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, oracle: str = "largest", pool: AggregatorSpec = "sum") -> None:
        """Sets the oracle, and the aggregator of received counts.

        Args:
            oracle: ``"largest"``, which picks the arms with the largest bounds, or the entry point
                ``"module:attribute"`` of an :data:`~fedbandit_envs.arms.oracle.Oracle`.
            pool: The aggregator of received counts, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A name is unknown.
        """
        super().__init__(1.5, "horizon", pool=pool)
        self._oracle = make_oracle(oracle)


class UniformArms(ArmPolicy, EpsilonGreedy):
    """Pulls arms uniformly at random.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import UniformArms
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = UniformArms()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self) -> None:
        """Makes the policy, which has no parameters."""
        super().__init__(epsilon=1.0)

    def _learn(self, observation: Arrays) -> None:
        # Arms that were never pulled would be pulled first, in order. Every arm is given one pull, so that the first
        # arms are random, too.
        self._pulls.fill(1.0)


LEARNERS = {policy.__name__: policy for policy in ArmPolicy.__subclasses__()}
"""The classes of all policies in this file, by name."""


class FairLearn:
    """FAIR-LEARN around any learner (Patil, Ghalme, Nair and Narahari 2021; thesis, Algorithm 4.1).

    Arm i is guaranteed ``share_i (t - 1)`` pulls by each agent before round t. If some arm falls short of its guarantee
    by more than the tolerance, the arm with the largest deficit is pulled (the first of several), else the arm that the
    learner chooses. Only the agent's own pulls and the rounds in which it has acted count. A sleeping arm counts as
    having no deficit.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import FairLearn
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = FairLearn("ThompsonSampling", shares=0.1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(
        self,
        learner: Policy | str | Mapping[str, Any] = "UCB1",
        shares: float | Sequence[float] = 0.05,
        tolerance: float = 0.0,
    ) -> None:
        """Sets the learner and the guarantees.

        Args:
            learner: A policy that pulls arms; or the name of one in ``LEARNERS`` of ``baselines/arms/policies.py``; or
                a mapping of ``name`` and the policy's arguments.
            shares: Guaranteed share of the pulls of each arm (delta in the algorithm), in [0, 1], or one number for all
                arms; they sum to at most 1.
            tolerance: Number of pulls, >= 0, by which an arm may fall short of its guarantee (epsilon_2 in the
                algorithm).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._tolerance = require_number("tolerance", tolerance, 0, np.inf)
        if isinstance(shares, Sequence) and not isinstance(shares, str):
            for arm, share in enumerate(shares):
                require_number(f"shares[{arm}]", share, 0, 1)
            _require_sum(np.array(shares))
        else:
            require_number("shares", shares, 0, 1)
        self._shares = np.array(shares, np.float64)
        self._learner = make("learner", learner, LEARNERS, Policy)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares the learner for an episode, after checking the shares; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Several arms are pulled in a round, or shares are for another number of arms, or sum to more
                than 1.
        """
        action = spec.own_action
        if action.shape:
            raise UnfitError(f"the action space is {action}; FAIR-LEARN pulls one arm a round")
        arms = (spec.observation["total_pulls"].shape or (0,))[0]
        if self._shares.ndim and self._shares.size != arms:
            raise UnfitError(f"shares has {self._shares.size} entries; {arms}, one an arm, are required")
        try:
            _require_sum(np.broadcast_to(self._shares, arms))
        except ValueError as error:
            raise UnfitError(str(error)) from None
        self._learner.reset(spec, seeds)

    def act(self, observation: Arrays) -> Array:
        """Returns the arms to pull, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        learnt = self._learner.act(observation)
        played = observation.get("own_round", observation["round"])
        lacking = self._shares * played - observation["total_pulls"]
        if "awake" in observation:
            lacking = np.where(observation["awake"], lacking, -np.inf)
        worst = lacking.argmax(axis=-1)
        return np.where(lacking.max(axis=-1) > self._tolerance, worst, learnt)

    def r_regret(self, means: Array, pulls: Array, rounds: int) -> Array:
        """Returns r-regret, the regret beyond that which the guaranteed shares force on any learner.

        It is ``sum_i gap_i (N_i - max(0, floor(share_i t) - tolerance))`` over arms i, where gap_i is the difference
        between the largest mean and the arm's.

        Args:
            means: True means of the arms, float64 ``(..., arms)``.
            pulls: Numbers of pulls N_i of the arms, same shape.
            rounds: Number of rounds t.

        Returns:
            r-regret, ``(...)``.
        """
        gaps = means.max(axis=-1, keepdims=True) - means
        # The factor undoes rounding errors: 0.29 * 100 is slightly below 29 in floating point, and would be cut to 28.
        forced = np.floor(self._shares * rounds * (1 + 1e-12)) - self._tolerance
        return (gaps * (pulls - np.maximum(forced, 0.0))).sum(axis=-1)


def _require_sum(shares: Array) -> None:
    if shares.sum() > 1.0 + 1e-9:
        raise ValueError(f"shares add up to {shares.sum():g}; at most 1 is required")
