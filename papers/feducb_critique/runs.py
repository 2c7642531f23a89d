"""Measurements of FedUCB besides regret: what the times of its messages betray, and how its noise adds up."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil, log, log1p
from time import process_time
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from gymnasium import spaces

from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.noise import regularise
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.privacy.attacks import epsilon_from_rates, rate_at_least, rate_at_most

_AGENTS, _DIM, _FAILURE = 2, 2, 0.01
# The arms: the longest context there can be, which pays 1, and a context of length 0, which pays nothing.
_LONG, _NOTHING = 0, 1
_CONTEXTS = [[1.0, 0.0], [0.0, 0.0]]
_INBOXES = 200_000  # held in memory at once, one for each pair of agents
ERROR = 1e-4
"""Probability that a lower bound of epsilon is too high."""


def _federation(agents: int, horizon: int) -> FederatedEnv:
    """Returns a federation in which nothing is random but the noise of privatizers."""
    return parallel_env(
        num_agents=agents, contexts=_CONTEXTS, parameter=[1.0, 0.0], reward="normal", reward_sd=0.0,
        reward_bound=1.0, max_cycles=horizon,
    )  # fmt: skip


class _Measurement(ABC):
    """A cell of an experiment that is played in one piece; see :class:`~fedbandit_envs.leaderboard.runs.store.Cell`.

    Attributes:
        result: Class of its result, whose fields are named as the arrays that are kept.
    """

    result: ClassVar[Callable[..., Any]]

    @property
    def key(self: Any) -> list[Any]:
        """The class and all fields but the labels; see :attr:`.cell.Cell.key`."""
        return [
            type(self).__name__,
            {name: value for name, value in asdict(self).items() if name != "labels"},
        ]

    def split(self) -> Sequence[Self]:
        """Returns the measurement itself: it is short."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays it; see :meth:`.cell.Cell.play`."""
        start = process_time()
        kept = self._measure(advance)
        return {**kept, "cpu_seconds": np.array(process_time() - start)}

    @abstractmethod
    def _measure(self, advance: Callable[[float], None]) -> Arrays:
        """Returns all that is to be kept but the CPU seconds; see :meth:`.cell.Cell.play`."""

    def join(self, parts: Sequence[Arrays]) -> Any:
        """Returns the result; see :meth:`.cell.Cell.join`."""
        (part,) = parts
        return self.result(**{name: kept if kept.ndim else kept.item() for name, kept in part.items()})


