"""The base class of transports: when agents send, their inboxes, counts of messages, and what sending times reveal."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, prod
from typing import Any
from warnings import warn

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.basics.arrays import Array, Arrays, Buffers
from fedbandit_envs.basics.checks import require_flag, require_integer, require_number
from fedbandit_envs.core.actions import (
    ActionCheck,
    FlatSending,
    WithEntry,
    add_entry,
    require_action_entries,
    take_entry,
)
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.schedule import (
    Combined,
    Schedule,
    StageSpec,
    make_schedule,
    make_stage,
)
from fedbandit_envs.wrappers.transport.viewer import noise_share, render_federation

HEADER_BYTES = 16
"""Bytes of a message besides its numbers: sender (4), round in which it was sent (8), remaining hops (4)."""


class Transport(FederatedWrapper):
    """The base class of wrappers that release data on a schedule and deliver them to inboxes.

    After each round of the environment the schedule decides which agents want to send. Those of them that are allowed
    to (:meth:`FederatedEnv.allowed_senders`) release the growth of their statistics since their last release; a
    subclass sends the releases (:meth:`_send`) and delivers the messages that arrive in this round (:meth:`_arrive`).

    Observations gain, for each array ``name`` that the environment releases, with its shape ``(...)``:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `inbox_{name}` | (senders, ...) | float64 | one row a sender: the sum of its messages of this round |
    | `inbox_mask` | (senders,) | bool | true for senders from which a message was received |

    The PettingZoo API and the views for learners show one agent's inbox, which is 0 where the mask is false. The batch
    API stores each message once for all agents. There an inbox also shows messages that the agent has not received,
    such as its own. Apply the mask, as :func:`~fedbandit_envs.core.inbox.add_received` does.

    With a schedule that is not fixed in advance, actions become ``Dict({"action": <the environment's>,
    "send": Discrete(2)})``: in the batch API a mapping of ``action`` and of ``send``, bool or integers 0
    and 1 ``(replicas, agents)``. If actions are a mapping already, as with :class:`~fedbandit_envs.wrappers.Messages`,
    ``send`` is a further entry. The action formats for learning agents gain the entry ``send``, too; the format
    ``"{name}_and_send"`` has all choices in one flat space, see
    :class:`~fedbandit_envs.core.actions.FlatSending`. Agents that choose when to send may base the choice
    on raw data, so that no privacy is claimed for such a federation, however much noise it adds.

    With a ``stage`` (:mod:`.transport.schedule`: a shuffler, a secure sum or a trusted server) the
    releases of a round are replaced by their sum, which all agents receive: inboxes have one entry for senders. Without
    ``echo`` an agent subtracts its own release from the sum. Where fewer agents send than the stage needs, nobody
    releases anything. The data of a lost upload are lost, with their noise: the agent counts as absent.

    The info gains ``messages`` and ``bytes``, int64: the traffic of this round, counted for the agent that caused it as
    the subclass defines. A message has :data:`HEADER_BYTES` bytes and 8 more for each number in it; numbers of authored
    messages have the size of their declared dtype, and all bits of a message are rounded up to whole bytes.
    :attr:`traffic` has the totals of the episode.

    Attributes:
        traffic: Total ``messages`` and ``bytes`` of the episode so far, int64 ``(replicas, agents)``, from the first
            reset on.
        hub: Name in pictures of the node in the middle, which is no agent.
        regrets: The regret of each round of the episode, arrays ``(replicas, agents)``, which :meth:`render` draws;
            None unless the render mode is ``"rgb_array"``. Then there are also ``sent``, which agents have released
            data in the last round, bool, and ``sent_noise``, the share of noise in the last release, of this shape.
    """

    layer = "transport"
    hub = "server"
    # Peers of a learner send by schedules, too.
    make_schedule = staticmethod(make_schedule)
    # Entries of the info that count events of one round, and are set to 0 before the next.
    _counted: tuple[str, ...] = ("messages", "bytes")
    regrets: list[Array] | None = None
    # Whether the messages that arrive in a round are of one round, so that all inboxes can be views of them.
    _shared = False

    def __init__(
        self,
        env: FederatedEnv,
        schedule: Schedule | str | Mapping[str, Any],
        echo: bool,
        delay: int,
        loss: float,
        duplication: float,
        senders: int | None = None,
        stage: StageSpec = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without a transport.
            schedule: When messages are sent, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            echo: Whether agents receive their own messages as well; observations then gain ``sent`` and ``inbox_own``.
            delay: Number of rounds that a message takes from one node to the next.
            loss: Probability, in [0, 1), that a transmission loses the message.
            duplication: Probability, in [0, 1), that a transmission which does not lose the message doubles it.
            senders: Number of senders that an inbox distinguishes; None for all agents.
            stage: Who adds up releases before anybody receives them, see
                :mod:`fedbandit_envs.wrappers.transport.schedule`; None for nobody.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or ``env`` has a transport already.
        """
        super().__init__(env)
        self._echo, self._delay = require_flag("echo", echo), require_integer("delay", delay, 0)
        self._loss = require_number("loss", loss, 0, 1, open_above=True)
        self._duplication = require_number("duplication", duplication, 0, 1, open_above=True)
        self._schedule = make_schedule(schedule)
        if schedule not in ("silent", {"name": "silent"}) and not self._schedule.count(self.max_cycles):
            warn(
                f"schedule is {schedule!r}; nobody sends before round {self.max_cycles} = max_cycles; set its start",
                stacklevel=3,
            )
        self._stage = make_stage(stage, self.max_num_agents)
        self._by_sender = senders is None and self._stage is None
        # Other noise layers make noise for single releases only; their claims hold for sums as well.
        self._noise = env if isinstance(env, Privatizer) else None
        released = {name: space.shape or () for name, space in env.single_release_space.items()}
        bits = {name: prod(shape) * env.message_bits.get(name, 64) for name, shape in released.items()}
        asked = {of for name in env.asked_arrays for of in (name, variance_of(name))}
        self._bytes_per_message = message_bytes(bits[name] for name in bits.keys() - asked)
        self._bytes_per_report = message_bytes(bits[name] for name in asked & bits.keys() or bits)
        senders = self.max_num_agents if self._by_sender else 1
        # The spaces of inboxes have infinite bounds, since noise is unbounded.
        self._inbox_spaces: dict[str, spaces.Space] = {
            f"inbox_{name}": spaces.Box(-np.inf, np.inf, (senders, *shape), np.float64)
            for name, shape in released.items()
        }
        marks = {"inbox_mask": senders} | ({"inbox_own": senders, "sent": 1} if self._echo else {})
        for name, size in marks.items():
            self._inbox_spaces[name] = spaces.Box(0, 1, (size,), np.bool_)
        self.single_observation_space = spaces.Dict(
            {**env.single_observation_space.spaces, **self._inbox_spaces}
        )
        if not self._schedule.fixed_in_advance:
            send = spaces.Discrete(2)
            self._send_check = ActionCheck(send, self.possible_agents, what="action['send']")
            self.single_action_space = spaces.Dict(add_entry(env.single_action_space, "send", send))
            given = env.action_formats.items()
            self.action_formats = {name: WithEntry(each, "send", send) for name, each in given} | {
                f"{name}_and_send": FlatSending(each) for name, each in given if FlatSending.fits(each.space)
            }

    @abstractmethod
    def _send(self, statistic: Arrays, senders: Array) -> None:
        """Sends releases, and delivers those that arrive in the same round.

        Args:
            statistic: The releases by name, ``(replicas, agents, ...)``, in buffers that the next release overwrites.
            senders: Which agents released, bool ``(replicas, agents)``; at least one did.
        """

    @abstractmethod
    def _send_sum(self, combined: Combined, messages: Array, lost: Array) -> None:
        """Sends the sum that leaves a stage, so that :meth:`_arrive` delivers it, and counts the uploads.

        Args:
            combined: What has left the stage.
            messages: Number of messages of each agent's upload, int64 ``(replicas, agents)``; 2 for a doubled one.
            lost: Whose upload is lost, bool ``(replicas, agents)``.
        """

    @abstractmethod
    def _arrive(self) -> None:
        """Delivers the messages of earlier rounds that arrive in this round."""

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with empty inboxes; see :meth:`FederatedEnv.reset_batch`."""
        noise = self._noise
        reset = self.env.reset_batch(seeds) if noise is None else noise.reset_batch(seeds, self._stage)
        self._seeds = [int(seed) for seed in seeds]
        rows = (len(seeds), self.max_num_agents)
        if not self._schedule.fixed_in_advance:
            self._ledger.unclaimable_reason = (
                "agents choose when to send, and the times may depend on raw local data"
            )
        self._round, self._episode = 0, self._ledger.episode
        self._everyone = np.ones(rows, np.bool_)
        messages = [f"inbox_{name}" for name in self.env.single_release_space] if self._by_sender else []
        shared = messages if self._shared else []
        self._inbox = {
            name: np.zeros((*(rows[:1] if name in shared else rows), *(space.shape or ())), space.dtype)
            for name, space in self._inbox_spaces.items()
        }
        self._seen = Buffers(self._inbox, rows[1], shared)
        self._traffic_buffers = Buffers({name: np.zeros(rows, np.int64) for name in self._counted})
        self._traffic = self._traffic_buffers.arrays
        self.traffic = {name: np.zeros(rows, np.int64) for name in ("messages", "bytes")}
        # _apart: inboxes that share no messages. _arrived: index arrays of the messages of the last round in them.
        self._apart = [self._inbox[name] for name in messages if name not in shared]
        self._marks = [array for name, array in self._inbox.items() if name in shared or name not in messages]
        self._marks += self._traffic.values()
        self._arrived: list[tuple[Array, ...]] = []
        self._dirty = False
        if getattr(self.unwrapped, "render_mode", None) == "rgb_array":
            self.regrets, self.sent, self.sent_noise = [], np.zeros(rows, np.bool_), np.zeros(rows)
        return BatchReset(reset.observation | self._seen.views, reset.info | self._traffic_buffers.views)

    def step_batch(self, action: Array | Mapping[str, Array]) -> BatchStep:
        """Plays one round, then sends and delivers messages; see :meth:`FederatedEnv.step_batch`.

        Args:
            action: The environment's actions, ``(replicas, agents, ...)``; if agents choose when to send, a mapping of
                ``action`` and ``send``.

        Raises:
            BudgetExhaustedError: A privatizer refuses a release. The round has been played, and its messages do not
                arrive.
            gymnasium.error.ResetNeeded: ``reset`` has not been called, or an environment inside of this one was reset.
        """
        if not hasattr(self, "_episode") or self._episode != self._ledger.episode:
            raise ResetNeeded(
                "the environment was reset without its transport, or wrapped later; call reset first"
            )
        asked = self._everyone
        if not self._schedule.fixed_in_advance:
            action, asked = self._split(action)
        # Where agents do not choose when to send, a mapping is a mistake, for which the environment raises the error.
        observation, reward, truncated, info = self.env.step_batch(action)  # type: ignore[arg-type]
        self._round += 1
        if self.regrets is not None:
            self.regrets.append(info["regret"].copy())
            self.sent.fill(False)
        if self._dirty:
            for array in self._marks:
                array.fill(0)
            for array in self._apart:
                for where in self._arrived:
                    array[where] = 0.0
            self._arrived, self._dirty = [], False
        if self._schedule.sends(self._round) and np.count_nonzero(wants := self._wants(asked)):
            senders = self._gated(self.env.allowed_senders(wants))
            if self._stage is not None and np.count_nonzero(senders):
                self._send_sum(*self._combined(senders))
            elif np.count_nonzero(senders):
                self._send(self._released(senders), senders)
        self._arrive()
        return BatchStep(
            observation | self._seen.views, reward, truncated, info | self._traffic_buffers.views
        )

    def _released(self, senders: Array) -> Arrays:
        """Releases data of the senders, bool ``(replicas, agents)``, and records it where it will be drawn."""
        released = self.env.release(senders)
        if self.regrets is not None:
            self.sent |= senders
            self.sent_noise = noise_share(released)
        return released

    def render(self, replica: int = 0) -> Any:
        """Renders a replica: as an RGB array the federation, in other modes the problem.

        The picture is :func:`~fedbandit_envs.wrappers.transport.viewer.render_federation`; ``env.unwrapped.render``
        draws the problem.
        """
        return self.env.render(replica) if self.regrets is None else render_federation(self, replica)

    @property
    def inbox(self) -> Arrays:
        """The inboxes and masks of the last round: read-only arrays by their names in observations."""
        return {name: self._seen.views[name] for name in self._inbox}

    def graph(self, replica: int) -> Array:
        """Returns the graph of a replica's nodes, agents first: here all agents are joined to a server.

        Returns:
            Whether messages go from one node to another, bool ``(nodes, nodes)``.
        """
        return star(self.max_num_agents)

    def _wants(self, asked: Array) -> Array:
        """Returns which agents send in this round, given which ask to, bool ``(replicas, agents)``."""
        return asked.copy() if self._schedule.fixed_in_advance else self._schedule.senders(self._round, asked)

    def _split(self, action: Any) -> tuple[Array, Array]:
        """Returns the environment's actions, and whether each agent asks to send, bool ``(replicas, agents)``.

        Malformed actions raise an error here, before the state changes.
        """
        assert isinstance(self.single_action_space, spaces.Dict)
        require_action_entries(
            action, self.single_action_space.keys(), "the schedule lets agents choose when to send"
        )
        own, send = take_entry(action, "send")
        if getattr(send, "dtype", None) != np.bool_ or send.shape != self._everyone.shape:
            send = self._send_check(send, len(self._seeds)).astype(np.bool_)
        return own, send

    def _gated(self, senders: Array) -> Array:
        """Returns the senders without those of replicas in which there are fewer than the stage needs."""
        if self._stage is None:
            return senders
        return senders & (senders.sum(axis=1, keepdims=True) >= self._stage.honest)

    def _combined(self, senders: Array, exchange: int = 0) -> tuple[Combined, Array, Array]:
        """Releases data of the senders and passes the uploads that arrive through the stage.

        Args:
            senders: Which agents send, bool ``(replicas, agents)``.
            exchange: Number of a server's question in this round; 0 without one.

        Returns:
            The arguments of :meth:`_send_sum`.
        """
        assert self._stage is not None
        released = self._released(senders)
        lost, doubled = self._faults(senders, True, exchange)
        combined = self._stage.combined(released, senders & ~lost)
        if self._noise is not None:
            combined = combined._replace(total=self._noise.synchronise(combined, senders))
        return combined, senders + doubled.astype(np.int64), lost

    def _faults(self, rows: Array, upwards: bool, exchange: int = 0) -> tuple[Array, Array]:
        """Returns whether each agent's message is lost, and whether it is doubled, each bool ``(replicas, agents)``.

        Random numbers are drawn for all agents, whether they send or not, so that they do not depend on actions.
        """
        if not (self._loss or self._duplication):
            nobody = np.zeros(rows.shape, np.bool_)
            return nobody, nobody
        key = Purpose.CHANNEL, self._round, 2 * exchange + upwards
        drawn = np.array([stream(seed, *key).random((2, rows.shape[1])) for seed in self._seeds])
        lost = rows & (drawn[:, 0] < self._loss)
        return lost, rows & ~lost & (drawn[:, 1] < self._duplication)

    def _give(self, received: Array, content: Arrays, complete: Array) -> None:
        """Adds sums to inboxes that have a single sender.

        Args:
            received: Which agents receive a sum, bool ``(replicas, agents)``.
            content: The sums by name, ``(replicas, agents, ...)``, 0 where there is none.
            complete: With ``echo``: whether all that the agent has released is in this sum or an earlier one, bool
                ``(replicas, agents)``.
        """
        self._dirty = True
        self._inbox["inbox_mask"][..., 0] |= received
        if self._echo:
            self._inbox["sent"][..., 0] |= complete
        for name, array in content.items():
            self._inbox[f"inbox_{name}"][:, :, 0] += array

    def _book(self, messages: Array, size: int | None = None) -> None:
        """Adds messages to the traffic of this round and of the episode.

        Args:
            messages: Numbers of messages, int64 ``(replicas, agents)``.
            size: Bytes of each message; None for those of a release.
        """
        self._dirty = True
        sizes = messages * (self._bytes_per_message if size is None else size)
        self._traffic["messages"] += messages
        self._traffic["bytes"] += sizes
        self.traffic["messages"] += messages
        self.traffic["bytes"] += sizes


def message_bytes(bits: Iterable[int]) -> int:
    """Returns the bytes of a message, given how many bits each of its arrays takes."""
    return HEADER_BYTES + ceil(sum(bits) / 8)


def star(num_agents: int, generator: np.random.Generator | None = None) -> Array:
    """Returns the graph in which all agents are joined to one more node."""
    adjacency = np.zeros((num_agents + 1, num_agents + 1), np.bool_)
    adjacency[-1, :-1] = adjacency[:-1, -1] = True
    return adjacency
