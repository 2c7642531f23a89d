"""The base class of roles: links, the plan, and the order of rounds; how frames travel is the transports' concern."""

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
"""The payload of an ALIVE message."""

_MAX_REASON = 500


@dataclass(frozen=True)
class RoleReport:
    """A role's report at the end of its part.

    Attributes:
        role: The role's name.
        counts: Its operations and traffic.
        cpu_seconds: CPU time of its part, including the set-up of the role, without the start of a process.
        reward: The cumulative reward, from the customer; None from all others.
    """

    role: str
    counts: Counts
    cpu_seconds: float
    reward: int | None = None


class Role(ABC):
    """A participant of the protocol.

    Attributes:
        name: The role's name.
        arms: Number of owners in all groups, K.
        algorithm: The algorithm that the role has agreed to, or None if it agrees to any.
        links: The role's ends of its links, by the peer's name.
        record: Its counts, and its transcript if one is kept.
        plan: The plan of the run, or None before it is received.
        round: The round t that the role is in; 0 before the plan.
        iteration: The iteration within the round, counted from 0.
        done: Whether its part is done.
        reward: The cumulative reward, once the customer knows it; None for all other roles.
    """

    def __init__(self, keyring: Keyring, algorithm: Algorithm | None, record: Record) -> None:
        """Sets up the links.

        Args:
            keyring: The role's keys.
            algorithm: The algorithm that the role has agreed to, or None if it agrees to any.
            record: An empty record.
        """
        self.name = keyring.role
        self.arms = keyring.arms
        self.algorithm = algorithm
        self.record = record
        # The longest message has a Paillier sum for each arm.
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
        """Takes in the next frame of a link and returns the frames that answer it.

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
        """Returns the payload of the next frame of a link; the link's state does not change.

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
        """Returns frames that tell all peers that the run has ended, which role caused it, and why."""
        content = json.dumps({"culprit": culprit, "reason": reason[:_MAX_REASON]}).encode()
        return self._seal([(peer, Kind.STOP, content) for peer in self.links])

    def report(self, cpu_seconds: float) -> RoleReport:
        """Returns the role's report at the end of its part."""
        return RoleReport(self.name, self.record.counts, cpu_seconds, self.reward)

    def needs(self, peer: str) -> bool:
        """Returns whether a peer still has to send something for the role's part to be done."""
        return not self.done

    def waits_for(self) -> list[str]:
        """Returns the names of the peers whose next message the role needs in order to continue."""
        return [] if self.done else ["controller"]

    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Takes in a message and returns its answers; a message that is refused must leave the role unchanged."""
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
        """Takes in the plan and the customer's modulus, and returns what the role sends before the first round."""
        return []

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Returns the messages that the role sends at the start of an iteration, or after the last round."""
        return []

    @abstractmethod
    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Takes in a message that follows the plan and returns its answers."""

    def _close_iteration(self, plan: SambaPlan, explored: bool) -> bool:
        """Moves on to the next iteration, and returns whether it begins a new round; exploration takes just one."""
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
        """Refuses a message of another length than required."""
        if len(content) != required:
            raise SecureError(f"{peer} sent {len(content)} bytes; {required} are required", peer)

    def _seal(self, messages: list[Message]) -> list[Frame]:
        """Returns the frames of messages; sealing numbers them, so they must be sent, in this order."""
        return [
            Frame(self.name, to, self.links[to].seal(bytes((kind,)) + content))
            for to, kind, content in messages
        ]
