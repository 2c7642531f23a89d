"""The rows of one replica keyed by agent, and back: what both of PettingZoo's faces are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.buffers import Parts


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
    try:
        whole = np.array([rows])
    except ValueError:
        # Rows of different shapes: which of them is wrong is said below.
        whole = np.empty(0)
    if whole.shape != (1, len(agents), *(space.shape or ())):
        for agent, row in zip(agents, rows, strict=True):
            if np.shape(row) != space.shape:
                raise ValueError(
                    f"actions[{agent!r}]{place} has shape {np.shape(row)}; {space.shape} is required"
                )
    return whole


class ByAgent:
    """Turns what arrays say of replica 0 into dicts keyed by agent."""

    def __init__(self) -> None:
        """Has seen no arrays yet."""
        self._rows = Parts(_rows)

    def observations(self, arrays: Mapping[str, Array], agents: Sequence[str]) -> dict[str, dict[str, Array]]:
        """Returns each agent's observation by name: copies, which agents may write into and share with nobody."""
        return {
            agent: {name: row.copy() for name, row in own.items()}
            for agent, own in zip(agents, self._rows.of(arrays), strict=True)
        }

    @staticmethod
    def infos(arrays: Mapping[str, Array], agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Returns each agent's information by name, as Python's own numbers."""
        columns = {name: array[0].tolist() for name, array in arrays.items()}
        return {agent: {name: own[j] for name, own in columns.items()} for j, agent in enumerate(agents)}


def _rows(arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Returns each agent's row of replica 0, by name."""
    agents = next(iter(arrays.values())).shape[1]
    # Views even of rows without axes, which plain indexing would copy.
    return [{name: array[0, j, ...] for name, array in arrays.items()} for j in range(agents)]
