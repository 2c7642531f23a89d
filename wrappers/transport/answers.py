"""When a server answers: whom it sends what they have not had yet.

A server knows what was uploaded and nothing else, so that its answers tell nothing beyond that. Wherever answers are
asked for, a JSON-able specification will do: a name, or a mapping of the name and the arguments.

| name | arguments | who is answered |
|---|---|---|
| `uploads` | | whose upload has arrived in this round |
| `determinant` | `growth`, `ridge` | for whom the server knows so much more than it has told |
| that of a schedule fixed in advance | its own | everybody, in its rounds |

Who has nothing to get is not answered.
"""

from collections.abc import Callable, Mapping
from math import log
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_number
from fedbandit_envs.specification import make
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES, Schedule, make_schedule


@runtime_checkable
class Answers(Protocol):
    """Says whom a server answers."""

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Refuses statistics that these answers cannot be decided by.

        Args:
            released: What one agent releases.

        Raises:
            ValueError: They lack what is needed.
        """

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Says who is answered in round ``t``, counted from 1.

        Args:
            t: The round.
            uploaded: Whose upload has arrived in this round, bool ``(replicas, agents)``.
            held: All that was uploaded, added up, by name, ``(replicas, numbers)``.
            news: What each agent has not had of it, by name, ``(replicas, agents, numbers)``.

        Returns:
            bool ``(replicas, agents)``.
        """


class ToUploads:
    """Whoever uploads is answered (FedLinUCB; He et al. 2022)."""

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Takes any statistic."""

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Returns who has uploaded; see :meth:`Answers.receivers`."""
        return uploaded


class OnSchedule:
    """Everybody is answered in rounds fixed in advance."""

    def __init__(self, schedule: Schedule) -> None:
        """Takes the rounds from a schedule.

        Raises:
            ValueError: The schedule asks agents, which a server does not.
        """
        if not schedule.fixed_in_advance:
            raise ValueError(
                f"answers is {schedule!r}; a schedule fixed in advance, 'uploads' or 'determinant' is required"
            )
        self._schedule = schedule

    def refuse_unfit(self, released: spaces.Dict) -> None:
        """Takes any statistic."""

    def receivers(self, t: int, uploaded: Array, held: Arrays, news: Arrays) -> Array:
        """Returns everybody or nobody; see :meth:`Answers.receivers`."""
        return self._schedule.senders(t, np.ones_like(uploaded))


class ByDeterminant:
    """Who would learn enough: det(V) > growth det(V - dV_j) (Async-LinUCB; Li and Wang 2022).

    V is the Gram matrix of all that was uploaded plus ridge I, and dV_j that of what agent j has not had. The statistic
    must be a sum of [x; y][x; y]^T, of which the last row and column are left out.
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
        """Wants a matrix among what is released; see :meth:`Answers.refuse_unfit`."""
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
        """Compares log-determinants, where something has arrived; see :meth:`Answers.receivers`."""
        answered = np.zeros_like(uploaded)
        which = np.flatnonzero(uploaded.any(axis=1))
        if which.size:
            total, new = self._gram(held[self._name][which]), self._gram(news[self._name][which])
            known = np.linalg.slogdet(total)[1]
            told = np.linalg.slogdet(total[:, np.newaxis] - new + self._ridge * np.eye(new.shape[-1]))[1]
            answered[which] = known[:, np.newaxis] - told > self._log_growth
        return answered

    def _gram(self, statistic: Array) -> Array:
        """Returns the matrices without their last row and column, ``(..., dim, dim)``, plus the ridge."""
        size = round(statistic.shape[-1] ** 0.5)
        gram = statistic.reshape(*statistic.shape[:-1], size, size)[..., :-1, :-1]
        return gram + self._ridge * np.eye(size - 1)


def _is_square(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and len(shape) == 2 and shape[0] == shape[1] > 1


ANSWERS: dict[str, Callable[..., Answers]] = {"uploads": ToUploads, "determinant": ByDeterminant}
"""Answers by the name that their specification has; besides there are those of schedules fixed in advance."""


def make_answers(spec: Answers | Schedule | str | Mapping[str, Any]) -> Answers:
    """Makes answers from their specification; answers pass through.

    Raises:
        TypeError: The specification has the wrong type, or arguments that are not known.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if isinstance(spec, Schedule) or (isinstance(spec, Mapping) and str(spec.get("name")) in SCHEDULES):
        return OnSchedule(make_schedule(spec))
    return make("answers", spec, ANSWERS, Answers, ", or a schedule's,")
