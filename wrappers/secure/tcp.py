"""A role on the network: Controller listens, the others connect, and frames travel after their length.

A connection begins with a role's name in the open and a sealed frame that repeats it. Whoever does not hold that link's
key is turned away before the role hears of it, and does not end the run.
"""

import asyncio
import ssl
from collections.abc import Callable
from ipaddress import ip_address

from fedbandit_envs.wrappers.secure.certificates import peer_name, tls_context
from fedbandit_envs.wrappers.secure.errors import PeerLostError, ProtocolError, SecureError
from fedbandit_envs.wrappers.secure.keys import Certificate
from fedbandit_envs.wrappers.secure.roles.role import Role
from fedbandit_envs.wrappers.secure.session import HUB, Session
from fedbandit_envs.wrappers.secure.stream import FrameReader, with_length

# Of a name and of a hello; strangers may not say more.
_LONGEST_HELLO = 128
# Connections of strangers at a time, beyond the roles that are awaited.
_STRANGERS = 16
_HELLO_SECONDS = 10.0
# Everybody is waited for; the hub, who can tell who hangs, must lose patience first.
_PATIENCE = 3
_CLOSING_SECONDS = 5.0
_CLOSING_STEP = 0.01
_LAST_PORT = 65535
_RETRY_SECONDS = 0.1


class Connection(asyncio.Protocol):
    """One connection; a stranger's until it has proven who it is."""

    def __init__(self, session: Session, all_: "set[Connection]") -> None:
        """Waits for the connection to be made, and is then one of ``all_`` until it is lost."""
        self._session = session
        self._all = all_
        self._reader = FrameReader("a stranger", _LONGEST_HELLO)
        self._name = ""
        self._peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asks whoever connected who it is, and says so first where this role is the one that connects."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        session = self._session
        self._all.add(self)
        if sum(not other.proven for other in self._all) > len(session.missing) + _STRANGERS:
            transport.abort()
            return
        self._deadline = asyncio.get_running_loop().call_later(_HELLO_SECONDS, self._expire)
        self.send(session.role.name.encode())
        if session.role.name != HUB:
            self.send(session.hello(HUB))

    def data_received(self, data: bytes) -> None:
        """Cuts frames out of the stream and hands them on."""
        try:
            for frame in self._reader.feed(data):
                if self._peer:
                    self._session.take(self._peer, frame)
                elif self._name:
                    self._meet(frame)
                else:
                    self._name = self._heard(frame)
        except SecureError as error:
            self._refuse(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Takes in that nothing more will come."""
        error: SecureError | None = None
        try:
            self._reader.end()
        except SecureError as truncated:
            error = truncated
        self._all.discard(self)
        if self._peer:
            self._session.lose(self._peer, error)
        elif self._session.role.name != HUB:
            self._session.fail(PeerLostError(f"{HUB} has turned {self._session.role.name} away", HUB))

    @property
    def proven(self) -> bool:
        """Whether the other side has proven who it is."""
        return bool(self._peer)

    def send(self, frame: bytes) -> None:
        """Sends a frame, in its turn."""
        self._transport.write(with_length(frame))

    def close(self) -> None:
        """Closes once all is sent."""
        self._transport.close()

    def _heard(self, frame: bytes) -> str:
        """Returns the name that a stranger says, if it can be true."""
        name = frame.decode(errors="replace")
        if name not in self._session.missing:
            raise ProtocolError(f"somebody says it is {name[:_LONGEST_HELLO]!r}, who is not awaited")
        if self._transport.get_extra_info("ssl_object") is not None:
            shown = peer_name(self._transport.get_extra_info("peercert"))
            if shown != name:
                raise ProtocolError(f"somebody says it is {name!r}, with a certificate of {shown!r}")
        return name

    def _meet(self, hello: bytes) -> None:
        self._session.greet(self._name, self, hello)
        self._deadline.cancel()
        self._peer = self._name
        self._reader.sender, self._reader.longest = self._peer, self._session.role.links[self._peer].longest

    def _expire(self) -> None:
        """Turns away who does not say who it is."""
        if self._session.role.name == HUB and not self.proven:
            self._refuse(ProtocolError(f"somebody did not say who it is for {_HELLO_SECONDS:g} s"))

    def _refuse(self, error: SecureError) -> None:
        """Ends the run for what a peer did; turns a stranger away."""
        if self._peer or self._session.role.name != HUB:
            self._session.fail(error)
        else:
            self._session.refused = str(error)
            self._transport.abort()


async def listen(
    role: Role,
    address: str,
    certificate: Certificate | None,
    timeout: float,
    listening: Callable[[int], None] = lambda port: None,
    progress: Callable[[int, int], None] = lambda round_, rounds: None,
) -> None:
    """Plays Controller's part for whoever connects.

    Args:
        role: Controller.
        address: Where; port 0 takes a free one.
        certificate: For mutual TLS; None leaves it out, which loopback addresses alone allow.
        timeout: Seconds; whoever is waited for longer counts as hung.
        listening: Told of the port, once there is one.
        progress: Told of the round when it changes, and of how many there are.

    Raises:
        ValueError: An address that others reach needs TLS.
        OSError: Nothing can listen there.
        SecureError: The run has ended without a result.
    """
    host, port = guarded(address, certificate is not None)
    context = None if certificate is None else tls_context(certificate, server=True)
    session = Session(role, timeout, progress)
    connections: set[Connection] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(session, connections), host, port, ssl=context
    )
    async with server:
        listening(server.sockets[0].getsockname()[1])
        await _finish(session, connections)


async def connect(
    role: Role,
    address: str,
    certificate: Certificate | None,
    timeout: float,
    progress: Callable[[int, int], None] = lambda round_, rounds: None,
) -> None:
    """Plays the part of a role other than Controller's; arguments and errors as :func:`listen`."""
    host, port = guarded(address, certificate is not None)
    context = None if certificate is None else tls_context(certificate, server=False)
    session = Session(role, _PATIENCE * timeout, progress)
    connections: set[Connection] = set()
    await _reach(lambda: Connection(session, connections), host, port, context, timeout)
    await _finish(session, connections)


async def _reach(
    make: Callable[[], Connection], host: str, port: int, context: ssl.SSLContext | None, timeout: float
) -> None:
    """Connects to the hub, which may not have started yet."""
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout
    while True:
        try:
            await loop.create_connection(make, host, port, ssl=context)
            return
        except ssl.SSLError as error:
            raise PeerLostError(
                f"{HUB} at {host}:{port} does not speak TLS with this role: {error}", HUB
            ) from error
        except OSError as error:
            if loop.time() >= until:
                raise PeerLostError(
                    f"{HUB} at {host}:{port} cannot be reached for {timeout:g} s: {error}", HUB
                ) from error
        await asyncio.sleep(_RETRY_SECONDS)


async def _finish(session: Session, connections: set[Connection]) -> None:
    """Waits for the end of the run, and lets what was said last leave."""
    try:
        await session.over
    finally:
        until = asyncio.get_running_loop().time() + _CLOSING_SECONDS
        for connection in list(connections):
            connection.close()
        while connections and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_CLOSING_STEP)


def guarded(address: str, tls: bool) -> tuple[str, int]:
    """Returns host and port of ``HOST:PORT``.

    Raises:
        ValueError: It has another form, or others can reach it and there is no TLS.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise ValueError(f"address is {address!r}; HOST:PORT is required")
    host = host.strip("[]")
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not (loopback or tls):
        raise ValueError(f"address is {address!r}, which others can reach; TLS is required for it")
    return host, int(port)
