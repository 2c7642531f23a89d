"""Schedules, answer rules and stages: when agents send, when a server answers, and who adds up their releases.

**Schedules** are the rounds in which agents send, fixed in advance or requested by agents.

Agents send at the end of a round t, counted from 1; messages include that round's outcomes. Wherever a schedule is an
argument, its JSON-able specification is accepted: a name, ``"every_round"``, or a mapping of the name and the
arguments, ``{"name": "fixed_gap", "gap": 10}``.

| name | arguments | which agents send, and when |
|---|---|---|
| `silent` | | none, ever |
| `every_round` | | all, in every round |
| `fixed_gap` | `gap` | all, in rounds gap, 2 gap, 3 gap, ... |
| `doubling` | `start` (200), `stop` (40,000), `mode` | all, when the round is a power of two from `start` to `stop` |
| `growing_then_fixed` | `limit` | all, after gaps that double up to a limit and stay there |
| `geometric` | `count`, `horizon` | all, in `count` rounds in geometric progression |
| `on_request` | | in each round those agents that ask to send |
| `synchronise` | | all agents, in each round in which at least one asks |
| `announced` | | those to whom a server has announced the round |

The first six are fixed in advance, so that sending times reveal nothing about data.

* ``doubling`` is the schedule of P-FCB (Solanki et al. 2022, Algorithm 1). With the default arguments, agents send 8
  times, in rounds 256, 512, ..., 32768. The mode ``"printed"`` follows the listing in the paper: its variable tau
  starts at 1 and doubles only when a message is sent in some round t >= tau. Since nothing is sent before round 200,
  tau has to catch up then: agents send 16 times, 8 of them in rounds 200 to 207. With a ``stop`` of None there is no
  last round.
* ``growing_then_fixed`` is the schedule of Fed-FairX-LinUCB (Algorithm 6.1): rounds 1, 2, 4, ... up to the first power
  of two P >= ``limit``, then P + limit, P + 2 limit, ...
* ``geometric`` serves FedUCB's communication budgets. With ``count`` = n rounds in a ``horizon`` of T, the k-th round
  of sending is T^(k/(n + 1)), rounded: these rounds grow by the factor T^(1/(n + 1)), and the next one would be the
  horizon. Where two rounded numbers are the same, at the beginning, the later one is increased by 1.
* ``on_request`` and ``synchronise`` have agents ask with the ``send`` entry of their actions, before the round's
  outcomes are known; the message includes these outcomes.
* ``synchronise`` is the schedule of FedUCB (Dubey and Pentland 2020, Algorithm 1). The request to synchronise reaches
  all agents immediately, is never lost and is not counted as traffic; delay and loss apply to the messages that follow.
  Every agent must be able to reach every other.
* ``announced`` needs a server whose answer to an agent contains ``rounds``, an integer n: the agent uploads n rounds
  after it has received the answer. If no new answer arrives at once, because a message is delayed or lost, the agent
  uploads in every following round until one does. With n = 0 it does not upload. The times follow from earlier
  uploads, so that they reveal nothing that the uploads do not.

**Answer rules** of a server: which agents receive a download in a round.

A server decides from the uploads alone, so that the times of its downloads reveal nothing that the uploads do not.
Wherever an answer rule is an argument, its JSON-able specification is accepted: a name, or a mapping of the name and
the arguments.

| name | arguments | which agents are answered |
|---|---|---|
| `uploads` | | those whose upload has arrived in this round |
| `determinant` | `growth`, `ridge` (1) | those whose estimates would improve enough, by a ratio of determinants |
| the name of a schedule fixed in advance | the schedule's | all, in the schedule's rounds |

An agent is never answered while the server has nothing new for it. ``uploads`` is the rule of FedLinUCB (He et al.
2022).

``determinant`` is the rule of Async-LinUCB (Li and Wang 2022): agent j is answered if det(V) > growth det(V - dV_j),
where V is the Gram matrix of all uploads plus ridge I, and dV_j the Gram matrix of the uploads that agent j has not
received. The released statistic must be a sum of [x; y][x; y]^T, of which the last row and column are left out.
``growth`` is the paper's gamma_D, >= 1, and ``ridge`` its lambda, > 0.

**Stages** of a transport: who stands between the agents' releases and everybody else, and what that does to privacy.

Without a stage every release reaches its receivers as it is, and nobody needs to be trusted. With a stage, the
releases of one round (a synchronisation) are replaced by their sum, which everybody gets, or nobody:

| stage | arguments | what adds up the releases | noise |
|---|---|---|---|
| `shuffler` | `colluders` (0) | whoever reads them; a shuffler has removed names and order | each agent's own |
| `aggregator` | `honest`, `colluders` (0) | a secure sum, which shows no single release | shares of one noise |
| `server` | | a trusted server, which sees them | one noise, added to the sum |

``honest`` is the number of agents whose shares make up the whole noise: where fewer agents send, or fewer uploads
arrive, nobody gets anything. ``colluders`` is the number of agents that show an observer their data and their noise.
All agents add noise of the same scale, the largest that any agent's statistic needs, so that noise tells no names.

The privatizer (:class:`~fedbandit_envs.wrappers.privacy.privatizer.Privatizer`) makes the noise that a stage needs and
keeps the accounts; :mod:`~fedbandit_envs.wrappers.privacy.stage_claims` makes claims from them.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from math import log
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays, spread, zeros
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.basics.entry_points import by_name, checked, make, make_rule
from fedbandit_envs.core.privacy import Sensitivity, variance_of


@dataclass(frozen=True)
class Schedule:
    """A schedule of messages: the rounds in which agents send, given by a function that counts them.

    Attributes:
        rule: A function that takes t >= 0 and returns in how many of the rounds 1 to t messages are sent; where agents
            choose when to send, in how many of them they may. Privacy mechanisms use it, too, to divide a privacy
            budget among releases.
        fixed_in_advance: Whether sending times are known before any data. If not, agents choose in each round whether
            to send, and the choice may reveal something about their data.
        needs_all_connected: Whether all agents send when one asks, so that each agent must be able to reach every
            other.
        announced: Whether a server's policy announces the rounds, so that :meth:`senders` does not say who sends.

    Example:
        >>> [t for t in range(1, 21) if make_schedule({"name": "growing_then_fixed", "limit": 4}).sends(t)]
        [1, 2, 4, 8, 12, 16, 20]
        >>> Schedule(lambda t: min(t, 3)).sends(4)
        False
    """

    rule: Callable[[int], int]
    fixed_in_advance: bool = True
    needs_all_connected: bool = False
    announced: bool = False

    def count(self, horizon: int) -> int:
        """Returns the largest number of rounds among 1 to ``horizon`` (>= 0) in which an agent sends."""
        return int(self.rule(int(horizon)))

    def sends(self, t: int) -> bool:
        """Returns whether messages are sent, or may be sent, in round ``t``, counted from 1."""
        return self.rule(t) > self.rule(t - 1)

    def senders(self, t: int, asked: Array) -> Array:
        """Returns which agents send in a round, bool ``(replicas, agents)``.

        Args:
            t: The round, counted from 1.
            asked: Which agents ask to send, bool ``(replicas, agents)``; ignored where rounds are fixed in advance.
        """
        if self.fixed_in_advance:
            return np.full(asked.shape, self.sends(t))
        if self.needs_all_connected:
            return np.repeat(asked.any(axis=1, keepdims=True), asked.shape[1], axis=1)
        return asked


def _silent(t: int) -> int:
    return 0


def _every_round(t: int) -> int:
    return t


@checked(lambda gap: require_integer("gap", gap, 1))
def _fixed_gap(t: int, *, gap: int) -> int:
    return t // gap


def _check_doubling(start: Any = 200, stop: Any = 40_000, mode: Any = "powers_of_two") -> None:
    require_integer("start", start, 1)
    if stop is not None:
        require_integer("stop", stop, int(start))
    require_choice("mode", mode, ("powers_of_two", "printed"))


@checked(_check_doubling)
def _doubling(t: int, *, start: int = 200, stop: int | None = 40_000, mode: str = "powers_of_two") -> int:
    last = t if stop is None else min(t, int(stop))
    if last < start:
        return 0
    if mode == "powers_of_two":
        return last.bit_length() - (int(start) - 1).bit_length()
    # The k-th message is sent in round max(start + k - 1, 2^(k - 1)), so at most this many have been sent by `last`.
    return min(last - int(start) + 1, last.bit_length())


@checked(lambda limit: require_integer("limit", limit, 1))
def _growing_then_fixed(t: int, *, limit: int) -> int:
    last_doubling = 1 << (int(limit) - 1).bit_length()
    return min(t, last_doubling).bit_length() + max(0, t - last_doubling) // limit


def _check_geometric(count: Any, horizon: Any) -> None:
    require_integer("horizon", horizon, 1)
    require_integer("count", count, 1, int(horizon))


@checked(_check_geometric)
def _geometric(t: int, *, count: int, horizon: int) -> int:
    return bisect_right(_progression(int(count), int(horizon)), t)


@lru_cache
def _progression(count: int, horizon: int) -> list[int]:
    """Returns the rounds of the schedule ``geometric``, increasing, from 1 to the horizon."""
    rounds = [0]
    for k in range(1, count + 1):
        rounds.append(max(round(horizon ** (k / (count + 1))), rounds[-1] + 1))
    return rounds[1:]


SCHEDULES: dict[str, Callable[..., int]] = {
    **by_name(_silent, _every_round, _doubling, _fixed_gap, _growing_then_fixed, _geometric),
    **dict.fromkeys(("on_request", "synchronise", "announced"), _every_round),
}
"""Functions that count the rounds in which agents send (:attr:`Schedule.rule`), by the name of the schedule."""


def make_schedule(spec: Schedule | str | Mapping[str, Any]) -> Schedule:
    """Returns the schedule of a specification; a schedule is returned as it is.

    Args:
        spec: A schedule, a counting function, a name of :data:`SCHEDULES`, or a mapping of ``name`` and the schedule's
            arguments.

    Raises:
        TypeError: The specification is none of these, or the schedule has no argument of a given name.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if isinstance(spec, Schedule):
        return spec
    rule = make_rule("schedule", spec, SCHEDULES)
    name = spec["name"] if isinstance(spec, Mapping) else spec
    asks = name in ("on_request", "synchronise")
    return Schedule(rule, not asks, name == "synchronise", name == "announced")


