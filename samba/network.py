"""A role on the network: Controller listens, the other roles connect to it, and they exchange frames over TCP.

Each frame is sent after its length. A connection begins with a role's name in the clear and an encrypted frame that
repeats the name. Whoever does not hold the keys of that role's link is disconnected before this side's role receives
any message from it, and the run goes on.
"""

import asyncio
import ssl
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from time import process_time

from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.keys import Certificate, tls_context
from fedbandit_envs.samba.messages import Frame, Kind
from fedbandit_envs.samba.roles import ALIVE, Role, RoleReport, RoleSetup, make_role

HUB = "controller"
"""Name of the role that listens for connections; all other roles connect to it."""

_LENGTH_BYTES = 4
# Largest number of bytes in the first two frames of a connection, a name and a proof of identity; peers that have not
# proven who they are may not send longer frames.
_MAX_HELLO = 128
# Number of unauthenticated connections that are allowed at a time, beyond one for each role that has not connected yet.
_MAX_UNPROVEN = 16
_HELLO_SECONDS = 10.0
# All other roles wait for messages of Controller, which alone can tell which role hangs. So their timeouts are longer
# by this factor, so that Controller times out first and names the role.
_PATIENCE = 3
_CLOSING_SECONDS = 5.0
_LAST_PORT = 65535
_RETRY_SECONDS = 0.1


def _with_length(frame: bytes) -> bytes:
    """Returns the bytes that are written to a stream for a frame: its length (4 bytes, big-endian), then the frame."""
    return len(frame).to_bytes(_LENGTH_BYTES, "big") + frame


async def _read_frame(reader: StreamReader, sender: str, max_bytes: int) -> bytes | None:
    """Returns the next frame of a stream, or None where the stream ends or the connection is lost.

    Raises:
        SecureError: The announced length of the frame is greater than is allowed; the frame itself is not read.
    """
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
        if length > max_bytes:
            raise SecureError(
                f"{sender} announces a frame of {length} bytes; at most {max_bytes} are allowed", sender
            )
        return await reader.readexactly(length)
    except (IncompleteReadError, OSError):
        return None


