"""What silos refuse: messages that are forged, broken, repeated or huge; stores that are shared, copied or others'."""

import gc
import json
import os
import shutil
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from silo_runs import SEED, forked, noisy, plan_of

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.silos import Message, MessageError, Silo, SiloPlan, StoreError, TurnError
from fedbandit_envs.silos.messages import MAGIC, pack, unpack
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

PLAN = plan_of("arms", 8, baseline="fedbandit_envs.baselines.arms:UCB1", stack=noisy())
ZEROS = {name: np.zeros(shape) for name, shape in PLAN.layout.shapes.items()}
FIRST = Message(PLAN.identity, 1, 1, 1, ZEROS)
NAN = {**ZEROS, "pulls": np.array([0.0, np.nan, 0.0, 0.0])}
HEADER = {"plan": PLAN.identity, "sender": 1, "number": 1, "round": 1}


def raw(header, body=b""):
    """A packet with a header that may be no JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + body


def changed(**changes):
    return replace(FIRST, **changes).encode()


REFUSED = {
    "a message is a str; bytes": "text",
    "a message begins with b''": b"",
    "a message begins with b'GET / HT'": b"GET / HTTP/1.1\r\n",
    "a message has version 2; 1 is": FIRST.encode().replace(MAGIC, MAGIC[:-1] + b"\x02"),
    "a header has 4294967295 bytes; at most 65536": MAGIC + b"\xff" * 4 + b"{}",
    "at most 65536, within the message": FIRST.encode()[:40],
    "cannot be read .JSONDecodeError": raw(b"{"),
    "cannot be read .KeyError": raw({"plan": PLAN.identity}),
    "cannot be read .TypeError": raw([1]),
    "cannot be read .RecursionError": raw(b"[" * 60_000),
    "cannot be read .ValueError: Exceeds the limit": raw(b'{"arrays": [], "round": ' + b"9" * 5000 + b"}"),
    r"array 'pulls' has dtype \|O ": raw({"arrays": [["pulls", "|O", [1]]]}),
    "array 'pulls' has dtype <f8 and shape .-1": raw({"arrays": [["pulls", "<f8", [-1]]]}),
    r"array 'pulls' has dtype <f8 and shape .10000000000": raw({"arrays": [["pulls", "<f8", [10**10]]]}),
    "arrays have 28800000000 bytes": raw({"arrays": [["a", "<f8", [60_000, 60_000]]]}),
    "arrays have 128 bytes .* the 127 bytes": FIRST.encode()[:-1],
    "arrays have 128 bytes .* the 129 bytes": FIRST.encode() + b"\0",
    r"the names \['a', 'a'\]": raw({"arrays": [["a", "|u1", [1]]] * 2}, b"ab"),
    "bytes; at most": FIRST.encode() + bytes(1 << 17),
    "is of plan 'another'": changed(plan="another"),
    "plan, sender, number and round are": pack({**HEADER, "more": 1}, ZEROS),
    "plan, sender, number and round are required": pack({**HEADER, "number": True}, ZEROS),
    "message 1 of silo 3 is of none": changed(sender=3),
    "message 1 of silo -1 is of none": changed(sender=-1),
    "of round 3; a round in which": changed(round=3),
    "of round 9; a round in which": changed(round=9),
    r"message 2 of silo 1 is of round 1; a number in \[1, 1\]": changed(number=2),
    "message 1 of silo 1 has the arrays": changed(arrays={"pulls": ZEROS["pulls"]}),
    "message 1 of silo 1 has numbers in 'pulls' that are not finite": changed(arrays=NAN),
    "not finite, or above 1e.150; others": changed(arrays={**ZEROS, "successes": np.full(4, 1e300)}),
    "message 1 is of silo 0, this one": changed(sender=0),
}


@pytest.fixture
def silo(tmp_path):
    with Silo(PLAN, 0, tmp_path / "0.db") as one:
        yield one


def played(silo, rounds=1, outcome=1):
    for _ in range(rounds):
        silo.observe(silo.act({}), outcome)
    return silo


@pytest.mark.parametrize("reason", REFUSED)
def test_a_bad_message_is_refused_and_nothing_changes(silo, reason):
    tracemalloc.start()
    with pytest.raises(MessageError, match=reason):
        silo.receive([FIRST.encode(), REFUSED[reason]])
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()
    assert silo.received == {}


def test_messages_are_taken_in_order_and_once(silo):
    second, fourth = changed(number=2, round=2), changed(number=2, round=4)
    silo.receive([FIRST.encode(), second])
    for again in (FIRST.encode(), second, changed(arrays={n: a + 1 for n, a in ZEROS.items()}), fourth):
        with pytest.raises(MessageError, match="is a repeat or out of turn; one after message 2, of round 2"):
            silo.receive([again])
    # A lost message is no reason to refuse the next one, and what comes while an action waits is for the next action.
    action = silo.act({})
    assert not silo._inbox.arrays["inbox_mask"].any()
    silo.receive([changed(number=4, round=8)])
    silo.observe(action, 1)
    assert silo.received == {1: 4}
    assert silo._inbox.arrays["inbox_mask"].tolist() == [[[False, True, False]]]


def test_packets_survive_every_dtype_and_flipped_bytes():
    kept = {
        str(t): np.arange(3).astype(t)
        for t in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
    } | {"0": np.array(2.5)}
    header, arrays = unpack(packet := pack({"a": 1}, kept), 10_000)
    assert header == {"a": 1}
    assert all(np.array_equal(arrays[n], a) and arrays[n].dtype == a.dtype for n, a in kept.items())
    with pytest.raises(TypeError, match=r"have the dtypes .'<U1'.; some of"):
        pack({}, {"text": np.array(["x"])})
    rng = np.random.default_rng(0)
    for place in rng.integers(len(packet), size=300).tolist():
        # Whatever one byte turns into, the answer is a packet or a MessageError.
        broken = packet[:place] + bytes([int(rng.integers(256))]) + packet[place + 1 :]
        try:
            unpack(broken, 10_000)
        except MessageError:
            continue


def test_calls_out_of_turn_are_refused(silo):
    for call in (silo.release, lambda: silo.observe(0, 1)):
        with pytest.raises(TurnError):
            call()
    action = silo.act({})
    for call in (silo.release, lambda: silo.act({})):
        with pytest.raises(TurnError):
            call()
    for outcome in (2, 0.5, np.nan, [1, 1], None):
        with pytest.raises(ValueError, match="outcome"):
            silo.observe(action, outcome)
    with pytest.raises(ValueError, match="action of this agent"):
        silo.observe(4, 1)
    silo.observe(action, 1)
    # Asked twice, a silo releases once, and may send the same message again.
    first = silo.release()
    with pytest.raises(TurnError, match="no release is due after round 1"):
        silo.release()
    assert silo.messages[-1].encode() == first.encode()
    played(silo, 7)
    with pytest.raises(TurnError, match="round 8 of 8"):
        silo.act({})


BUDGET = {"epsilon": 0.7, "delta": 1e-5, "composition": "exact"}


@pytest.mark.parametrize(("noise", "least"), [({"releases": 2}, 0.999), ({"budget": BUDGET}, 0.4)])
def test_no_more_is_spent_than_the_plan_and_the_budget_allow(tmp_path, noise, least):
    with Silo(plan_of("arms", 8, baseline=PLAN.baseline, stack=noisy(**noise)), 0, tmp_path / "0.db") as silo:
        for due in (1, 2):
            assert played(silo).release().number == due
        played(silo, 2)
        with pytest.raises(BudgetExhaustedError, match="2 have been made, and another one would"):
            silo.release()
        assert least < silo.privacy().epsilon <= (0.7 if "budget" in noise else 1.0)


def test_a_context_or_capacity_on_which_claims_rest_cannot_change(tmp_path):
    given = {"cost": [0.5] * 4, "capacity": [2] * 4, "quality_threshold": [0.4], "unit_revenue": [1.0]}
    with Silo(plan_of("procurement", baseline="FCB", stack=noisy()[:1]), 0, tmp_path / "0.db") as silo:
        with pytest.raises(ValueError, match=r"observation 'capacity' is .* is required"):
            silo.act({**given, "capacity": [1.5] * 4})
        silo.observe(silo.act(given), [0] * 4)
        with pytest.raises(ValueError, match="changes the sensitivity"):
            silo.act({**given, "capacity": [3] * 4})
        silo.act(given)
    with Silo(
        plan_of("linear", baseline="fedbandit_envs.baselines.linear:FedUCB", stack=noisy()),
        0,
        tmp_path / "1.db",
    ) as silo:
        with pytest.raises(ValueError, match=r"'contexts' has one of norm 1.2"):
            silo.act({"contexts": np.full((6, 3), 0.7)})
        action = silo.act({"contexts": np.full((6, 3), 0.5)})
        with pytest.raises(ValueError, match=r"outcome is 1\.5"):
            silo.observe(action, 1.5)


def test_a_store_is_of_one_process_and_one_plan(tmp_path, silo):
    with pytest.raises(StoreError, match="another process has it: database is locked"):
        Silo(PLAN, 0, tmp_path / "0.db")

    def second():
        with pytest.raises(StoreError, match="opened by process"):
            silo.act({})
        with pytest.raises(StoreError, match="another process has it"):
            Silo(PLAN, 0, tmp_path / "0.db")
        del silo._store._file
        gc.collect()

    log = tmp_path / "0.db-wal"
    before = log.read_bytes()
    assert os.waitpid(forked(second), 0)[1] == 0
    assert log.read_bytes() == before
    played(silo).close()
    for other in (
        (plan_of("arms", 9, baseline=PLAN.baseline, stack=noisy()), 0),
        (PLAN, 1),
        (PLAN, 0, "repeatable", SEED),
    ):
        plan, agent, *noise = other
        with pytest.raises(StoreError, match="is required"):
            Silo(plan, agent, tmp_path / "0.db", *noise)
    (tmp_path / "none.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        Silo(PLAN, 0, tmp_path / "none.db")
    with pytest.raises(StoreError, match=r"cannot be opened: .* No such file"):
        Silo(PLAN, 0, tmp_path / "nowhere" / "0.db")
    assert (tmp_path / "0.db").stat().st_mode & 0o777 == 0o600


def test_a_copied_store_has_other_noise_and_its_messages_are_refused(tmp_path, silo):
    played(silo).close()
    for name in ("one", "other"):
        shutil.copy(tmp_path / "0.db", tmp_path / name)
    with Silo(PLAN, 0, tmp_path / "one") as one, Silo(PLAN, 0, tmp_path / "other") as other:
        messages = [one.release(), other.release()]
        assert one.privacy() == other.privacy()
        # The file alone, copied while it is open, knows what has been spent.
        shutil.copy(tmp_path / "one", tmp_path / "backup")
        with Silo(PLAN, 0, tmp_path / "backup") as backup:
            assert (backup.due, backup.privacy()) == (False, one.privacy())
    assert messages[0].number == messages[1].number
    assert (messages[0].arrays["pulls"] != messages[1].arrays["pulls"]).all()
    with Silo(PLAN, 1, tmp_path / "1.db") as receiver:
        receiver.receive([messages[0].encode()])
        with pytest.raises(MessageError, match="is a repeat"):
            receiver.receive([messages[1].encode()])


def test_on_a_full_disk_nothing_is_sent_that_is_not_booked(tmp_path):
    # Of many arms, so that a message needs more pages.
    plan = SiloPlan(**{**PLAN.as_json(), "env_kwargs": {"num_agents": 2, "num_arms": 500}})
    silo = played(Silo(plan, 0, tmp_path / "0.db"))
    size = silo._store._file.execute("PRAGMA page_count").fetchone()[0]
    silo._store._file.execute(f"PRAGMA max_page_count={size}")
    with pytest.raises(StoreError, match="cannot be written and is closed: database or disk is full"):
        silo.release()
    with pytest.raises(StoreError, match="closed"):
        silo.act({})
    with Silo(plan, 0, tmp_path / "0.db") as silo:
        assert (silo.round, silo.due, silo.privacy().epsilon) == (1, True, 0.0)
        assert silo.release().number == 1


def test_a_store_whose_books_were_changed_is_refused(tmp_path, silo):
    played(silo).release()
    silo.close()
    for change, reason in (
        ("releases SET event = replace(event, '\"epsilon\": ', '\"epsilon\": 0')", "the plan does not"),
        ("state SET value = x'00'", "is damaged, or of another version: a message begins with"),
    ):
        with closing(sqlite3.connect(tmp_path / "0.db", isolation_level=None)) as file:
            file.execute(f"UPDATE {change}")
        with pytest.raises(StoreError, match=reason):
            Silo(PLAN, 0, tmp_path / "0.db")


@pytest.mark.parametrize(
    ("changes", "noise", "named"),
    [
        ({"baseline": "UCB1"}, ("secret",), r"layers \['ArmsEnv'\]; a problem whose"),
        ({"stack": noisy()[:1]}, ("secret",), "a Channel without stage"),
        ({"stack": noisy(schedule="on_request", releases=9)}, ("secret",), "fixed in advance"),
        ({"stack": [["Byzantine", {}], *noisy()]}, ("secret",), r"'Byzantine'"),
        ({"stack": noisy("ContinualPrivatizer")}, ("secret",), "is a MatrixMechanism; Gaussian or Laplace"),
        (
            {"stack": noisy(pair="good_and_defective")},
            ("secret",),
            "is a Gaussian; .* of the arrays as given",
        ),
        ({"stack": noisy()}, ("secret", 7), "seed is 7 and noise 'secret'; a seed with 'repeatable'"),
        ({"stack": noisy()}, ("repeatable",), "seed is None and noise 'repeatable'"),
        ({"stack": noisy()}, ("loud",), "noise is 'loud'"),
    ],
)
def test_what_silos_cannot_play_is_refused(tmp_path, changes, noise, named):
    with pytest.raises((UnfitError, ValueError), match=named):
        Silo(SiloPlan(**{**PLAN.as_json(), **({"stack": ()} | changes)}), 0, tmp_path / "0.db", *noise)
