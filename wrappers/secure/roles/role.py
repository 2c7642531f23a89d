"""A role: it holds its own keys, sees its own messages, and answers them; who carries messages is not its concern."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.errors import ProtocolError, RunStoppedError, SecureError
from fedbandit_envs.wrappers.secure.link import Link, LinkKeys, longest_frame
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.transcript import Transcript

ALIVE = bytes((Kind.ALIVE,))


class Sealed(NamedTuple):
    """A frame on its way."""

    to: str
    frame: bytes


class Message(NamedTuple):
    """What a role says to another, before it is sealed."""

    to: str
    kind: Kind
    content: bytes


class Role(ABC):
    """One participant.

    Attributes:
        name: Of the role.
        links: Its ends of links, by the peer's name.
        counts: What it has done.
        transcript: What it has seen, or None where nobody asked for it.
        round: t, the round that it is in; 0 before the plan.
        budget: N; 0 before the plan.
        done: Whether its part is done.
    """

    def __init__(
        self, name: str, links: Mapping[str, LinkKeys], arms: int, transcript: Transcript | None
    ) -> None:
        """Sets up the links.

        Args:
            name: Of the role.
            links: Keys by the peer's name.
            arms: Number of owners in all, K.
            transcript: To write down what it sees, or None.
        """
        self.name = name
        self.counts = Counts()
        self.transcript = transcript
        longest = longest_frame(arms)
        self.links = {
            peer: Link(peer, keys, longest, self.counts, transcript) for peer, keys in links.items()
        }
        self.round = 0
        self.budget = 0
        self.done = False

    def start(self) -> list[Sealed]:
        """Returns what it says unasked."""
        return self._seal(self._opening())

    def handle(self, peer: str, frame: bytes) -> list[Sealed]:
        """Takes in the next frame of a link.

        Args:
            peer: Whose link it came by.
            frame: As it came.

        Returns:
            The answers, in their order.

        Raises:
            SecureError: The frame is refused; the role is as it was before.
        """
        link = self.links.get(peer)
        if link is None:
            raise ProtocolError(f"{self.name} has no link to {peer}", peer)
        payload = link.open(frame)
        if payload[0] == Kind.STOP:
            raise reason_of(peer, payload[1:])
        if payload == ALIVE:
            link.accept(payload)
            return []
        try:
            kind = Kind(payload[0])
        except ValueError as error:
            raise ProtocolError(f"{peer} sent a message of unknown kind {payload[0]}", peer) from error
        answers = self._answer(peer, kind, payload[1:])
        link.accept(payload)
        return self._seal(answers)

    def stop(self, culprit: str, reason: str) -> list[Sealed]:
        """Returns what tells all peers that the run is over, and by whom."""
        told = json.dumps({"culprit": culprit, "reason": reason[:500]}).encode()
        return self._seal([Message(peer, Kind.STOP, told) for peer in self.links])

    def needs(self, peer: str) -> bool:
        """Says whether something is still to come from a peer."""
        return not self.done

    @abstractmethod
    def waits_for(self) -> list[str]:
        """Returns the peers without whose next message it cannot go on."""

    def _opening(self) -> list[Message]:
        """Returns what it says unasked."""
        return []

    @abstractmethod
    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Takes in a message, and returns what it says to it.

        Raises:
            SecureError: The message is refused; nothing has changed.
        """

    def _unexpected(self, peer: str, kind: Kind) -> ProtocolError:
        return ProtocolError(
            f"{peer} sent {kind.name} to {self.name}, which does not expect it in round {self.round}", peer
        )

    def _seal(self, messages: list[Message]) -> list[Sealed]:
        return [Sealed(to, self.links[to].seal(bytes((kind,)) + content)) for to, kind, content in messages]


def reason_of(peer: str, told: bytes) -> SecureError:
    """Returns the error that a peer's STOP stands for."""
    try:
        parts = json.loads(told)
        culprit, reason = str(parts["culprit"]), str(parts["reason"])
    except (ValueError, TypeError, KeyError):
        culprit, reason = "", "no reason that can be read"
    return RunStoppedError(f"{peer} stopped the run: {reason}", culprit or peer)
