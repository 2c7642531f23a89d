"""Stages of a transport: who stands between the agents' releases and everybody else, and what that does to privacy.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.privacy import Sensitivity


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


def spread(each: Array, array: Array) -> Array:
    """Returns ``each`` with further axes, so that it broadcasts with ``array``, which has the same first axes."""
    return each.reshape(each.shape + (1,) * (array.ndim - each.ndim))


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
