"""Policies whose exploration bonus was learned: an index of each producer or arm, and the best action for it."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from fedbandit_envs.baselines.learned.network import ItemNetwork
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec

Weights = str | Path | ItemNetwork
"""A network, its file, or the name of one that is packaged."""


class LearnedIndex:
    """Optimism whose width is chosen by a network, item by item.

    An item (producer, arm) has the index ``(1 + estimate) / 2 + 2 network(features) doubt``: its estimate, scaled to
    [0, 1], and a bonus in proportion to the doubt about it. A network that is 0 everywhere is greedy. Only own data
    count, also where agents receive each other's.

    The packaged networks were trained at a horizon of 500 rounds; the share of rounds left is one of their features.
    """

    _of_each: ClassVar[tuple[str, str]] = ("estimate", "doubt")
    _action_format: ClassVar[str] = "values"
    _bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __init__(self, weights: Weights) -> None:
        """Sets the network.

        Args:
            weights: A network, the path of its ``.npz`` file, or the name of a packaged one, such as
                ``"PPO-procurement"``.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds no network, or one for another problem.
        """
        self._network = weights if isinstance(weights, ItemNetwork) else ItemNetwork.load(weights)
        each = self._network.each
        if each[:2] != self._of_each:
            raise ValueError(f"weights takes {each} of an item; {self._of_each} are required first")

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment has no features or takes no indices as actions, or the network needs features
                that it does not have.
        """
        if spec.features is None or self._action_format not in spec.action_formats:
            raise UnfitError(
                f"an environment with features and the action format {self._action_format!r} is required; its formats "
                f"are {list(spec.action_formats)}"
            )
        self._format = spec.action_formats[self._action_format]
        self._features = spec.features(spec)
        places = []
        for wanted, there in (
            (self._network.each, self._features.each),
            (self._network.once, self._features.shared),
        ):
            if not set(wanted) <= set(there):
                raise UnfitError(f"the network takes the features {wanted}; there are {there}")
            places.append([there.index(name) for name in wanted])
        self._each, self._once = places
        self._features.reset((seeds.shape[0], seeds.shape[1]))

    def act(self, observation: Arrays) -> Array:
        """Returns the action that would be best if the indices were the true values; see :meth:`Policy.act`."""
        seen = self._features.see(observation)
        split = self._features.items * len(self._features.each)
        each = seen[..., :split].reshape(*seen.shape[:2], self._features.items, -1)[..., self._each]
        estimate, doubt = each[..., 0].astype(np.float64), each[..., 1]
        bonus = 2.0 * self._network(each, seen[..., split:][..., self._once]) * doubt
        return self._format.to_action(np.clip((1.0 + estimate) / 2.0 + bonus, *self._bounds), observation)


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

    _action_format = "index"
    _bounds = (0.0, 1.0)


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

    _of_each = ("estimate", "width")
