"""The base class of roles: their links, the plan of the run, and the order of rounds; transports deliver frames."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass

from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.crypto.link import Link
from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Counts, Record
from fedbandit_envs.samba.roles.messages import Frame, Kind, Message

ALIVE = bytes((Kind.ALIVE,))
"""The bytes of an ALIVE message: its kind, without content."""

_MAX_REASON = 500


@dataclass(frozen=True)
class RoleReport:
    """A role's report at the end of its part of a run.

    Attributes:
        role: The role's name.
        counts: Numbers of the role's operations, frames and bytes.
        cpu_seconds: CPU time of the role's part in seconds, with the set-up of the role but not the start of a process.
        reward: The cumulative reward in the customer's report; None in all others.
    """

    role: str
    counts: Counts
    cpu_seconds: float
    reward: int | None = None


class Role(ABC):
    """The base class of the participants of the protocol, which are given frames and return the frames that they send.

    Attributes:
        name: The role's name.
        arms: Number of owners in all groups, K.
        algorithm: The algorithm that the role has agreed to, or None if it agrees to any.
        links: The role's ends of its links, by the peer's name.
        record: The role's counts of operations and traffic, and its transcript if one is kept.
        plan: The plan of the run, or None before it is received.
        round: The round t that the role is in; 0 before the plan is received.
        iteration: The iteration within the round, counted from 0.
        done: Whether the role has finished its part of the run.
        reward: The cumulative reward, once the customer knows it; None for all other roles.
    """

    def __init__(self, keyring: Keyring, algorithm: Algorithm | None, record: Record) -> None:
        """Sets up the role and its links, before any frame is sent.

        Args:
            keyring: The role's keys.
            algorithm: The algorithm that the role has agreed to, or None if it agrees to any.
            record: An empty record, to which the role writes.
        """
        self.name = keyring.role
        self.arms = keyring.arms
        self.algorithm = algorithm
        self.record = record
        # The longest message has a Paillier ciphertext of 512 bytes for each arm, so that this bound is ample.
        longest = 8192 + 1024 * self.arms
        self.links = {peer: Link(peer, keys, longest, record) for peer, keys in keyring.links.items()}
        self.plan: SambaPlan | None = None
        self.round = 0
        self.iteration = 0
        self.done = False
        self.reward: int | None = None

    def start(self) -> list[Frame]:
        """Returns the frames that the role sends before it has received any."""
        return []

    def handle(self, peer: str, data: bytes) -> list[Frame]:
        """Processes the next frame from a peer and returns the frames that the role sends in answer.

        Args:
            peer: Name of the role at the other end of the link.
            data: The frame.

        Raises:
            SecureError: The frame is refused; the role is unchanged.
        """
        payload = self.open(peer, data)
        answers: list[Message] = []
        if payload != ALIVE:
            try:
                kind = Kind(payload[0])
            except ValueError as error:
                raise SecureError(f"{peer} sent a message of unknown kind {payload[0]}", peer) from error
            answers = self._answer(peer, kind, payload[1:])
        self.links[peer].accept(payload)
        return self._seal(answers)

    def open(self, peer: str, data: bytes) -> bytes:
        """Returns the decrypted message of the next frame from a peer, and leaves role and link unchanged.

        Args:
            peer: Name of the role at the other end of the link.
            data: The frame.

        Raises:
            SecureError: The frame is refused, or the peer has stopped the run.
        """
        if peer not in self.links:
            raise SecureError(f"{self.name} has no link to {peer}", peer)
        payload = self.links[peer].open(data)
        if payload[0] == Kind.STOP:
            try:
                parts = json.loads(payload[1:])
                culprit, reason = str(parts["culprit"]), str(parts["reason"])
            except (ValueError, TypeError, KeyError):
                culprit, reason = "", "no reason that can be read"
            raise SecureError(f"{peer} stopped the run: {reason}", culprit or peer)
        return payload

    def stop(self, culprit: str, reason: str) -> list[Frame]:
        """Returns frames that tell all peers that the run has ended, which role has caused this, and why."""
        content = json.dumps({"culprit": culprit, "reason": reason[:_MAX_REASON]}).encode()
        return self._seal([(peer, Kind.STOP, content) for peer in self.links])

    def report(self, cpu_seconds: float) -> RoleReport:
        """Returns the role's counts of the run, its reward and the CPU time that the caller has measured."""
        return RoleReport(self.name, self.record.counts, cpu_seconds, self.reward)

    def needs(self, peer: str) -> bool:
        """Returns whether this role still needs messages from a peer to finish its part."""
        return not self.done

    def waits_for(self) -> list[str]:
        """Returns the names of the peers whose next message the role needs in order to continue."""
        return [] if self.done else ["controller"]

    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Processes a message and returns the answers; if the message is refused, the role must stay unchanged."""
        if peer not in self.waits_for():
            raise self._unexpected(peer, kind)
        if self.plan is not None:
            return self._play(self.plan, peer, kind, content)
        if kind is not Kind.PLAN:
            raise self._unexpected(peer, kind)
        plan, modulus = SambaPlan.from_bytes(content)
        if plan.arms != self.arms or self.algorithm not in (None, plan.algorithm):
            raise SecureError(
                f"the plan is for {plan.arms} owners and {plan.algorithm}; {self.name} has agreed to {self.arms} and "
                f"{self.algorithm or 'any algorithm'}"
            )
        answers = self._begin(plan, modulus)
        self.plan, self.round = plan, plan.arms + 1
        return answers + self._open_iteration(plan)

    def _begin(self, plan: SambaPlan, modulus: int) -> list[Message]:
        """Processes the plan and the customer's modulus; returns the messages that the role sends before any round."""
        return []

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Returns the messages that the role sends at the start of an iteration, or after the last round."""
        return []

    @abstractmethod
    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Processes a message that comes after the plan, and returns the answers."""

    def _close_iteration(self, plan: SambaPlan, explored: bool) -> bool:
        """Moves the role on to the next iteration, and returns whether this begins a new round.

        A round of exploration (``explored``) has just one iteration.
        """
        self.iteration += 1
        if not explored and self.iteration < plan.iterations:
            return False
        self.round, self.iteration = self.round + 1, 0
        return True

    def _unexpected(self, peer: str, kind: Kind) -> SecureError:
        return SecureError(
            f"{peer} sent {kind.name} to {self.name}, which does not expect it in round {self.round}", peer
        )

    def _require_bytes(self, peer: str, content: bytes, required: int) -> None:
        """Raises :class:`SecureError` if the content of a peer's message has another length than required, in bytes."""
        if len(content) != required:
            raise SecureError(f"{peer} sent {len(content)} bytes; {required} are required", peer)

    def _seal(self, messages: list[Message]) -> list[Frame]:
        """Returns the encrypted frames of messages. They are numbered, so that all must be sent, in this order."""
        return [
            Frame(self.name, to, self.links[to].seal(bytes((kind,)) + content))
            for to, kind, content in messages
        ]
