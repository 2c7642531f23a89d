"""Rewards to learn from: of one size in every market, and with a price on what rewards do not tell of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.buffers import Buffers
from fedbandit_envs.checks import require_flag, require_number
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.wrapper import FederatedWrapper, layers


class LearningReward(FederatedWrapper):
    """Pays what is to be learned: reward / scale - sum of prices times information.

    The scale of a row is the largest size that its reward of a round can have
    (:meth:`FederatedEnv.largest_reward`), which follows from what is known at reset: so rewards lie in [-1, 1] before
    prices, in large markets and in small ones. The environment's own stay as ``raw_reward``, float64, in the
    information.

    A price is paid for each unit of an entry of the information, in units of the scaled reward:

    | entry | what a price on it does |
    |---|---|
    | `violation` | a violated quality constraint, of which rewards in procurement say nothing, costs something |
    | `messages` | sending, to which a learner is indifferent otherwise, costs something |
    | `bytes`, `wasted`, `excess`, ... | likewise |

    Some entries, ``violation`` and ``regret`` among them, follow from what no agent knows: they may be learned from
    where they are simulated, and nowhere else.
    """

    layer = "view"
    examples = ({}, {"prices": {"regret": 0.5}}, {"scaled": False, "prices": {"regret": 2.0}})

    def __init__(
        self, env: FederatedEnv, scaled: bool = True, prices: Mapping[str, float] | None = None
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, with its wrappers; with a channel inside, for prices of messages.
            scaled: Whether rewards are divided by their largest size; if not, prices are in their own units.
            prices: What a unit of an entry of the information costs, >= 0, by the entry's name; None for none.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A price is out of its range, or ``env`` has a learning reward already.
        """
        super().__init__(env)
        if any(isinstance(inner, LearningReward) for inner in layers(env)):
            raise ValueError("env has a LearningReward already; one is allowed")
        require_flag("scaled", scaled)
        if prices is not None and not isinstance(prices, Mapping):
            raise TypeError(f"prices is {prices!r}; None or a mapping of names and numbers is required")
        self._prices = dict(prices or {})
        for name, price in self._prices.items():
            require_number(f"prices[{name!r}]", price, 0, np.inf, open_above=True)
        self._scaled = scaled

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed; see :meth:`FederatedEnv.reset_batch`.

        Raises:
            ValueError: Nobody has said how large rewards can be, or a price is on what there is no information of.
        """
        reset = self.env.reset_batch(seeds)
        unknown = sorted(set(self._prices) - set(reset.info))
        if unknown:
            raise ValueError(
                f"prices has {unknown}, of which this environment says nothing; names among {sorted(reset.info)} are "
                "required"
            )
        rows = reset.info["regret"].shape
        scale = self.env.largest_reward() if self._scaled else np.ones(rows)
        if scale is None:
            raise ValueError(
                "scaled is True, but nobody has said how large rewards of this environment can be; False, or a "
                "largest_reward of the problem's, is required"
            )
        # Where nothing can be earned, rewards are 0.
        self._scale = np.where(scale > 0.0, scale, 1.0)
        self._buffers = Buffers({"reward": np.zeros(rows), "raw_reward": np.zeros(rows)})
        return reset._replace(info=self._with_raw(reset.info))

    def step_batch(self, action: Any) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        step = self.env.step_batch(action)
        own = self._buffers.arrays
        own["raw_reward"][...] = step.reward
        own["reward"][...] = step.reward / self._scale
        for name, price in self._prices.items():
            own["reward"] -= price * step.info[name]
        return step._replace(reward=self._buffers.views["reward"], info=self._with_raw(step.info))

    def largest_reward(self) -> Array | None:
        """Returns how large rewards can be: 1, if they are scaled; None with prices."""
        if self._prices:
            return None
        return np.ones(self._scale.shape) if self._scaled else self.env.largest_reward()

    def _with_raw(self, info: Arrays) -> Arrays:
        return {**info, "raw_reward": self._buffers.views["raw_reward"]}
