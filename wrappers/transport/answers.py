"""Answer rules of a server: which agents receive a download in a round.

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
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import log
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.buffers import zeros
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.wrappers.rules import checked, make_rule
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES, Schedule, make_schedule

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


ANSWERS: dict[str, Callable[..., Array]] = {"uploads": _uploads, "determinant": _determinant}
"""The built-in answer rules by name; the names of schedules fixed in advance are accepted as well."""


def make_answers(spec: Answers | Schedule | str | Mapping[str, Any], released: spaces.Dict) -> Answers:
    """Returns the answer rule of a specification; a function is returned as it is.

    Args:
        spec: A function (:data:`Answers`), a name, a mapping of ``name`` and arguments, or a schedule.
        released: Space of one agent's releases.

    Raises:
        TypeError: The specification has the wrong type, or arguments with unknown names.
        ValueError: The name is unknown, an argument is out of its range, or the rule does not fit the released arrays.
    """
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if isinstance(spec, Schedule | str | Mapping) and (isinstance(spec, Schedule) or str(name) in SCHEDULES):
        schedule = make_schedule(spec)
        if not schedule.fixed_in_advance or schedule.announced:
            raise ValueError(
                f"answers is {schedule!r}; a schedule fixed in advance, 'uploads' or 'determinant' is required"
            )
        return partial(_scheduled, schedule=schedule)
    rule: Answers = make_rule("answers", spec, ANSWERS, ", or a schedule's,")
    # Called once with zeros, so that a rule that does not fit the released arrays raises its error now.
    rule(1, np.ones((1, 1), np.bool_), zeros(released, (1,)), zeros(released, (1, 1)))
    return rule
