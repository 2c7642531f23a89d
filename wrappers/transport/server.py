"""A server: a node that is no agent, keeps what it was sent, and answers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_flag, require_integer, require_number
from fedbandit_envs.federation import BatchReset, FederatedEnv
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.answers import Answers, make_answers
from fedbandit_envs.wrappers.transport.schedule import Schedule
from fedbandit_envs.wrappers.transport.transport import Transport


class Server(Transport):
    """Adds up what agents upload, and sends them what they have not had yet; see :class:`Transport` for inboxes.

    ``schedule`` says who uploads, ``answers`` who downloads, see :mod:`fedbandit_envs.wrappers.transport.answers`.
    Uploads of a round reach the server before it answers, so that with no delay a download of the same round holds
    them. An agent that is not active, or did not ask, may be sent a download all the same. The only sender of an inbox
    is the server: what arrives is what others have uploaded since the agent's last download, added up. With ``echo``
    it holds the agent's own uploads as well, as in protocols where agents take over the server's state, and
    observations gain ``sent``, bool ``(1,)``: whether everything that the agent has uploaded has been in a download.

    Each upload and each download is a message, booked on the agent that sends or receives it; lost ones and doubles
    count too. Nothing is counted twice: messages are numbered. What an upload lost has carried goes with the agent's
    next upload, and what a download lost has carried with its next download; information gains ``lost``, int64, the
    agent's messages that were lost in this round.

    When agents upload on request, the times tell of raw data. When the server answers it knows no more than what was
    uploaded: its times tell nothing beyond that.
    """

    _counted = ("messages", "bytes", "lost")
    examples = (
        {"schedule": "on_request"},
        {"schedule": "every_round", "answers": "every_round", "echo": False},
        {"schedule": {"name": "fixed_gap", "gap": 2}, "answers": "every_round", "delay": 1, "loss": 0.2},
        {"schedule": "on_request", "answers": "every_round", "duplication": 0.3},
    )

    def __init__(
        self,
        env: FederatedEnv,
        schedule: Schedule | str | Mapping[str, Any] = "on_request",
        answers: Answers | Schedule | str | Mapping[str, Any] = "uploads",
        echo: bool = True,
        delay: int = 0,
        loss: float = 0.0,
        duplication: float = 0.0,
    ) -> None:
        """Wraps ``env``; a privatizer, if any, must be inside.

        Args:
            env: The environment, without a transport.
            schedule: Who uploads when, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            answers: Who downloads when, see :mod:`fedbandit_envs.wrappers.transport.answers`.
            echo: Whether downloads hold what the agent has uploaded itself.
            delay: Rounds that a message takes, each way; 0 delivers with the observation of the round that sends.
            loss: Probability, in [0, 1), that a message is lost.
            duplication: Probability, in [0, 1), that a message which is not lost comes twice.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a transport already, or its statistic does not
                have what the answers need.
        """
        require_flag("echo", echo)
        require_integer("delay", delay, 0)
        for name, value in (("loss", loss), ("duplication", duplication)):
            require_number(name, value, 0, 1, open_above=True)
        super().__init__(env, schedule, bool(echo), senders=1)
        self._answers = make_answers(answers)
        self._answers.refuse_unfit(env.single_release_space)
        self._echo = bool(echo)
        self._delay = int(delay)
        self._loss = float(loss)
        self._duplication = float(duplication)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with an empty server and nothing under way."""
        reset = super().reset_batch(seeds)
        replicas, agents = self._everyone.shape
        sizes = {
            name: int(np.prod(space.shape or ())) for name, space in self.env.single_release_space.items()
        }
        self._seeds = [int(seed) for seed in seeds]
        self._held: Arrays = {name: np.zeros((replicas, size)) for name, size in sizes.items()}
        # What agents have released and the server has not got; what it has and they have not got.
        self._up, self._down = (
            _Waiting(
                {name: np.zeros((replicas, agents, size)) for name, size in sizes.items()},
                np.zeros((replicas, agents), np.bool_),
            )
            for _ in range(2)
        )
        self._on_the_way_up = np.zeros((replicas, agents), np.int64)
        self._uploads: dict[int, list[_Message]] = {}
        self._downloads: dict[int, list[_Message]] = {}
        return reset

    def _send(self, statistic: Arrays, senders: Array) -> None:
        self._up.add(statistic, senders)
        message = self._carried(self._up, senders, upwards=True)
        self._on_the_way_up += message.rows
        self._uploads.setdefault(self._round + self._delay, []).append(message)

    def _arrive(self) -> None:
        uploaded = np.zeros_like(self._everyone)
        for message in self._uploads.pop(self._round, ()):
            uploaded |= message.rows
            self._on_the_way_up -= message.rows
            self._take_in(message)
        answered = self._down.something & self._answers.receivers(
            self._round, uploaded, self._held, self._down.arrays
        )
        if answered.any():
            message = self._carried(self._down, answered, upwards=False)
            complete = message.rows & ~self._up.something & (self._on_the_way_up == 0)
            self._downloads.setdefault(self._round + self._delay, []).append(
                message._replace(complete=complete)
            )
        for message in self._downloads.pop(self._round, ()):
            self._give(message)

    def _take_in(self, message: "_Message") -> None:
        """Adds uploads to what the server holds, and to what agents are to get: the others, or all with an echo."""
        for name, array in message.content.items():
            uploaded = array.sum(axis=1)
            self._held[name] += uploaded
            others = uploaded[:, np.newaxis] if self._echo else uploaded[:, np.newaxis] - array
            self._down.arrays[name] += others
        senders = message.rows.sum(axis=1, keepdims=True)
        others = np.broadcast_to(senders if self._echo else senders - message.rows, message.rows.shape)
        self._down.something[others > 0] = True

    def _give(self, message: "_Message") -> None:
        """Puts downloads into inboxes."""
        self._dirty = True
        self._inbox["inbox_mask"][..., 0] |= message.rows
        if self._echo:
            self._inbox["sent"][..., 0] |= message.complete
        for name, array in message.content.items():
            inbox = self._inbox[f"inbox_{name}"]
            inbox += array.reshape(inbox.shape)

    def _carried(self, waiting: "_Waiting", rows: Array, upwards: bool) -> "_Message":
        """Sends what is waiting and counts the messages; what is lost waits on."""
        lost, doubled = self._faults(rows, upwards)
        self._book(rows.astype(np.int64) + doubled)
        self._traffic["lost"] += lost
        arriving = rows & ~lost
        return _Message(arriving, waiting.take(arriving), np.zeros_like(arriving))

    def _faults(self, rows: Array, upwards: bool) -> tuple[Array, Array]:
        """Says whose message is lost and whose comes twice; luck depends on the round alone."""
        none = np.zeros_like(rows)
        if not (self._loss or self._duplication):
            return none, none
        luck = np.stack(
            [
                stream(seed, Purpose.CHANNEL, self._round, int(upwards)).random((2, rows.shape[1]))
                for seed in self._seeds
            ],
            axis=1,
        )
        lost = rows & (luck[0] < self._loss)
        return lost, rows & ~lost & (luck[1] < self._duplication)


class _Message(NamedTuple):
    """Messages of one round in one direction.

    Attributes:
        rows: Whose there are, bool ``(replicas, agents)``.
        content: Arrays by name, ``(replicas, agents, numbers)``, 0 where there is none.
        complete: Of downloads: whether all that the agent has released is in it or in those before.
    """

    rows: Array
    content: Arrays
    complete: Array


class _Waiting(NamedTuple):
    """What is yet to be carried, an entry an agent.

    Attributes:
        arrays: By name, ``(replicas, agents, numbers)``.
        something: Whether there is something, bool ``(replicas, agents)``: it may be zeros.
    """

    arrays: Arrays
    something: Array

    def add(self, arrays: Arrays, rows: Array) -> None:
        """Adds what is 0 for all but some rows."""
        for name, array in arrays.items():
            self.arrays[name] += array
        self.something[rows] = True

    def take(self, rows: Array) -> Arrays:
        """Takes out all that is waiting for some rows; 0 for the others."""
        taken = {}
        for name, array in self.arrays.items():
            taken[name] = np.where(rows[..., np.newaxis], array, 0.0)
            array[rows] = 0.0
        self.something[rows] = False
        return taken
