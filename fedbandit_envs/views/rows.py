"""A federation's agents as rows: what each is shown, and how it says what it does.

The one place where the array face is translated for learning agents; every view stands on it: Gymnasium's single and
vector environments, PettingZoo's, and SB3's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.buffers import Parts
from fedbandit_envs.checks import require_choice, require_flag
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.spaces import Features
from fedbandit_envs.views.masks import MaskedFormat
from fedbandit_envs.views.peers import Peers

Observation = Arrays | Array
"""Arrays by name, or one array of features; leading axes ``(replicas, agents)``."""


class RowsReset(NamedTuple):
    """What :meth:`Rows.reset` returns; see :class:`~fedbandit_envs.federation.BatchReset`."""

    observation: Observation
    info: Arrays


class RowsStep(NamedTuple):
    """What :meth:`Rows.step` returns; see :class:`~fedbandit_envs.federation.BatchStep`."""

    observation: Observation
    reward: Array
    truncated: Array
    info: Arrays


class Rows:
    """Learning agents of a federation, in many replicas: all of them, or ``agent_0`` among peers.

    Arrays that are returned, but for features, are views of the federation's buffers and hold until the next call.

    Attributes:
        federation: The environment, with its wrappers.
        agents: Names of the agents that learn, the federation's first ones.
        observation_space: One row's: the federation's own ``Dict``, or a flat float32 ``Box`` in [-1, 1] of features.
        action_space: One row's, the action format's.
        features: What says what features mean; None where there are none.
    """

    observation_space: spaces.Space[Any]

    def __init__(
        self,
        federation: FederatedEnv,
        *,
        action_format: str | None = None,
        features: bool = False,
        peers: Peers | None = None,
    ) -> None:
        """Chooses who learns, what they are shown and how they say what they do.

        Args:
            federation: The environment, with its wrappers.
            action_format: One of the federation's ``action_formats``; None for the first of them, the environment's
                own actions.
            features: Show features (:mod:`fedbandit_envs.features`) in place of raw observations.
            peers: Who plays all agents but ``agent_0``; None if all agents learn.

        Raises:
            TypeError: ``features`` is no bool.
            ValueError: ``action_format`` is unknown, or the problem has no features.
        """
        formats = federation.action_formats
        if action_format is None:
            action_format = next(iter(formats))
        require_choice("action_format", action_format, formats)
        require_flag("features", features)
        self.federation = federation
        self._format = formats[action_format]
        self._peers = peers
        self._of_observation, self._of_info = Parts(_first_agents), Parts(_first_agents)
        self.agents = federation.possible_agents[: None if peers is None else 1]
        self.features = _features_of(federation) if features else None
        self.observation_space = (
            federation.single_observation_space if self.features is None else self.features.space
        )
        self.action_space = self._format.space

    def reset(self, seeds: Sequence[int]) -> RowsReset:
        """Starts one episode a seed; see :meth:`FederatedEnv.reset_batch`.

        Args:
            seeds: Non-negative integers, one a replica.

        Returns:
            First observations and information, ``(replicas, agents, ...)``, of the agents that learn.
        """
        reset = self.federation.reset_batch(seeds)
        if self._peers is not None:
            self._peers.reset(seeds, reset.observation)
        self._seen = self._own(self._of_observation, reset.observation)
        if self.features is not None:
            self.features = _features_of(self.federation)
            self.features.reset((len(seeds), len(self.agents)))
        return RowsReset(self._shown(), self._own(self._of_info, reset.info))

    def step(self, choice: Any) -> RowsStep:
        """Plays one round.

        Args:
            choice: Elements of ``action_space`` with leading axes ``(replicas, agents)``, of the agents that learn; for
                a ``Dict`` a mapping of them. Arrays of the right shape: views look, before they stack or split them.

        Returns:
            What those agents are shown, their rewards, whether the horizon is reached, and information, ``(replicas,
            agents, ...)``.

        Raises:
            TypeError: The choice has the wrong dtype.
            ValueError: It has a forbidden value. State is untouched.
        """
        action = self._format.to_action(choice, self._seen)
        if self._peers is not None:
            action = _merged(self._peers.act(), action)
        step = self.federation.step_batch(action)
        if self._peers is not None:
            self._peers.see(step.observation)
        self._seen = self._own(self._of_observation, step.observation)
        learners = len(self.agents)
        return RowsStep(
            self._shown(),
            step.reward[:, :learners],
            step.truncated[:, :learners],
            self._own(self._of_info, step.info),
        )

    @property
    def masked(self) -> bool:
        """Whether the action format says which choices are allowed."""
        return isinstance(self._format, MaskedFormat)

    def allowed(self) -> Array:
        """Says which choices are allowed now, bool ``(replicas, agents, entries)``; see :class:`MaskedFormat`.

        Raises:
            AttributeError: The action format does not say.
        """
        if not isinstance(self._format, MaskedFormat):
            raise AttributeError(
                f"actions in {self.action_space} have no masks; an action_format that has, or an algorithm without "
                "masks, is required"
            )
        return self._format.allowed(self._seen)

    def _own(self, parts: Parts[Arrays], arrays: Arrays) -> Arrays:
        """Takes the rows of the agents that learn."""
        return arrays if self._peers is None else dict(parts.of(arrays))

    def _shown(self) -> Observation:
        return self._seen if self.features is None else self.features.see(self._seen)


def _first_agents(arrays: Mapping[str, Array]) -> Arrays:
    return {name: array[:, :1] for name, array in arrays.items()}


def flat(arrays: Observation) -> Any:
    """Gives arrays of ``(replicas, agents, ...)`` one leading axis, ``rows``: one, or every one of several."""
    if isinstance(arrays, Mapping):
        return {name: flat(array) for name, array in arrays.items()}
    return arrays.reshape(-1, *arrays.shape[2:])


def row_of(arrays: Observation, place: int) -> Any:
    """Takes one entry of the leading axis, of every array where there are several."""
    if isinstance(arrays, Mapping):
        return {name: array[place] for name, array in arrays.items()}
    return arrays[place]


def _features_of(federation: FederatedEnv) -> Features:
    """Makes a problem's features, or says that it has none."""
    kind: type[Features] | None = getattr(federation, "features", None)
    if kind is None:
        raise ValueError(
            f"features is True, but {federation.metadata['name']} has none; features=False, or a class of "
            "fedbandit_envs.spaces.Features as the problem's attribute `features`, is required"
        )
    return kind(federation.policy_spaces)


def _merged(others: Any, own: Any) -> Any:
    """Puts the learner's rows in the place of the first agent's among those that peers chose for all."""
    if isinstance(own, Mapping):
        return {name: _merged(others[name], own[name]) for name in own}
    # Promoted, so that a bad value of the learner's reaches the environment's checks as it is.
    merged = others.astype(np.promote_types(others.dtype, own.dtype))
    merged[:, :1] = own
    return merged
