"""A role on the network: Controller listens, the others connect, and each frame follows its length.

A connection begins with a role's name in the clear and a sealed frame that repeats the name. Whoever does not hold the
keys of that role's link is turned away before the role receives anything, and the run goes on.
"""

import asyncio
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from time import process_time

from fedbandit_envs.samba.crypto.certificates import peer_name, tls_context
from fedbandit_envs.samba.crypto.keys import Certificate
from fedbandit_envs.samba.errors import PeerLostError, ProtocolError, SecureError
from fedbandit_envs.samba.roles.make_role import RoleSetup, make_role
from fedbandit_envs.samba.roles.role import Role, RoleReport
from fedbandit_envs.samba.transports.session import HUB, Session
from fedbandit_envs.samba.transports.stream import FrameReader, with_length

# Bytes of a name or a hello; a peer that has not authenticated may not send longer frames.
_MAX_HELLO = 128
# Unauthenticated connections that are allowed at a time, beyond those of the roles that are awaited.
_MAX_UNPROVEN = 16
_HELLO_SECONDS = 10.0
# All roles wait for Controller, which alone can tell who hangs; so the others wait this many times longer.
_PATIENCE = 3
_CLOSING_SECONDS = 5.0
_CLOSING_STEP = 0.01
_LAST_PORT = 65535
_RETRY_SECONDS = 0.1


