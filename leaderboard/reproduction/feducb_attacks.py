"""What is measured of FedUCB besides regret: what the times of its messages betray, and how its noise adds up."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil, log, log1p
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.noise import regularise
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.streams import row_seeds
from fedbandit_envs.wrappers.privacy.attacks import at_least, at_most, epsilon_of_rates

_AGENTS, _DIM, _FAILURE = 2, 2, 0.01
# The longest context there can be, which pays 1, and none at all, which pays nothing.
_LONG, _NOTHING = 0, 1
_CONTEXTS = [[1.0, 0.0], [0.0, 0.0]]
_INBOXES = 200_000  # held at once, of each agent for each
ERROR = 1e-4
"""Probability that a lower bound of epsilon is too high."""


def _federation(agents: int, horizon: int) -> FederatedEnv:
    """A federation in which nothing is random but noise."""
    return parallel_env(
        num_agents=agents, contexts=_CONTEXTS, parameter=[1.0, 0.0], reward="normal", reward_sd=0.0,
        reward_bound=1.0, max_cycles=horizon,
    )  # fmt: skip


class _Lives(FedUCB):
    """FedUCB whose agents pull nothing, but that the first agent's first pull is as it is told."""

    def __init__(self, first: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._first = first

    def _pull(self, observation: Arrays) -> Array:
        arm = np.full(observation["round"].shape[:2], _NOTHING)
        if observation["round"].flat[0] == 0:
            arm[:, 0] = self._first
        return arm


@dataclass(frozen=True)
class SendTimes:
    """An attack on when a federation synchronises first, by an attacker who sees nothing else.

    Two histories of one agent differ in one observation, of a long context or of none. Before the first
    synchronisation nobody has heard any noise.

    Attributes:
        baseline: Of which federation.
        epsilon: That all releases promise.
        samples: Of each history, each with noise of its own.
        horizons: From which T to which the printed threshold is tried, until it betrays the observation; the last is
            played if none does.
        made_for: In which round the threshold is to betray it at the first horizon already; None keeps the printed one.
    """

    baseline: str
    epsilon: float
    samples: int
    horizons: tuple[int, int]
    made_for: int | None = None

    @property
    def key(self) -> list[Any]:
        """All that the results follow from; see :attr:`.cell.Cell.key`."""
        return ["feducb-times", asdict(self)]

    @property
    def size(self) -> float:
        """Agent-rounds of both histories, at most."""
        return float(2 * _AGENTS * self.samples * self.horizons[1])

    def split(self) -> Sequence["SendTimes"]:
        """Returns the attack itself: it is short."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays both histories; see :meth:`.cell.Cell.play`."""
        start = process_time()
        horizon, share, threshold = self._aimed()
        times = {}
        for number, (name, first) in enumerate((("without", _NOTHING), ("with", _LONG))):
            seeds = range(number * self.samples, (number + 1) * self.samples)
            times[name], reason = self._live(first, seeds, horizon, threshold)
            advance(self.size / 2)
        return {
            **times,
            "horizon": np.array(horizon),
            "share": np.array(share),
            "reason": np.array(reason),
            "cpu_seconds": np.array(process_time() - start),
        }

    def _aimed(self) -> tuple[int, float, float | None]:
        """Returns T, which share of the horizons tried betray the observation, and D if it is not the printed one."""
        first, last = self.horizons
        if self.made_for is not None:
            trigger = printed_trigger(self.baseline, self.epsilon, first)
            return first, np.nan, self.made_for * (trigger.without + trigger.with_) / 2
        betraying = [
            horizon
            for horizon in range(first, last + 1)
            if len(set(printed_trigger(self.baseline, self.epsilon, horizon).rounds)) == 2
        ]
        return (betraying[0] if betraying else last), len(betraying) / (last - first + 1), None

    def _live(self, first: int, seeds: range, horizon: int, threshold: float | None) -> tuple[Array, str]:
        """Returns the first round in which messages are sent, one a seed (0: none), and why nothing is claimed."""
        baseline = BASELINES[self.baseline]
        env = baseline.wrap(_federation(_AGENTS, horizon), {"privatizer": {"epsilon": self.epsilon}})
        policy = _Lives(first, **{**baseline.policy_kwargs, "threshold": threshold})
        observation = env.reset_batch(seeds).observation
        policy.reset(env.policy_spaces, row_seeds(seeds, env.max_num_agents))
        times = np.zeros(len(seeds), np.int64)
        for t in range(1, horizon + 1):
            observation = env.step_batch(policy.act(observation)).observation
            times[(times == 0) & observation["inbox_mask"].any(axis=(1, 2))] = t
            if times.all():
                break
        return times, env.privacy().reason

    def join(self, parts: Sequence[Arrays]) -> "Betrayed":
        """See :meth:`.cell.Cell.join`."""
        (part,) = parts
        return Betrayed(
            part["without"], part["with"], int(part["horizon"]), float(part["share"]), str(part["reason"]),
            float(part["cpu_seconds"]),
        )  # fmt: skip


class Betrayed(NamedTuple):
    """What an attack on the times has seen.

    Attributes:
        without: The first synchronisation's round where the observation is not there, ``(samples,)``; 0 for none.
        with_: Where it is.
        horizon: T that was played.
        share: Of the horizons that were tried, how many betray the observation; NaN where D was made for one.
        reason: What the federation says where it claims nothing.
        cpu_seconds: What playing took.
    """

    without: Array
    with_: Array
    horizon: int
    share: float
    reason: str
    cpu_seconds: float

    def epsilon(self, delta: float) -> float:
        """Returns a lower bound of epsilon at this delta, too high with probability :data:`ERROR` at most.

        A quarter of the samples train the event: that the first synchronisation comes on the side of the rounds between
        which it usually comes without the observation and with it, where it comes with it.
        """
        quarter = len(self.without) // 4
        without, with_ = (float(np.median(some[:quarter])) for some in (self.without, self.with_))
        between = (without + with_) / 2
        false, true = ((some[quarter:] < between) == (with_ < without) for some in (self.without, self.with_))
        return epsilon_of_rates(at_least(true, ERROR / 2), at_most(false, ERROR / 2), delta)


class Trigger(NamedTuple):
    """What the printed trigger starts from, in a federation of :class:`SendTimes`.

    Attributes:
        threshold: D.
        without: Its left-hand side, log det(V + (rho_max - rho_min) I) - log det S, before there is any data.
        with_: The same once there is one long context.
    """

    threshold: float
    without: float
    with_: float

    @property
    def rounds(self) -> tuple[int, int]:
        """In which round it fires first, without the observation and with it."""
        return ceil(self.threshold / self.without), ceil(self.threshold / self.with_)


def printed_trigger(baseline: str, epsilon: float, horizon: int) -> Trigger:
    """Works out the printed trigger from the noise that a federation announces; the policy is not asked."""
    env = BASELINES[baseline].wrap(_federation(_AGENTS, horizon), {"privatizer": {"epsilon": epsilon}})
    noise = env.policy_spaces.release[variance_of("statistic")]
    assert isinstance(noise, spaces.Box)
    worst = float(np.sqrt(noise.high.max()))
    # By a union over agents and releases, of which this is the first, for half of the policy's failures.
    union = log(2 * _AGENTS * np.pi**2 / (6 * _FAILURE))
    made = regularise(
        shift="per_agent",
        bias="printed",
        sd=np.array(worst),
        worst_sd=worst,
        heads=np.array(float(_AGENTS)),
        log_union=np.array(union),
        dim=_DIM,
        ridge=1.0,
        parameter_bound=1.0,
    )
    least, most = float(made.least), float(made.most)
    without = _DIM * log(most / least)
    threshold = 2 * horizon * _DIM / (log(most / least + horizon / (_DIM * least)) + 1)
    return Trigger(threshold, without, without + log1p(1 / most))


@dataclass(frozen=True)
class AddedNoise:
    """How much noise there is in the sum that agents of FedUCB learn from, where there is nothing else in it.

    Attributes:
        baseline: Of which federation; it has to echo, so that all agents' noise is in the sum.
        agents: M.
        rounds: T.
        samples: Number of federations, a few at a time.
    """

    baseline: str
    agents: int
    rounds: int
    samples: int

    @property
    def key(self) -> list[Any]:
        """See :attr:`.cell.Cell.key`."""
        return ["feducb-noise", asdict(self)]

    @property
    def size(self) -> float:
        """Agent-rounds."""
        return float(self.samples * self.agents * self.rounds)

    def split(self) -> Sequence["AddedNoise"]:
        """Returns the measurement itself."""
        return [self]

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Lets agents do nothing and release it; see :meth:`.cell.Cell.play`."""
        start = process_time()
        env = BASELINES[self.baseline].wrap(_federation(self.agents, self.rounds))
        at_once = max(1, min(self.samples, _INBOXES // self.agents**2))
        noise = [
            self._heard(env, range(first, min(first + at_once, self.samples)), advance)
            for first in range(0, self.samples, at_once)
        ]
        diagonal = np.concatenate(noise)
        return {
            "summed": diagonal.sum(axis=1).ravel(),
            "single": diagonal.ravel(),
            "cpu_seconds": np.array(process_time() - start),
        }

    def _heard(self, env: FederatedEnv, seeds: range, advance: Callable[[float], None]) -> Array:
        """Returns the noise on the diagonals that the first agent has heard, ``(seeds, agents, dim + 1)``."""
        env.reset_batch(seeds)
        idle = np.full((len(seeds), self.agents), _NOTHING)
        heard = np.zeros((len(seeds), self.agents, _DIM + 1, _DIM + 1))
        for _ in range(self.rounds):
            heard += env.step_batch(idle).observation["inbox_statistic"][:, 0]
            advance(float(idle.size))
        return np.diagonal(heard, axis1=-2, axis2=-1)

    def join(self, parts: Sequence[Arrays]) -> "Added":
        """See :meth:`.cell.Cell.join`."""
        (part,) = parts
        return Added(self.agents, part["summed"], part["single"], float(part["cpu_seconds"]))


class Added(NamedTuple):
    """Noise on the diagonal, at the end.

    Attributes:
        agents: M.
        summed: Of the sum over agents, ``(samples * (dim + 1),)``.
        single: Of each agent's share in it, ``(samples * agents * (dim + 1),)``.
        cpu_seconds: What playing took.
    """

    agents: int
    summed: Array
    single: Array
    cpu_seconds: float
