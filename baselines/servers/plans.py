"""Server policies that plan the agents' pulls of Gaussian arms: elimination, epochs, PF-UCB, and leader.

* C. Shi, C. Shen: Federated Multi-Armed Bandits, AAAI 2021, Algorithms Fed2-UCB and, with all agents from the start and
  no spread between them, Fed1-UCB (:class:`EliminationServer`).
* C. Shi, C. Shen, J. Yang: Federated Multi-armed Bandits with Personalization, AISTATS 2021 (:class:`PersonalServer`).
"""

from math import log, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import downloads_of
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag, require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.wrappers.transport.server_policy import Ask


def _arms(spec: PolicySpec) -> int:
    return (spec.observation["total_pulls"].shape or (0,))[0]


def complete(heard: Array, new: Array, absent: Array | bool = False) -> Array:
    """Returns the replicas of which all agents have uploaded, bool ``(replicas,)``, and lets them begin again.

    Args:
        heard: Agents that have uploaded so far, ``(replicas, agents)``, to which the ``new`` ones are added.
        new: Agents whose uploads have just arrived, same shape.
        absent: Agents that need not upload, same shape.
    """
    heard |= new
    done: Array = np.asarray(new.any(axis=1) & (heard | absent).all(axis=1))
    heard[done] = False
    return done


