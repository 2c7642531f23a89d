"""Policies for Bernoulli arms: the classic algorithms on own and received counts, and FAIR-LEARN around any of them.

The algorithms are rules that score arms (SAMBA, Figure 4; thesis, 2.3 and 2.4). A rule computes an arm's score from the
arm's own pulls and rewards. It also determines whether the arm with the largest score is pulled, or an arm drawn with
probability proportional to its score. A rule is used in two places: as the policy of agents, which scores all arms of
each agent; and in the vertical federation (``fedbandit_envs.samba``), where each data owner scores its one arm and a
selector picks an owner. The first axis of arrays, ``rows``, goes over all agents of all replicas; in the vertical
federation it has length 1.
"""

from collections.abc import Mapping, Sequence
from math import inf, log
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from fedbandit_envs.arms.actions import make_oracle
from fedbandit_envs.baselines.aggregators import AggregatorSpec, KnownCounts, make_aggregator
from fedbandit_envs.baselines.arms import kernels
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays, everyone
from fedbandit_envs.basics.checks import require_array, require_choice, require_number
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.randomness.draws import Draws

Choice = Literal["argmax", "proportional"]
"""How an arm is picked: the arm with the largest score, or a random arm with probability proportional to its score."""


class Rule:
    """The base class of policies that score each arm by its own pulls and rewards (SAMBA, Figures 3 and 4).

    A new rule overrides the methods whose defaults do not fit, most often :meth:`scores`. A round may have several
    iterations: in each the arms are scored and one arm is picked, but only the pick of the last iteration is pulled.

    As a policy, a rule first pulls each arm once. Ties go to the first arm, which makes regret depend on the order of
    given means; ``permuted=True`` of the environment undoes that. Counts that agents receive are added to their own;
    received pulls that noise has made negative are set to 0, and received successes are clipped to between 0 and the
    received pulls. Where an agent pulls several arms in a round, these are the arms with the largest scores, or they
    are drawn one after the other in proportion to scores. Sleeping arms are not pulled.

    Attributes:
        choice: How the last iteration of a round picks an arm by the scores.
        iterations: Number of iterations in a round. All but the last pick the arm with the largest score, which
            :meth:`mark` is told.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import Rule
        >>> class Greedy(Rule):
        ...     def scores(self, round_, pulls, sums, iteration, out):
        ...         out[...] = sums / np.maximum(pulls, 1)
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = Greedy(pool="precision")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    choice: ClassVar[Choice] = "argmax"
    iterations: ClassVar[int] = 1

    def __init__(self, pool: AggregatorSpec = "sum") -> None:
        """Sets the aggregator of received counts.

        Args:
            pool: The aggregator, or its specification; see :mod:`fedbandit_envs.baselines.aggregators`.

        Raises:
            TypeError: ``pool`` is no specification.
            ValueError: ``pool`` is unknown.
        """
        self._pool = make_aggregator(pool)

    def begin(self, rows: int, arms: int, all_arms: int, horizon: int, keys: Array) -> None:
        """Prepares for a new episode and forgets the last one; by default does nothing.

        Args:
            rows: Number of agents in all replicas together; 1 in the vertical federation.
            arms: Number of arms that the rule scores.
            all_arms: Number of arms of the bandit; more than ``arms`` where a data owner scores only its own arm.
            horizon: T, the number of rounds.
            keys: Keys of random numbers for every arm of every row, uint32 ``(rows, arms, 2)``.
        """

    def exploration(self, round_: Array) -> Array | float:
        """Returns the probability of pulling a uniformly random arm in a round; by default 0.

        Args:
            round_: The round t of each row, counted from 1, int64 ``(rows,)``.
        """
        return 0.0

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes scores of all arms into ``out``, by default their mean rewards.

        The score of an arm that was never pulled is not used.

        Args:
            round_: The round t of each row, counted from 1, int64 ``(rows,)``.
            pulls: Numbers of pulls of the arms, float64 ``(rows, arms)``.
            sums: Sums of the arms' rewards, same shape.
            iteration: The iteration within the round, counted from 0.
            out: Receives scores >= 0, float64 ``(rows, arms)``.
        """
        kernels.means(pulls, sums, out)

    def mark(self, iteration: int, picked: Array, active: Array) -> None:
        """Is told the arm that an iteration has picked; by default does nothing.

        Args:
            iteration: The iteration within the round, counted from 0.
            picked: True for the arm that was picked, bool ``(rows, arms)``.
            active: Rows that play in this round, bool ``(rows,)``.
        """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents receive their own messages, which would count their data twice.
        """
        seen = spec.observation.spaces
        if "sent" in seen:
            raise UnfitError("agents receive their own messages; a transport with echo=False is required")
        number = (seen["total_pulls"].shape or (0,))[0]
        action = spec.own_action
        self._shape = (*seeds.shape, *(action.shape or ()))
        rows, slots = seeds.size, int(np.prod(action.shape or ()))
        self._row_keys = Draws.of_policy(seeds, 0).key.reshape(rows, 2)
        arms = kernels.arm_keys(seeds, number).reshape(rows, number, 2)
        self.begin(rows, number, number, spec.horizon, arms)
        self._known = KnownCounts(self._pool, spec, seeds.shape, "pulls", "successes")
        self._pulls, self._sums, self._scores = np.zeros((3, rows, number))
        self._arms, self._chance = np.zeros((rows, slots), np.int64), np.zeros(rows)
        self._everyone, self._all_awake = everyone(rows), everyone(rows, number)
        self._free = np.ones((rows, number), np.bool_)

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
                best = np.zeros((len(active), 1), np.int64)
                self._choose(best, False, round_, active, awake)
                self.mark(iteration, best == np.arange(self._pulls.shape[1]), active)
        self._choose(self._arms, True, round_, active, awake)
        return self._arms.reshape(self._shape)

    def _choose(self, arms: Array, draws: bool, round_: Array, active: Array, awake: Array) -> None:
        """Writes the chosen arms: with ``draws`` as the rule explores, else those with the largest scores."""
        chance = self._chance if draws else np.zeros(len(active))
        proportional = draws and self.choice == "proportional"
        kernels.pick(
            active, awake, self._pulls, self._scores, chance, proportional, self._row_keys, round_, self._free,
            arms,
        )  # fmt: skip

    def _learn(self, observation: Arrays) -> None:
        """Updates the numbers of pulls and successes of all arms: own counts plus the aggregate of received counts."""
        self._known.update(observation)
        # Made anew in every round, since views in a copied or unpickled policy would be arrays of their own.
        flat = (counts.reshape(self._scores.shape) for counts in (self._known.trials, self._known.successes))
        self._pulls, self._sums = (counts.astype(np.float64, copy=False) for counts in flat)


class EpsilonGreedy(Rule):
    r"""Epsilon-greedy: with probability epsilon pulls a random arm, else the arm with the largest mean reward.

    With $n_i$ pulls of arm $i$ and $s_i$ the sum of their rewards, the arm with the largest mean is
    $\operatorname{argmax}_i s_i / n_i$.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import EpsilonGreedy
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = EpsilonGreedy(epsilon=0.2)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, epsilon: float = 0.1, pool: AggregatorSpec = "sum") -> None:
        """Sets epsilon, in [0, 1], and the aggregator of received counts.

        Raises:
            TypeError: ``epsilon`` is no number.
            ValueError: ``epsilon`` is not in [0, 1].
        """
        super().__init__(pool)
        self._epsilon = require_number("epsilon", epsilon, 0, 1)

    def exploration(self, round_: Array) -> Array | float:
        """Returns epsilon, the probability of pulling a random arm; see :meth:`Rule.exploration`."""
        return self._epsilon