class _ScriptedFedUCB(FedUCB):
    """FedUCB whose agents pull the context of length 0, but for the first agent's first pull, which is given."""

    def __init__(self, first: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._first = first

    def _pull(self, observation: Arrays) -> Array:
        arm = np.full(observation["round"].shape[:2], _NOTHING)
        if observation["round"].flat[0] == 0:
            arm[:, 0] = self._first
        return arm


class FirstMessages(NamedTuple):
    """The result of :class:`SendTimes`: the rounds of first messages under both neighbouring histories.

    Attributes:
        without: Round of the first synchronisation without the observation, ``(samples,)``; 0 for none.
        including: The same with the observation.
        horizon: T that was played.
        share: Share of the horizons tried that betray the observation; NaN where D was made for one.
        reason: Why the federation claims no privacy; empty where it does.
        cpu_seconds: What playing took.
    """

    without: Array
    including: Array
    horizon: int
    share: float
    reason: str
    cpu_seconds: float

    def epsilon(self, delta: float) -> float:
        """Returns a lower bound of epsilon at this delta, too high with probability :data:`ERROR` at most.

        A quarter of the samples are used to choose the event that is counted in the others: the first synchronisation
        comes on that side of the middle between both histories' median rounds where it comes with the observation.
        """
        quarter = len(self.without) // 4
        without, including = (float(np.median(some[:quarter])) for some in (self.without, self.including))
        between = (without + including) / 2
        false, true = (
            (some[quarter:] < between) == (including < without) for some in (self.without, self.including)
        )
        return epsilon_from_rates(rate_at_least(true, ERROR / 2), rate_at_most(false, ERROR / 2), delta)


@dataclass(frozen=True)
class SendTimes(_Measurement):
    """An attack on FedUCB's privacy by an attacker who sees nothing but when a federation synchronises first.

    Two histories of one agent differ in one observation, of a long context or of none. Before the first
    synchronisation no noise has been received, so that its round follows from the history.

    Attributes:
        baseline: Name of the federation's baseline.
        epsilon: What all releases together promise.
        samples: Number of federations with each history, each with noise of its own.
        horizons: The first and the last T for which the printed threshold is tried, until it betrays the observation;
            the last is played if none does.
        made_for: The round in which a threshold made for it betrays the observation, at the first horizon; None keeps
            the printed threshold.
        labels: What tells the attack from others of an experiment; no part of its key.
    """

    result = FirstMessages

    baseline: str
    epsilon: float
    samples: int
    horizons: tuple[int, int]
    made_for: int | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """Agent-rounds of both histories, at most."""
        return float(2 * _AGENTS * self.samples * self.horizons[1])

    def _measure(self, advance: Callable[[float], None]) -> Arrays:
        """Plays both histories."""
        horizon, share, threshold = self._aim()
        times = {}
        for number, (name, first) in enumerate((("without", _NOTHING), ("including", _LONG))):
            seeds = range(number * self.samples, (number + 1) * self.samples)
            times[name], reason = self._first_rounds(first, seeds, horizon, threshold)
            advance(self.size / 2)
        return {
            **times, "horizon": np.array(horizon), "share": np.array(share), "reason": np.array(reason),
        }  # fmt: skip

    def _aim(self) -> tuple[int, float, float | None]:
        """Returns T, the share of horizons tried that betray the observation, and D if it is not the printed one."""
        first, last = self.horizons
        if self.made_for is not None:
            trigger = printed_trigger(self.baseline, self.epsilon, first)
            return first, np.nan, self.made_for * (trigger.without + trigger.including) / 2
        betraying = [
            horizon
            for horizon in range(first, last + 1)
            if len(set(printed_trigger(self.baseline, self.epsilon, horizon).rounds)) == 2
        ]
        return (betraying[0] if betraying else last), len(betraying) / (last - first + 1), None

    def _first_rounds(
        self, first: int, seeds: range, horizon: int, threshold: float | None
    ) -> tuple[Array, str]:
        """Returns the first round with messages of each seed (0: none), and why privacy is not claimed, if so.

        Args:
            first: The first agent's first pull.
            seeds: A federation each.
            horizon: T.
            threshold: D; None for the printed one.
        """
        baseline = BASELINES[self.baseline]
        env = baseline.wrap(_federation(_AGENTS, horizon), {"privatizer": {"epsilon": self.epsilon}})
        policy = _ScriptedFedUCB(first, **{**baseline.policy_kwargs, "threshold": threshold})
        observation = env.reset_batch(seeds).observation
        policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
        times = np.zeros(len(seeds), np.int64)
        for t in range(1, horizon + 1):
            observation = env.step_batch(policy.act(observation)).observation
            times[(times == 0) & observation["inbox_mask"].any(axis=(1, 2))] = t
            if times.all():
                break
        return times, env.privacy().reason


class Trigger(NamedTuple):
    """The paper's communication trigger at the start of an episode, in a federation of :class:`SendTimes`.

    Attributes:
        threshold: D.
        without: Its left-hand side, log det(V + (rho_max - rho_min) I) - log det S, before there is any data.
        including: The same once there is one long context.
    """

    threshold: float
    without: float
    including: float

    @property
    def rounds(self) -> tuple[int, int]:
        """The rounds in which it fires first, without the observation and with it."""
        return ceil(self.threshold / self.without), ceil(self.threshold / self.including)


def printed_trigger(baseline: str, epsilon: float, horizon: int) -> Trigger:
    """Computes the printed trigger from the noise variance that a federation announces, without its policy.

    Args:
        baseline: Name of the federation's baseline.
        epsilon: What all releases together promise.
        horizon: T.
    """
    env = BASELINES[baseline].wrap(_federation(_AGENTS, horizon), {"privatizer": {"epsilon": epsilon}})
    noise = env.policy_spec.release[variance_of("statistic")]
    assert isinstance(noise, spaces.Box)
    worst = float(np.sqrt(noise.high.max()))
    made = regularise(
        shift="per_agent",
        bias="printed",
        sd=np.array(worst),
        worst_sd=worst,
        heads=np.array(float(_AGENTS)),
        # Union bound over agents and over releases, at the first release, for half of the policy's failure probability.
        log_union=np.array(log(2 * _AGENTS * np.pi**2 / (6 * _FAILURE))),
        dim=_DIM,
        ridge=1.0,
        parameter_bound=1.0,
    )
    least, most = float(made.least), float(made.most)
    without = _DIM * log(most / least)
    threshold = 2 * horizon * _DIM / (log(most / least + horizon / (_DIM * least)) + 1)
    return Trigger(threshold, without, without + log1p(1 / most))


class DiagonalNoise(NamedTuple):
    """The result of :class:`AddedNoise`: the noise on the diagonal in the last round.

    Attributes:
        summed: Noise in the sum over agents, ``(samples * (dim + 1),)``.
        single: Noise in each agent's share of it, ``(samples * agents * (dim + 1),)``.
        cpu_seconds: What playing took.
    """

    summed: Array
    single: Array
    cpu_seconds: float


@dataclass(frozen=True)
class AddedNoise(_Measurement):
    """A measurement of the noise in the sum that FedUCB's agents learn from, in federations without data.

    Attributes:
        baseline: Name of the federation's baseline; messages have to reach their senders as well, so that all agents'
            noise is in the sum.
        agents: M.
        rounds: T.
        samples: Number of federations, a few of which are played at a time.
        labels: What tells the measurement from others of an experiment; no part of its key.
    """

    result = DiagonalNoise

    baseline: str
    agents: int
    rounds: int
    samples: int
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """Agent-rounds."""
        return float(self.samples * self.agents * self.rounds)

    def _measure(self, advance: Callable[[float], None]) -> Arrays:
        """Lets agents pull nothing and release that."""
        env = BASELINES[self.baseline].wrap(_federation(self.agents, self.rounds))
        at_once = max(1, min(self.samples, _INBOXES // self.agents**2))
        noise = [
            self._received(env, range(first, min(first + at_once, self.samples)), advance)
            for first in range(0, self.samples, at_once)
        ]
        diagonal = np.concatenate(noise)
        return {"summed": diagonal.sum(axis=1).ravel(), "single": diagonal.ravel()}

    def _received(self, env: FederatedEnv, seeds: range, advance: Callable[[float], None]) -> Array:
        """Returns the noise on the diagonals that the first agent has received, ``(seeds, agents, dim + 1)``."""
        env.reset_batch(seeds)
        idle = np.full((len(seeds), self.agents), _NOTHING)
        received = np.zeros((len(seeds), self.agents, _DIM + 1, _DIM + 1))
        for _ in range(self.rounds):
            received += env.step_batch(idle).observation["inbox_statistic"][:, 0]
            advance(float(idle.size))
        return np.diagonal(received, axis1=-2, axis2=-1)
