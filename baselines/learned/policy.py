"""Policies whose exploration bonus was learned: an index of each producer or arm, and the best action for it."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedbandit_envs.arms.actions import arms_by_means
from fedbandit_envs.arms.features import ArmsFeatures
from fedbandit_envs.baselines.learned.layers import network_file
from fedbandit_envs.baselines.learned.network import ItemNetwork
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.features import Features
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.actions import arm_by_values
from fedbandit_envs.linear.features import LinearFeatures
from fedbandit_envs.procurement.actions import quantities_by_quality
from fedbandit_envs.procurement.features import ProcurementFeatures

Weights = str | Path | ItemNetwork
"""A network, its file, or the name of one that is packaged."""


class LearnedIndex(ABC):
    """Optimism whose width is chosen by a network, item by item.

    An item (producer, arm) has the index ``(1 + estimate) / 2 + 2 network(features) doubt``: its estimate, scaled to
    [0, 1], and a bonus in proportion to the doubt about it. A network that is 0 everywhere is greedy. Only own data
    count, also where agents receive each other's.

    The packaged networks were trained at a horizon of 500 rounds; the share of rounds left is one of their features.
    """

    _features_of: ClassVar[type[Features]]
    _of_each: ClassVar[tuple[str, str]] = ("estimate", "doubt")

    def __init__(self, weights: Weights) -> None:
        """Sets the network.

        Args:
            weights: A network, the path of its ``.npz`` file, or the name of a packaged one, such as
                ``"PPO-procurement"``.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds no network, or one for another problem.
        """
        if not isinstance(weights, ItemNetwork):
            weights = ItemNetwork.load(network_file(weights))
        if weights.each[:2] != self._of_each:
            raise ValueError(f"weights takes {weights.each} of an item; {self._of_each} are required first")
        self._network = weights

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The network needs features that this environment does not have.
        """
        self._features = self._features_of(spec)
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
        """Returns the action that would be best if the indices were the true values; see :meth:`Policy.act`."""
        seen = self._features.see(observation)
        split = self._features.items * len(self._features.each)
        each = seen[..., :split].reshape(*seen.shape[:2], self._features.items, -1)[..., self._each]
        estimate, doubt = each[..., 0].astype(np.float64), each[..., 1]
        bonus = 2.0 * self._network(each, seen[..., split:][..., self._once]) * doubt
        return self._decide((1.0 + estimate) / 2.0 + bonus, observation)

    @abstractmethod
    def _decide(self, index: Array, observation: Arrays) -> Array:
        """Returns actions for indices, float64 ``(replicas, agents, items)``."""


class LearnedProcurement(LearnedIndex):
    """Greedy SSA on Laplace's estimates of qualities plus a learned bonus.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines.learned import LearnedProcurement
        >>> env = procurement_v0.parallel_env(num_agents=3, num_producers=4)
        >>> policy = LearnedProcurement("PPO-procurement")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    _features_of = ProcurementFeatures

    def _decide(self, index: Array, observation: Arrays) -> Array:
        return quantities_by_quality(np.clip(index, 0.0, 1.0), observation)


class LearnedArms(LearnedIndex):
    """Pulls the awake arms with the largest Laplace estimates of means plus a learned bonus.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.learned import LearnedArms
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = LearnedArms("PPO-arms")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    _features_of = ArmsFeatures

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        super().reset(spec, seeds)
        self._slots = int(np.prod(spec.own_action.shape or ()))

    def _decide(self, index: Array, observation: Arrays) -> Array:
        return arms_by_means(self._slots, index, observation)


class LearnedLinear(LearnedIndex):
    """Pulls the arm with the largest ridge estimate plus a learned bonus.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.learned import LearnedLinear
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = LearnedLinear("PPO-linear")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    _features_of = LinearFeatures
    _of_each = ("estimate", "width")

    def _decide(self, index: Array, observation: Arrays) -> Array:
        return arm_by_values(index, observation)
