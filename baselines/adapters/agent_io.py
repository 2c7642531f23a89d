"""Conversion of batches to the observations that a third party's agent was trained on, and of its actions back."""

from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag
from fedbandit_envs.core.policy_spec import ActionFormat, Features, PolicySpec
from fedbandit_envs.views.control import Observation


class AgentIO:
    """A converter of observations to the form on which an inner agent was trained, and of its actions to environments'.

    The inner agent is one of another library, or a function. The two arguments, ``action_format`` and ``features``,
    must be those of the environment's view (PettingZoo, Gymnasium) on which it was trained.

    Attributes:
        observation_space: Space of the converted observation of one agent in one replica.
        action_space: Space of the action that the inner agent returns for one agent in one replica.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """

    observation_space: gym_spaces.Space[Any]

    def __init__(self, action_format: str | None, features: bool) -> None:
        """Sets the form of actions and observations.

        Args:
            action_format: The format of the inner agent's actions, one of the environment's ``action_formats``; None
                for the environment's own actions.
            features: Whether the inner agent sees :class:`~fedbandit_envs.core.policy_spec.Features` in place of raw
                observations.

        Raises:
            TypeError: ``features`` is no bool.
        """
        self._featured = require_flag("features", features)
        self._name = action_format

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode: finds the format of actions, and resets the features; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment does not have the action format, or it has no features though they are wanted.
        """
        formats = spec.action_formats
        name = next(iter(formats)) if self._name is None else self._name
        if name not in formats:
            raise UnfitError(
                f"action_format is {name!r}; one of {', '.join(map(repr, formats))} is required here"
            )
        if self._featured and spec.features is None:
            raise UnfitError("features is True, but this environment has none; features=False is required")
        self._format: ActionFormat = formats[name]
        self._features: Features | None = None
        self.observation_space, self.action_space = spec.observation, self._format.space
        self.rows: tuple[int, int] = seeds.shape
        if self._featured and spec.features is not None:
            self._features = spec.features(spec)
            self._features.reset(self.rows)
            self.observation_space = self._features.space

    def shown(self, observation: Arrays) -> Observation:
        """Returns the observation for the inner agent: computed features, or copies of the arrays.

        It must be called exactly once in each round, because features are updated with every call, and because the
        observation is stored for :meth:`allowed` and :meth:`action`.

        Args:
            observation: The environment's observation, with leading axes ``(replicas, agents)``, which the result has,
                too.
        """
        self._observation = observation
        if self._features is not None:
            return self._features.see(observation)
        return {name: array.copy() for name, array in observation.items()}

    def allowed(self) -> Array | None:
        """Returns the mask of actions that are allowed in this round, bool ``(replicas, agents, entries)``.

        None means that all actions are allowed.
        """
        masks = getattr(self._format, "allowed", None)
        return None if masks is None else masks(self._observation)

    def action_of_rows(self, who: str, answers: Any) -> Any:
        """Returns the environment's actions for actions of the inner agent with one leading axis.

        The axis goes over the agents of all replicas, replica by replica; :meth:`action` takes two leading axes.

        Args:
            who: Name of the inner agent, for error messages.
            answers: The inner agent's actions, elements of ``action_space``; of a tuple the first entry is used.

        Raises:
            ValueError: The actions have the wrong shape, or a number is NaN.
        """
        array = np.asarray(answers[0] if isinstance(answers, tuple) else answers)
        number = self.rows[0] * self.rows[1]
        if len(array.shape) == 0 or len(array) != number:
            raise ValueError(
                f"{who} answers all rows together with shape {array.shape}; "
                f"{(number, *(self.action_space.shape or ()))} is required, replica by replica"
            )
        return self.action(who, array.reshape(*self.rows, *array.shape[1:]))

    def action(self, who: str, answers: Any) -> Any:
        """Returns the environment's actions for the actions that the inner agent has returned.

        Args:
            who: Name of the inner agent, for error messages.
            answers: The inner agent's actions, elements of ``action_space`` with leading axes ``(replicas, agents)``.

        Raises:
            ValueError: The actions have the wrong shape, or a number is NaN; the message names agent and replica.
        """
        return self._format.to_action(_checked(who, answers, self.action_space, self.rows), self._observation)


def _checked(who: str, answers: Any, space: gym_spaces.Space[Any], rows: tuple[int, int]) -> Any:
    """Returns the inner agent's actions as arrays, after checking their shapes and that no number is NaN.

    Args:
        who: Name of the inner agent, for error messages.
        answers: The inner agent's actions, elements of ``space`` with the leading axes ``rows``.
        space: Space of one action.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.

    Raises:
        ValueError: The actions have the wrong shape, or a number is NaN.
    """
    if isinstance(space, gym_spaces.Dict):
        return {
            name: _checked(f"{who}, {name!r},", answers[name], part, rows) for name, part in space.items()
        }
    array = np.asarray(answers)
    wanted = space.shape or ()
    if array.shape != (*rows, *wanted):
        raise ValueError(
            f"{who} answers agent_0 of replica 0, and all other rows, with shape {array.shape[2:]}; {wanted} is "
            "required"
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        replica, agent, *entry = (int(i) for i in np.argwhere(np.isnan(array))[0])
        raise ValueError(
            f"{who} answers nan{f', entry {entry[0]},' if entry else ''} for agent_{agent} of replica {replica}; a "
            f"number is required, an element of {space}"
        )
    return array
