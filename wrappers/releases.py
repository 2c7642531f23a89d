"""Wrappers that change what agents release, or how often: placebos, quotas and statistics in slots."""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array, Arrays, zeros
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.wrapper import FederatedWrapper, layers
from fedbandit_envs.wrappers.messages import Messages
from fedbandit_envs.wrappers.privacy.privatizer import Clip


class Placebo(FederatedWrapper):
    """A wrapper that replaces all data in releases by zeros; the times of the releases stay the same.

    If a privatizer is wrapped around it, agents receive only the privatizer's noise. Whatever a policy still gains from
    messages under this wrapper does not come from the data in them.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Placebo(parallel_env(num_agents=2))
        >>> reset, step = env.reset_batch([0]), env.step_batch(np.zeros((1, 2), np.int64))
        >>> int(env.release(np.ones((1, 2), bool))["pulls"].sum())
        0
    """

    layer = "data"

    def _release(self, sends: Array) -> Arrays:
        return {name: np.zeros_like(array) for name, array in self.env._release(sends).items()}


class Quota(FederatedWrapper):
    """A wrapper that limits the number of releases of each agent in an episode.

    After its last release an agent cannot send any more; attempts are ignored without an error. With a limit of 0 there
    is no communication. A release counts once, however many agents receive it.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Quota(parallel_env(num_agents=2), releases=1)
        >>> reset = env.reset_batch([0])
        >>> released = env.release(np.array([[True, False]]))
        >>> env.allowed_senders(np.ones((1, 2), bool)).tolist()
        [[False, True]]
    """

    layer = "data"
    # The conformance checks, which try each wrapper with these arguments, make at most 20 releases of an agent.
    examples = ({"releases": 20},)

    def __init__(self, env: FederatedEnv, releases: int) -> None:
        """Wraps ``env``.

        Args:
            env: The environment.
            releases: The most releases of an agent in an episode, >= 0.

        Raises:
            TypeError: ``releases`` is no integer.
            ValueError: It is negative.
        """
        super().__init__(env)
        self._releases = require_integer("releases", releases, 0)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with the full number of releases; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._left = np.full((len(seeds), self.max_num_agents), self._releases)
        return reset

    def allowed_senders(self, senders: Array) -> Array:
        """Returns which of the given senders may still release, bool ``(replicas, agents)``.

        See :meth:`FederatedEnv.allowed_senders`.
        """
        return self.env.allowed_senders(senders) & (self._left > 0)

    def _release(self, sends: Array) -> Arrays:
        released = self.env._release(sends)
        self._left -= sends
        return released


class Interleaved(FederatedWrapper):
    """A wrapper that adds up each agent's statistics in several slots: those of round t go to slot t mod period.

    Rounds count from 0. FedUCB has several estimators that take turns, one in each round: when an estimator's turn
    comes again, it has received the messages about all its earlier rounds (Dubey and Pentland 2020, Algorithm 3).
    Released arrays have an additional axis of slots before the problem's own axes, ``(replicas, agents, period, ...)``,
    and are zero for agents that do not send. A release contains all slots; with a period of 1 it contains the same
    numbers as without this wrapper, in a single slot.

    After each round the new statistics are moved from the environment into the slots. The agent still keeps them there
    to itself: no data leave the agent before a release.

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
            env: The environment, without privatizer and without transport.
            period: Number of slots, >= 1.

        Raises:
            TypeError: ``period`` is no integer.
            ValueError: ``period`` is < 1; or ``env`` has a privatizer, a transport, or a wrapper whose effect depends
                on when data are released (:class:`.Clip`, :class:`.Quota`, :class:`.Messages` with a reporter): here
                data are taken from it in every round.
        """
        super().__init__(env)
        self._period = require_integer("period", period, 1)
        for level in layers(env):
            if isinstance(level, Clip | Quota) or (
                isinstance(level, Messages) and level._reporter is not None
            ):
                raise ValueError(
                    f"env has {type(level).__name__} inside of Interleaved, which would take data from it in every "
                    f"round; {type(level).__name__} outside of Interleaved is required"
                )
        self.single_release_space = spaces.Dict(
            {name: batch_space(space, self._period) for name, space in env.single_release_space.items()}
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with no data of any round; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._everyone = np.ones((len(seeds), self.max_num_agents), np.bool_)
        self._slots = zeros(self.single_release_space, self._everyone.shape)
        return reset

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round and adds its statistics to their slot; see :meth:`FederatedEnv.step_batch`."""
        step = self.env.step_batch(action)
        slot = (self.unwrapped._round - 1) % self._period
        # The ledger counts no release, since the statistics stay with the agents.
        moved = self._ledger.carry(self, self.env._release, self._everyone, holds=True)
        for name, grown in moved.items():
            self._slots[name][:, :, slot] += grown
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
            The wrapped environment's sensitivity, with scales repeated along the axis of slots. The statistics of a
            round are in one slot only, so releases of neighbouring histories differ by as much as without slots.
        """
        inner = self.env.sensitivity()
        return inner._replace(
            scale={
                name: np.repeat(array[:, :, np.newaxis], self._period, axis=2)
                for name, array in inner.scale.items()
            }
        )
