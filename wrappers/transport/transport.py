"""What carriers of messages share: schedules, inboxes, traffic, and what the times of sending tell."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.buffers import Buffers
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.wrapper import FederatedWrapper
from fedbandit_envs.wrappers.transport.inbox import add_arrivals, inbox_spaces
from fedbandit_envs.wrappers.transport.schedule import Schedule, make_schedule
from fedbandit_envs.wrappers.transport.sending import FlatSending, Sending

HEADER_BYTES = 16
"""Bytes of a message besides its numbers: sender (4), round in which it was sent (8) and hops left (4)."""

BYTES_PER_NUMBER = 8


class Transport(FederatedWrapper):
    """Lets data leave agents when a schedule says so, and brings it to inboxes.

    After each round of the environment the schedule says who wants to send. Those whom the environment permits release
    what their statistic has grown by; a subclass carries it (:meth:`_send`) and brings what is due (:meth:`_arrive`).

    Observations gain, for each array ``name`` that the environment releases, with its shape ``(...)``:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `inbox_{name}` | (senders, ...) | float64 | what arrived this round, by sender; to be added up |
    | `inbox_mask` | (senders,) | bool | from whom something arrived |

    Where the mask is false entries are 0.

    With a schedule that is not fixed in advance, actions become ``Dict({"action": <the environment's>,
    "send": Discrete(2)})``: in the array face a mapping of ``action`` and of ``send``, bool or integers 0
    and 1 ``(replicas, agents)``. The action formats for learning agents gain the same entry, see
    :class:`~fedbandit_envs.wrappers.transport.sending.Sending`; ``"{name}_and_send"`` is the same in a flat space, see
    :class:`~fedbandit_envs.wrappers.transport.sending.FlatSending`. Agents that choose when to send may choose by raw
    data, so that nothing is claimed of such a federation, whatever the noise.

    Information gains ``messages`` and ``bytes``, int64: the traffic of this round, by the agent on which it is booked.
    A message has :data:`HEADER_BYTES` and 8 bytes a number. :attr:`traffic` has the totals of the episode.
    """

    layer = "transport"
    # What is counted in each round, for the information.
    _counted: ClassVar[tuple[str, ...]] = ("messages", "bytes")

    def __init__(
        self,
        env: FederatedEnv,
        schedule: Schedule | str | Mapping[str, Any],
        echo: bool,
        senders: int | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without a transport.
            schedule: When messages are sent, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            echo: Whether agents are told when their own message is among what arrived (``sent``).
            senders: How many senders an inbox tells apart; None for all agents.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or ``env`` has a transport already.
        """
        super().__init__(env)
        self._schedule = make_schedule(schedule)
        released = env.single_release_space
        numbers = sum(int(np.prod(space.shape or ())) for space in released.values())
        self._bytes_per_message = HEADER_BYTES + BYTES_PER_NUMBER * numbers
        self._inbox_spaces = inbox_spaces(released, self.max_num_agents if senders is None else senders, echo)
        self.single_observation_space = spaces.Dict(
            {**env.single_observation_space.spaces, **self._inbox_spaces}
        )
        if not self._schedule.fixed_in_advance:
            self.single_action_space = spaces.Dict(
                {"action": env.single_action_space, "send": spaces.Discrete(2)}
            )
            formats = env.action_formats.items()
            self.action_formats = {name: Sending(action_format) for name, action_format in formats} | {
                f"{name}_and_send": FlatSending(action_format)
                for name, action_format in formats
                if FlatSending.fits(action_format.space)
            }

    @abstractmethod
    def _send(self, statistic: Arrays, senders: Array) -> None:
        """Puts what was released on its way, and delivers what arrives at once.

        Args:
            statistic: What was released, float64 ``(replicas, agents, numbers)`` by name; the transport's to keep.
            senders: Who released it, bool ``(replicas, agents)``; somebody did.
        """

    @abstractmethod
    def _arrive(self) -> None:
        """Delivers what was sent in earlier rounds and is due in this one."""

    @property
    def traffic(self) -> Arrays:
        """Total ``messages`` and ``bytes`` of the episode so far, int64 ``(replicas, agents)``, copies.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if not hasattr(self, "_total_messages"):
            raise ResetNeeded("traffic is counted from the first reset on")
        return {
            "messages": self._total_messages.copy(),
            "bytes": self._total_messages * self._bytes_per_message,
        }

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with empty inboxes; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        rows = (len(seeds), self.max_num_agents)
        if not self._schedule.fixed_in_advance:
            self._door.withheld = "agents choose when to send, and the times may depend on raw local data"
        self._round = 0
        self._everyone = np.ones(rows, np.bool_)
        self._inbox_buffers = Buffers(
            {
                name: np.zeros((*rows, *(space.shape or ())), space.dtype)
                for name, space in self._inbox_spaces.items()
            }
        )
        self._traffic_buffers = Buffers({name: np.zeros(rows, np.int64) for name in self._counted})
        self._inbox, self._traffic = self._inbox_buffers.arrays, self._traffic_buffers.arrays
        self._total_messages = np.zeros(rows, np.int64)
        self._dirty = False
        return BatchReset(
            {**reset.observation, **self._inbox_buffers.views}, {**reset.info, **self._traffic_buffers.views}
        )

    def step_batch(self, action: Array | Mapping[str, Array]) -> BatchStep:
        """Plays one round, then sends and delivers; see :meth:`FederatedEnv.step_batch`.

        Args:
            action: The environment's actions; with a schedule that asks agents, a mapping of ``action`` and
                ``send``.

        Raises:
            BudgetExhaustedError: A privatizer refuses a release. The round has been played, but nothing was
                sent.
        """
        if self._schedule.fixed_in_advance:
            # A mapping here is the caller's mistake, which the environment names.
            observation, reward, truncated, info = self.env.step_batch(action)  # type: ignore[arg-type]
            asked = self._everyone
        else:
            action, asked = self._taken_apart(action)
            observation, reward, truncated, info = self.env.step_batch(action)
        self._round += 1
        if self._dirty:
            self._clear()
        wants = self._schedule.senders(self._round, asked)
        if wants.any():
            senders = self.env.permit(wants)
            if senders.any():
                # Copies, since what is under way must outlive the buffers of the next release.
                statistic = {
                    name: array.astype(np.float64).reshape(*array.shape[:2], -1)
                    for name, array in self.env.release(senders).items()
                }
                self._send(statistic, senders)
        self._arrive()
        return BatchStep(
            {**observation, **self._inbox_buffers.views},
            reward,
            truncated,
            {**info, **self._traffic_buffers.views},
        )

    def _taken_apart(self, action: Any) -> tuple[Array, Array]:
        """Splits actions with a ``send`` entry, refusing bad ones before anything happens."""
        if not hasattr(self, "_everyone"):
            raise ResetNeeded("step was called before reset")
        if not isinstance(action, Mapping) or action.keys() != {"action", "send"}:
            raise TypeError(
                f"action is {action!r}; a mapping of 'action' and 'send' is required, since agents choose "
                "when to send"
            )
        send = np.asarray(action["send"])
        if send.shape != self._everyone.shape:
            raise ValueError(
                f"action['send'] has shape {send.shape}; (replicas, agents) = {self._everyone.shape} "
                "is required"
            )
        if send.dtype != np.bool_:
            if not np.issubdtype(send.dtype, np.integer):
                raise TypeError(
                    f"action['send'] has dtype {send.dtype}; bool or an integer dtype is required"
                )
            if not ((send == 0) | (send == 1)).all():
                raise ValueError(
                    f"action['send'] lies between {send.min()} and {send.max()}; 0 or 1 is required"
                )
        return action["action"], send.astype(np.bool_)

    def _clear(self) -> None:
        for array in (*self._inbox.values(), *self._traffic.values()):
            array.fill(0)
        self._dirty = False

    def _deliver(self, statistic: Arrays, arrives: Array, apart: Arrays | None = None) -> None:
        """Adds to the inboxes what arrives, bool ``(replicas, agents, senders)``, and what is said to each apart."""
        self._inbox["inbox_mask"] |= arrives
        for name, array in statistic.items():
            inbox = self._inbox[f"inbox_{name}"]
            add_arrivals(array, arrives, inbox.reshape(*inbox.shape[:3], -1))
            if apart is not None and name in apart:
                heard = apart[name].swapaxes(1, 2)
                inbox += heard * arrives.reshape(arrives.shape + (1,) * (heard.ndim - 3))

    def _book(self, messages: Array) -> None:
        """Counts messages, int64 ``(replicas, agents)``."""
        # Nothing is delivered without something being booked in the same round.
        self._dirty = True
        self._traffic["messages"] += messages
        self._traffic["bytes"] += messages * self._bytes_per_message
        self._total_messages += messages
