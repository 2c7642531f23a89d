"""The wrapper that adds hidden quantities to observations, for policies that know the truth as an upper bound."""

from collections.abc import Sequence

from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.wrapper import FederatedWrapper


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
