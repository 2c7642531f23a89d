"""Delivery of frames: between roles of this process, or over TCP between processes, here or on several machines.

Over TCP, Controller listens and the other roles connect to it. Each frame is sent after its length. A connection begins
with the role's name in the clear and an encrypted frame that only a holder of the keys of that role's link can make;
Controller answers with such a frame. Whoever sends something else is disconnected, and the run goes on. A role that is
disconnected before Controller has answered comes again.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from ssl import SSLContext
from typing import NamedTuple

from fedbandit_envs.samba.keys import tls_context
from fedbandit_envs.samba.messages import Frame, Kind, SecureError
from fedbandit_envs.samba.roles import HUB, Role, RoleReport, RoleSetup, make_role

# Number of rounds between two calls of the function that shows progress.
_ROUNDS_PER_CALL = 64
_LENGTH_BYTES = 4
# Largest number of bytes in the first two frames of a connection; peers that have not proven who they are may not send
# longer frames.
_MAX_HELLO = 128
# Number of connections that have not proven anything yet, beyond one for each role that is awaited. When more come, the
# oldest is closed.
_MAX_UNPROVEN = 16
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


Streams = dict[str, tuple[StreamReader, StreamWriter]]
"""The connections of a role, by the peer's name."""

Place = tuple[str, int, SSLContext | None]
"""Host and port at which Controller listens, and the context of TLS."""


class Calls(NamedTuple):
    """Functions that a role on the network calls.

    Attributes:
        listening: Called with the port as soon as Controller listens.
        progress: Called whenever the round changes, with the round and the number of rounds.
        accepted: Called once, before the first frame by which keys are used up: when Controller has accepted the role,
            or at Controller when it accepts the first role.
    """

    listening: Callable[[int], None] = lambda port: None
    progress: Callable[[int, int], None] = lambda round_, rounds: None
    accepted: Callable[[], None] = lambda: None


def run_roles(roles: Mapping[str, Role], advance: Callable[[int], None] = lambda round_: None) -> None:
    """Plays a run in this process, by passing frames between roles until all are done.

    Args:
        roles: Roles by name; their CPU seconds are measured.
        advance: Function that is called from time to time with the round.

    Raises:
        SecureError: A role has refused a frame; or a role waits for a frame and no more frames are sent.
    """
    on_their_way = deque(frame for role in roles.values() for frame in role.timed(role.start))
    while on_their_way:
        frame = on_their_way.popleft()
        role = roles[frame.receiver]
        on_their_way.extend(role.timed(role.handle, frame.sender, frame.data))
        if role.name == HUB and role.round % _ROUNDS_PER_CALL == 0:
            advance(role.round)
    for name, role in roles.items():
        if peers := role.waits_for():
            raise SecureError(f"{name} waits for {', '.join(peers)}, and nothing is on its way", peers[0])


def play_in_processes(
    setups: Mapping[str, RoleSetup], timeout: float, advance: Callable[[int], None]
) -> dict[str, RoleReport]:
    """Plays a run with one process for each role and returns the roles' reports by name.

    All processes are ended when the function returns or raises.

    Args:
        setups: The keys, settings and data of each role, by the role's name.
        timeout: Number of seconds without a message after which the role that must send next counts as hung.
        advance: Function that is called from time to time with the round.

    Raises:
        SecureError: The run has ended without a result; the error names the role that caused it.
    """
    # Every role gets a fresh interpreter: a fork of this process would have the keys of all roles in its memory. They
    # are forks of a server process, which has imported this package once.
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    running: dict[Pipe, BaseProcess] = {}

    def start(name: str, address: str) -> None:
        ours, theirs = context.Pipe(duplex=False)
        arguments = (setups[name], address, timeout, theirs)
        running[ours] = context.Process(target=_play_in_child, args=arguments, name=name, daemon=True)
        running[ours].start()
        theirs.close()

    reports: dict[str, RoleReport] = {}
    try:
        start(HUB, "127.0.0.1:0")
        while len(reports) < len(setups):
            for pipe in wait([pipe for pipe, process in running.items() if process.name not in reports]):
                assert isinstance(pipe, Pipe)
                role = running[pipe].name
                try:
                    event, value = pipe.recv()
                except (EOFError, OSError) as error:
                    raise SecureError(f"the process of {role} has died", role) from error
                if event == "failed":
                    raise value
                if event == "done":
                    reports[role] = value
                elif event == "round":
                    advance(value)
                else:
                    for name in setups.keys() - {HUB}:
                        start(name, f"127.0.0.1:{value}")
        return {name: reports[name] for name in setups}
    finally:
        for process in running.values():
            process.kill()
            process.join()


