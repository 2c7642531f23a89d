"""Learning agents as rows of arrays, with features and action formats; all views for learning libraries use it.

The views of Gymnasium (single and vector), PettingZoo and Stable-Baselines3 translate observations and actions here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_flag
from fedbandit_envs.core.buffers import Parts
from fedbandit_envs.core.features import Features
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.views.masks import MaskedFormat
from fedbandit_envs.views.peers import Peers

Observation = Arrays | Array
"""Arrays by name, or one array of features; leading axes ``(replicas, agents)``."""


class RowsReset(NamedTuple):
    """The result of :meth:`Rows.reset`; see :class:`~fedbandit_envs.core.federated_env.BatchReset`."""

    observation: Observation
    info: Arrays


class RowsStep(NamedTuple):
    """The result of :meth:`Rows.step`; see :class:`~fedbandit_envs.core.federated_env.BatchStep`."""

    observation: Observation
    reward: Array
    truncated: Array
    info: Arrays


class Rows:
    """The learning agents of a federation, in many replicas: all agents, or ``agent_0`` among peers.

    Except for features, the arrays that are returned are views of the federation's buffers, which the next call
    overwrites.

    Attributes:
        federation: The environment, with its wrappers.
        agents: Names of the agents that learn, the federation's first ones.
        observation_space: Observation space of one row: the federation's own ``Dict``, or a flat float32 ``Box`` in
            [-1, 1] of features.
        action_space: Action space of one row, given by the action format.
        features: The object that computes features; None if rows get raw observations.
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
        """Chooses the agents that learn, their observations and their action format.

        Args:
            federation: The environment, with its wrappers.
            action_format: One of the federation's ``action_formats``; None for the first of them, the environment's
                own actions.
            features: Whether agents get features (:class:`~fedbandit_envs.core.features.Features`) instead of raw
                observations.
            peers: The players of all agents except ``agent_0``; None if all agents learn.

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
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`.

        Args:
            seeds: Non-negative integers, one for each replica.

        Returns:
            First observations and information, ``(replicas, agents, ...)``, of the agents that learn.
        """
        reset = self.federation.reset_batch(seeds)
        if self._peers is not None:
            self._peers.reset(seeds, reset.observation)
        self._observation = self._own(self._of_observation, reset.observation)
        if self.features is not None:
            self.features = _features_of(self.federation)
            self.features.reset((len(seeds), len(self.agents)))
        return RowsReset(self._shown(), self._own(self._of_info, reset.info))

    def step(self, choice: Any) -> RowsStep:
        """Plays one round.

        Args:
            choice: Elements of ``action_space`` for the agents that learn, with leading axes ``(replicas, agents)``;
                for a ``Dict`` a mapping of them. Views must have checked the shapes.

        Returns:
            Observations, rewards, whether the horizon is reached, and information of those agents, ``(replicas, agents,
            ...)``.

        Raises:
            TypeError: The choice has the wrong dtype.
            ValueError: The choice has a forbidden value. The state does not change.
        """
        action = self._format.to_action(choice, self._observation)
        if self._peers is not None:
            action = _merged(self._peers.act(), action)
        step = self.federation.step_batch(action)
        if self._peers is not None:
            self._peers.see(step.observation)
        self._observation = self._own(self._of_observation, step.observation)
        learners = len(self.agents)
        return RowsStep(
            self._shown(),
            step.reward[:, :learners],
            step.truncated[:, :learners],
            self._own(self._of_info, step.info),
        )

    @property
    def masked(self) -> bool:
        """Whether the action format has action masks."""
        return isinstance(self._format, MaskedFormat)

    def allowed(self) -> Array:
        """Returns which choices are allowed now, bool ``(replicas, agents, entries)``; see :class:`MaskedFormat`.

        Raises:
            AttributeError: The action format has no masks.
        """
        if not isinstance(self._format, MaskedFormat):
            raise AttributeError(
                f"actions in {self.action_space} have no masks; an action_format that has, or an algorithm without "
                "masks, is required"
            )
        return self._format.allowed(self._observation)

    def _own(self, parts: Parts[Arrays], arrays: Arrays) -> Arrays:
        """Returns the parts of arrays that belong to the agents that learn."""
        return arrays if self._peers is None else dict(parts.of(arrays))

    def _shown(self) -> Observation:
        return self._observation if self.features is None else self.features.see(self._observation)


def _first_agents(arrays: Mapping[str, Array]) -> Arrays:
    return {name: array[:, :1] for name, array in arrays.items()}


def flat(arrays: Observation) -> Any:
    """Merges the replicas' and agents' axes of an array, or of a dict of arrays, into one axis ``rows``."""
    if isinstance(arrays, Mapping):
        return {name: flat(array) for name, array in arrays.items()}
    return arrays.reshape(-1, *arrays.shape[2:])


def row_of(arrays: Observation, place: int) -> Any:
    """Returns the entry at index ``place`` of the leading axis of an array, or of each array in a dict."""
    if isinstance(arrays, Mapping):
        return {name: array[place] for name, array in arrays.items()}
    return arrays[place]


def _features_of(federation: FederatedEnv) -> Features:
    """Returns a new object that computes the problem's features; raises a ``ValueError`` if the problem has none."""
    kind: type[Features] | None = getattr(federation, "features", None)
    if kind is None:
        raise ValueError(
            f"features is True, but {federation.metadata['name']} has none; features=False, or a class of "
            "fedbandit_envs.core.features.Features as the problem's attribute `features`, is required"
        )
    return kind(federation.policy_spec)


def _merged(others: Any, own: Any) -> Any:
    """Returns the peers' actions with the first agent's replaced by the learner's."""
    if isinstance(own, Mapping):
        return {name: _merged(others[name], own[name]) for name in own}
    # The dtype is promoted to hold both kinds of actions. Otherwise an invalid action of the learner, such as 0.5,
    # could be rounded to a valid one before the environment checks it.
    merged = others.astype(np.promote_types(others.dtype, own.dtype))
    merged[:, :1] = own
    return merged
