"""An actor-critic policy of Stable-Baselines3 that is shared over items (producers, arms), in index actions.

The actor says how far to trust each item's estimate, ``index = (1 + estimate) / 2 + 2 net doubt``, and starts at 0, at
greed, or at a bonus that is told. What makes it learn is its noise. Noise drawn anew in every round explores by itself,
so that the mean never learns to, and noise drawn for each item by itself drowns one item's gain in thirty others'. So
it is held for the whole episode (the hook of SB3's gSDE, with rollouts as long as episodes), in proportion to doubt,
and most of it is common to the items: a wider bonus for all of them, for those with good estimates, for those little
known. Its density is that of a normal law of low rank, which torch has.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn
from torch.distributions import LowRankMultivariateNormal

from fedbandit_envs.baselines.learned import ItemNetwork


class SharedNet(nn.Module):
    """A :class:`~fedbandit_envs.baselines.learned.ItemNetwork` to be trained; its output starts at 0."""

    def __init__(self, each: int, once: int, hidden: int) -> None:
        """Takes the numbers of features an item, and once, and of hidden units in either layer."""
        super().__init__()
        self.own = nn.Linear(each, hidden)
        self.pooled = nn.Linear(each, hidden, bias=False)
        self.shared = nn.Linear(once, hidden, bias=False)
        self.middle = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, each: Tensor, once: Tensor) -> Tensor:
        """Returns ``(rows, items)`` for features ``(rows, items, each)`` and ``(rows, once)``."""
        common = self.pooled(each.mean(-2)) + self.shared(once)
        first = torch.relu(self.own(each) + common.unsqueeze(-2))
        return self.last(torch.relu(self.middle(first))).squeeze(-1)

    def layers(self) -> dict[str, np.ndarray]:
        """Returns the arrays of a :class:`ItemNetwork`."""
        arrays = {
            "own": self.own.weight.T,
            "pooled": self.pooled.weight.T,
            "shared": self.shared.weight.T,
            "first_bias": self.own.bias,
            "middle": self.middle.weight.T,
            "middle_bias": self.middle.bias,
            "last": self.last.weight[0],
            "last_bias": self.last.bias,
        }
        return {name: array.detach().numpy().copy() for name, array in arrays.items()}


class ItemwisePolicy(ActorCriticPolicy):
    """Index actions of a shared network, and a critic that adds up what items are worth; needs ``use_sde=True``."""

    def __init__(
        self, observation_space: Any, action_space: Any, lr_schedule: Any, *, each: Sequence[str], once: Sequence[str],
        unit: float, scale: float = 1.0, start: float = 0.0, hidden: int = 16, own_noise: float = 0.15,
        common_noise: float = 0.4, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Sets the policy up.

        Args:
            observation_space: Flat features.
            action_space: A box of indices, one an item.
            lr_schedule: Of the learning rate.
            each: Names of an item's features, ``estimate`` and ``doubt`` first.
            once: Names of those that there are once, ``time_left`` among them.
            unit: What an item worth 1 (of all items' units, where these have capacities) would bring in an episode.
            scale: Multiplies indices, so that they fit the box where only their order matters.
            start: The actor's output before training; 0 is greed.
            hidden: Units in either hidden layer.
            own_noise: Standard deviation of an item's own noise, in doubts.
            common_noise: Of each coefficient of the noise that items share.
            **kwargs: Of the base class.
        """
        self._each, self._once = list(each), list(once)
        self._unit, self._scale, self._start, self._hidden = unit, scale, start, hidden
        self._noise = (own_noise, common_noise)
        self.width = 1.0
        """Multiplies noise; the training lets it shrink."""
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    def _build(self, lr_schedule: Any) -> None:
        assert self.action_space.shape is not None
        self._items = self.action_space.shape[0]
        self.actor, self.critic = (
            SharedNet(len(self._each), len(self._once), self._hidden) for _ in range(2)
        )
        nn.init.constant_(self.actor.last.bias, self._start)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr_schedule(1), eps=1e-5)
        self.reset_noise()

    def reset_noise(self, n_envs: int = 1) -> None:
        """Draws noise for the episodes to come, one a row."""
        self._own_draws = torch.randn(n_envs, self._items)
        self._common_draws = torch.randn(n_envs, 3)

    def _split(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        split = self._items * len(self._each)
        return observation[:, :split].reshape(-1, self._items, len(self._each)), observation[:, split:]

    def _mean(self, each: Tensor, once: Tensor) -> Tensor:
        """Returns indices without noise."""
        return self._scale * ((each[..., 0] + 1) / 2 + 2 * self.actor(each, once) * each[..., 1])

    def _spread(self, each: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the noise's standard deviation in each item alone, and each common draw's part in it."""
        estimate, doubt = each[..., 0], each[..., 1]
        own, common = (self._scale * self.width * noise for noise in self._noise)
        directions = torch.stack([torch.ones_like(doubt), estimate, doubt], -1)
        return own * doubt, common * doubt.unsqueeze(-1) * directions

    def _log_density(self, action: Tensor, mean: Tensor, each: Tensor) -> Tensor:
        own, common = self._spread(each)
        return LowRankMultivariateNormal(mean, common, own.square(), validate_args=False).log_prob(action)

    def _values(self, each: Tensor, once: Tensor) -> Tensor:
        """Returns what is expected of the rest of the episode, ``(rows, 1)``: worth, for the time that is left."""
        estimate, hope = (each[..., 0] + 1) / 2, each[..., 1] * self.critic(each, once)
        if "capacity" in self._each:
            cost, units = ((each[..., self._each.index(name)] + 1) / 2 for name in ("cost", "capacity"))
            worth = (units * (torch.relu(estimate - cost) + hope)).mean(-1)
        else:
            worth = (estimate + hope).amax(-1)
        left = (once[:, self._once.index("time_left")] + 1) / 2
        return (self._unit * left * worth).unsqueeze(-1)

    def forward(self, obs: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Returns actions with the episode's noise, values and the actions' log densities."""
        each, once = self._split(obs)
        mean = self._mean(each, once)
        action = mean
        if not deterministic:
            own, common = self._spread(each)
            action = mean + own * self._own_draws + (common * self._common_draws.unsqueeze(1)).sum(-1)
        return action, self._values(each, once), self._log_density(action, mean, each)

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, None]:
        """Returns values and log densities of actions that were taken; entropy is fixed and no loss."""
        each, once = self._split(obs)
        density = self._log_density(actions, self._mean(each, once), each)
        return self._values(each, once), density, None

    def predict_values(self, obs: Tensor) -> Tensor:
        """Returns values, ``(rows, 1)``."""
        return self._values(*self._split(obs))

    def _predict(self, observation: Tensor, deterministic: bool = False) -> Tensor:
        return self._mean(*self._split(observation))

    def network(self) -> ItemNetwork:
        """Returns what the actor has learned, to be played without torch."""
        return ItemNetwork(tuple(self._each), tuple(self._once), self.actor.layers())