Answers = Callable[[int, Array, Arrays, Arrays], Array]
"""A function that returns which agents get a download in a round, bool ``(replicas, agents)``. Its arguments are

* the round, counted from 1;
* whether an agent's upload has arrived in this round, bool ``(replicas, agents)``;
* the sum of all uploads, by name, ``(replicas, ...)``;
* the part of this sum that each agent has not received yet, by name, ``(replicas, agents, ...)``.

A rule that does not fit the statistic raises a ``ValueError``."""


def _uploads(t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
    return uploaded


def _scheduled(t: int, uploaded: Array, held: Arrays, news: Arrays, *, schedule: Schedule) -> Array:
    return schedule.senders(t, uploaded)


def _check_determinant(growth: Any, ridge: Any = 1.0) -> None:
    require_number("growth", growth, 1, np.inf)
    require_number("ridge", ridge, 0, np.inf, open_below=True)


@checked(_check_determinant)
def _determinant(
    t: int, uploaded: Array, held: Arrays, news: Arrays, *, growth: float, ridge: float = 1.0
) -> Array:
    answered = np.zeros_like(uploaded)
    which = np.flatnonzero(uploaded.any(axis=1))
    if not which.size:
        return answered
    announced = {variance_of(name) for name in held}
    shapes = {name: array.shape[1:] for name, array in held.items() if name not in announced}
    matrices = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == shape[1] > 1]
    if len(matrices) != 1:
        raise ValueError(
            f"answers are by determinant, and the environment releases {list(held)}, of which {matrices} are "
            "square matrices; one is required"
        )
    # The last row and column contain the rewards; without them the Gram matrix of the contexts is left.
    total, new = (arrays[matrices[0]][which][..., :-1, :-1] for arrays in (held, news))
    ridges = ridge * np.eye(new.shape[-1])
    total, new = total + ridges, new + ridges
    known = np.linalg.slogdet(total)[1]
    received = np.linalg.slogdet(total[:, np.newaxis] - new + ridges)[1]
    answered[which] = known[:, np.newaxis] - received > log(growth)
    return answered


