"""What a policy is told before it acts: spaces, and how actions can be said and histories shown otherwise."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.arrays import Array, Arrays


class ActionFormat(Protocol):
    """Another way for a learning agent to say what it does, turned into the environment's own action."""

    space: gym_spaces.Space[Any]

    def to_action(self, choice: Any, observation: Mapping[str, Array]) -> Any:
        """Translates choices.

        Args:
            choice: Elements of ``space`` with leading axes ``(replicas, agents)``; a mapping of them for a ``Dict``.
            observation: The observations those agents see, same leading axes.

        Returns:
            Actions of the environment, same leading axes, likewise.
        """


class Features(ABC):
    """What a network is shown of an agent's history: the half of a policy that needs no learning.

    Numbers in [-1, 1] made of observations, row by row, round by round, that say what observations mean.

    A row's features are those of its items (producers, arms) one item after another, then what there is once. Where
    agents hear of each other, items also have what was heard, added up.

    Like a policy's actions, features of row (r, j) depend on the observations of row (r, j) so far and on nothing else.

    Attributes:
        each: Names of one item's numbers, in order.
        shared: Names of those there are once, in order.
        items: Number of items.
    """

    each: tuple[str, ...]
    shared: tuple[str, ...]
    items: int

    @abstractmethod
    def __init__(self, spaces: "Spaces") -> None:
        """Says what there will be, from what policies are told of an environment."""

    @property
    def space(self) -> gym_spaces.Box:
        """One agent's features, float32 ``(items * len(each) + len(shared),)``."""
        return gym_spaces.Box(-1.0, 1.0, (self.items * len(self.each) + len(self.shared),), np.float32)

    def reset(self, rows: tuple[int, int]) -> None:
        """Forgets an episode.

        Args:
            rows: ``(replicas, agents)`` of the next one.
        """
        self._features = np.zeros((*rows, *self.space.shape), np.float32)
        self._begin(rows)

    def see(self, observation: Arrays) -> Array:
        """Takes in what rows observe; to be called once a round, the first included.

        Args:
            observation: By name, leading axes ``(replicas, agents)``.

        Returns:
            Features, float32 ``(replicas, agents, size)``, the caller's own.
        """
        split = self.items * len(self.each)
        rows = self._features.shape[:2]
        self._write(
            observation,
            self._features[..., :split].reshape(*rows, self.items, len(self.each)),
            self._features[..., split:],
        )
        return self._features.copy()

    @abstractmethod
    def _begin(self, rows: tuple[int, int]) -> None:
        """Forgets what was kept of an episode."""

    @abstractmethod
    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        """Takes in what rows observe, and writes features.

        Args:
            observation: By name, leading axes ``(replicas, agents)``.
            each: Receives the items', ``(replicas, agents, items, len(each))``.
            shared: Receives those there are once, ``(replicas, agents, len(shared))``.
        """


class Spaces(NamedTuple):
    """What a policy is told of an environment before it acts.

    Attributes:
        observation: One agent's observation space; batches add the leading axes ``(replicas, agents)``.
        action: One agent's action space; batches add the same axes.
        horizon: Number of rounds of an episode, public to all.
        release: Space of what one agent releases; where noise has public bounds, they are here.
        agents: Number of agents in the federation, public to all.
        public: What else is known to all from the start, by name; the environment's page says what it is.
        action_formats: Ways to say actions, by name, the environment's own first.
        features: What a network is shown of an agent's history; None where nobody has said.
    """

    observation: gym_spaces.Dict
    action: gym_spaces.Space[Any]
    horizon: int
    release: gym_spaces.Dict
    agents: int
    public: Mapping[str, Any]
    action_formats: Mapping[str, ActionFormat]
    features: type[Features] | None

    @property
    def own_action(self) -> gym_spaces.Space[Any]:
        """What one agent does, without the choice to send where agents have it."""
        action = self.action
        return action["action"] if isinstance(action, gym_spaces.Dict) else action
