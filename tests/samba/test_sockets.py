"""SAMBA over sockets within one process: what strangers and meddlers do, and who is waited for."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import count

import pytest
from samba_runs import certificates_of, make_roles, means_of, plain

from fedbandit_envs.samba import network
from fedbandit_envs.samba.keys import tls_context
from fedbandit_envs.samba.messages import SecureError
from fedbandit_envs.samba.network import parse_address
from fedbandit_envs.samba.owners import Algorithm

MEANS = means_of("movielens", 3)
HERE = "127.0.0.1:0"


@pytest.fixture
def roles():
    return make_roles(Algorithm("ucb"), MEANS, 30, 3, [1, 2])


def meet(role, address, timeout, listening=lambda port: None, accepted=lambda: None):
    return network.meet(role, address, timeout, network.Calls(listening, accepted=accepted))


def with_length(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


async def gather(roles, leave_out=(), certificates=None, through=None, meanwhile=None, timeout=10.0):
    """Lets roles meet over sockets of this process, and returns None or the error of each by name.

    ``through``, given Controller's port, returns that to which owner-0 connects; ``meanwhile`` is awaited before.
    """
    ports = asyncio.get_running_loop().create_future()
    for name in certificates or ():
        roles[name].certificate = certificates[name]
    tasks = {"controller": asyncio.ensure_future(meet(roles["controller"], HERE, timeout, ports.set_result))}
    port = await ports
    if meanwhile is not None:
        await meanwhile(port)
    for name, role in roles.items():
        if name != "controller" and name not in leave_out:
            to = port if through is None or name != "owner-0" else await through(port)
            tasks[name] = asyncio.ensure_future(meet(role, f"127.0.0.1:{to}", timeout))
    return dict(zip(tasks, await asyncio.gather(*tasks.values(), return_exceptions=True), strict=True))


def assert_right(outcome, roles, budget=30, seed=3):
    assert not [one for one in outcome.values() if isinstance(one, BaseException)]
    assert roles["customer"].reward == plain(Algorithm("ucb"), MEANS, budget, seed)[0].reward


def assert_ended(outcome, roles, culprit: str, match: str):
    """Controller says what happened and about whom; nobody has a result, and nobody is left waiting."""
    assert outcome["controller"].culprit == culprit
    assert match in str(outcome["controller"])
    assert all(isinstance(one, SecureError) for one in outcome.values()), outcome
    assert roles["customer"].reward is None
    assert outcome["customer"].culprit == culprit


def test_roles_meet_over_sockets_under_tls(roles):
    assert_right(asyncio.run(gather(roles, certificates=certificates_of(roles))), roles)


@pytest.mark.parametrize("whose", ["a stranger's", "nobody's"])
def test_who_comes_without_a_certificate_of_the_run_is_turned_away(whose, roles):
    shown = certificates_of(roles)
    shown["owner-0"] = certificates_of(roles)["owner-0"] if whose == "a stranger's" else None
    outcome = asyncio.run(gather(roles, certificates=shown, timeout=3.0))
    assert isinstance(outcome["owner-0"], SecureError)
    assert "owner-0 did not connect" in str(outcome["controller"])
    assert outcome["controller"].culprit == "owner-0"


async def whisper(port: int, *sent: bytes) -> bytes:
    """Connects, says something, and returns what comes back until the connection ends or a while has passed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(sent))
    with contextlib.suppress(TimeoutError, ConnectionError):
        return await asyncio.wait_for(reader.read(), 0.3)
    return b"still open"


def test_strangers_are_turned_away_and_the_run_goes_on(roles):
    stranger = make_roles(Algorithm("ucb"), MEANS, 30, 3, [1, 2])["owner-0"]
    hello = stranger.links["controller"].seal(b"\0")

    async def strangers(port):
        for said in (
            [b"GET / HTTP/1.1\r\n\r\n"],
            [(1 << 31).to_bytes(4, "big"), b"x" * 100],
            [with_length(b"owner-9")],
            [with_length(b"")],
            [with_length(b"\xff\xfe")],
            [with_length(b"controller")],
            [with_length(b"owner-0"), with_length(b"hello")],
            [with_length(b"owner-0"), with_length(hello)],  # the right words, under other keys
            [with_length(b"owner-0"), with_length(bytes(120))],
        ):
            assert await whisper(port, *said) == b""
        assert await whisper(port) == b"still open"

    assert_right(asyncio.run(gather(roles, meanwhile=strangers)), roles)


