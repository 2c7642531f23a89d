"""The server: a transport through a node that is no agent, adds up uploads, and answers with downloads."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import zeros
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
    download nevertheless. The server is the only sender of an inbox: a download is the sum of all that other agents
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
        self._answers = make_answers(answers, env.single_release_space)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, with an empty server and no messages in transit."""
        reset = super().reset_batch(seeds)
        self._seeds = [int(seed) for seed in seeds]
        released, rows = self.env.single_release_space, self._everyone.shape
        self._held = zeros(released, (len(seeds),), np.float64)
        # Releases that the server has not received; uploads that agents have not received.
        self._up, self._down = (
            _Waiting(zeros(released, rows, np.float64), np.zeros(rows, np.bool_)) for _ in range(2)
        )
        self._on_the_way_up = np.zeros(rows, np.int64)
        # By the round in which they arrive: those of one round and direction arrive together.
        self._uploads: dict[int, tuple[Array, Arrays]] = {}
        self._downloads: dict[int, tuple[Array, Arrays, Array]] = {}
        return reset

    def _send(self, statistic: Arrays, senders: Array) -> None:
        for name, array in self._up.arrays.items():
            array += statistic[name].reshape(array.shape)
        self._up.something[senders] = True
        sent, _ = self._uploads[self._round + self._delay] = self._carried(self._up, senders, upwards=True)
        self._on_the_way_up += sent

    def _arrive(self) -> None:
        uploaded = np.zeros_like(self._everyone)
        if self._round in self._uploads:
            uploaded, content = self._uploads.pop(self._round)
            self._on_the_way_up -= uploaded
            self._take_in(uploaded, content)
        answered = self._down.something & self._answers(self._round, uploaded, self._held, self._down.arrays)
        if answered.any():
            sent, content = self._carried(self._down, answered, upwards=False)
            complete = sent & ~self._up.something & (self._on_the_way_up == 0)
            self._downloads[self._round + self._delay] = sent, content, complete
        if self._round in self._downloads:
            self._give(*self._downloads.pop(self._round))

    def _take_in(self, uploaded: Array, content: Arrays) -> None:
        """Adds uploads to the server's sum, and to what other agents (with an echo all) have yet to receive."""
        for name, array in content.items():
            summed = array.sum(axis=1)
            self._held[name] += summed
            self._down.arrays[name] += summed[:, np.newaxis] if self._echo else summed[:, np.newaxis] - array
        others = uploaded.sum(axis=1, keepdims=True) - (0 if self._echo else uploaded)
        self._down.something[np.broadcast_to(others > 0, uploaded.shape)] = True

    def _give(self, received: Array, content: Arrays, complete: Array) -> None:
        """Adds downloads to inboxes.

        Args:
            received: Which agents receive one, bool ``(replicas, agents)``.
            content: The downloads by name, ``(replicas, agents, ...)``, 0 where there is none.
            complete: Whether all that the agent has released is in this download or an earlier one, bool ``(replicas,
                agents)``.
        """
        self._dirty = True
        self._inbox["inbox_mask"][..., 0] |= received
        if self._echo:
            self._inbox["sent"][..., 0] |= complete
        for name, array in content.items():
            self._inbox[f"inbox_{name}"][:, :, 0] += array

    def _carried(self, waiting: "_Waiting", rows: Array, upwards: bool) -> tuple[Array, Arrays]:
        """Sends the waiting data of some agents, and counts the messages; data of lost messages wait on.

        Returns:
            Which messages arrive, bool ``(replicas, agents)``, and their data by name, 0 for other agents.
        """
        lost, doubled = self._faults(rows, upwards)
        self._book(rows.astype(np.int64) + doubled)
        self._traffic["lost"] += lost
        arriving = rows & ~lost
        content = {}
        for name, array in waiting.arrays.items():
            each = arriving.reshape(arriving.shape + (1,) * (array.ndim - 2))
            content[name] = np.where(each, array, 0.0)
            array[arriving] = 0.0
        waiting.something[arriving] = False
        return arriving, content

    def _faults(self, rows: Array, upwards: bool) -> tuple[Array, Array]:
        """Returns whether each message is lost and whether it is duplicated, drawn independently of actions."""
        if not (self._loss or self._duplication):
            return np.zeros_like(rows), np.zeros_like(rows)
        drawn = np.stack(
            [
                stream(seed, Purpose.CHANNEL, self._round, int(upwards)).random((2, rows.shape[1]))
                for seed in self._seeds
            ],
            axis=1,
        )
        lost = rows & (drawn[0] < self._loss)
        return lost, rows & ~lost & (drawn[1] < self._duplication)


class _Waiting(NamedTuple):
    """Data that have yet to be carried in one direction.

    Attributes:
        arrays: The data by name, ``(replicas, agents, ...)``.
        something: Whether an agent has data waiting (they may be zeros), bool ``(replicas, agents)``.
    """

    arrays: Arrays
    something: Array
