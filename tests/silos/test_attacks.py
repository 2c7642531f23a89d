"""What silos refuse: messages that are forged, broken, repeated or huge; stores that are shared, copied or others'."""

import gc
import os
import shutil
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from silo_runs import FROM_ONE, SEED, SUMS, forked, noisy, plan_of

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.silos import Message, MessageError, Silo, SiloPlan, StoreError, TurnError
from fedbandit_envs.silos.messages import added
from fedbandit_envs.silos.numbers import numbers_of
from fedbandit_envs.silos.store import SiloStore
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

PLAN = plan_of("arms", 8, baseline="fedbandit_envs.baselines.arms:UCB1", stack=noisy())
ZEROS = {name: np.zeros(shape) for name, shape in PLAN.layout.shapes.items()}
FIRST = Message(PLAN.identity, ((1, 1),), ZEROS)
NAN = {**ZEROS, "pulls": np.array([0.0, np.nan, 0.0, 0.0])}


def changed(**changes):
    return replace(FIRST, **changes).encode()


def raw(old, new):
    assert FIRST.encode().count(old) >= 1
    return FIRST.encode().replace(old, new, 1)


REFUSED = {
    "is a str of length 4; at most 5184 bytes": "text",
    "cannot be read: JSONDecodeError, Expecting value": b"GET / HTTP/1.1\r\n",
    "cannot be read: UnicodeDecodeError": b"\xffGET",
    "cannot be read: JSONDecodeError, Expecting ','": FIRST.encode()[:-1],
    "cannot be read: JSONDecodeError, Extra data": FIRST.encode() + b"\0",
    "cannot be read: TypeError": b"[1]",
    "cannot be read: KeyError, 'parts'": raw(b'"parts"', b'"part"'),
    "cannot be read: RecursionError": b"[" * 5000,
    "cannot be read: ValueError, Exceeds the limit": raw(b"[1, 1]", b"[1, " + b"9" * 4500 + b"]"),
    "cannot be read: OverflowError": raw(b"[0.0", b"[" + b"9" * 400),
    "cannot be read: ValueError, cannot reshape array of size 4": raw(b"[4]", b"[9999999999]"),
    "cannot be read: ValueError, cannot reshape array of size 3": raw(b"[0.0, ", b"["),
    "cannot be read: ValueError, setting an array element": raw(b"[0.0", b"[[0.0, 1.0]"),
    "cannot be read: ValueError, could not convert string": raw(b"[0.0", b'["x"'),
    "a bytes of length 5491; at most": FIRST.encode() + b" " * 5000,
    "is of format and plan .*message 2'": raw(b"message 1", b"message 2"),
    r"is of format and plan \['fedbandit silo message 1', 'another'\]": changed(plan="another"),
    "is of 0 releases; a number": changed(parts=()),
    r"is of 2 releases; a number in \[1, 1\]": changed(parts=((1, 1), (2, 1))),
    r"the releases \[\(3, 1\)\]; one of silos 0 to 2": changed(parts=((3, 1),)),
    r"the releases \[\(-1, 1\)\]": changed(parts=((-1, 1),)),
    r"the releases \[\(1, True\)\]": changed(parts=((1, True),)),
    r"the releases \[\(1, 3\)\]; .* after a round with a release": changed(parts=((1, 3),)),
    r"the releases \[\(1, 9\)\]": changed(parts=((1, 9),)),
    r"the releases \[\(1, 0\)\]": changed(parts=((1, 0),)),
    "has the arrays .'pulls'": changed(arrays={"pulls": ZEROS["pulls"]}),
    r"has the arrays .*'float64', \(2, 2\)": changed(arrays={**ZEROS, "pulls": np.zeros((2, 2))}),
    "has the arrays .*'object'": raw(b"float64", b"object"),
    r"has numbers in \['pulls'\] that are not finite": raw(b"[0.0", b"[NaN"),
    "not finite, or above 1e.150": changed(arrays={**ZEROS, "successes": np.full(4, 1e300)}),
    "is of silo 0, this one": changed(parts=((0, 1),)),
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
    second = changed(parts=((1, 2),))
    silo.receive([FIRST.encode(), second])
    for again in (FIRST.encode(), second, changed(arrays={n: a + 1 for n, a in ZEROS.items()})):
        with pytest.raises(MessageError, match=r"is a repeat.*; one that was made after round 2 is required"):
            silo.receive([again])
    # A lost message is no reason to refuse the next one, and what comes while an action waits is for the next action.
    action = silo.act({})
    assert not silo._inbox.views["inbox_mask"].any()
    silo.receive([changed(parts=((1, 8),))])
    silo.observe(action, 1)
    assert silo.received == {1: 8}
    assert silo._inbox.views["inbox_mask"].tolist() == [[[False, True, False]]]


def test_every_number_survives_a_message_and_a_store():
    numbers = {
        "pulls": np.array([0.1, -0.0, 1e-310, np.nextafter(1, 2)]),
        "successes": np.full(4, -1e150 / 3),
    }
    message = Message.decode(changed(arrays=ZEROS | numbers), PLAN.layout)
    assert all(message.arrays[name].tobytes() == array.tobytes() for name, array in numbers.items())
    packet, rng = changed(arrays=ZEROS | numbers), np.random.default_rng(0)
    for place in rng.integers(len(packet), size=300).tolist():
        # Whatever one byte turns into, the answer is a message or a MessageError.
        broken = packet[:place] + bytes([int(rng.integers(256))]) + packet[place + 1 :]
        try:
            Message.decode(broken, PLAN.layout)
        except MessageError:
            continue


def test_state_of_every_dtype_survives_a_store(tmp_path):
    kept = {str(t): np.arange(6).reshape(2, 3).T.astype(t) for t in ("f8", "f4", "i8", "i2", "u8", "u1", "?")}
    kept |= {"none": np.zeros((0, 3)), "scalar": np.array(2.5), "plain": {"a": [1, None, 2**70]}}
    store = SiloStore(tmp_path / "0.db")
    store.save({"policy": {"old": 1}, "agent": {"a": 1}})
    store.save({"policy": kept})
    state = store.state
    store.close()
    assert (state["agent"], state["policy"].keys(), state["policy"]["plain"]) == (
        {"a": 1},
        kept.keys(),
        kept["plain"],
    )
    for name, array in kept.items():
        assert np.array_equal(state["policy"][name], array)
        assert getattr(state["policy"][name], "dtype", None) == getattr(array, "dtype", None)
    with pytest.raises(UnfitError, match="has '0', a ndarray"):
        numbers_of([np.array([object()])])


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
            assert played(silo).release().parts == ((0, due),)
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
        (PLAN, 0, SEED),
    ):
        plan, agent, *seed = other
        with pytest.raises(StoreError, match=r"is of silo 0 with seed None, plan .* is required"):
            Silo(plan, agent, tmp_path / "0.db", *seed)
    (tmp_path / "none.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        Silo(PLAN, 0, tmp_path / "none.db")
    with pytest.raises(StoreError, match=r"cannot be opened, .* No such file"):
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
    assert messages[0].parts == messages[1].parts
    assert (messages[0].arrays["pulls"] != messages[1].arrays["pulls"]).all()
    with Silo(PLAN, 1, tmp_path / "1.db") as receiver:
        receiver.receive([messages[0].encode()])
        with pytest.raises(MessageError, match="is a repeat"):
            receiver.receive([messages[1].encode()])


def test_sums_of_a_server_that_lies(tmp_path):
    plan = plan_of("arms", 8, baseline=PLAN.baseline, stack=noisy(transport=SUMS))
    with (
        Silo(plan, 0, tmp_path / "0.db") as silo,
        Silo(plan, 1, tmp_path / "1.db") as one,
        Silo(plan, 2, tmp_path / "2.db") as two,
    ):
        mine, first, second = (played(each).release() for each in (silo, one, two))
        later = played(one).release()
        claims = [each.privacy() for each in (silo, one, two)]
        silo.receive([added([mine, first]).encode()])
        held = silo._inbox.arrays["inbox_pulls"].copy()
        assert np.array_equal(held[0, 0], mine.arrays["pulls"] + first.arrays["pulls"] - mine.arrays["pulls"])
        forged = replace(mine, parts=((0, 2),))
        for lie, reason in {
            # From both sums the silo could subtract what it knows, and see the release of silo 2.
            added([first, second]): "silo 1 after round 1 is a repeat",
            added([mine, second]): "silo 0 after round 1 is a repeat",
            # It has not been released, so that nothing can be subtracted.
            added([forged, second]): "none of this silo's own",
            mine: "is of silo 0, this one",
            replace(later, parts=((1, 2), (1, 2))): "an ascending order",
        }.items():
            with pytest.raises(MessageError, match=reason):
                silo.receive([lie.encode()])
        assert np.array_equal(silo._inbox.arrays["inbox_pulls"], held)
        # A single release in place of a sum shows no more than claims cover: each release has noise of its own.
        silo.receive([added([second, later]).encode()])
        assert silo.received == {0: 1, 1: 2, 2: 1}
        assert [each.privacy() for each in (silo, one, two)] == claims
        assert {claim.trust for claim in claims} == {"local"}


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
        assert silo.release().parts == ((0, 1),)


def test_a_store_whose_books_were_changed_is_refused(tmp_path, silo):
    played(silo).release()
    silo.close()
    for change, reason in (
        ("releases SET event = replace(event, '\"epsilon\": ', '\"epsilon\": 0')", "the plan does not"),
        ("state SET value = x'00'", "is damaged, or of another version"),
        ("state SET path = 'x' || path", "is damaged, or of another version"),
    ):
        with closing(sqlite3.connect(tmp_path / "0.db", isolation_level=None)) as file:
            file.execute(f"UPDATE {change}")
        with pytest.raises(StoreError, match=reason):
            Silo(PLAN, 0, tmp_path / "0.db")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"baseline": "UCB1"}, r"layers \['ArmsEnv'\]; a problem whose"),
        ({"stack": noisy()[:1]}, "a Channel, or a Server without a policy"),
        ({"stack": noisy(transport={"schedule": FROM_ONE})}, "without stage and echo"),
        ({"stack": noisy(schedule="on_request", releases=9)}, "fixed in advance"),
        ({"stack": [["Byzantine", {}], *noisy()]}, r"'Byzantine'"),
        (
            {"stack": noisy("ContinualPrivatizer", mechanism="honaker")},
            "a MatrixMechanism; .* not 'honaker'",
        ),
        (
            {"stack": noisy(pair="good_and_defective")},
            "is a Gaussian; .* of the arrays as given",
        ),
        ({"stack": noisy(), "seed": -1}, r"seed is -1; an integer >= 0"),
    ],
)
def test_what_silos_cannot_play_is_refused(tmp_path, changes, named):
    changes = {"stack": (), **changes}
    seed = changes.pop("seed", None)
    with pytest.raises((UnfitError, ValueError), match=named):
        Silo(SiloPlan(**{**PLAN.as_json(), **changes}), 0, tmp_path / "0.db", seed)
