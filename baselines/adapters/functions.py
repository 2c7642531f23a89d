"""Policies made of other people's agents: PettingZoo's functions of one observation, or any object with ``predict``."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.adapters.agent_io import AgentIO
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.views.control import Observation, flat

Agent = Callable[[Any], Any]
"""The type of a function that is given one agent's observation and returns its action, as in the PettingZoo API."""


class AgentFunctions:
    """A policy that calls a function for each agent of each replica, in the style of PettingZoo.

    If functions are given by name, agent j plays ``agent_j``'s. So a single agent of a federation can be played by
    itself only if all functions are the same: it would be taken for ``agent_0``.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.adapters import AgentFunctions
        >>> env = arms_v0.parallel_env(num_agents=2, num_arms=4)
        >>> policy = AgentFunctions({"agent_0": lambda seen: 0, "agent_1": lambda seen: 3})
        >>> policy.reset(env.policy_spec, np.zeros((1, 2), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)
        array([[0, 3]])
    """

    def __init__(
        self,
        agents: Mapping[str, Agent] | Callable[[str, int], Agent] | str,
        action_format: str | None = None,
        features: bool = False,
    ) -> None:
        """Sets the functions.

        Args:
            agents: A function for each agent, by name; or a function that makes such a function, given the agent's name
                and a seed, and is called for each agent, replica and episode (for agents with a memory or random
                numbers); or the entry point ``"module:function"`` of such an object.
            action_format: Format of the actions that functions return; None for the environment's own actions.
            features: Whether functions are given features instead of raw observations.
        """
        self._agents = resolve(agents) if isinstance(agents, str) else agents
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Finds or makes the functions of all agents; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no function for some agent.
        """
        self._io.reset(spec, seeds)
        names = [f"agent_{agent}" for agent in range(seeds.shape[1])]
        if isinstance(self._agents, Mapping):
            if missing := [f"agent_{j}" for j in range(spec.agents) if f"agent_{j}" not in self._agents]:
                raise UnfitError(f"agents has no function for {', '.join(missing)}; one an agent is required")
            self._rows = [[self._agents[name] for name in names] for _ in seeds]
        else:
            self._rows = [
                [self._agents(name, int(seed)) for name, seed in zip(names, row, strict=True)]
                for row in seeds
            ]

    def act(self, observation: Arrays) -> Any:
        """Returns the actions that the functions return; see :meth:`Policy.act`.

        Raises:
            ValueError: An action has the wrong shape or is NaN; the message names agent and replica.
        """
        shown = self._io.shown(observation)
        answers = [
            [agent(_only(shown, r, j)) for j, agent in enumerate(row)] for r, row in enumerate(self._rows)
        ]
        return self._io.action("the function", _stacked(answers, self._io.action_space))


def _only(shown: Observation, replica: int, agent: int) -> Any:
    if isinstance(shown, dict):
        return {name: array[replica, agent].copy() for name, array in shown.items()}
    return shown[replica, agent].copy()


def _stacked(answers: list[list[Any]], space: gym_spaces.Space[Any]) -> Any:
    """Returns the actions of nested lists ``[replica][agent]`` as arrays ``(replicas, agents, ...)``."""
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


class PredictPolicy:
    """A policy that calls ``predict(observations) -> actions`` of an object once in each round, for all agents.

    Scikit-learn's estimators have this method, as have the agents of many libraries. Each action must depend on the
    observation in the same row alone, so that agents do not see each other's observations; this is not checked.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.adapters import PredictPolicy
        >>> class First:
        ...     def predict(self, rows):
        ...         return np.zeros(len(rows), int)
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = PredictPolicy(First())
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)
        array([[0, 0, 0]])
    """

    def __init__(self, agent: Any, action_format: str | None = None, features: bool = True) -> None:
        """Sets the agent.

        Args:
            agent: An object whose ``predict`` takes one array of features, or arrays of observations by name, whose
                first axis goes over the agents of all replicas, and returns actions with the same first axis; of a
                tuple the first entry is used. Or the entry point ``"module:Class"`` of its class.
            action_format: Format of the returned actions; None for the environment's own actions.
            features: Whether ``predict`` is given features instead of raw observations.

        Raises:
            TypeError: The agent has no ``predict``.
        """
        self._agent = resolve(agent)() if isinstance(agent, str) else agent
        if not callable(getattr(self._agent, "predict", None)):
            raise TypeError(f"agent is {self._agent!r}; an object with predict(observations) is required")
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode; the agent is not called. See :meth:`Policy.reset`."""
        self._io.reset(spec, seeds)

    def act(self, observation: Arrays) -> Any:
        """Returns the agent's actions; see :meth:`Policy.act`.

        Raises:
            ValueError: An action has the wrong shape or is NaN.
        """
        answers = self._agent.predict(flat(self._io.shown(observation)))
        return self._io.action_of_rows(type(self._agent).__name__, answers)