class _ArmServer:
    """What the servers of this module have in common: the factor of their radius, and the horizon in it."""

    def __init__(self, radius_scale: float = 1.0, horizon: int | None = None) -> None:
        """Sets the constants of the radius.

        Args:
            radius_scale: Number by which the radius is multiplied.
            horizon: T in the radius; None for the number of rounds of the episode.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._horizon = None if horizon is None else require_integer("horizon", horizon, 1)

    def _start(self, spec: PolicySpec, seeds: Array) -> tuple[tuple[int, int], int]:
        """Computes ln(T); returns the numbers of replicas and agents, and the number of arms."""
        self._logarithm = log(max(self._horizon or spec.horizon, 2))
        return (len(seeds), spec.agents), _arms(spec)


class EliminationServer(_ArmServer):
    r"""Drops arms whose upper confidence bound is below the lower one of another arm, phase by phase.

    In every phase $p = 1, 2, \ldots$ each of the $M(p)$ agents that have joined so far pulls each remaining arm $f$
    times and uploads its pulls and sums of rewards of the phase. From all uploads so far the server computes $e_k$, the
    average of the agents' sample means of arm $k$, and the radius

    $$B = \sqrt{c_1 \sigma^2 \eta \ln T} + \sqrt{c_2 \sigma_c^2 \ln(T) / M(p)}, \qquad
    \eta = \frac{1}{M(p)^2} \sum_m \frac{1}{n_m}$$

    where $n_m$ is the number of pulls of the arm by agent $m$. It drops arms with $e_k + B < \max_l (e_l - B)$. Then
    $g(p + 1)$ more agents join. When one arm is left, all agents that have joined pull it to the end, without further
    messages; nobody joins any more.

    The server knows the standard deviations $\sigma$ of rewards and $\sigma_c$ (``spread``) of agents' means from the
    environment. It
    looks for the globally best arm, whatever the environment's aim is.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = gaussian_v0.parallel_env(num_agents=6, num_arms=3, law="approximate", spread=0.02)
        >>> env = Server(env, "announced", "every_round", policy={"name": "elimination", "pulls": 5, "joins": 2})
        >>> env.reset_batch([0]).observation["active"][0, :, 0].tolist()
        [True, True, False, False, False, False]
    """

    needs_single_uploads = True

    def __init__(
        self,
        pulls: int | None = None,
        joins: int | None = None,
        growth: float = 2.0,
        c1: float = 4.0,
        c2: float = 1.0,
        **radius: Any,
    ) -> None:
        """Sets the server's constants.

        Args:
            pulls: f, how often each agent pulls an arm in a phase; None for int(10 ln(T)), as in Fed1-UCB.
            joins: g(1), number of agents in the first phase; None for all agents.
            growth: g(p + 1) / g(p), until all agents have joined.
            c1: Constant of the radius for the noise of rewards; c in Fed1-UCB.
            c2: Constant of the radius for the spread between agents.
            **radius: ``radius_scale``, by which the radius B is multiplied, and ``horizon``, T in the radius.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**radius)
        self._pulls = None if pulls is None else require_integer("pulls", pulls, 1)
        self._joins = None if joins is None else require_integer("joins", joins, 1)
        self._growth = require_number("growth", growth, 0, np.inf, open_above=True)
        self._c1, self._c2 = require_number("c1", c1, 0, np.inf), require_number("c2", c2, 0, np.inf)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of a plan: pulls of arms, rounds of the phase, the arm to rest on, and who takes part."""
        plan = downloads_of("int64", pulls=[1, _arms(spec)], rounds=[], rest=[])
        return plan | downloads_of("bool", active=[])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with all arms and the first agents; see :meth:`.ServerPolicy.reset`."""
        rows, arms = self._start(spec, seeds)
        self._each = max(self._pulls or int(10 * log(self._horizon or spec.horizon)), 1)
        first = min(self._joins or spec.agents, spec.agents)
        self._joining = np.full(rows[0], float(first))
        self._active = np.tile(np.arange(spec.agents) < first, (rows[0], 1))
        self._heard = np.zeros(rows, np.bool_)
        self._left = np.ones((rows[0], arms), np.bool_)
        self._counts, self._sums = np.zeros((2, *rows, arms))
        self._noise = self._scale * spec.public["reward_sd"] * sqrt(self._c1 * self._logarithm)
        self._apart = self._scale * spec.public["spread"] * sqrt(self._c2 * self._logarithm)
        self._best = np.zeros(rows[0], np.int64)
        return self._plan()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes uploads in and, once all agents have uploaded, plans a new phase; see :meth:`.ServerPolicy.answer`."""
        self._counts += uploads["pulls"]
        self._sums += uploads["rewards"]
        for r in np.flatnonzero(complete(self._heard, mask, ~self._active)).tolist():
            self._judge(r)
        return self._plan()

    def _judge(self, r: int) -> None:
        """Drops arms of a replica, and lets agents join if more than one is left."""
        who, left = self._active[r], self._left[r]
        counts = np.maximum(self._counts[r][who][:, left], 1.0)
        estimate = (self._sums[r][who][:, left] / counts).mean(axis=0)
        many = int(who.sum())
        radius = self._noise * np.sqrt((1.0 / counts).sum(axis=0)) / many + self._apart / sqrt(many)
        self._best[r] = np.flatnonzero(left)[estimate.argmax()]
        left[left] = estimate + radius >= (estimate - radius).max()
        if left.sum() > 1:
            self._joining[r] *= self._growth if self._joins else 0.0
            self._active[r, many : many + int(self._joining[r])] = True

    def _plan(self) -> Arrays:
        going_on = self._left.sum(axis=1) > 1
        pulls = np.where(going_on[:, np.newaxis], self._left * self._each, 0)
        rounds = pulls.sum(axis=1)
        return {"pulls": pulls[:, np.newaxis], "rounds": rounds, "rest": self._best, "active": self._active}


class EpochServer(_ArmServer):
    r"""Chooses the arm that all agents pull in an epoch: the one with the largest upper bound of the global mean.

    The bound of arm $k$ is

    $$e_k + c \sqrt{2 \ln T \, ( \sigma^2 / (M n_k) + v_k / (M n_k)^2 )}$$

    with $c$ for ``radius_scale``, where each of $M$ agents has pulled the arm $n_k$ times, $e_k$ is the sum of all
    agents' rewards of the arm divided by $M n_k$, and $v_k$ the variance of the privacy noise in that sum, 0 if uploads
    say nothing of noise. The epoch lasts $\max(L, \lfloor n_k / 2 \rfloor)$ rounds with $L$ for ``shortest``; at its
    end all agents upload once. Arms that were never pulled come first. Numbers of pulls are those that were planned, so
    that no message may be lost and all agents must act in every round.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = gaussian_v0.parallel_env(num_agents=3, num_arms=4, regret="federation")
        >>> env = Server(env, "announced", "every_round", policy="epochs")
        >>> env.reset_batch([0]).observation["server_pulls"][0, 0, 0].tolist()
        [10, 0, 0, 0]
    """

    needs_every_message = True

    def __init__(self, shortest: int = 10, **radius: Any) -> None:
        """Sets the server's constants.

        Args:
            shortest: Rounds of the shortest epoch.
            **radius: ``radius_scale``, by which the radius is multiplied, and ``horizon``, T in the radius.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**radius)
        self._shortest = require_integer("shortest", shortest, 1)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of the plan: pulls of each arm, rounds of the epoch, and the arm to rest on."""
        return downloads_of("int64", pulls=[1, _arms(spec)], rounds=[], rest=[])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with the first arm; see :meth:`.ServerPolicy.reset`."""
        rows, arms = self._start(spec, seeds)
        self._width = self._scale * sqrt(2 * self._logarithm)
        self._reward_variance = float(spec.public["reward_sd"]) ** 2
        self._heard = np.zeros(rows, np.bool_)
        self._pulled, self._sums, self._noise = np.zeros((3, rows[0], arms))
        self._arm, self._rounds = np.zeros((2, rows[0]), np.int64)
        self._begin(np.arange(rows[0]))
        return self._plan()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes uploads in and, where all agents have uploaded, begins an epoch; see :meth:`.ServerPolicy.answer`."""
        self._sums += uploads["rewards"].sum(axis=1)
        if (variance := variance_of("rewards")) in uploads:
            self._noise += uploads[variance].sum(axis=1)
        done = np.flatnonzero(complete(self._heard, mask))
        self._pulled[done, self._arm[done]] += self._rounds[done]
        self._begin(done)
        return self._plan()

    def _begin(self, which: Array) -> None:
        """Chooses the arm and the length of the next epoch of some replicas, given by their numbers."""
        pulled, number = self._pulled[which], self._heard.shape[1] * np.maximum(self._pulled[which], 1.0)
        variance = self._reward_variance / number + np.maximum(self._noise[which], 0.0) / number**2
        index = np.where(pulled > 0, self._sums[which] / number + self._width * np.sqrt(variance), np.inf)
        self._arm[which] = index.argmax(axis=1)
        self._rounds[which] = np.maximum(self._shortest, self._pulled[which, self._arm[which]] // 2)

    def _plan(self) -> Arrays:
        chosen = np.arange(self._pulled.shape[1]) == self._arm[:, np.newaxis]
        pulls = (chosen * self._rounds[:, np.newaxis])[:, np.newaxis]
        return {"pulls": pulls, "rounds": self._rounds, "rest": self._arm}


class PersonalServer(_ArmServer):
    r"""Has agents explore for each other and for themselves, in phases of growing length.

    The mixed mean of an arm is $\alpha$ times the agent's sample mean plus $1 - \alpha$ times the average of all
    agents' sample means. At the start all arms remain for all agents. In phase $p = 1, 2, \ldots$, with
    $f(p) = g^p \ln T$ and $g$ for ``growth``:

    1. Each agent pulls every arm that remains for somebody $\lceil (1 - \alpha) f(p) \rceil$ times, then every arm that
       remains for itself $\lceil M \alpha f(p) \rceil$ more times. An agent that is done before the others pulls its
       best arm until they are (:class:`~fedbandit_envs.baselines.gaussian.PersonalPulls`); these pulls count, too.
    2. Each agent uploads its sample means, and is asked with their averages which arms remain for it. It answers by the
       radius $B = \sqrt{c \sigma^2 \ln T / (M F(p))}$ with $F(p) = f(1) + \cdots + f(p)$
       (:class:`~fedbandit_envs.baselines.gaussian.PersonalReporter`).
    3. If a single arm remains for an agent, the agent keeps it for good, and its set of remaining arms is empty from
       then on; it explores on for others. When all sets are empty there are no more phases and messages.

    The numbers of pulls make the variance of an agent's mixed mean at most sd^2 / (M F(p)) for every arm that remains
    for it, whatever alpha is. ``enhanced`` multiplies both numbers of pulls, before they are rounded, by (alpha sqrt(d)
    + (1 - alpha) D) / sqrt(d), where d is the gap that the agent has reported for the arm, 1 in the first phase, and D
    the average of sqrt(d) for that arm over all agents.

    The server knows alpha and the standard deviation sd of rewards from the environment. Its agents' messages, of
    which none may be lost, are written by a reporter; ``BASELINES["PF-UCB"].wrap`` puts both around an environment.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["PF-UCB"].wrap(make_federation("FedMixed-v0"))
        >>> env.reset_batch([0]).observation["server_pulls"].shape
        (1, 4, 2, 9)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(self, c: float = 1.0, growth: float = 2.0, enhanced: bool = False, **radius: Any) -> None:
        """Sets the server's constants.

        Args:
            c: Constant of the radius.
            growth: Growth of f from a phase to the next, > 1.
            enhanced: Whether pulls depend on the gaps of arms.
            **radius: ``radius_scale``, by which the radius B is multiplied, and ``horizon``, T in the radius.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**radius)
        self._c = require_number("c", c, 0, np.inf)
        self._growth = require_number("growth", growth, 1, np.inf, open_below=True)
        self._enhanced = require_flag("enhanced", enhanced)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of a plan, of the global means, of what remains for an agent, and of its fixed arm."""
        arms = _arms(spec)
        numbers = downloads_of("int64", pulls=[2, arms], rounds=[], fixed=[])
        return numbers | downloads_of("float64", mean=[arms]) | downloads_of("bool", own=[arms])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with all arms; see :meth:`.ServerPolicy.reset`."""
        rows, arms = self._start(spec, seeds)
        self._alpha = float(spec.public["alpha"])
        self._variance = self._scale**2 * self._c * spec.public["reward_sd"] ** 2 * self._logarithm / rows[1]
        self._means, self._roots = np.zeros((*rows, arms)), np.ones((*rows, arms))
        self._own, self._fixed = np.ones((*rows, arms), np.bool_), np.full(rows, -1)
        self._average = np.zeros((rows[0], arms))
        self._heard, self._asked = np.zeros(rows, np.bool_), np.zeros(rows[0], np.bool_)
        self._length, self._sum = np.zeros((2, rows[0]))
        self._pulls = np.zeros((*rows, 2, arms), np.int64)
        self._begin(np.arange(rows[0]))
        return self._plan()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays | Ask:
        """Averages means, asks what remains, and begins the next phase; see :meth:`.ServerPolicy.answer`."""
        new = mask & ~self._asked[:, np.newaxis]
        self._take_in(uploads, mask & ~new)
        self._begin(np.flatnonzero(self._asked & mask.any(axis=1)))
        self._means[new] = uploads["means"][new]
        self._asked = complete(self._heard, new)
        if not self._asked.any():
            return self._plan()
        self._average[self._asked] = self._means[self._asked].mean(axis=1)
        radius = np.sqrt(self._variance / self._sum)
        question = {"mean": self._average[:, np.newaxis], "arms": self._own, "radius": radius[:, np.newaxis]}
        return Ask(question, np.broadcast_to(self._asked[:, np.newaxis], mask.shape))

    def _take_in(self, reports: Arrays, mask: Array) -> None:
        """Keeps which arms remain for agents that have reported; one that has a single arm left fixes it."""
        self._own[mask] = reports["arms"][mask] > 0.5
        self._roots[mask] = np.sqrt(reports["gaps"][mask])
        single = mask & (self._own.sum(axis=-1) == 1)
        self._fixed[single] = self._own[single].argmax(axis=-1)
        self._own[single] = False

    def _begin(self, which: Array) -> None:
        """Plans the next phase of some replicas, given by their numbers."""
        self._length[which] = np.where(self._sum[which] > 0, self._length[which], 1.0) * self._growth
        some = self._length[which] * self._logarithm
        self._sum[which] += some
        own, factor = self._own[which], np.ones((1, 1, 1))
        if self._enhanced:
            roots = np.maximum(self._roots[which], 1e-12)
            factor = self._alpha + (1 - self._alpha) * roots.mean(axis=1, keepdims=True) / roots
        each = some[:, np.newaxis, np.newaxis] * factor
        anybody = own.any(axis=1, keepdims=True)
        self._pulls[which, :, 0] = anybody * np.ceil((1 - self._alpha) * each)
        self._pulls[which, :, 1] = own * np.ceil(own.shape[1] * self._alpha * each)

    def _plan(self) -> Arrays:
        rounds = self._pulls.sum(axis=(2, 3)).max(axis=1)
        plan = {"pulls": self._pulls, "rounds": rounds, "mean": self._average}
        return {**plan, "own": self._own, "fixed": self._fixed}


class LeaderServer(_ArmServer):
    """Leader against challenger for agents with mixed aims; the server receives all rewards.

    First every agent pulls every arm once. Then the server estimates what an arm is worth to an agent by alpha (the
    agent's sample mean) + (1 - alpha) (the average of all sample means). The radius of the estimate is radius_scale
    sqrt(v ln(T)), where v is its variance, which follows from the numbers of pulls and the standard deviation of
    rewards. An agent's leader is the arm with the largest estimate, and its challenger the other arm with the largest
    upper bound. The agent is undecided while the challenger's upper bound is above the leader's lower bound. For each
    undecided agent, from agent 0 on, the arm of its two with the larger radius is pulled by one agent that has no such
    task yet: the one whose pull reduces the variance most. All others pull their leaders.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(make_federation("FedMixed-v0"), "every_round", "every_round", policy="leader")
        >>> env.reset_batch([0]).observation["server_arm"].tolist()
        [[0, 0, 0, 0]]
    """

    needs_single_uploads = True

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shape of an answer: the agent's arm."""
        return downloads_of("int64", arm=[])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts without data, all agents with the first arm; see :meth:`.ServerPolicy.reset`."""
        rows, arms = self._start(spec, seeds)
        alpha = float(spec.public["alpha"])
        # Row m has the weights of all agents' sample means in agent m's estimate.
        self._weights = alpha * np.eye(rows[1]) + (1 - alpha) / rows[1]
        self._factor = self._scale**2 * spec.public["reward_sd"] ** 2 * self._logarithm
        self._counts, self._sums = np.zeros((2, *rows, arms))
        self._arm = np.zeros(rows, np.int64)
        return {"arm": self._arm}

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes uploads in and chooses everybody's next arm; see :meth:`.ServerPolicy.answer`."""
        self._counts += uploads["pulls"]
        self._sums += uploads["rewards"]
        which = mask.any(axis=1)
        self._arm[which] = self._chosen(self._counts[which], self._sums[which])
        return {"arm": self._arm}

    def _chosen(self, counts: Array, sums: Array) -> Array:
        """Returns each agent's arm, ``(replicas, agents)``, from counts and sums, ``(replicas, agents, arms)``."""
        never, many = counts == 0, np.maximum(counts, 1.0)
        estimate = self._weights @ (sums / many)
        radius = np.sqrt(self._factor * (self._weights**2 @ (1.0 / many)))
        leader = estimate.argmax(axis=-1)
        upper = estimate + radius
        np.put_along_axis(upper, leader[..., np.newaxis], -np.inf, axis=-1)
        challenger = upper.argmax(axis=-1)

        def at(array: Array, arm: Array) -> Array:
            return np.take_along_axis(array, arm[..., np.newaxis], axis=-1)[..., 0]

        undecided = at(upper, challenger) > at(estimate - radius, leader)
        # Rounding must not decide between radii that are equal, as those of arms that were pulled equally often.
        wider = np.where(at(radius, challenger) > at(radius, leader) * (1 + 1e-9), challenger, leader)
        arm, free = leader.copy(), np.ones(leader.shape, np.bool_)
        replicas = np.arange(len(arm))
        # By how much one more pull of each agent would reduce the variance of an agent's estimate, but for its weight.
        reduction = 1.0 / (many * (many + 1.0))
        for m in range(arm.shape[1]):
            gain = self._weights[m] ** 2 * reduction[replicas, :, wider[:, m]]
            helper = np.where(free, gain, -1.0).argmax(axis=1)
            rows = replicas[undecided[:, m]]
            arm[rows, helper[rows]] = wider[rows, m]
            free[rows, helper[rows]] = False
        return np.where(never.any(axis=-1), never.argmax(axis=-1), arm)
