"""The server: a transport through a central node (no agent), which adds up uploads and answers with downloads."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import zeros
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.wrappers.transport.answers import Answers, make_answers
from fedbandit_envs.wrappers.transport.schedule import Schedule
from fedbandit_envs.wrappers.transport.stages import Combined, StageSpec
from fedbandit_envs.wrappers.transport.transport import Transport


class Server(Transport):
    """A transport with a server, which adds up agents' uploads and sends agents the sum of what they have not received.

    ``schedule`` decides when agents upload, ``answers`` which of them download, see
    :mod:`fedbandit_envs.wrappers.transport.answers`; :class:`Transport` describes observations and actions. Uploads of
    a round reach the server before it answers, so that without delay a download of the same round contains them. An
    agent that is inactive, or did not ask to send, may receive a download nevertheless. The senders' axis of an inbox
    has a single entry, the server: a download is the sum of all that other agents have uploaded since the agent's last
    download. With ``echo`` it contains the agent's own uploads as well, as in protocols in which agents copy the
    server's state, and observations gain ``sent``, bool ``(1,)``: whether all data that the agent has uploaded so far
    have come back to it in downloads.

    Each upload and each download is a message, counted for the agent that sends or receives it; a lost message counts
    once, a doubled one twice. Messages are numbered, so that no data are added twice. The data of a lost upload are
    part of the agent's next upload, and the data of a lost download part of its next download. The info gains ``lost``,
    int64, the number of the agent's messages that were lost in this round.

    With a ``stage`` the server computes with the sums of the stage alone. All agents download, whoever has uploaded:
    with ``answers="uploads"`` whenever a sum has left the stage.

    When agents upload on request, the times of uploads may depend on raw data. The server decides on downloads from
    uploads alone, so that the times of downloads reveal nothing that the uploads do not.

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
        {"schedule": "every_round", "stage": "server", "echo": False},
        {
            "schedule": "every_round",
            "stage": {"name": "aggregator", "honest": 2, "colluders": 1},
            "loss": 0.2,
            "delay": 1,
        },
        {
            "schedule": {"name": "fixed_gap", "gap": 2},
            "answers": "every_round",
            "stage": "shuffler",
            "echo": False,
            "loss": 0.2,
        },
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
        stage: StageSpec = None,
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
            stage: Who adds up the uploads of a round and, as a trusted server, adds noise to the sum, see
                :mod:`fedbandit_envs.wrappers.transport.stages`. None if the server receives each upload by itself.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a transport already, or the answer rule does not
                fit its statistics.
        """
        super().__init__(env, schedule, echo, delay, loss, duplication, 1, stage)
        self._answers = make_answers(answers, env.single_release_space)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with an empty server and no messages in transit."""
        reset = super().reset_batch(seeds)
        released, rows = self.env.single_release_space, self._everyone.shape
        self._held = zeros(released, (len(seeds),), np.float64)
        # _up: releases that the server has not received. _down: uploads that agents have not received.
        self._up, self._down = (
            _Waiting(zeros(released, rows, np.float64), np.zeros(rows, np.bool_)) for _ in range(2)
        )
        self._on_the_way_up = np.zeros(rows, np.int64)
        # Messages in transit, by the round in which they arrive; all uploads (or downloads) of a round arrive together.
        self._uploads: dict[int, tuple[Array, Arrays]] = {}
        self._sums: dict[int, Combined] = {}
        # _own: own uploads in the sums of a stage that wait for an agent, which it subtracts.
        self._own = zeros(released, rows if self._stage and not self._echo else (0, 0), np.float64)
        self._downloads: dict[int, tuple[Array, Arrays, Array]] = {}
        return reset

    def _send(self, statistic: Arrays, senders: Array) -> None:
        for name, array in self._up.arrays.items():
            array += statistic[name].reshape(array.shape)
        self._up.something[senders] = True
        sent, _ = self._uploads[self._round + self._delay] = self._carried(self._up, senders, upwards=True)
        self._on_the_way_up += sent

    def _send_sum(self, combined: Combined, messages: Array, lost: Array) -> None:
        self._book(messages)
        self._traffic["lost"] += lost
        self._on_the_way_up += combined.arrived
        self._sums[self._round + self._delay] = combined

    def _arrive(self) -> None:
        uploaded = np.zeros_like(self._everyone)
        if self._round in self._uploads:
            uploaded, content = self._uploads.pop(self._round)
            self._on_the_way_up -= uploaded
            self._take_in(uploaded, content)
        elif self._round in self._sums:
            combined = self._sums.pop(self._round)
            self._on_the_way_up -= combined.arrived
            uploaded = self._take_in_sum(combined)
        answered = self._down.something & self._answers(self._round, uploaded, self._held, self._down.arrays)
        if answered.any():
            sent, content = self._carried(self._down, answered, upwards=False)
            if self._stage and not self._echo:
                for name, array in self._own.items():
                    content[name][sent] -= array[sent]
                    array[sent] = 0.0
            complete = sent & ~self._up.something & (self._on_the_way_up == 0)
            self._downloads[self._round + self._delay] = sent, content, complete
        if self._round in self._downloads:
            self._give(*self._downloads.pop(self._round))

    def _take_in(self, uploaded: Array, content: Arrays) -> None:
        """Adds uploads to the server's sum, and to the data that waits for the other agents (with ``echo`` for all)."""
        for name, array in content.items():
            summed = array.sum(axis=1)
            self._held[name] += summed
            self._down.arrays[name] += summed[:, np.newaxis] if self._echo else summed[:, np.newaxis] - array
        others = uploaded.sum(axis=1, keepdims=True) - (0 if self._echo else uploaded)
        self._down.something[np.broadcast_to(others > 0, uploaded.shape)] = True

    def _take_in_sum(self, combined: Combined) -> Array:
        """Adds the sum of a stage to the server's, and to the data that waits for every agent.

        The server decides on answers by these sums, which is why agents subtract their own uploads when they download.

        Returns:
            Which agents are in a replica in which a sum has arrived, bool ``(replicas, agents)``.
        """
        for name, total in combined.total.items():
            self._held[name] += total
            self._down.arrays[name] += total[:, np.newaxis]
            if not self._echo:
                self._own[name] += combined.content[name]
        everyone = combined.went[:, np.newaxis] & self._everyone
        self._down.something[everyone] = True
        return everyone

    def _carried(self, waiting: "_Waiting", rows: Array, upwards: bool) -> tuple[Array, Arrays]:
        """Sends the waiting data of some agents and counts the messages; data of lost messages keep waiting.

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


class _Waiting(NamedTuple):
    """Data that have yet to be carried in one direction.

    Attributes:
        arrays: The data by name, ``(replicas, agents, ...)``.
        something: Whether an agent has data waiting (they may be zeros), bool ``(replicas, agents)``.
    """

    arrays: Arrays
    something: Array
