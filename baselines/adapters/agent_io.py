"""Converts batches to the observations that a third party's agent was trained on, and its answers to actions."""

from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag
from fedbandit_envs.core.features import Features
from fedbandit_envs.core.policy_spec import ActionFormat, PolicySpec
from fedbandit_envs.views.masks import MaskedFormat
from fedbandit_envs.views.rows import Observation


class AgentIO:
    """Observations in the form on which an agent was trained, and environment actions from its answers.

    Its two arguments are those of the view on which the agent was trained.

    Attributes:
        observation_space: Space of what one row is shown.
        action_space: Space of what one row answers.
        rows: ``(replicas, agents)``.
    """

    observation_space: gym_spaces.Space[Any]

    def __init__(self, action_format: str | None, features: bool) -> None:
        """Sets the form of actions and observations.

        Args:
            action_format: One of the environment's ``action_formats``; None for its own actions.
            features: Show :class:`~fedbandit_envs.core.features.Features` in place of raw observations.

        Raises:
            TypeError: ``features`` is no bool.
        """
        self._featured = require_flag("features", features)
        self._name = action_format

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment does not have this action format, or no features.
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

        Call it exactly once a round: features accumulate over rounds, and :meth:`allowed` uses the observation stored.

        Args:
            observation: The environment's, with leading axes ``(replicas, agents)``; those of the result are the same.
        """
        self._observation = observation
        if self._features is not None:
            return self._features.see(observation)
        return {name: array.copy() for name, array in observation.items()}

    def allowed(self) -> Array | None:
        """Returns which choices are allowed in this round, ``(replicas, agents, entries)``; None where all are."""
        return self._format.allowed(self._observation) if isinstance(self._format, MaskedFormat) else None

    def action_of_rows(self, who: str, answers: Any) -> Any:
        """Returns the environment's actions for answers with one leading axis, ``rows``; see :meth:`action`.

        Args:
            who: Name of the agent, for error messages.
            answers: Elements of ``action_space``, replica by replica; of a tuple the first entry counts.

        Raises:
            ValueError: Answers have the wrong shape, or one is NaN.
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
        """Returns the environment's actions for an agent's answers.

        Args:
            who: Name of the agent, for error messages.
            answers: Elements of ``action_space`` with the leading axes ``(replicas, agents)``.

        Raises:
            ValueError: Answers have the wrong shape, or one is NaN; the message names agent and replica.
        """
        return self._format.to_action(_checked(who, answers, self.action_space, self.rows), self._observation)


def _checked(who: str, answers: Any, space: gym_spaces.Space[Any], rows: tuple[int, int]) -> Any:
    """Returns answers as arrays, after checking shapes and NaN.

    Args:
        who: Name of the agent, for error messages.
        answers: Elements of ``space`` with the leading axes ``rows``.
        space: Space of one answer.
        rows: ``(replicas, agents)``.

    Raises:
        ValueError: Answers have the wrong shape, or one is NaN.
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
