"""Statistics kept in several slots by round, for estimators that take turns."""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.buffers import zeros
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.sensitivity import Sensitivity
from fedbandit_envs.core.wrapper import FederatedWrapper


class Interleaved(FederatedWrapper):
    """A wrapper that keeps the statistics of different rounds in different slots: of round t in slot t mod period.

    Rounds count from 0. The wrapper serves FedUCB's estimators that take turns, of which each has received the messages
    about all its rounds when its turn comes again (Dubey and Pentland 2020, Algorithm 3). Released arrays gain an axis
    of slots before the problem's own: ``(replicas, agents, period, ...)``, zero for agents that do not send. A release
    has all slots; with a period of 1 it is the environment's.

    After each round the new statistics are moved from the environment into the slots. There they are still the agent's
    own: nothing leaves it before a release.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Interleaved(parallel_env(num_agents=1, num_arms=2), period=3)
        >>> reset = env.reset_batch([0])
        >>> for arm in (0, 1, 0, 0):
        ...     step = env.step_batch(np.array([[arm]]))
        >>> env.release(np.ones((1, 1), bool))["pulls"][0, 0].tolist()
        [[2, 0], [0, 1], [1, 0]]
    """

    layer = "data"
    examples = ({"period": 3},)

    def __init__(self, env: FederatedEnv, period: int) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without privatizer and channel.
            period: Number of slots, >= 1.

        Raises:
            TypeError: ``period`` is no integer.
            ValueError: It is < 1, or ``env`` has a privatizer or a channel.
        """
        super().__init__(env)
        require_integer("period", period, 1)
        self._period = int(period)
        self.single_release_space = spaces.Dict(
            {name: batch_space(space, self._period) for name, space in env.single_release_space.items()}
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with empty slots; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._everyone = np.ones((len(seeds), self.max_num_agents), np.bool_)
        self._slots = zeros(self.single_release_space, self._everyone.shape)
        self._round = 0
        return reset

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round and adds its statistics to their slot; see :meth:`FederatedEnv.step_batch`."""
        step = self.env.step_batch(action)
        slot = self._round % self._period
        # Not a release: the statistics stay with the agents.
        for name, grown in self.env._release(self._everyone).items():
            self._slots[name][:, :, slot] += grown
        self._round += 1
        return step

    def _release(self, sends: Array) -> Arrays:
        released = {name: np.zeros_like(slots) for name, slots in self._slots.items()}
        for name, slots in self._slots.items():
            released[name][sends] = slots[sends]
            slots[sends] = 0
        return released

    def sensitivity(self) -> Sensitivity:
        """Returns the sensitivity of a release; see :meth:`FederatedEnv.sensitivity`.

        Returns:
            The wrapped environment's sensitivity, with the axis of slots. A round is in one slot
            only, so the changes stay the same.
        """
        inner = self.env.sensitivity()
        return inner._replace(
            scale={
                name: np.repeat(array[:, :, np.newaxis], self._period, axis=2)
                for name, array in inner.scale.items()
            }
        )
