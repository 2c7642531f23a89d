"""The server: a transport through a node that is no agent, adds up uploads, and answers with downloads."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.answers import Answers, make_answers
from fedbandit_envs.wrappers.transport.schedule import Schedule
from fedbandit_envs.wrappers.transport.transport import Transport


class Server(Transport):
    """A transport that adds up agents' uploads and sends each agent those it has not received; see :class:`Transport`.

    ``schedule`` decides when agents upload, ``answers`` which of them download, see
    :mod:`fedbandit_envs.wrappers.transport.answers`. Uploads of a round reach the server before it answers, so that
    without delay a download of the same round contains them. An agent that is inactive, or did not ask, may receive a
    download all the same. The server is the only sender of an inbox: a download is the sum of all that other agents
    have uploaded since the agent's last download. With ``echo`` it contains the agent's own uploads as well, as in
    protocols in which agents copy the server's state, and observations gain ``sent``, bool ``(1,)``: whether everything
    that the agent has uploaded has been in a download.

    Each upload and each download is a message, counted for the agent that sends or receives it, also if it is lost or
    doubled. Messages are numbered, so that no data are added twice. The data of a lost upload are part of the agent's
    next upload, those of a lost download part of its next download; information gains ``lost``, int64, the number of
    the agent's messages that were lost in this round.

    When agents upload on request, the times of uploads may depend on raw data. The server decides on its answers from
    uploads alone, so that the times of downloads reveal nothing beyond them.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Server(parallel_env(num_agents=3), schedule="every_round", echo=False)
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.zeros((1, 3), np.int64))
        >>> step.observation["inbox_pulls"][0, 0, 0, 0], step.info["messages"][0].tolist()
        (np.float64(2.0), [2, 2, 2])
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
            schedule: When agents upload, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            answers: When agents download, see :mod:`fedbandit_envs.wrappers.transport.answers`.
            echo: Whether downloads contain the agent's own uploads.
            delay: Rounds that a message takes, each way; with 0 it arrives in the observation of the same round.
            loss: Probability, in [0, 1), that a message is lost.
            duplication: Probability, in [0, 1), that a message which is not lost is doubled.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a transport already, or its statistics do not
                have what the answers need.
        """
        super().__init__(env, schedule, echo, delay, loss, duplication, senders=1)
        self._answers = make_answers(answers)
        self._answers.refuse_unfit(env.single_release_space)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with an empty server and no messages in transit."""
        reset = super().reset_batch(seeds)
        replicas, agents = self._everyone.shape
        sizes = {
            name: int(np.prod(space.shape or ())) for name, space in self.env.single_release_space.items()
        }
        self._seeds = [int(seed) for seed in seeds]
        self._held: Arrays = {name: np.zeros((replicas, size)) for name, size in sizes.items()}
        # Releases that the server has not received; uploads that agents have not received.
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
        """Adds uploads to the server's sum, and to what other agents (with an echo all) have yet to receive."""
        for name, array in message.content.items():
            uploaded = array.sum(axis=1)
            self._held[name] += uploaded
            others = uploaded[:, np.newaxis] if self._echo else uploaded[:, np.newaxis] - array
            self._down.arrays[name] += others
        senders = message.rows.sum(axis=1, keepdims=True)
        others = np.broadcast_to(senders if self._echo else senders - message.rows, message.rows.shape)
        self._down.something[others > 0] = True

    def _give(self, message: "_Message") -> None:
        """Adds downloads to inboxes."""
        self._dirty = True
        self._inbox["inbox_mask"][..., 0] |= message.rows
        if self._echo:
            self._inbox["sent"][..., 0] |= message.complete
        for name, array in message.content.items():
            inbox = self._inbox[f"inbox_{name}"]
            inbox += array.reshape(inbox.shape)

    def _carried(self, waiting: "_Waiting", rows: Array, upwards: bool) -> "_Message":
        """Returns the waiting data of some agents as messages, counted; data of lost messages wait on."""
        lost, doubled = self._faults(rows, upwards)
        self._book(rows.astype(np.int64) + doubled)
        self._traffic["lost"] += lost
        arriving = rows & ~lost
        return _Message(arriving, waiting.take(arriving), np.zeros_like(arriving))

    def _faults(self, rows: Array, upwards: bool) -> tuple[Array, Array]:
        """Returns whether each message is lost and whether it is duplicated, drawn independently of actions."""
        none = np.zeros_like(rows)
        if not (self._loss or self._duplication):
            return none, none
        drawn = np.stack(
            [
                stream(seed, Purpose.CHANNEL, self._round, int(upwards)).random((2, rows.shape[1]))
                for seed in self._seeds
            ],
            axis=1,
        )
        lost = rows & (drawn[0] < self._loss)
        return lost, rows & ~lost & (drawn[1] < self._duplication)


class _Message(NamedTuple):
    """The messages of one round in one direction.

    Attributes:
        rows: Which agents have a message, bool ``(replicas, agents)``.
        content: The messages' arrays by name, ``(replicas, agents, numbers)``, 0 where there is no message.
        complete: Whether all that the agent has released is in this download or an earlier one; False in uploads.
    """

    rows: Array
    content: Arrays
    complete: Array


class _Waiting(NamedTuple):
    """Data that have yet to be carried in one direction.

    Attributes:
        arrays: The data by name, ``(replicas, agents, numbers)``.
        something: Whether an agent has data waiting (they may be zeros), bool ``(replicas, agents)``.
    """

    arrays: Arrays
    something: Array

    def add(self, arrays: Arrays, rows: Array) -> None:
        """Adds data of some agents; ``arrays`` are 0 for the others."""
        for name, array in arrays.items():
            self.arrays[name] += array
        self.something[rows] = True

    def take(self, rows: Array) -> Arrays:
        """Removes and returns the data of some agents; 0 for the others."""
        taken = {}
        for name, array in self.arrays.items():
            taken[name] = np.where(rows[..., np.newaxis], array, 0.0)
            array[rows] = 0.0
        self.something[rows] = False
        return taken
