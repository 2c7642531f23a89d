"""A role and its connected peers: who has connected, who is late, and what ends the run."""

import asyncio
from collections.abc import Callable

from fedbandit_envs.samba.errors import PeerLostError, PeerTimeoutError, ProtocolError, SecureError
from fedbandit_envs.samba.roles.messages import Frame, Kind
from fedbandit_envs.samba.roles.role import ALIVE, Role

HUB = "controller"
"""The role that listens; all other roles connect to it."""

_MAX_NAMED = 3


class Session:
    """A role among its peers, whatever connections they use.

    Attributes:
        role: The role.
        turned_away: Why the last connection was refused; empty if none was.
        over: A future that is done when the role's part is, or fails with the error that has ended the run.
    """

    def __init__(self, role: Role, timeout: float, progress: Callable[[int, int], None]) -> None:
        """Starts without peers, inside a running event loop.

        Args:
            role: The role.
            timeout: Seconds without a message after which the peers that are awaited count as hung.
            progress: Called with the round whenever it changes, and the number of rounds.
        """
        self.role = role
        self.turned_away = ""
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._senders: dict[str, Callable[[bytes], None]] = {}
        self._greeted: set[str] = set()
        self._early: dict[str, bytes] = {}
        self._timeout = timeout
        self._progress = progress
        self._round = 0
        self._last_arrival = self._loop.time()
        self._watchdog = self._loop.call_later(timeout, self._check_timeout)

    @property
    def missing(self) -> list[str]:
        """Peers that have not connected yet."""
        return [peer for peer in self.role.links if peer not in self._greeted]

    def hello(self, peer: str) -> bytes:
        """Returns the first frame of the link to a peer, which proves who this role is."""
        return self.role.links[peer].seal(_hello_payload(self.role.name))

    def greet(self, peer: str, send: Callable[[bytes], None], hello: bytes) -> None:
        """Adds a peer that proves who it is; the hub answers with its own proof.

        Args:
            peer: Name of the peer.
            send: Sends a frame to the peer.
            hello: The peer's first frame.

        Raises:
            SecureError: The frame proves nothing, or the peer is connected already; the session is unchanged.
        """
        # A hello that was recorded from a connected peer has a sequence number in the past, and is refused here.
        payload = self.role.open(peer, hello)
        if payload != _hello_payload(peer):
            raise ProtocolError(f"{peer} does not say that it is {peer}", peer)
        self.role.links[peer].accept(payload)
        self._senders[peer] = send
        self._greeted.add(peer)
        self._last_arrival = self._loop.time()
        if self.role.name == HUB:
            send(self.hello(peer))
        if not self.missing:
            self._send(self.role.start())
            for early in self._early.items():
                self.receive(*early)

    def receive(self, peer: str, data: bytes) -> None:
        """Hands a peer's frame to the role and sends the answers; a first frame waits until all peers are connected.

        Raises:
            ProtocolError: A peer sends a second frame before all are connected.
        """
        if self.over.done():
            return
        if self.missing:
            if peer in self._early:
                raise ProtocolError(f"{peer} does not wait for the others", peer)
            self._early[peer] = data
            return
        self._last_arrival = self._loop.time()
        try:
            self._send(self.role.handle(peer, data))
        except Exception as error:
            self.fail(error)
            return
        if self.role.round != self._round and self.role.plan is not None:
            self._round = self.role.round
            self._progress(self._round, self.role.plan.budget)
        if self.role.done:
            self._watchdog.cancel()
            self.over.set_result(None)

    def disconnect(self, peer: str, error: SecureError | None) -> None:
        """Removes a peer whose connection has ended, which ends the run if the peer is still needed.

        Args:
            peer: Name of the peer.
            error: What was wrong at the end of its stream, or None.
        """
        if self.role.needs(peer):
            self.fail(
                error or PeerLostError(f"{peer} has gone {self._when()}, before its part was done", peer)
            )
        self._senders.pop(peer, None)

    def fail(self, error: Exception) -> None:
        """Ends the run with an error, and tells all peers."""
        if self.over.done():
            return
        self._watchdog.cancel()
        self.over.set_exception(error)
        culprit = getattr(error, "culprit", "") or self.role.name
        for _, to, data in self.role.stop(culprit, str(error) or repr(error)):
            if to in self._senders:
                self._senders[to](data)

    def _send(self, frames: list[Frame]) -> None:
        for _, to, data in frames:
            if to not in self._senders:
                raise PeerLostError(f"{to} has gone {self._when()}", to)
            self._senders[to](data)

    def _check_timeout(self) -> None:
        """Ends the run if nothing has arrived for too long; else the hub tells waiting peers that it goes on."""
        left = self._last_arrival + self._timeout - self._loop.time()
        if left > 0:
            self._watchdog = self._loop.call_later(left, self._check_timeout)
            waiting = list(self._senders) if self.missing else ["customer"]
            for peer in waiting if self.role.name == HUB else []:
                if peer in self._senders:
                    self._senders[peer](self.role.links[peer].seal(ALIVE))
            return
        late = self.missing or self.role.waits_for()
        named = ", ".join(late[:_MAX_NAMED])
        if len(late) > _MAX_NAMED:
            named += f" and {len(late) - _MAX_NAMED} more"
        what = "sent nothing"
        if self.missing:
            what = "did not connect" + (f" (turned away: {self.turned_away})" if self.turned_away else "")
        self.fail(PeerTimeoutError(f"{named} {what} for {self._timeout:g} s {self._when()}", late[0]))

    def _when(self) -> str:
        return f"in round {self.role.round}" if self.role.round else "before the first round"


def _hello_payload(name: str) -> bytes:
    return bytes((Kind.HELLO,)) + name.encode()
