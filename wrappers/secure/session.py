"""A role and its connections: who is there, who is late, and what ends the run. How bytes travel is not its concern."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from fedbandit_envs.wrappers.secure.errors import PeerLostError, PeerTimeoutError, ProtocolError, SecureError
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.roles.role import ALIVE, Role, Sealed, reason_of

HUB = "controller"

_NAMED = 3


class Line(Protocol):
    """What leads to a peer."""

    def send(self, frame: bytes) -> None:
        """Sends a frame, in its turn."""


class Session:
    """A role among its peers.

    Attributes:
        role: The role.
        refused: Why somebody was turned away, the last one.
        over: Done when the role is, or with the error that has ended the run.
    """

    def __init__(self, role: Role, timeout: float, progress: Callable[[int, int], None]) -> None:
        """Starts without peers, inside a running event loop.

        Args:
            role: The role.
            timeout: After so many seconds without a message, those awaited count as hung.
            progress: Told of the round when it changes, and of how many there are.
        """
        self.role = role
        self.refused = ""
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._lines: dict[str, Line] = {}
        self._met: set[str] = set()
        self._early: list[tuple[str, bytes]] = []
        self._timeout = timeout
        self._progress = progress
        self._round = 0
        self._last_heard = self._loop.time()
        self._watchdog = self._loop.call_later(timeout, self._look)

    @property
    def missing(self) -> list[str]:
        """Peers that have not been there yet."""
        return [peer for peer in self.role.links if peer not in self._met]

    def hello(self, peer: str) -> bytes:
        """Returns the frame that proves to a peer who this role is; the link's first."""
        return self.role.links[peer].seal(_greeting(self.role.name))

    def greet(self, peer: str, line: Line, hello: bytes) -> None:
        """Takes in a peer that proves who it is; the hub answers likewise.

        Raises:
            SecureError: It does not, or is there already; nothing has changed.
        """
        link = self.role.links[peer]
        # The hello of a peer that is there already has been the link's first frame once, and is refused as any replay.
        payload = link.open(hello)
        if payload[0] == Kind.STOP:
            raise reason_of(peer, payload[1:])
        if payload != _greeting(peer):
            raise ProtocolError(f"{peer} does not say that it is {peer}", peer)
        link.accept(payload)
        self._lines[peer] = line
        self._met.add(peer)
        self._last_heard = self._loop.time()
        if self.role.name == HUB:
            line.send(self.hello(peer))
        if not self.missing:
            self._carry(self.role.start())
            for early in self._early:
                self.take(*early)

    def take(self, peer: str, frame: bytes) -> None:
        """Hands a peer's frame to the role, and the answers to whom they are for; the first waits until all are there.

        Raises:
            ProtocolError: A second one comes before that.
        """
        if self.over.done():
            return
        if self.missing:
            if any(peer == other for other, _ in self._early):
                raise ProtocolError(f"{peer} does not wait for the others", peer)
            self._early.append((peer, frame))
            return
        self._last_heard = self._loop.time()
        try:
            self._carry(self.role.handle(peer, frame))
        except Exception as error:
            self.fail(error)
            return
        if self.role.round != self._round:
            self._round = self.role.round
            self._progress(self._round, self.role.budget)
        if self.role.done:
            self._watchdog.cancel()
            self.over.set_result(None)

    def lose(self, peer: str, error: SecureError | None) -> None:
        """Takes in that a peer has gone; with what it left undone, or None."""
        if self.role.needs(peer):
            self.fail(
                error or PeerLostError(f"{peer} has gone {self._when()}, before its part was done", peer)
            )
        self._lines.pop(peer, None)

    def fail(self, error: Exception) -> None:
        """Ends the run with an error, and tells the others."""
        if self.over.done():
            return
        self._watchdog.cancel()
        self.over.set_exception(error)
        culprit = getattr(error, "culprit", "") or self.role.name
        for to, frame in self.role.stop(culprit, str(error) or repr(error)):
            if to in self._lines:
                self._lines[to].send(frame)

    def _carry(self, answers: list[Sealed]) -> None:
        for to, frame in answers:
            if to not in self._lines:
                raise PeerLostError(f"{to} has gone {self._when()}", to)
            self._lines[to].send(frame)

    def _look(self) -> None:
        """Fails if nothing was heard for too long; else tells those who wait longest that all is well."""
        left = self._last_heard + self._timeout - self._loop.time()
        if left > 0:
            self._watchdog = self._loop.call_later(left, self._look)
            if self.role.name == HUB:
                self._reassure(list(self._lines) if self.missing else ["customer"])
            return
        late = self.missing or self.role.waits_for()
        what = "sent nothing"
        if self.missing:
            what = "did not connect" + (f" (turned away: {self.refused})" if self.refused else "")
        self.fail(PeerTimeoutError(f"{_listed(late)} {what} for {self._timeout:g} s {self._when()}", late[0]))

    def _reassure(self, peers: list[str]) -> None:
        for peer in peers:
            if peer in self._lines:
                self._lines[peer].send(self.role.links[peer].seal(ALIVE))

    def _when(self) -> str:
        return f"in round {self.role.round}" if self.role.round else "before the first round"


def _greeting(name: str) -> bytes:
    return bytes((Kind.HELLO,)) + name.encode()


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
