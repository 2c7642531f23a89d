"""What an agent that nobody here wrote is shown of rows, and what its answers mean."""

from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.checks import require_flag
from fedbandit_envs.spaces import ActionFormat, Features, Spaces
from fedbandit_envs.views.masks import MaskedFormat
from fedbandit_envs.views.rows import Observation


class Meaning:
    """Observations as a third party's agent learned them, and actions of the environment for its answers.

    The same two arguments as those of the view on which it was trained.

    Attributes:
        observation_space: What one row is shown.
        action_space: What one row answers.
        rows: ``(replicas, agents)``.
    """

    observation_space: gym_spaces.Space[Any]

    def __init__(self, action_format: str | None, features: bool) -> None:
        """Chooses the two.

        Args:
            action_format: One of the environment's ``action_formats``; None for its own actions.
            features: Show features (:mod:`fedbandit_envs.features`) in place of raw observations.

        Raises:
            TypeError: ``features`` is no bool.
        """
        require_flag("features", features)
        self._name = action_format
        self._featured = features

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Prepares for an episode; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment has no such format, or no features.
        """
        formats = spaces.action_formats
        name = next(iter(formats)) if self._name is None else self._name
        if name not in formats:
            raise UnfitError(
                f"action_format is {name!r}; one of {', '.join(map(repr, formats))} is required here"
            )
        if self._featured and spaces.features is None:
            raise UnfitError("features is True, but this environment has none; features=False is required")
        self._format: ActionFormat = formats[name]
        self._features: Features | None = None
        self.observation_space, self.action_space = spaces.observation, self._format.space
        self.rows: tuple[int, int] = seeds.shape
        if self._featured and spaces.features is not None:
            self._features = spaces.features(spaces)
            self._features.reset(self.rows)
            self.observation_space = self._features.space

    def shown(self, observation: Arrays) -> Observation:
        """Returns what rows are shown, the caller's own, leading axes ``(replicas, agents)``; once a round."""
        self._seen = observation
        if self._features is not None:
            return self._features.see(observation)
        return {name: array.copy() for name, array in observation.items()}

    def allowed(self) -> Array | None:
        """Returns which choices are allowed now, ``(replicas, agents, entries)``; None where all are."""
        return self._format.allowed(self._seen) if isinstance(self._format, MaskedFormat) else None

    def action_of_rows(self, who: str, answers: Any) -> Any:
        """Does as :meth:`action`, for answers with one leading axis, ``rows``."""
        array = np.asarray(answers[0] if isinstance(answers, tuple) else answers)
        number = self.rows[0] * self.rows[1]
        if len(array.shape) == 0 or len(array) != number:
            raise ValueError(
                f"{who} answers all rows together with shape {array.shape}; "
                f"{(number, *(self.action_space.shape or ()))} is required, replica by replica"
            )
        return self.action(who, array.reshape(*self.rows, *array.shape[1:]))

    def action(self, who: str, answers: Any) -> Any:
        """Returns the environment's actions for answers.

        Args:
            who: Whose answers they are, for messages.
            answers: Elements of ``action_space`` with the leading axes ``(replicas, agents)``.

        Raises:
            ValueError: Answers have the wrong shape, or one is NaN; the message names agent and replica.
        """
        return self._format.to_action(checked(who, answers, self.action_space, self.rows), self._seen)


def checked(who: str, answers: Any, space: gym_spaces.Space[Any], rows: tuple[int, int]) -> Any:
    """Refuses answers that are no array of ``(replicas, agents, ...)``, and NaN; see :meth:`Meaning.action`."""
    if isinstance(space, gym_spaces.Dict):
        return {name: checked(f"{who}, {name!r},", answers[name], part, rows) for name, part in space.items()}
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
