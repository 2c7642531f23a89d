"""Wrappers that change what agents are shown or paid: hidden quantities, and rewards for learning agents."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays, Buffers
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.wrapper import FederatedWrapper, layers


class Reveal(FederatedWrapper):
    """A wrapper that adds the environment's hidden quantities (:meth:`FederatedEnv.hidden`) to every observation.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> reset = Reveal(parallel_env(num_agents=2, num_arms=5)).reset_batch([0])
        >>> reset.observation["mean"].shape
        (1, 2, 5)
    """

    layer = "observation"

    def __init__(self, env: FederatedEnv) -> None:
        """Wraps ``env``."""
        super().__init__(env)
        self.single_observation_space = spaces.Dict(
            {**env.single_observation_space.spaces, **env.hidden_space.spaces}
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        return reset._replace(observation=self._revealed(reset.observation))

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        step = self.env.step_batch(action)
        return step._replace(observation=self._revealed(step.observation))

    def _revealed(self, observation: Arrays) -> Arrays:
        return {**observation, **Buffers(self.env.hidden()).views}


class LearningReward(FederatedWrapper):
    """A wrapper that scales rewards to [-1, 1] and subtracts the cost of other quantities, such as messages.

    The new reward is reward / scale - sum over names of price[name] * info[name]. The scale of an agent is the largest
    absolute reward that it can get in a round (:meth:`FederatedEnv.largest_reward`), known at reset. So rewards lie in
    [-1, 1] before costs are subtracted, whatever the size of the problem. The environment's own reward is kept in the
    info (the dict of information on a round) as ``raw_reward``, float64.

    A price is the cost of one unit of an entry of the info, in units of the scaled reward:

    | entry | what a price on it does |
    |---|---|
    | `violation` | violating the quality constraint costs reward; in procurement the reward ignores it |
    | `messages` | sending costs reward; otherwise a learner is indifferent to it |
    | `bytes`, `wasted`, `excess`, ... | each unit of that entry costs reward |

    Some entries, such as ``violation`` and ``regret``, depend on quantities that no agent knows. Rewards that include
    them are therefore available in simulation only.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = LearningReward(parallel_env(num_agents=2, slots=2), prices={"regret": 0.5})
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.array([[[0, 1], [2, 3]]]))
        >>> bool(np.allclose(step.reward, step.info["raw_reward"] / 2 - 0.5 * step.info["regret"]))
        True
    """

    layer = "observation"
    examples = ({}, {"prices": {"regret": 0.5}})

    def __init__(self, env: FederatedEnv, prices: Mapping[str, float] | None = None) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, with its wrappers; prices of messages need a channel or server among them.
            prices: For the name of an entry of the info, the cost of one unit of it, >= 0; None subtracts no costs.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A price is out of its range, or ``env`` has a :class:`LearningReward` already.
        """
        super().__init__(env)
        if any(isinstance(inner, LearningReward) for inner in layers(env)):
            raise ValueError("env has a LearningReward already; one is allowed")
        self._prices = dict(prices or {})
        for name, price in self._prices.items():
            require_number(f"prices[{name!r}]", price, 0, np.inf, open_above=True)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`.

        Raises:
            ValueError: The environment does not know its largest reward, or ``prices`` names a quantity that the
                environment's info does not contain.
        """
        reset = self.env.reset_batch(seeds)
        for name in self._prices:
            require_choice("a name in prices", name, sorted(reset.info))
        scale = self.env.largest_reward()
        if scale is None:
            raise ValueError("env knows no largest reward; a problem with largest_reward is required")
        # An agent whose largest reward is 0 always has reward 0: dividing by 1 avoids 0 / 0.
        self._scale = np.where(scale > 0.0, scale, 1.0)
        self._buffers = Buffers({name: np.zeros(scale.shape) for name in ("reward", "raw_reward")})
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
        """Returns the largest absolute reward of each agent, ``(replicas, agents)``; None (unknown) with prices.

        Without prices it is 1.
        """
        return None if self._prices else np.ones(self._scale.shape)

    def _with_raw(self, info: Arrays) -> Arrays:
        return {**info, "raw_reward": self._buffers.views["raw_reward"]}