class Session:
    """A role of one run with its connections: it authenticates peers, delivers frames, and ends the run on errors.

    Attributes:
        role: The role.
        over: A future that is done when the role has finished its part, or fails with the error that ended the run.
    """

    def __init__(self, role: Role, timeout: float, progress: Callable[[int, int], None]) -> None:
        """Starts without peers, inside a running event loop.

        Args:
            role: The role.
            timeout: Number of seconds without a message after which the peers that must send next count as hung.
            progress: Function that is called whenever the round changes, with the round and the number of rounds.
        """
        self.role = role
        self._is_hub = role.name == HUB
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._connections: dict[StreamWriter, asyncio.Task[None]] = {}
        # The stream to each peer that has proven who it is, by the peer's name; None once its connection has ended.
        self._writers: dict[str, StreamWriter | None] = {}
        self._turned_away = ""
        self._early: dict[str, bytes] = {}
        self._timeout = timeout
        self._progress = progress
        self._round = 0
        self._last_arrival = self._loop.time()
        self._watchdog = self._loop.call_later(timeout, self._check_timeout)

    @property
    def missing(self) -> list[str]:
        """Names of the peers that have not connected yet."""
        return [peer for peer in self.role.links if peer not in self._writers]

    async def connect(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serves one connection until it ends: authenticates the peer by its first two frames, then delivers frames.

        Errors of an authenticated peer end the run; a stranger is disconnected, and the run goes on.
        """
        task, peer = asyncio.current_task(), ""
        assert task is not None
        self._connections[writer] = task
        proven = sum(one is not None for one in self._writers.values())
        try:
            if len(self._connections) - proven <= len(self.missing) + _MAX_UNPROVEN:
                async with asyncio.timeout(_HELLO_SECONDS if self._is_hub else None):
                    peer = await self._prove(reader, writer)
            while (
                peer
                and (frame := await _read_frame(reader, peer, self.role.links[peer].max_bytes)) is not None
            ):
                self.receive(peer, frame)
            if not peer and not self._is_hub:
                self.fail(SecureError(f"{HUB} has turned {self.role.name} away", HUB))
            if peer and self.role.needs(peer):
                self.fail(SecureError(f"{peer} has gone {self._when()}, before its part was done", peer))
        except (SecureError, TimeoutError) as error:
            if peer or not self._is_hub:
                self.fail(error)
            else:
                self._turned_away = str(error) or f"somebody did not say who it is for {_HELLO_SECONDS:g} s"
                writer.transport.abort()
        finally:
            if peer:
                self._writers[peer] = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            del self._connections[writer]

    async def _prove(self, reader: StreamReader, writer: StreamWriter) -> str:
        """Exchanges names and proofs of identity, and returns the name of the role at the other end of a connection.

        The name is empty if the other end has closed the connection.

        Raises:
            SecureError: The other role is connected already or unknown, its certificate has another name, or its proof
                of identity is refused.
        """
        writer.write(_with_length(self.role.name.encode()))
        if not self._is_hub:
            writer.write(_with_length(self._hello(HUB)))
        claimed = await _read_frame(reader, "a stranger", _MAX_HELLO)
        if claimed is None:
            return ""
        name = claimed.decode(errors="replace")
        if name not in self.missing:
            raise SecureError(f"somebody says it is {name!r}, who is not awaited")
        if writer.get_extra_info("ssl_object") is not None:
            subject = writer.get_extra_info("peercert").get("subject", ())
            shown = [value for part in subject for key, value in part if key == "commonName"]
            if shown != [name]:
                raise SecureError(f"somebody says it is {name!r}, with a certificate of {', '.join(shown)!r}")
        hello = await _read_frame(reader, "a stranger", _MAX_HELLO)
        if hello is None:
            return ""
        self.greet(name, writer, hello)
        return name

    def _hello(self, peer: str) -> bytes:
        """Returns the first frame of the link to a peer; only a holder of the link's keys can make it."""
        return self.role.links[peer].seal(bytes((Kind.HELLO,)) + self.role.name.encode())

    def greet(self, peer: str, writer: StreamWriter, hello: bytes) -> None:
        """Adds a peer after checking its proof of identity; Controller answers with its own proof.

        Args:
            peer: Name of the peer.
            writer: The stream to the peer.
            hello: The peer's first frame on the link, which is the proof.

        Raises:
            SecureError: The frame does not prove the peer's identity, or the peer is connected already; the session is
                unchanged.
        """
        # An attacker may repeat a proof that was recorded from a connected peer. Its sequence number has been used, so
        # that it is refused here.
        payload = self.role.open(peer, hello)
        if payload != bytes((Kind.HELLO,)) + peer.encode():
            raise SecureError(f"{peer} does not say that it is {peer}", peer)
        self.role.links[peer].accept(payload)
        self._writers[peer] = writer
        self._last_arrival = self._loop.time()
        if self._is_hub:
            writer.write(_with_length(self._hello(peer)))
        if not self.missing:
            self._send(self.role.start())
            for early in self._early.items():
                self.receive(*early)

    def receive(self, peer: str, data: bytes) -> None:
        """Delivers a peer's frame to the role and sends the role's answers.

        The first frame of a peer is kept until all peers are connected.

        Raises:
            SecureError: A peer sends a second frame before all peers are connected.
        """
        if self.over.done():
            return
        if self.missing:
            if peer in self._early:
                raise SecureError(f"{peer} does not wait for the others", peer)
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

    def fail(self, error: Exception) -> None:
        """Ends the run with an error, and sends the reason to all connected peers."""
        if self.over.done():
            return
        self._watchdog.cancel()
        self.over.set_exception(error)
        culprit = getattr(error, "culprit", "") or self.role.name
        self._send(
            [one for one in self.role.stop(culprit, str(error) or repr(error)) if self._writers.get(one[1])]
        )

    async def finish(self) -> None:
        """Waits until the run has ended and the last frames have been sent."""
        try:
            await self.over
        finally:
            for writer in self._connections:
                writer.close()
            if self._connections:
                await asyncio.wait(self._connections.values(), timeout=_CLOSING_SECONDS)

    def _send(self, frames: list[Frame]) -> None:
        for _, to, data in frames:
            writer = self._writers.get(to)
            if writer is None:
                raise SecureError(f"{to} has gone {self._when()}", to)
            writer.write(_with_length(data))

    def _check_timeout(self) -> None:
        """Ends the run if no message has arrived within the timeout.

        Else, if this role is Controller, it tells peers that wait for long that the run goes on.
        """
        left = self._last_arrival + self._timeout - self._loop.time()
        if left > 0:
            self._watchdog = self._loop.call_later(left, self._check_timeout)
            waiting = list(self._writers) if self.missing else ["customer"]
            for peer in waiting if self._is_hub else []:
                if writer := self._writers.get(peer):
                    writer.write(_with_length(self.role.links[peer].seal(ALIVE)))
            return
        late = self.missing or self.role.waits_for()
        what = "sent nothing"
        if self.missing:
            what = "did not connect" + (f" (turned away: {self._turned_away})" if self._turned_away else "")
        self.fail(SecureError(f"{', '.join(late)} {what} for {self._timeout:g} s {self._when()}", late[0]))

    def _when(self) -> str:
        return f"in round {self.role.round}" if self.role.round else "before the first round"


def play_over_network(
    setup: RoleSetup,
    address: str,
    timeout: float,
    listening: Callable[[int], None],
    progress: Callable[[int, int], None],
) -> RoleReport:
    """Plays one role with peers on the network, and returns its report at the end of the run.

    Args:
        setup: The role's keys, settings and data; a certificate in its keyring puts connections under TLS.
        address: ``HOST:PORT`` at which Controller listens and to which the other roles connect.
        timeout: Number of seconds without a message after which the role that must send next counts as hung.
        listening: Function that is called with the port as soon as Controller listens.
        progress: Function that is called whenever the round changes, with the round and the number of rounds.

    Raises:
        TypeError: A parameter of the role has the wrong type.
        ValueError: A key, setting or data that the role needs is missing, or the address requires TLS.
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
    """Connects a role with its peers and plays it until its part is done.

    Args:
        role: The role.
        address: ``HOST:PORT`` at which Controller listens; with port 0 Controller takes a free port.
        certificate: The role's certificate for mutual TLS; None for no TLS, which only loopback addresses allow.
        timeout: Number of seconds without a message after which the role that must send next counts as hung.
        listening: Function that is called with the port as soon as Controller listens.
        progress: Function that is called whenever the round changes, with the round and the number of rounds.

    Raises:
        ValueError: The address requires TLS, or has another form than ``HOST:PORT``.
        OSError: Controller cannot listen at the address.
        SecureError: The run has ended without a result.
    """
    host, port = parse_address(address, certificate is not None)
    is_hub = role.name == HUB
    context = None if certificate is None else tls_context(certificate, server=is_hub)
    session = Session(role, timeout if is_hub else _PATIENCE * timeout, progress)
    if is_hub:
        async with await asyncio.start_server(session.connect, host, port, ssl=context) as server:
            listening(server.sockets[0].getsockname()[1])
            await session.finish()
        return
    until = asyncio.get_running_loop().time() + timeout
    while True:
        try:
            streams = await asyncio.open_connection(host, port, ssl=context)
            break
        except ssl.SSLError as error:
            raise SecureError(
                f"{HUB} at {host}:{port} does not speak TLS with this role: {error}", HUB
            ) from error
        except OSError as error:
            # Controller may not have started yet, so that the connection is tried again until the timeout.
            if asyncio.get_running_loop().time() >= until:
                raise SecureError(
                    f"{HUB} at {host}:{port} cannot be reached for {timeout:g} s: {error}", HUB
                ) from error
        await asyncio.sleep(_RETRY_SECONDS)
    await asyncio.gather(session.connect(*streams), session.finish())


def parse_address(address: str, tls: bool) -> tuple[str, int]:
    """Returns the host and the port of an address, after checking that the address is safe without TLS or uses it.

    Args:
        address: The address, ``HOST:PORT``.
        tls: Whether connections are under TLS, which is required unless the address is a loopback address.

    Raises:
        ValueError: The address has another form; or TLS is not used, and other machines can reach the address.
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