def test_a_hello_that_was_heard_opens_no_second_door(roles):
    hello = roles["owner-0"].links["controller"].seal(b"\0")

    async def twice(port):
        assert await whisper(port, with_length(b"owner-0"), with_length(hello)) == b"still open"
        assert await whisper(port, with_length(b"owner-0"), with_length(hello)) == b""

    outcome = asyncio.run(gather(roles, leave_out=["owner-0"], meanwhile=twice))
    assert_ended(outcome, roles, "owner-0", "owner-0 has gone")


def test_idle_strangers_leave_when_more_come(roles):
    """A hundred who say nothing, or half a word, would else hold all the files that a process may open."""
    idle = []

    async def strangers(port):
        for number in range(100):
            idle.append(await asyncio.open_connection("127.0.0.1", port))
            idle[-1][1].write(with_length(b"owner-0")[: number % 9])
        await asyncio.sleep(0.1)
        # 16, and one for each role, stay.
        assert [reader.at_eof() for reader, _ in idle] == [True] * 80 + [False] * 20

    async def run():
        outcome = await gather(roles, meanwhile=strangers)
        return outcome, [await asyncio.wait_for(reader.read(), 1.0) for reader, _ in idle]

    outcome, heard = asyncio.run(run())
    assert_right(outcome, roles)
    assert heard == [b""] * 100


def test_who_was_turned_away_comes_again(roles):

    async def through(port):
        return await meddler(port, lambda heard: [heard[1][-1]], turned_away=3)

    assert_right(asyncio.run(gather(roles, through=through)), roles)


@pytest.mark.parametrize("answer", [None, b"", b"controller", bytes(4), with_length(bytes(25))])
def test_somebody_else_in_controllers_place_accepts_nobody(answer):
    """It closes the connection (None), or never says a word, half of one or a wrong one."""
    role = make_roles(Algorithm("ucb"), MEANS, 30, 3)["comp"]
    accepted = []

    async def wait():
        async def impostor(reader, writer):
            writer.write(answer or b"")
            if answer is None:
                writer.close()

        async with await asyncio.start_server(impostor, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await meet(role, f"127.0.0.1:{port}", 0.3, accepted=lambda: accepted.append(1))

    with pytest.raises(SecureError, match=r"controller at 127.0.0.1:\d+ has not accepted comp") as caught:
        asyncio.run(wait())
    assert caught.value.culprit == "controller"
    assert not accepted


def test_everybody_is_accepted_once_and_who_has_other_keys_never(roles):
    other = make_roles(Algorithm("ucb"), MEANS, 30, 3, [1, 2])["owner-0"]
    accepted = []

    async def run():
        port = asyncio.get_running_loop().create_future()
        hub = roles.pop("controller")
        hearing = meet(hub, HERE, 5.0, port.set_result, lambda: accepted.append("controller"))
        hearing = asyncio.ensure_future(hearing)
        at = f"127.0.0.1:{await port}"
        with pytest.raises(SecureError, match="closed the connection, as it does if it has the keys of"):
            await meet(other, at, 0.3, accepted=lambda: accepted.append("other"))
        assert not accepted
        playing = (
            meet(role, at, 5.0, accepted=partial(accepted.append, name)) for name, role in roles.items()
        )
        await asyncio.gather(hearing, *playing)

    asyncio.run(run())
    assert accepted[0] == "controller"
    assert sorted(accepted) == sorted(["controller", *roles])


async def meddler(
    port: int, change: Callable[[tuple[int, list[bytes]]], list[bytes] | None], turned_away: int = 0
) -> int:
    """Stands between owner-0 and Controller; what the owner says is passed on as ``change`` has it, None: no more.

    The first connections are closed at once, as many as are ``turned_away``.
    """
    came = count()

    async def frames(reader) -> AsyncIterator[bytes]:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                yield await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    async def pass_on(reader, writer):
        if next(came) < turned_away:
            writer.close()
            return
        there_reader, there = await asyncio.open_connection("127.0.0.1", port)

        async def back():
            with contextlib.suppress(ConnectionError):
                while data := await there_reader.read(1 << 16):
                    writer.write(data)
            writer.close()

        backward = asyncio.ensure_future(back())
        said: list[bytes] = []
        async for frame in frames(reader):
            said.append(frame)
            out = change((port, said))
            for one in out or []:
                there.write(one if isinstance(one, Raw) else with_length(one))
            if out is None:
                break
        there.close()
        await backward

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    return server.sockets[0].getsockname()[1]


class Raw(bytes):
    """Bytes that go into the stream as they are."""


def _one_more_at(place: int, frame: bytes) -> bytes:
    return frame[:place] + bytes([frame[place] + 1 & 255]) + frame[place + 1 :]


# By frame 6 (name, hello, scores of four rounds) the run is on its way.
MEDDLING = {
    "tampered": (lambda said: [_one_more_at(20, said[-1])], "wrong tag"),
    "replayed": (lambda said: [said[-1], said[-1]], "is the next"),
    "from later": (lambda said: [_one_more_at(7, said[-1])], "is the next"),
    "earlier": (lambda said: [said[3]], "is the next"),
    "shortened": (lambda said: [said[-1][:-1]], "wrong tag"),
    "empty": (lambda said: [b""], "is the next"),
    "two gigabytes": (lambda said: [Raw((1 << 31).to_bytes(4, "big") + bytes(100))], "2147483648"),
    "lost": (lambda said: None, "owner-0 has gone in round"),
    "swallowed": (lambda said: [], "owner-0 sent nothing for 4 s in round"),
}  # fmt: skip


@pytest.mark.parametrize("way", MEDDLING)
def test_meddling_on_the_way_ends_the_run(way):
    change, reason = MEDDLING[way]
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 3, [1, 2])

    async def through(port):
        return await meddler(port, lambda heard: change(heard[1]) if len(heard[1]) == 6 else [heard[1][-1]])

    outcome = asyncio.run(gather(roles, through=through, timeout=4.0))
    assert_ended(outcome, roles, "owner-0", reason)