class EpsilonDecreasing(Rule):
    r"""Epsilon-decreasing: epsilon-greedy with an epsilon that shrinks over rounds.

    In round $t$ it pulls a random arm with probability $\min(1, 1 / \log_2 t)$, else the arm $i$ with the largest mean
    $s_i / n_i$ of its rewards, where $s_i$ is their sum and $n_i$ their number.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import EpsilonDecreasing
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = EpsilonDecreasing()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def exploration(self, round_: Array) -> Array | float:
        """Returns the probability of pulling a random arm, min(1, 1 / log2(t)); see :meth:`Rule.exploration`."""
        return 1.0 / np.maximum(np.log2(round_), 1.0)


LogName = Literal["round", "horizon", "horizon_per_pull"]


class UCB1(Rule):
    r"""UCB1: pulls the arm with the largest upper confidence bound of its mean reward.

    In round $t$ it pulls the arm

    $$\operatorname{argmax}_i \; \frac{s_i}{n_i} + \sqrt{c \, \ell / n_i}$$

    where $n_i$ is the number of known pulls of arm $i$, $s_i$ the sum of their rewards, and $c$ is ``scale``. With the
    horizon $T$, ``logarithm`` chooses $\ell$: $\ln t$ (``"round"``), $\ln T$ (``"horizon"``) or $\max(\ln(T / n_i), 0)$
    (``"horizon_per_pull"``). An agent that receives counts adds them to its own $n_i$ and $s_i$, as they are or as the
    aggregator ``pool`` weighs them.

    $c = 2$ and $\ln t$ is UCB1 (Auer, Cesa-Bianchi and Fischer 2002; SAMBA); $c = 2$ and $\ln T$ is the thesis' form of
    it (Algorithm 2.1); $c = 1.5$ and $\ln T$ gives CUCB's bounds (Algorithm 2.3). With $\ln(T / n_i)$ the bonus shrinks
    as in MOSS (Audibert and Bubeck, COLT 2009), which divides $T$ by the number of arms, too. Arms are then explored
    early, and a smaller scale suffices for the same probability to miss the best arm.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import UCB1
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = UCB1(scale=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(
        self, scale: float = 2.0, logarithm: LogName = "round", pool: AggregatorSpec = "sum"
    ) -> None:
        """Sets the constants of the confidence radius.

        Args:
            scale: Factor under the square root, > 0.
            logarithm: ``"round"`` for ln t of the round t, ``"horizon"`` for ln T of the horizon T,
                ``"horizon_per_pull"`` for ln(T / n).
            pool: The aggregator of received counts, see :class:`Rule`.

        Raises:
            TypeError: ``scale`` is no number.
            ValueError: A parameter is out of its range.
        """
        super().__init__(pool)
        self._scale = require_number("scale", scale, 0, inf, open_below=True)
        self._logarithm = require_choice("logarithm", logarithm, get_args(LogName))

    def begin(self, rows: int, arms: int, all_arms: int, horizon: int, keys: Array) -> None:
        """Stores the logarithm of the horizon, if the bounds use it; see :meth:`Rule.begin`."""
        self._log_horizon = -1.0 if self._logarithm == "round" else log(horizon)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes the arms' upper confidence bounds as scores into ``out``; see :meth:`Rule.scores`."""
        per_pull = self._logarithm == "horizon_per_pull"
        kernels.upper_bounds(round_, self._log_horizon, per_pull, self._scale, pulls, sums, out)


class ThompsonSampling(Rule):
    r"""Thompson sampling: pulls the arm with the largest draw from the posterior of its mean (Thompson 1933).

    The draw of arm $i$ is from $\text{Beta}(1 + s_i, 1 + n_i - s_i)$, with $n_i$ known pulls of which $s_i$ were
    successes: the posterior after a uniform prior. An agent that receives counts adds them to its own.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import ThompsonSampling
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = ThompsonSampling()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def begin(self, rows: int, arms: int, all_arms: int, horizon: int, keys: Array) -> None:
        """Stores a key of random numbers for every arm; see :meth:`Rule.begin`."""
        self._keys = keys

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes a draw from each arm's posterior; see :meth:`Rule.scores`."""
        kernels.draw_posteriors(self._keys, round_, pulls, sums, out)


class Softmax(Rule):
    r"""Softmax: pulls an arm with probability proportional to the exponential of its mean reward.

    With the mean $m_i = s_i / n_i$ of the rewards of arm $i$ and the temperature $\tau$, that probability is
    $\exp(m_i / \tau) / \sum_k \exp(m_k / \tau)$.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import Softmax
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = Softmax(temperature=0.2)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    choice: ClassVar[Choice] = "proportional"

    def __init__(self, temperature: float = 0.1, pool: AggregatorSpec = "sum") -> None:
        """Sets the temperature tau, at least 1/690, below which exponentials overflow, and the aggregator.

        Raises:
            TypeError: ``temperature`` is no number.
            ValueError: ``temperature`` is below 1/690.
        """
        super().__init__(pool)
        self._temperature = require_number("temperature", temperature, 1 / 690, inf)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes exp(mean / temperature) of each arm as its score into ``out``; see :meth:`Rule.scores`."""
        kernels.boltzmann(pulls, sums, self._temperature, out)


class Pursuit(Rule):
    r"""Pursuit: pulls arms with probabilities that move towards 1 for the arm with the largest mean, else towards 0.

    The probability $p_i$ of arm $i$ is $1 / K$ at first, for $K$ arms. In each round it becomes
    $(1 - \beta) p_i + \beta$ for the arm with the largest mean, and $(1 - \beta) p_i$ for the others.

    A round has two iterations: the first scores arms by their means, to find the arm with the largest, and the second
    by the probabilities, which have been moved.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import Pursuit
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = Pursuit(rate=0.05)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    choice: ClassVar[Choice] = "proportional"
    iterations: ClassVar[int] = 2

    def __init__(self, rate: float = 0.1, pool: AggregatorSpec = "sum") -> None:
        """Sets the rate beta in (0, 1], the share of the distance that probabilities move, and the aggregator.

        Raises:
            TypeError: ``rate`` is no number.
            ValueError: ``rate`` is not in (0, 1].
        """
        super().__init__(pool)
        self._rate = require_number("rate", rate, 0, 1, open_below=True)

    def begin(self, rows: int, arms: int, all_arms: int, horizon: int, keys: Array) -> None:
        """Sets the probability of every arm to 1 / (number of arms); see :meth:`Rule.begin`."""
        self._probability = np.full((rows, arms), 1.0 / all_arms)

    def scores(self, round_: Array, pulls: Array, sums: Array, iteration: int, out: Array) -> None:
        """Writes scores: the mean rewards in iteration 0, the probabilities in iteration 1; see :meth:`Rule.scores`."""
        if iteration == 0:
            kernels.means(pulls, sums, out)
        else:
            out[...] = self._probability

    def mark(self, iteration: int, picked: Array, active: Array) -> None:
        """Moves the arms' probabilities towards 1 for the arm with the largest mean, else towards 0.

        Iteration 0 has picked that arm; nothing happens in iteration 1. See :meth:`Rule.mark`.
        """
        if iteration == 0:
            kernels.pursue(self._probability, self._rate, picked, active)


class CUCB(UCB1):
    r"""CUCB: an oracle picks the set of arms by upper confidence bounds (Chen et al. 2013; thesis, Algorithm 2.3).

    The bound of arm $i$ is $s_i / n_i + \sqrt{3 \ln T / (2 n_i)}$, with $n_i$ pulls, the sum $s_i$ of their rewards and
    the horizon $T$.

    Example:
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
                ``"module:attribute"`` of an :data:`~fedbandit_envs.arms.actions.Oracle`.
            pool: The aggregator of received counts, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A name is unknown.
        """
        super().__init__(1.5, "horizon", pool=pool)
        self._oracle = make_oracle(oracle)

    def _choose(self, arms: Array, draws: bool, round_: Array, active: Array, awake: Array) -> None:
        known = np.where(self._pulls > 0, self._scores, np.inf)
        chosen = self._oracle(np.where(awake, known, -np.inf), arms.shape[1])
        arms[active] = chosen[active]


class UniformArms(EpsilonGreedy):
    """Pulls arms uniformly at random.

    Example:
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


_ALL = (EpsilonGreedy, EpsilonDecreasing, UCB1, ThompsonSampling, Softmax, Pursuit, CUCB, UniformArms)
LEARNERS: dict[str, Any] = {policy.__name__: policy for policy in _ALL}
"""The classes of all policies above, by name."""


class FairLearn:
    r"""FAIR-LEARN around any learner (Patil, Ghalme, Nair and Narahari 2021; thesis, Algorithm 4.1).

    Arm $i$ with the share $r_i$ is guaranteed $r_i (t - 1)$ pulls by each agent before round $t$. With $n_i$ pulls it
    lacks $r_i (t - 1) - n_i$. If some arm lacks more than the tolerance, the arm that lacks most is pulled (the first
    of several), else the arm that the learner chooses: UCB1's, with the largest $s_i / n_i + \sqrt{2 \ln t / n_i}$ for
    the sum $s_i$ of rewards, unless another learner is given. Only the agent's own pulls and the rounds in which it has
    acted count. A sleeping arm counts as having no deficit.

    Example:
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
            learner: A policy that pulls arms; or the name of one in :data:`LEARNERS`; or
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
        self._shares = require_array("shares", shares, {0: "a number", 1: "(arms,)"}, 0, 1)
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
        total = np.broadcast_to(self._shares, arms).sum()
        if total > 1.0 + 1e-9:
            raise UnfitError(f"shares add up to {total:g}; at most 1 is required")
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


PEERS = UCB1
"""The policy of a learner's peers, unless the learner's environment is told another."""
