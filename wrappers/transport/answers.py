"""Answer rules of a server: which agents receive a download in a round.

A server decides from uploads alone, so that its answers reveal nothing beyond them. Wherever an answer rule is an
argument, its JSON-able specification is accepted: a name, or a mapping of the name and the arguments.

| name | arguments | which agents are answered |
|---|---|---|
| `uploads` | | those whose upload has arrived in this round |
| `determinant` | `growth`, `ridge` | those whose estimates would improve enough, by a ratio of determinants |
| that of a schedule fixed in advance | its own | all, in the schedule's rounds |

Agents for which nothing new was uploaded are not answered.
"""

from collections.abc import Callable, Mapping
from math import log
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.config import make
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES, Schedule, make_schedule


@runtime_checkable
class Answers(Protocol):
    """A rule that decides which agents a server answers."""

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Refuses environments whose releases do not have what the rule needs.

        Args:
            released: Space of what one agent releases.

        Raises:
            ValueError: Something that the rule needs is missing.
        """

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Returns which agents are answered in a round, bool ``(replicas, agents)``.

        Args:
            t: The round, counted from 1.
            uploaded: Whether an agent's upload has arrived in this round, bool ``(replicas, agents)``.
            held: The sum of all uploads, by name, ``(replicas, numbers)``.
            news: The part of it that an agent has not received, by name, ``(replicas, agents, numbers)``.
        """


class ToUploads:
    """The rule by which agents are answered when their upload arrives (FedLinUCB; He et al. 2022)."""

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Accepts all environments; see :meth:`Answers.refuse_unfit`."""

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Returns the agents whose upload has arrived; see :meth:`Answers.receivers`."""
        return uploaded


class OnSchedule:
    """The rule by which all agents are answered in rounds fixed in advance."""

    def __init__(self, schedule: Schedule) -> None:
        """Takes the rounds of a schedule.

        Raises:
            ValueError: The schedule depends on requests of agents.
        """
        if not schedule.fixed_in_advance:
            raise ValueError(
                f"answers is {schedule!r}; a schedule fixed in advance, 'uploads' or 'determinant' is required"
            )
        self._schedule = schedule

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Accepts all environments; see :meth:`Answers.refuse_unfit`."""

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Returns all agents or none; see :meth:`Answers.receivers`."""
        return self._schedule.senders(t, np.ones_like(uploaded))


class ByDeterminant:
    """The rule by which agent j is answered if det(V) > growth det(V - dV_j) (Async-LinUCB; Li and Wang 2022).

    V is the Gram matrix of all uploads plus ridge I, and dV_j that of the uploads that agent j has not received. The
    released statistic must be a sum of [x; y][x; y]^T, of which the last row and column are left out.
    """

    def __init__(self, growth: float, ridge: float = 1.0) -> None:
        """Sets the constants.

        Args:
            growth: gamma_D, >= 1.
            ridge: lambda, > 0.
        """
        require_number("growth", growth, 1, np.inf)
        require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._log_growth = log(growth)
        self._ridge = float(ridge)
        self._decided: Array | None = None

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Refuses environments that do not release exactly one square matrix; see :meth:`Answers.refuse_unfit`."""
        announced = {variance_of(name) for name in released}
        matrices = [
            name for name, space in released.items() if _is_square(space.shape) and name not in announced
        ]
        if len(matrices) != 1:
            raise ValueError(
                f"answers are by determinant, and the environment releases {list(released)}, of which {matrices} are "
                "square matrices; one is required"
            )
        self._name = matrices[0]

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Returns agents whose ratio of determinants is large; see :meth:`Answers.receivers`."""
        answered = np.zeros_like(uploaded)
        which = np.flatnonzero(uploaded.any(axis=1))
        if which.size:
            total, new = self._gram(held[self._name][which]), self._gram(news[self._name][which])
            known = np.linalg.slogdet(total)[1]
            received = np.linalg.slogdet(total[:, np.newaxis] - new + self._ridge * np.eye(new.shape[-1]))[1]
            answered[which] = known[:, np.newaxis] - received > self._log_growth
        return answered

    def _gram(self, statistic: Array) -> Array:
        """Returns the matrices without their last row and column, ``(..., dim, dim)``, plus the ridge."""
        size = round(statistic.shape[-1] ** 0.5)
        gram = statistic.reshape(*statistic.shape[:-1], size, size)[..., :-1, :-1]
        return gram + self._ridge * np.eye(size - 1)


def _is_square(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and len(shape) == 2 and shape[0] == shape[1] > 1


ANSWERS: dict[str, Callable[..., Answers]] = {"uploads": ToUploads, "determinant": ByDeterminant}
"""The answer rules by the name in their specification, besides schedules fixed in advance."""


def make_answers(spec: Answers | Schedule | str | Mapping[str, Any]) -> Answers:
    """Returns the answer rule of a specification; a rule is returned as it is.

    Raises:
        TypeError: The specification has the wrong type, or arguments that are not known.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, Schedule) or (isinstance(spec, Mapping) and str(spec.get("name")) in SCHEDULES):
        return OnSchedule(make_schedule(spec))
    return make("answers", spec, ANSWERS, Answers, ", or a schedule's,")