def test_who_does_not_come_is_named(roles):
    outcome = asyncio.run(gather(roles, leave_out=["owner-1"], timeout=3.0))
    assert_ended(outcome, {"customer": roles["customer"]}, "owner-1", "owner-1 did not connect")


def before_each_frame(role, act):
    """Has something done before a role processes a frame."""
    takes = role.handle

    def handle(peer, frame):
        act()
        return takes(peer, frame)

    role.handle = handle


def test_a_role_that_fails_ends_the_run_for_all(roles):

    def fails():
        if roles["comp"].round == 9:
            raise RuntimeError("out of memory")

    before_each_frame(roles["comp"], fails)
    outcome = asyncio.run(gather(roles))
    assert isinstance(outcome.pop("comp"), RuntimeError)
    assert_ended(outcome, roles, "comp", "stopped the run: out of memory")


def test_the_customer_is_patient_while_the_run_goes_on():
    # A run whose kernels have to be loaded first would take longer than this one may.
    asyncio.run(gather(make_roles(Algorithm("ucb"), MEANS, 30, 3, [1, 2])))
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 3, [1, 2])
    before_each_frame(roles["comp"], lambda: time.sleep(0.1))
    # Longer than the customer waits for a sign of Controller, which is thrice the timeout.
    assert_right(asyncio.run(gather(roles, timeout=0.5)), roles)


def test_controller_that_is_not_there_is_named():
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 3)
    with pytest.raises(SecureError, match=r"for 0\.2 s: .*Connect call failed"):
        asyncio.run(meet(roles["comp"], "127.0.0.1:1", 0.2))


def test_addresses_are_checked_and_those_that_others_reach_need_tls():
    for address in ("", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"):
        with pytest.raises(ValueError, match="HOST:PORT is required"):
            parse_address(address, tls=True)
    for address in ("0.0.0.0:1", "192.168.0.1:1", "[::]:1", "example.org:1", "127.0.0.1.example.org:1"):
        with pytest.raises(ValueError, match="TLS is required"):
            parse_address(address, tls=False)
        assert parse_address(address, tls=True)[1] == 1
    assert parse_address("localhost:1", tls=False) == ("localhost", 1)
    assert parse_address("[::1]:1", tls=False) == ("::1", 1)


def test_tls_is_modern_and_mutual():
    context = tls_context(certificates_of(["comp", "owner-0"])["comp"], server=True)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3