def _play_in_child(setup: RoleSetup, address: str, timeout: float, pipe: Pipe) -> None:
    """Plays a role in this child process, and reports to the parent through a pipe, as pairs ``(event, value)``.

    The events are Controller's ``"listening"`` with the port and ``"round"`` with the round, and at the end ``"done"``
    with the role's report or ``"failed"`` with the error.
    """

    def progress(round_: int, rounds: int) -> None:
        if setup.keyring.role == HUB and round_ % _ROUNDS_PER_CALL == 0:
            pipe.send(("round", round_))

    try:
        role = make_role(setup)
        calls = Calls(lambda port: pipe.send(("listening", port)), progress)
        pipe.send(("done", play_over_network(role, address, timeout, calls)))
    except Exception as error:
        pipe.send(("failed", error))


def play_over_network(role: Role, address: str, timeout: float, calls: Calls) -> RoleReport:
    """Plays one role with peers on the network, and returns its report at the end of the run; see :func:`meet`."""
    role.timed(asyncio.run, meet(role, address, timeout, calls))
    return role.report()


async def meet(role: Role, address: str, timeout: float, calls: Calls) -> None:
    """Connects a role with its peers and plays it until its part is done.

    Args:
        role: The role; its certificate puts connections under mutual TLS. Only loopback addresses allow to have none.
        address: ``HOST:PORT`` at which Controller listens and to which the others connect; with port 0 Controller takes
            a free port.
        timeout: Number of seconds without a message after which the role that must send next counts as hung.
        calls: Functions that the role calls on its way.

    Raises:
        ValueError: The address requires TLS, or has another form than ``HOST:PORT``.
        OSError: Controller cannot listen at the address.
        SecureError: The run has ended without a result.
    """
    host, port = parse_address(address, role.certificate is not None)
    context = tls_context(role.certificate, server=role.name == HUB) if role.certificate else None
    place = host, port, context
    streams: Streams = {}
    try:
        if role.name == HUB:
            await _accept_all(role, streams, place, timeout, calls)
        else:
            streams[HUB] = await _connect(role, place, timeout)
            calls.accepted()
        await _play(role, streams, timeout, calls)
    except Exception as error:
        culprit = getattr(error, "culprit", "") or role.name
        _send(streams, role.stop(culprit, str(error) or repr(error)))
        raise
    finally:
        for _, writer in streams.values():
            writer.close()
        with suppress(OSError, TimeoutError):
            closed = [writer.wait_closed() for _, writer in streams.values()]
            await asyncio.wait_for(asyncio.gather(*closed), timeout=5.0)


async def _accept_all(role: Role, streams: Streams, place: Place, timeout: float, calls: Calls) -> None:
    """Listens until all peers have connected and proven who they are, and adds them to ``streams``."""
    complete = asyncio.Event()
    unproven: OrderedDict[StreamWriter, None] = OrderedDict()

    async def welcome(reader: StreamReader, writer: StreamWriter) -> None:
        unproven[writer] = None
        if len(unproven) > _MAX_UNPROVEN + len(role.links) - len(streams):
            unproven.popitem(last=False)[0].transport.abort()
        with suppress(SecureError, EOFError, OSError):
            name = (await _read(reader, "a stranger", _MAX_HELLO)).decode(errors="replace")
            proof = await _read(reader, "a stranger", _MAX_HELLO) if name in role.links else b""
            # A proof opens a link only once: one that was recorded from a connected peer is refused, and one that came
            # on a connection which has been closed is left for the peer's next try.
            if proof and writer in unproven:
                role.open(name, proof)
                if not streams:
                    calls.accepted()
                del unproven[writer]
                streams[name] = reader, writer
                _write(writer, role.links[name].seal(bytes((Kind.HELLO,))))
                if streams.keys() == role.links.keys():
                    complete.set()
                return
        unproven.pop(writer, None)
        writer.close()

    host, port, context = place
    # A connection that is not under TLS yet is not among the unproven.
    handshake = 5.0 if context else None
    server = await asyncio.start_server(welcome, host, port, ssl=context, ssl_handshake_timeout=handshake)
    calls.listening(server.sockets[0].getsockname()[1])
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            await complete.wait()
    server.close()
    for writer in unproven:
        writer.transport.abort()
    if missing := [name for name in role.links if name not in streams]:
        raise SecureError(f"{', '.join(missing)} did not connect for {timeout:g} s", missing[0])