ANSWERS = by_name(_uploads, _determinant)
"""The built-in answer rules by name; the names of schedules fixed in advance are accepted as well."""


def make_answers(spec: Answers | str | Mapping[str, Any], released: spaces.Dict) -> Answers:
    """Returns the answer rule of a specification; a function is returned as it is.

    Args:
        spec: A function (:data:`Answers`), a name, or a mapping of ``name`` and arguments.
        released: Space of one agent's releases.

    Raises:
        TypeError: The specification has the wrong type, or arguments with unknown names.
        ValueError: The name is unknown, an argument is out of its range, or the rule does not fit the released arrays.
    """
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if isinstance(name, str) and name in SCHEDULES:
        schedule = make_schedule(spec)  # type: ignore[arg-type]
        if not schedule.fixed_in_advance or schedule.announced:
            raise ValueError(f"answers is {name!r}; a schedule fixed in advance, or a rule, is required")
        return partial(_scheduled, schedule=schedule)
    rule: Answers = make_rule("answers", spec, ANSWERS, ", or a schedule's,")
    # Called once with zeros, so that a rule that does not fit the released arrays raises its error now.
    rule(1, np.ones((1, 1), np.bool_), zeros(released, (1,)), zeros(released, (1, 1)))
    return rule


@dataclass(frozen=True)
class Stage:
    """A stage of a transport; see this module.

    Example:
        >>> make_stage({"name": "aggregator", "honest": 3}, 4)
        Stage(trust='aggregator', honest=3, colluders=0)

    Attributes:
        trust: Name of the stage, and the trust that its claims name.
        honest: The fewest uploads in a sum; for ``aggregator`` also the number of shares that make up the whole noise.
        colluders: Number of agents that show an observer their data and their noise.
    """

    trust: Literal["shuffler", "aggregator", "server"]
    honest: int = 1
    colluders: int = 0

    def common(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns the sensitivity with the largest scale of any agent; for ``server`` with one row for all agents."""
        largest = {name: array.max(axis=1, keepdims=True) for name, array in sensitivity.scale.items()}
        if self.trust != "server":
            agents = next(iter(sensitivity.scale.values())).shape[1]
            largest = {name: np.repeat(array, agents, axis=1) for name, array in largest.items()}
        return sensitivity._replace(scale=largest)

    def combined(self, statistic: Arrays, arrived: Array) -> "Combined":
        """Adds up the releases of one synchronisation, and returns the sums that leave the stage.

        The noise of a trusted server is not in them yet.

        Args:
            statistic: The releases by name, ``(replicas, agents, ...)``.
            arrived: Whose uploads have arrived, bool ``(replicas, agents)``.
        """
        went = arrived.sum(axis=1) >= self.honest
        arrived = arrived & went[:, np.newaxis]
        content = {name: np.where(spread(arrived, array), array, 0.0) for name, array in statistic.items()}
        batch = None
        if self.trust == "shuffler":
            # Sorted messages show what messages in random order show: which there are, and not whose. Their sum, too,
            # has the same bits whoever sent them.
            numbers = [array.reshape(*arrived.shape, -1) for array in content.values()]
            keys = np.concatenate([~arrived[..., np.newaxis], *numbers], axis=-1)
            order = np.stack([np.lexsort(rows.T[::-1]) for rows in keys])
            batch = {
                name: np.take_along_axis(array, spread(order, array), axis=1)
                for name, array in content.items()
            }
        total = {name: array.sum(axis=1) for name, array in (batch or content).items()}
        return Combined(went, arrived, content, total, batch)


class Combined(NamedTuple):
    """What leaves a stage in one synchronisation.

    Attributes:
        went: In which replicas anything leaves the stage, bool ``(replicas,)``.
        arrived: Whose uploads are in the sum, bool ``(replicas, agents)``.
        content: These uploads by name, ``(replicas, agents, ...)``, 0 for other agents.
        total: Their sums by name, ``(replicas, ...)``.
        batch: The uploads without names, sorted, shaped like ``content``; None if only sums can be read.
    """

    went: Array
    arrived: Array
    content: Arrays
    total: Arrays
    batch: Arrays | None = None

    def uploads(self) -> tuple[Arrays, Array]:
        """Returns what a server can read in place of uploads, and how many they are, for server policies.

        Returns:
            New arrays by name, float64 ``(replicas, agents, ...)``: of k uploads the sorted ones, or k equal parts of
            their sum, in the first k rows of each replica; and a mask of these rows, bool ``(replicas, agents)``.
        """
        number = self.arrived.sum(axis=1, keepdims=True)
        mask = np.arange(self.arrived.shape[1]) < number
        parts = self.batch or {
            name: np.divide(total, spread(np.maximum(number[:, 0], 1), total))[:, np.newaxis]
            for name, total in self.total.items()
        }
        return {name: np.where(spread(mask, array), array, 0.0) for name, array in parts.items()}, mask


STAGES: Mapping[str, Callable[..., Stage]] = {
    "shuffler": lambda colluders=0: Stage("shuffler", colluders=colluders),
    "aggregator": lambda honest, colluders=0: Stage("aggregator", honest, colluders),
    "server": lambda: Stage("server"),
}
"""Makers of the stages by name."""

StageSpec = Stage | str | Mapping[str, Any] | None
"""A stage, its name, or a mapping of ``name`` and arguments; None for no stage."""


def make_stage(spec: StageSpec, agents: int) -> Stage | None:
    """Returns the stage of a specification.

    Args:
        spec: The specification.
        agents: Number of agents.

    Raises:
        TypeError: The specification, or an argument of the stage, has the wrong type.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if spec is None:
        return None
    stage = make("stage", spec, STAGES, Stage)
    for name, least, most in (("honest", 1, agents), ("colluders", 0, agents - 1)):
        require_integer(name, getattr(stage, name), least, most)
    return stage
