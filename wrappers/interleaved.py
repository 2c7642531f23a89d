"""Statistics kept apart by round: estimators that take turns."""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_integer
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.wrapper import FederatedWrapper


class Interleaved(FederatedWrapper):
    """Keeps what is observed in different rounds apart, by the round's number modulo a period.

    For FedUCB's estimators that take turns, so that each has heard of all its rounds when its turn comes
    again (Dubey and Pentland 2020, Algorithm 3): what is observed in round t, counted from 0, belongs to slot t mod
    period. The arrays that are released gain the axis of slots before the problem's own: ``(replicas, agents,
    period, ...)``, zero for the silent. Who sends, sends all slots; with a period of 1 that is what the environment
    releases.

    Data is taken from the environment after each round and held here, still inside the agents, until it is
    released.
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
        self._slots: Arrays = {
            name: np.zeros((*self._everyone.shape, *(space.shape or ())), space.dtype)
            for name, space in self.single_release_space.items()
        }
        self._round = 0
        return reset

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round and keeps what it adds; see :meth:`FederatedEnv.step_batch`."""
        step = self.env.step_batch(action)
        slot = self._round % self._period
        # Nothing leaves: what is taken stays in here, with the agents.
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
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`.

        Returns:
            The environment's, with the axis of slots: one round shows in one slot, so its changes remain.
        """
        inner = self.env.sensitivity()
        return inner._replace(
            scale={
                name: np.repeat(array[:, :, np.newaxis], self._period, axis=2)
                for name, array in inner.scale.items()
            }
        )