async def _connect(role: Role, place: Place, timeout: float) -> tuple[StreamReader, StreamWriter]:
    """Connects to Controller, which may not have started yet, and proves who the role is, until Controller accepts it.

    Every try has the same proof, so that nothing else is ever encrypted as the link's first frame.
    """
    host, port, context = place
    hello = role.links[HUB].seal(bytes((Kind.HELLO,)))
    reason: object = "it does not answer"
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            for number in count(1):
                writer = None
                try:
                    reader, writer = await asyncio.open_connection(host, port, ssl=context)
                    _write(writer, role.name.encode())
                    _write(writer, hello)
                    role.open(HUB, await _read(reader, HUB, _MAX_HELLO))
                    return reader, writer
                except EOFError:
                    reason = "it closed the connection, as it does if it has the keys of another run"
                except (OSError, SecureError) as error:
                    reason = error
                if writer is not None:
                    writer.close()
                await asyncio.sleep(min(0.1 * number, 1.0))
    raise SecureError(f"{HUB} at {host}:{port} has not accepted {role.name} for {timeout:g} s: {reason}", HUB)


async def _play(role: Role, streams: Streams, timeout: float, calls: Calls) -> None:
    """Passes frames between a role and its peers until the role's part is done."""
    inbox: asyncio.Queue[tuple[str, bytes | Exception]] = asyncio.Queue(len(streams))

    async def receive(peer: str, reader: StreamReader) -> None:
        try:
            while True:
                await inbox.put((peer, await _read(reader, peer, role.max_bytes)))
        except (SecureError, EOFError, OSError) as error:
            await inbox.put((peer, error))

    receiving = [asyncio.create_task(receive(peer, reader)) for peer, (reader, _) in streams.items()]
    # Controller alone can tell which role hangs. So others wait longer: Controller times out first and names the role.
    patience = timeout if role.name == HUB else 3 * timeout
    try:
        frames, round_ = role.start(), 0
        while True:
            _send(streams, frames)
            if gone := [frame.receiver for frame in frames if frame.receiver not in streams]:
                raise SecureError(f"{gone[0]} has gone in round {role.round}", gone[0])
            if role.done:
                return
            if role.plan is not None and role.round != round_:
                round_ = role.round
                calls.progress(round_, role.plan.budget)
                if role.name == HUB:
                    # The customer's next message is the total. Until then, empty frames show that the run goes on.
                    _send(streams, [Frame(HUB, "customer", b"")])
            late = role.waits_for()
            try:
                async with asyncio.timeout(patience):
                    peer, data = await inbox.get()
            except TimeoutError as error:
                raise SecureError(
                    f"{', '.join(late)} sent nothing for {patience:g} s in round {role.round}", late[0]
                ) from error
            frames = []
            if isinstance(data, bytes):
                frames = role.handle(peer, data) if data or role.name != "customer" else []
            elif isinstance(data, SecureError):
                raise data
            else:
                streams.pop(peer)[1].close()
                if peer in late:
                    raise SecureError(f"{peer} has gone in round {role.round}, before it was done", peer)
    finally:
        for task in receiving:
            task.cancel()


def _send(streams: Streams, frames: list[Frame]) -> None:
    """Writes frames to the streams of those receivers that are connected."""
    for frame in frames:
        if frame.receiver in streams:
            _write(streams[frame.receiver][1], frame.data)


def _write(writer: StreamWriter, frame: bytes) -> None:
    """Writes a frame to a stream: its length (4 bytes, big-endian), then the frame."""
    writer.write(len(frame).to_bytes(_LENGTH_BYTES, "big") + frame)


async def _read(reader: StreamReader, sender: str, max_bytes: int) -> bytes:
    """Returns the next frame of a stream.

    Raises:
        EOFError: The stream has ended.
        OSError: The connection is lost.
        SecureError: The announced length of the frame is greater than is allowed; the frame itself is not read.
    """
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
    if length > max_bytes:
        raise SecureError(f"{sender} announces {length} bytes; at most {max_bytes} are allowed", sender)
    return await reader.readexactly(length)


def parse_address(address: str, tls: bool) -> tuple[str, int]:
    """Returns the host and the port of an address, after checking that the address is safe without TLS or uses it.

    Args:
        address: The address, ``HOST:PORT``.
        tls: Whether connections are under TLS, which is required unless the host is this machine.

    Raises:
        ValueError: The address has another form; or TLS is not used, and other machines can reach the address.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"address is {address!r}; HOST:PORT is required")
    host = host.strip("[]")
    if not (tls or host in _LOOPBACK):
        raise ValueError(f"address is {address!r}; TLS is required for all but {', '.join(_LOOPBACK)}")
    return host, int(port)
