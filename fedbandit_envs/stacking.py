"""Actions keyed by agent, stacked into the rows of the array face."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces


def stacked(actions: Mapping[str, Any], space: spaces.Space[Any], agents: Sequence[str]) -> Any:
    """Stacks actions keyed by agent into one replica's rows, ``(1, agents, ...)``.

    Raises:
        ValueError: Agents are missing or unknown, or an action has the wrong shape.
    """
    if len(actions) != len(agents) or not all(map(actions.__contains__, agents)):
        unknown = sorted(set(actions) - set(agents))
        missing = [agent for agent in agents if agent not in actions]
        raise ValueError(f"actions: one action an agent is needed; missing {missing}, unknown {unknown}")
    return _stack_rows([actions[agent] for agent in agents], space, agents, "")


def _stack_rows(rows: list[Any], space: spaces.Space[Any], agents: Sequence[str], place: str) -> Any:
    """Stacks one element of a space an agent, ``Dict`` spaces entry by entry; ``place`` is where in it this is."""
    if isinstance(space, spaces.Dict):
        for agent, row in zip(agents, rows, strict=True):
            if not isinstance(row, Mapping) or row.keys() != space.keys():
                raise ValueError(
                    f"actions[{agent!r}]{place} is {row!r}; a mapping of {list(space)} is required"
                )
        return {
            name: _stack_rows([row[name] for row in rows], part, agents, f"{place}[{name!r}]")
            for name, part in space.items()
        }
    arrays = [np.asarray(row) for row in rows]
    shape = space.shape
    for agent, array in zip(agents, arrays, strict=True):
        if array.shape != shape:
            raise ValueError(f"actions[{agent!r}]{place} has shape {array.shape}; {shape} is required")
    return np.array([arrays])
