"""PettingZoo-style agents, a function of one agent's observation each, as a policy."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.adapters.meaning import Meaning
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.views.rows import Observation

Agent = Callable[[Any], Any]
"""Returns an action for one agent's observation, as PettingZoo's face has them."""


class AgentFunctions:
    """Asks a function for each agent of each replica.

    It acts row by row where all agents are played alike. Agents that are played by functions of their own are told
    apart by their place, which a row that is fed alone does not know.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent] | Callable[[str, int], Agent] | str,
        action_format: str | None = None,
        features: bool = False,
    ) -> None:
        """Takes functions.

        Args:
            agents: A function an agent, by name; or what makes one, given the agent's name and a seed, anew for each
                agent, replica and episode, for agents that remember or draw; or the entry point ``"module:function"``
                of such.
            action_format: How their actions are to be read; None for the environment's own.
            features: Show them features, else raw observations.
        """
        self._agents = resolve(agents) if isinstance(agents, str) else agents
        self._meaning = Meaning(action_format, features)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Makes functions of all rows; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no function for some agent, or rows do not say whose they are.
        """
        self._meaning.reset(spaces, seeds)
        names = [f"agent_{agent}" for agent in range(seeds.shape[1])]
        if isinstance(self._agents, Mapping):
            if missing := [f"agent_{j}" for j in range(spaces.agents) if f"agent_{j}" not in self._agents]:
                raise UnfitError(f"agents has no function for {', '.join(missing)}; one an agent is required")
            self._rows = [[self._agents[name] for name in names] for _ in seeds]
        else:
            self._rows = [
                [self._agents(name, int(seed)) for name, seed in zip(names, row, strict=True)]
                for row in seeds
            ]

    def act(self, observation: Arrays) -> Any:
        """Returns what the functions answer; see :meth:`Policy.act`.

        Raises:
            ValueError: An answer has the wrong shape or is NaN; the message names agent and replica.
        """
        shown = self._meaning.shown(observation)
        answers = [
            [agent(_only(shown, r, j)) for j, agent in enumerate(row)] for r, row in enumerate(self._rows)
        ]
        return self._meaning.action("the function", _stacked(answers, self._meaning.action_space))


def _only(shown: Observation, replica: int, agent: int) -> Any:
    if isinstance(shown, dict):
        return {name: array[replica, agent].copy() for name, array in shown.items()}
    return shown[replica, agent].copy()


def _stacked(answers: list[list[Any]], space: gym_spaces.Space[Any]) -> Any:
    """Stacks answers ``[replica][agent]`` to arrays ``(replicas, agents, ...)``."""
    if isinstance(space, gym_spaces.Dict):
        for r, j, answer in _each(answers):
            if not isinstance(answer, Mapping) or answer.keys() != space.keys():
                raise ValueError(
                    f"the function of agent_{j} of replica {r} answers {answer!r}; a mapping of {list(space)} is "
                    "required"
                )
        return {
            name: _stacked([[answer[name] for answer in row] for row in answers], part)
            for name, part in space.items()
        }
    for r, j, answer in _each(answers):
        if np.shape(answer) != (space.shape or ()):
            raise ValueError(
                f"the function of agent_{j} of replica {r} answers with shape {np.shape(answer)}; "
                f"{space.shape or ()} is required"
            )
    return np.array(answers)


def _each(answers: list[list[Any]]) -> Any:
    return ((r, j, answer) for r, row in enumerate(answers) for j, answer in enumerate(row))
