"""The server: a transport through a central node (no agent), which adds up uploads and answers with downloads."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays, Buffers, spread, zeros
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.transport.schedule import (
    Answers,
    Combined,
    Schedule,
    StageSpec,
    make_answers,
)
from fedbandit_envs.wrappers.transport.server_policy import (
    Ask,
    ServerPolicy,
    bits_of,
    box,
    checked_answer,
    make_server_policy,
    read_declared,
)
from fedbandit_envs.wrappers.transport.transport import Transport, message_bytes

MOST_EXCHANGES = 10_000
"""The most questions that a server may ask in one round; more are taken for an endless conversation."""

_NEVER = 2**62


class Server(Transport):
    """A transport with a server, which adds up agents' uploads and sends agents the sum of what they have not received.

    ``schedule`` decides when agents upload, ``answers`` which of them download, see
    :mod:`fedbandit_envs.wrappers.transport.schedule`; :class:`Transport` describes observations and actions. Uploads of
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

    With a ``stage`` (a shuffler, a secure sum or a trusted server, :mod:`.transport.schedule`) all
    that the server adds up, computes with and answers are the sums, or shuffled messages, that leave the stage. All
    agents download, whoever has uploaded: with ``answers="uploads"`` whenever a sum has left the stage.

    When agents upload on request, the times of uploads may depend on raw data. The server decides on downloads from
    uploads alone, so that the times of downloads reveal nothing that the uploads do not.

    With a ``policy`` the server computes: a download holds the policy's latest answer instead of the sum, see
    :mod:`fedbandit_envs.wrappers.transport.server_policy`. Observations then gain, in place of the inboxes,
    ``server_{name}`` for each array that the policy declares, with its shape and dtype, the last answer that the agent
    has received (0 before the first); ``server_mask``, bool ``(1,)``, whether it was received in this round; and
    ``sent``. A download has as many bytes as the declared arrays and a header. The policy may ask agents in the middle
    of a round; each question is a message to every agent asked, each report an upload of it.

    A policy that answers an array ``active``, a single bool, decides which agents take part. Those whom its first
    answer names act from the first round on, others from the round after they have received an answer with ``active``,
    and nobody leaves. Until then an agent pulls nothing, uploads and hears nothing and has no regret. Observations then
    have ``active``, bool ``(1,)``, whether the agent acts in the coming round, and information ``agents_joined``, the
    number of agents of the replica that do.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Server(parallel_env(num_agents=3), schedule="every_round", echo=False)
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.zeros((1, 3), np.int64))
        >>> step.observation["inbox_pulls"][0, 0, 0, 0], step.info["messages"][0].tolist()
        (np.float64(2.0), [2, 2, 2])
    """

    _counted: tuple[str, ...] = ("messages", "bytes", "lost")
    examples = (
        {"schedule": "on_request", "duplication": 0.3},
        {"schedule": "every_round", "answers": "every_round", "echo": False},
        {"schedule": {"name": "fixed_gap", "gap": 2}, "answers": "every_round", "delay": 1, "loss": 0.2},
        {"schedule": "every_round", "stage": "server", "echo": False},
        {"schedule": "every_round", "stage": {"name": "aggregator", "honest": 2}, "loss": 0.2, "delay": 1},
        {"schedule": {"name": "fixed_gap", "gap": 2}, "answers": "every_round", "stage": "shuffler"},
        {"schedule": {"name": "fixed_gap", "gap": 2}, "policy": "average", "delay": 1, "loss": 0.2},
    )

    def __init__(
        self,
        env: FederatedEnv,
        schedule: Schedule | str | Mapping[str, Any] = "on_request",
        answers: Answers | str | Mapping[str, Any] = "uploads",
        echo: bool = True,
        delay: int = 0,
        loss: float = 0.0,
        duplication: float = 0.0,
        stage: StageSpec = None,
        policy: ServerPolicy | Callable[..., Any] | str | Mapping[str, Any] | None = None,
    ) -> None:
        """Wraps ``env``; a privatizer, if any, must be inside.

        Args:
            env: The environment, without a transport.
            schedule: When agents upload, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            answers: When agents download, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            echo: Whether downloads contain the agent's own uploads.
            delay: Rounds that a message takes, each way; with 0 it arrives in the observation of the same round.
            loss: Probability, in [0, 1), that a message is lost.
            duplication: Probability, in [0, 1), that a message which is not lost is doubled.
            stage: Who adds up the uploads of a round and, as a trusted server, adds noise to the sum, see
                :mod:`fedbandit_envs.wrappers.transport.schedule`. None if the server receives each upload by itself. A
                policy then sees sorted messages without names (shuffler), or equal parts of a sum as uploads.
            policy: What the server computes from uploads and answers: a server policy, a function of uploads and mask,
                a name (``"average"``, ``"ridge"``, ``"module:Class"``) or a mapping of the name and arguments. None
                for a server that answers the sum of uploads.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a transport already, the answer rule or the policy
                does not fit its statistics, or there is a policy and ``echo`` is False.
        """
        super().__init__(env, schedule, echo, delay, loss, duplication, 1, stage)
        self._answers = make_answers(answers, env.single_release_space)
        self._policy = None if policy is None else make_server_policy(policy)
        # _downloads: the space of each array in an answer of the policy.
        self._downloads: dict[str, spaces.Box] = {}
        if self._policy is not None:
            declared = self._policy.downloads
            self._downloads = read_declared(
                "downloads",
                declared(env.policy_spec) if callable(declared) else declared,
                lambda one: one if isinstance(one, spaces.Box) else box(**one),
            )
        self._admits = "active" in self._downloads
        self._require_fit(loss, stage)
        if self._policy is None:
            return
        flag: spaces.Space = spaces.Box(0, 1, (1,), np.bool_)
        self._inbox_spaces = {"server_mask": flag, "sent": flag}
        arrays = self._downloads.values()
        self._answer_bytes = message_bytes(prod(one.shape) * bits_of(one.dtype) for one in arrays)
        answered: dict[str, spaces.Space] = {f"server_{name}": one for name, one in self._downloads.items()}
        if self._admits:
            answered["active"] = flag
            del answered["server_active"]
            self._counted = (*self._counted, "agents_joined")
        self.single_observation_space = spaces.Dict(
            {**env.single_observation_space.spaces, **answered, **self._inbox_spaces}
        )

    def _require_fit(self, loss: float, stage: StageSpec) -> None:
        """Raises an error unless the policy, or none, fits the environment and the other arguments."""
        single = {name: one.dtype.kind for name, one in self._downloads.items() if one.shape == ()}
        if loss and getattr(self._policy, "needs_every_message", False):
            raise ValueError(f"loss is {loss}; 0 is required with a policy whose uploads cannot be added up")
        if stage is not None and getattr(self._policy, "needs_single_uploads", False):
            raise ValueError(f"stage is {stage!r}; None is required with a policy that needs single uploads")
        if self._policy is not None and not self._echo:
            raise ValueError("echo is False; True is required with a policy, which answers all uploads")
        if self._schedule.announced and single.get("rounds") not in ("i", "u"):
            raise ValueError(
                f"schedule is 'announced', and the policy answers {sorted(self._downloads)}; 'rounds', a single "
                "integer, is required"
            )
        if self._admits and single.get("active") != "b":
            raise ValueError(f"downloads['active'] is {self._downloads['active']}; a single bool is required")
        if self._admits and "active" in self.env.single_observation_space.spaces:
            raise ValueError(
                "env has a Participation; none is required with a policy that says who takes part"
            )

    @property
    def _active(self) -> Array:
        """Which agents take part by the answers that they have received, bool ``(replicas, agents)``."""
        return self._kept["active"][..., 0]

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with an empty server and no messages in transit."""
        # Who acts at first must be known before the environment starts.
        early = self._admits and min(seeds, default=-1) >= 0
        if early:
            self._first_answer([int(seed) for seed in seeds])
            self.env.set_active(self._active)
        reset = super().reset_batch(seeds)
        if self._policy is not None:
            if not early:
                self._first_answer(self._seeds)
            self._seen = Buffers(self._inbox | self._kept)
        if self._schedule.announced:
            self._due = np.zeros(self._everyone.shape, np.int64)
            self._announce(self._everyone)
        released, rows = self.env.single_release_space, self._everyone.shape
        self._held = zeros(released, (len(seeds),), np.float64)
        # _up: releases that the server has not received. _down: uploads that agents have not received.
        self._up, self._down = (
            _Waiting(zeros(released, rows, np.float64), np.zeros(rows, np.bool_)) for _ in range(2)
        )
        self._on_the_way_up = np.zeros(rows, np.int64)
        # Messages in transit, by the round in which they arrive; all uploads (or downloads) of a round arrive together.
        self._uploads: dict[int, Combined] = {}
        # _own: own uploads in the sums of a stage that wait for an agent, which it subtracts.
        self._own = zeros(released, rows if self._stage and not self._echo else (0, 0), np.float64)
        self._answered: dict[int, tuple[Array, Arrays, Array]] = {}
        return reset._replace(observation=reset.observation | self._seen.views)

    def _first_answer(self, seeds: list[int]) -> None:
        """Resets the policy, and shows agents its first answer, or zeros if it has none."""
        rows = len(seeds), self.max_num_agents
        # The server has the seed that an additional agent would have, so that it shares none with an agent.
        assert self._policy is not None
        first = self._policy.reset(self.env.policy_spec, row_seeds(seeds, rows[1] + 1)[:, -1])
        if first is None and self._admits:
            raise ValueError("policy has no first answer; one that says which agents take part is required")
        self._latest = zeros(self._downloads, rows)
        if first is not None:
            self._update(first, np.ones(rows, np.bool_))
        seen = {f"server_{name}": array.copy() for name, array in self._latest.items()}
        if self._admits:
            seen["active"] = seen.pop("server_active")[..., np.newaxis]
        self._kept = seen

    def _update(self, answer: Any, mask: Array) -> None:
        """Takes an answer as the latest one of the replicas in which ``mask`` is true of some agent."""
        fresh = np.any(mask, axis=1)
        for name, array in checked_answer(answer, self._downloads, mask.shape).items():
            np.copyto(self._latest[name], array, where=spread(fresh, array))

    def _compute(self, policy: ServerPolicy, uploads: Arrays, mask: Array) -> None:
        """Has the policy compute new answers for replicas with uploads, after any questions that it asks.

        Raises:
            TypeError: The policy returns an array of a wrong dtype.
            ValueError: Arrays have wrong names or shapes, or are not finite.
            RuntimeError: The policy keeps asking.
        """
        uploaded = mask
        for exchange in range(1, MOST_EXCHANGES + 2):
            for array in (*uploads.values(), mask):
                array.flags.writeable = False
            reply = policy.answer(uploads, mask)
            if not isinstance(reply, Ask):
                self._update(reply, uploaded)
                return
            who = mask if reply.who is None else np.broadcast_to(np.asarray(reply.who, np.bool_), mask.shape)
            question = {
                name: np.broadcast_to(array, (*mask.shape, *np.shape(array)[2:]))
                for name, array in reply.question.items()
            }
            uploads, mask = self._converse(question, who, exchange)
        raise RuntimeError(f"policy asked {MOST_EXCHANGES} questions in one round and still has no answer")

    def _gated(self, senders: Array) -> Array:
        return super()._gated(senders & self._active if self._admits else senders)

    def _wants(self, asked: Array) -> Array:
        return self._round >= self._due if self._schedule.announced else super()._wants(asked)

    def _announce(self, who: Array) -> None:
        """Sets the rounds from which on some agents upload, by the answers that they have received."""
        rounds = self._kept["server_rounds"][who]
        self._due[who] = np.where(rounds > 0, self._round + rounds, _NEVER)

    def _send(self, statistic: Arrays, senders: Array) -> None:
        for name, array in self._up.arrays.items():
            array += statistic[name].reshape(array.shape)
        self._up.something[senders] = True
        sent, content = self._carried(self._up, senders, upwards=True)
        total = {name: array.sum(axis=1) for name, array in content.items()}
        self._on_the_way_up += sent
        self._uploads[self._round + self._delay] = Combined(np.any(sent, axis=1), sent, content, total)

    def _send_sum(self, combined: Combined, messages: Array, lost: Array) -> None:
        self._book(messages)
        self._traffic["lost"] += lost
        self._on_the_way_up += combined.arrived
        self._uploads[self._round + self._delay] = combined

    def _arrive(self) -> None:
        uploaded = np.zeros(self._everyone.shape, np.bool_)
        if self._round in self._uploads:
            uploaded = self._take_in(self._uploads.pop(self._round))
        answered = self._down.something & self._answers(self._round, uploaded, self._held, self._down.arrays)
        if self._admits:
            answered &= self._latest["active"] | self._active
        if answered.any():
            sent, content = self._carried(self._down, answered, upwards=False)
            if self._policy is not None:
                content = {name: array[sent] for name, array in self._latest.items()}
            elif self._stage is not None and not self._echo:
                for name, array in self._own.items():
                    content[name][sent] -= array[sent]
                    array[sent] = 0.0
            complete = sent & ~self._up.something & (self._on_the_way_up == 0)
            self._answered[self._round + self._delay] = sent, content, complete
        if self._round in self._answered:
            self._give(*self._answered.pop(self._round))
        if self._admits:
            self._traffic["agents_joined"][...] = self._active.sum(axis=1, keepdims=True)

    def _take_in(self, uploads: Combined) -> Array:
        """Adds uploads to the server's sum, and to the data that waits for agents.

        Without a stage an agent's own upload waits for it with ``echo`` only. With a stage the whole sum waits for
        every agent, since the server decides on answers by the sums; agents subtract their own uploads when they
        download.

        Returns:
            Whose uploads the server has received, bool ``(replicas, agents)``; with a stage all agents of a replica.
        """
        arrived, single = uploads.arrived, self._stage is None
        everyone = uploads.went[:, np.newaxis] & self._everyone
        known = arrived if single else everyone
        without_own = single and not self._echo
        self._on_the_way_up -= arrived
        for name, total in uploads.total.items():
            self._held[name] += total
            news = total[:, np.newaxis]
            self._down.arrays[name] += news - uploads.content[name] if without_own else news
            if not (single or self._echo):
                self._own[name] += uploads.content[name]
        others = arrived.sum(axis=1, keepdims=True) > arrived if without_own else everyone
        self._down.something[others] = True
        if self._policy is not None and known.any():
            self._compute(self._policy, *((uploads.content, arrived) if single else uploads.uploads()))
        return known

    def _give(self, received: Array, content: Arrays, complete: Array) -> None:
        """Shows agents downloads; see :meth:`Transport._give`.

        With a policy, ``content`` are the answers to the agents that receive one, ``(receivers, ...)``.
        """
        if self._policy is None:
            super()._give(received, content, complete)
            return
        self._dirty = True
        self._inbox["server_mask"][..., 0] |= received
        self._inbox["sent"][..., 0] |= complete
        for name, array in content.items():
            if name == "active":
                # Those who act stay active.
                self._active[received] |= array
                self.env.admit(self._active)
            else:
                self._kept[f"server_{name}"][received] = array
        if self._schedule.announced:
            self._announce(received)

    def _carried(self, waiting: "_Waiting", rows: Array, upwards: bool) -> tuple[Array, Arrays]:
        """Sends the waiting data of some agents and counts the messages; data of lost messages keep waiting.

        Returns:
            Which messages arrive, bool ``(replicas, agents)``, and their data by name, 0 for other agents.
        """
        size = None if upwards or self._policy is None else self._answer_bytes
        arriving = self._transmitted(rows, upwards, size)
        content = {}
        for name, array in waiting.arrays.items():
            content[name] = np.where(spread(arriving, array), array, 0.0)
            array[arriving] = 0.0
        waiting.something[arriving] = False
        return arriving, content

    def _converse(self, question: Arrays, who: Array, exchange: int) -> tuple[Arrays, Array]:
        """Carries a question to agents and their reports back, within the round.

        Reports that are lost are not sent again.

        Args:
            question: The question by name, ``(replicas, agents, ...)``.
            who: Which agents are asked, bool ``(replicas, agents)``.
            exchange: Number of the question in this round, from 1.

        Returns:
            The reports by name, float64 ``(replicas, agents, ...)``, 0 where there is none; and whose report has
            arrived, bool ``(replicas, agents)``.

        Raises:
            TypeError: No agents can be asked in this environment.
            ValueError: Messages take time, so that no report would arrive in this round.
        """
        ask = getattr(self.env, "ask", None)
        if ask is None:
            raise TypeError(
                "policy asks a question; Messages with a reporter, which answers it, is required inside"
            )
        if self._delay:
            raise ValueError(f"delay is {self._delay}, and policy asks a question; 0 is required")
        size = message_bytes(prod(array.shape[2:]) * bits_of(array.dtype) for array in question.values())
        asked = self._transmitted(who, False, size, exchange)
        asked = self._gated(self.env.allowed_senders(asked))
        reports = zeros(self.env.single_release_space, asked.shape, np.float64)
        if not asked.any():
            return reports, asked
        ask(question)
        try:
            if self._stage is not None:
                combined, messages, lost = self._combined(asked, exchange)
                self._book(messages, self._bytes_per_report)
                self._traffic["lost"] += lost
                return combined.uploads()
            released = self._released(asked)
        finally:
            # A release that was refused has not answered it, and the next one must not.
            ask(None)
        arriving = self._transmitted(asked, True, self._bytes_per_report, exchange)
        for name, array in reports.items():
            array[arriving] = released[name][arriving]
        return reports, arriving

    def _transmitted(self, rows: Array, upwards: bool, size: int | None, exchange: int = 0) -> Array:
        """Counts a message of each of some agents, and returns which of them arrive, bool ``(replicas, agents)``.

        Args:
            rows: Which agents send or receive a message, bool ``(replicas, agents)``.
            upwards: Whether messages go from agents to the server.
            size: Bytes of each message; None for those of a release.
            exchange: Number of the question in this round; 0 for uploads and downloads.
        """
        lost, doubled = self._faults(rows, upwards, exchange)
        self._book(rows.astype(np.int64) + doubled, size)
        self._traffic["lost"] += lost
        return rows & ~lost


class _Waiting(NamedTuple):
    """Data that have yet to be carried in one direction.

    Attributes:
        arrays: The data by name, ``(replicas, agents, ...)``.
        something: Whether an agent has data waiting (they may be zeros), bool ``(replicas, agents)``.
    """

    arrays: Arrays
    something: Array
