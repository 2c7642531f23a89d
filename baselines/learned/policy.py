"""Agents that learned how far to trust an estimate: an index of each producer or arm, and what is best for it."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedbandit_envs.arms.actions import Values as ArmValues
from fedbandit_envs.arms.features import ArmsFeatures
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.learned.network import Network
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.linear.actions import Values as ContextValues
from fedbandit_envs.linear.features import LinearFeatures
from fedbandit_envs.procurement.actions import QualityIndex
from fedbandit_envs.procurement.features import ProcurementFeatures
from fedbandit_envs.spaces import Features, Spaces

Weights = str | Path | Network
"""A network, its file, or the name of one that is packaged."""


def packaged(name: str) -> Path:
    """Returns the file of a packaged network."""
    return Path(__file__).parent / f"{name}.npz"


class LearnedIndex(ABC):
    """Optimism whose width a network chooses, item by item.

    An item (producer, arm) has the index ``(1 + estimate) / 2 + 2 network(features) doubt``: its estimate, brought to
    [0, 1], and as much of what is not known of it as the network says. With the network at 0 this is greed. Only own
    data count, also where agents hear of each other.

    The packaged networks learned at a horizon of 500 rounds, of which they are told how much is left.
    """

    _features_of: ClassVar[type[Features]]
    _of_each: ClassVar[tuple[str, str]] = ("estimate", "doubt")

    def __init__(self, weights: Weights) -> None:
        """Takes a network.

        Args:
            weights: A network, the ``.npz`` file of one, or the name of a packaged one, ``"PPO-procurement"``.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds no network, or one for another problem.
        """
        if not isinstance(weights, Network):
            inside = packaged(str(weights))
            weights = Network.load(inside if inside.exists() else weights)
        if weights.each[:2] != self._of_each:
            raise ValueError(f"weights takes {weights.each} of an item; {self._of_each} are required first")
        self._network = weights

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The network takes features that this environment does not have.
        """
        self._features = self._features_of(spaces)
        for wanted, there in (
            (self._network.each, self._features.each),
            (self._network.once, self._features.shared),
        ):
            if not set(wanted) <= set(there):
                raise UnfitError(f"the network takes the features {wanted}; there are {there}")
        self._each = [self._features.each.index(name) for name in self._network.each]
        self._once = [self._features.shared.index(name) for name in self._network.once]
        self._features.reset((seeds.shape[0], seeds.shape[1]))

    def act(self, observation: Arrays) -> Array:
        """Returns what is best if the indices were the truth; see :meth:`Policy.act`."""
        seen = self._features.see(observation)
        split = self._features.items * len(self._features.each)
        each = seen[..., :split].reshape(*seen.shape[:2], self._features.items, -1)[..., self._each]
        estimate, doubt = each[..., 0].astype(np.float64), each[..., 1]
        bonus = 2.0 * self._network(each, seen[..., split:][..., self._once]) * doubt
        return self._decide((1.0 + estimate) / 2.0 + bonus, observation)

    @abstractmethod
    def _decide(self, index: Array, observation: Arrays) -> Array:
        """Acts on indices, float64 ``(replicas, agents, items)``."""


class LearnedProcurement(LearnedIndex):
    """A learned bonus on Laplace's estimates of qualities, then Greedy SSA."""

    _features_of = ProcurementFeatures

    def _decide(self, index: Array, observation: Arrays) -> Array:
        return QualityIndex(index.shape[2]).to_action(np.clip(index, 0.0, 1.0), observation)


class LearnedArms(LearnedIndex):
    """A learned bonus on Laplace's estimates of means; of the arms that are awake those with the largest are pulled."""

    _features_of = ArmsFeatures

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        super().reset(spaces, seeds)
        self._values = ArmValues(self._features.items, int(np.prod(spaces.own_action.shape or ())))

    def _decide(self, index: Array, observation: Arrays) -> Array:
        return self._values.to_action(index, observation)


class LearnedLinear(LearnedIndex):
    """A learned bonus on ridge regression's estimates; the arm with the largest is pulled."""

    _features_of = LinearFeatures
    _of_each = ("estimate", "width")

    def _decide(self, index: Array, observation: Arrays) -> Array:
        return ContextValues(index.shape[2]).to_action(index, observation)
