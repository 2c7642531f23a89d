"""A role on the network: Controller listens, the others connect, and each frame follows its length.

A connection begins with a role's name in the clear and a sealed frame that repeats the name. Whoever does not hold the
keys of that role's link is turned away before the role receives anything, and the run goes on.
"""

import asyncio
import ssl
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from time import process_time

from fedbandit_envs.samba.crypto.certificates import tls_context
from fedbandit_envs.samba.crypto.keys import Certificate
from fedbandit_envs.samba.errors import FrameError, SecureError
from fedbandit_envs.samba.roles.messages import Frame, Kind
from fedbandit_envs.samba.roles.parties import RoleSetup, make_role
from fedbandit_envs.samba.roles.role import ALIVE, Role, RoleReport

HUB = "controller"
"""The role that listens; all other roles connect to it."""

_LENGTH_BYTES = 4
# Bytes of a name or a hello; a peer that has not authenticated may not send longer frames.
_MAX_HELLO = 128
# Unauthenticated connections that are allowed at a time, beyond those of the roles that are awaited.
_MAX_UNPROVEN = 16
_HELLO_SECONDS = 10.0
# All roles wait for Controller, which alone can tell who hangs; so the others wait this many times longer.
_PATIENCE = 3
_CLOSING_SECONDS = 5.0
_LAST_PORT = 65535
_RETRY_SECONDS = 0.1
_MAX_NAMED = 3


def with_length(frame: bytes) -> bytes:
    """Returns a frame with its length in front (4 bytes, big-endian), as it is written to a stream."""
    return len(frame).to_bytes(_LENGTH_BYTES, "big") + frame


async def read_frame(reader: StreamReader, sender: str, max_bytes: int) -> bytes | None:
    """Returns the next frame of a stream, or None where the stream ends between frames or the connection is lost.

    Args:
        reader: The stream; no more than one frame is read ahead of what is asked for.
        sender: Name of the sender, for errors.
        max_bytes: Length of the longest frame allowed.

    Raises:
        FrameError: The stream ends within the frame; or the frame announces a greater length than is allowed, and its
            bytes are not waited for.
    """
    head = b""
    try:
        head = await reader.readexactly(_LENGTH_BYTES)
        length = int.from_bytes(head, "big")
        if length > max_bytes:
            raise FrameError(
                f"{sender} announces a frame of {length} bytes; at most {max_bytes} are allowed", sender
            )
        return await reader.readexactly(length)
    except IncompleteReadError as error:
        if held := head + error.partial:
            raise FrameError(
                f"the stream of {sender} ends within a frame, after {len(held)} bytes of it", sender
            ) from error
    except OSError:
        pass
    return None


class Session:
    """A role and its connected peers: who has connected, who is late, and what ends the run.

    Attributes:
        role: The role.
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
        self._is_hub = role.name == HUB
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._connections: dict[StreamWriter, asyncio.Task[None]] = {}
        # Of the peers that have proven who they are; None once the connection has ended.
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
        """Peers that have not connected yet."""
        return [peer for peer in self.role.links if peer not in self._writers]

    async def connect(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serves one connection: two frames that prove who is at the other side, then frames for the role."""
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
                and (frame := await read_frame(reader, peer, self.role.links[peer].max_bytes)) is not None
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
        """Sends this role's name, and returns the name of the role at the other side; empty if it has gone.

        Raises:
            SecureError: That role is not awaited, its certificate has another name, or its proof is refused.
        """
        writer.write(with_length(self.role.name.encode()))
        if not self._is_hub:
            writer.write(with_length(self._hello(HUB)))
        claimed = await read_frame(reader, "a stranger", _MAX_HELLO)
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
        hello = await read_frame(reader, "a stranger", _MAX_HELLO)
        if hello is None:
            return ""
        self.greet(name, writer, hello)
        return name

    def _hello(self, peer: str) -> bytes:
        """Returns the first frame of the link to a peer, which proves who this role is."""
        return self.role.links[peer].seal(bytes((Kind.HELLO,)) + self.role.name.encode())

    def greet(self, peer: str, writer: StreamWriter, hello: bytes) -> None:
        """Adds a peer that proves who it is; the hub answers with its own proof.

        Args:
            peer: Name of the peer.
            writer: The stream to the peer.
            hello: The peer's first frame.

        Raises:
            SecureError: The frame proves nothing, or the peer is connected already; the session is unchanged.
        """
        # A hello that was recorded from a connected peer has a sequence number in the past, and is refused here.
        payload = self.role.open(peer, hello)
        if payload != bytes((Kind.HELLO,)) + peer.encode():
            raise SecureError(f"{peer} does not say that it is {peer}", peer)
        self.role.links[peer].accept(payload)
        self._writers[peer] = writer
        self._last_arrival = self._loop.time()
        if self._is_hub:
            writer.write(with_length(self._hello(peer)))
        if not self.missing:
            self._send(self.role.start())
            for early in self._early.items():
                self.receive(*early)

    def receive(self, peer: str, data: bytes) -> None:
        """Hands a peer's frame to the role and sends the answers; a first frame waits until all peers are connected.

        Raises:
            SecureError: A peer sends a second frame before all are connected.
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
        """Ends the run with an error, and tells all peers."""
        if self.over.done():
            return
        self._watchdog.cancel()
        self.over.set_exception(error)
        culprit = getattr(error, "culprit", "") or self.role.name
        self._send(
            [one for one in self.role.stop(culprit, str(error) or repr(error)) if self._writers.get(one[1])]
        )

    async def finish(self) -> None:
        """Waits for the end of the run, and until the last frames have been sent."""
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
            writer.write(with_length(data))

    def _check_timeout(self) -> None:
        """Ends the run if nothing has arrived for too long; else the hub tells waiting peers that it goes on."""
        left = self._last_arrival + self._timeout - self._loop.time()
        if left > 0:
            self._watchdog = self._loop.call_later(left, self._check_timeout)
            waiting = list(self._writers) if self.missing else ["customer"]
            for peer in waiting if self._is_hub else []:
                if writer := self._writers.get(peer):
                    writer.write(with_length(self.role.links[peer].seal(ALIVE)))
            return
        late = self.missing or self.role.waits_for()
        named = ", ".join(late[:_MAX_NAMED])
        if len(late) > _MAX_NAMED:
            named += f" and {len(late) - _MAX_NAMED} more"
        what = "sent nothing"
        if self.missing:
            what = "did not connect" + (f" (turned away: {self._turned_away})" if self._turned_away else "")
        self.fail(SecureError(f"{named} {what} for {self._timeout:g} s {self._when()}", late[0]))

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
            # Perhaps the hub has not started.
            if asyncio.get_running_loop().time() >= until:
                raise SecureError(
                    f"{HUB} at {host}:{port} cannot be reached for {timeout:g} s: {error}", HUB
                ) from error
        await asyncio.sleep(_RETRY_SECONDS)
    await asyncio.gather(session.connect(*streams), session.finish())


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