class Connection(asyncio.Protocol):
    """One connection, whose other side is unproven until it has shown that it holds a role's keys.

    Attributes:
        peer: Name of the role at the other side; empty until it is proven.
    """

    def __init__(self, session: Session, connections: "set[Connection]") -> None:
        """Sets up a connection that is about to be made.

        Args:
            session: The role and its peers.
            connections: All open connections of the role; this one is a member until it is lost.
        """
        self._session = session
        self._connections = connections
        self._reader = FrameReader("a stranger", _MAX_HELLO)
        self._claimed_name = ""
        self.peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends this role's name; a role that connects also sends its proof at once."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        session = self._session
        self._connections.add(self)
        if sum(not other.peer for other in self._connections) > len(session.missing) + _MAX_UNPROVEN:
            transport.abort()
            return
        self._deadline = asyncio.get_running_loop().call_later(_HELLO_SECONDS, self._expire)
        self.send(session.role.name.encode())
        if session.role.name != HUB:
            self.send(session.hello(HUB))

    def data_received(self, data: bytes) -> None:
        """Splits the stream into frames: a name, its proof, then frames for the role."""
        try:
            for frame in self._reader.feed(data):
                if self.peer:
                    self._session.receive(self.peer, frame)
                elif self._claimed_name:
                    self._prove(frame)
                else:
                    self._claimed_name = self._check_name(frame)
        except SecureError as error:
            self._refuse(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells the session that the peer is gone."""
        self._connections.discard(self)
        if self.peer:
            self._session.disconnect(self.peer, self._reader.end())
        elif self._session.role.name != HUB:
            self._session.fail(PeerLostError(f"{HUB} has turned {self._session.role.name} away", HUB))

    def send(self, frame: bytes) -> None:
        """Sends a frame; frames arrive in the order of the calls."""
        self._transport.write(with_length(frame))

    def close(self) -> None:
        """Closes the connection once all frames are sent."""
        self._transport.close()

    def _check_name(self, frame: bytes) -> str:
        """Returns the name that the other side claims, if that role is awaited and its certificate has the name."""
        name = frame.decode(errors="replace")
        if name not in self._session.missing:
            raise ProtocolError(f"somebody says it is {name[:_MAX_HELLO]!r}, who is not awaited")
        if self._transport.get_extra_info("ssl_object") is not None:
            shown = peer_name(self._transport.get_extra_info("peercert"))
            if shown != name:
                raise ProtocolError(f"somebody says it is {name!r}, with a certificate of {shown!r}")
        return name

    def _prove(self, hello: bytes) -> None:
        """Accepts the other side as the role whose keys it holds."""
        self._session.greet(self._claimed_name, self.send, hello)
        self._deadline.cancel()
        self.peer = self._claimed_name
        self._reader.sender = self.peer
        self._reader.max_bytes = self._session.role.links[self.peer].max_bytes

    def _expire(self) -> None:
        """Closes connections that have not authenticated in time."""
        if self._session.role.name == HUB and not self.peer:
            self._refuse(ProtocolError(f"somebody did not say who it is for {_HELLO_SECONDS:g} s"))

    def _refuse(self, error: SecureError) -> None:
        """Ends the run after an authenticated peer's error; after anybody else's, closes the connection only."""
        if self.peer or self._session.role.name != HUB:
            self._session.fail(error)
        else:
            self._session.turned_away = str(error)
            self._transport.abort()


def play_over_network(
    setup: RoleSetup,
    address: str,
    timeout: float,
    listening: Callable[[int], None],
    progress: Callable[[int, int], None],
) -> RoleReport:
    """Plays one role with peers on the network, and returns its report at the end of the run.

    Args:
        setup: What the role needs; the certificate in its keyring puts connections under TLS.
        address: ``HOST:PORT`` of Controller, which listens there; all others connect to it.
        timeout: Seconds after which a role that is awaited counts as hung.
        listening: Called with the port, once Controller listens.
        progress: Called with the round whenever it changes, and the number of rounds.

    Raises:
        TypeError: A parameter of the role has the wrong type.
        ValueError: The role lacks something, or the address needs TLS.
        OSError: Controller cannot listen at the address.
        SecureError: The run has ended without a result.
    """
    before = process_time()
    role = make_role(setup)
    asyncio.run(meet(role, address, setup.keyring.certificate, timeout, listening, progress))
    return role.report(process_time() - before)


async def meet(
    role: Role,
    address: str,
    certificate: Certificate | None,
    timeout: float,
    listening: Callable[[int], None] = lambda port: None,
    progress: Callable[[int, int], None] = lambda round_, rounds: None,
) -> None:
    """Connects a role with its peers and plays its part.

    Args:
        role: The role.
        address: ``HOST:PORT`` of Controller; for Controller itself, port 0 takes a free one.
        certificate: The role's certificate for mutual TLS; None leaves TLS out, on loopback addresses only.
        timeout: Seconds after which a role that is awaited counts as hung.
        listening: Called with the port, once Controller listens.
        progress: Called with the round whenever it changes, and the number of rounds.

    Raises:
        ValueError: The address needs TLS.
        OSError: Controller cannot listen at the address.
        SecureError: The run has ended without a result.
    """
    host, port = parse_address(address, certificate is not None)
    is_hub = role.name == HUB
    context = None if certificate is None else tls_context(certificate, server=is_hub)
    session = Session(role, timeout if is_hub else _PATIENCE * timeout, progress)
    connections: set[Connection] = set()

    def make() -> Connection:
        return Connection(session, connections)

    if not is_hub:
        await _reach(make, host, port, context, timeout)
        await _finish(session, connections)
        return
    loop = asyncio.get_running_loop()
    async with await loop.create_server(make, host, port, ssl=context) as server:
        listening(server.sockets[0].getsockname()[1])
        await _finish(session, connections)


async def _reach(
    make: Callable[[], Connection], host: str, port: int, context: ssl.SSLContext | None, timeout: float
) -> None:
    """Connects to the hub, and tries again while the hub has not started."""
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
    """Waits for the end of the run, and until the last frames have been sent."""
    try:
        await session.over
    finally:
        until = asyncio.get_running_loop().time() + _CLOSING_SECONDS
        for connection in list(connections):
            connection.close()
        while connections and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_CLOSING_STEP)


def parse_address(address: str, tls: bool) -> tuple[str, int]:
    """Returns host and port of ``HOST:PORT``.

    Args:
        address: The address.
        tls: Whether connections are under TLS; only loopback addresses may do without.

    Raises:
        ValueError: The address has another form, or other machines can reach it and there is no TLS.
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
