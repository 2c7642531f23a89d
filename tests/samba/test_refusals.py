"""Frames and items that are not as they were sent: refused, with the right error, and nothing has changed."""

import json
import random

import numpy as np
import pytest
from samba_runs import assert_same, ends, make_roles, means_of, plain, play

from fedbandit_envs.samba.messages import MARK, SCORE, ItemCipher, Kind, Record, SecureError
from fedbandit_envs.samba.owners import Algorithm, SambaPlan

MEANS = means_of("movielens", 3)


def test_frames_arrive_in_order_once_and_whole():
    here, there = ends()
    first, second = here.seal(b"first"), here.seal(b"second")
    with pytest.raises(SecureError, match=r"frame '0{15}1' came from here; frame 0 is the next"):
        there.open(second)
    there.open(first)
    with pytest.raises(SecureError, match=r"frame '0{16}' came from here; frame 1 is the next"):
        there.open(first)
    for length in range(len(second)):
        with pytest.raises(SecureError, match="is the next" if length < 8 else "wrong tag"):
            there.open(second[:length])
    with pytest.raises(SecureError, match="wrong tag"):
        there.open(second + b"\0")
    with pytest.raises(SecureError, match="wrong tag"):  # its own words, sent back
        here.open(first)
    assert there.open(second) == b"second"


def test_items_are_bound_to_direction_round_and_iteration():
    cipher = ItemCipher(bytes(32), Record())
    sealed = cipher.encrypt(np.arange(4.0).tobytes(), SCORE, 7, 0)
    other_direction = SCORE._replace(direction=MARK.direction)
    for place in ((other_direction, 7, 0), (SCORE, 8, 0), (SCORE, 7, 1)):
        with pytest.raises(SecureError, match="does not decrypt as one of round"):
            cipher.decrypt(sealed, 4, *place)
    with pytest.raises(SecureError, match="does not decrypt as one of round"):
        ItemCipher(bytes([1] * 32), Record()).decrypt(sealed, 4, SCORE, 7, 0)
    with pytest.raises(SecureError, match="144 are required"):
        cipher.decrypt(sealed[:-1], 4, SCORE, 7, 0)
    np.testing.assert_array_equal(np.frombuffer(cipher.decrypt(sealed, 4, SCORE, 7, 0)), np.arange(4.0))


def test_a_run_that_would_wear_the_key_out_does_not_start():
    longest = 2**32 // (2 * 128) + 128
    SambaPlan(128, longest, Algorithm("ucb"), "argmax", 1)
    with pytest.raises(ValueError, match=r"budget is .* at most 2\^32"):
        SambaPlan(128, longest + 1, Algorithm("ucb"), "argmax", 1)
    with pytest.raises(ValueError, match=r"at most 2\^32"):
        SambaPlan.make(Algorithm("pursuit"), 128, longest)


def meddle(change, *run, groups=None):
    """Lets ``change(role, takes, peer, frame)`` have every frame before the role does; the run ends as in the open."""
    roles = make_roles(*run, groups)
    for role in roles.values():

        def handle(peer, frame, role=role, takes=role.handle):
            change(role, takes, peer, frame)
            return takes(peer, frame)

        role.handle = handle
    assert_same(play(roles), plain(*run)[0])


def test_thousands_of_mutations_of_frames_are_refused_and_change_nothing():
    """Every frame is offered changed, many times, before it is offered as it is; runs end as in the open."""
    rng = random.Random(0)
    tried = [0]
    kinds = set()

    def change(role, takes, peer, frame):
        kinds.add((role.name, peer))
        for _ in range(10):
            mutant = bytearray(frame)
            way, place = rng.randrange(3), rng.randrange(len(mutant))
            if way == 0:
                mutant[place] ^= rng.randrange(1, 256)
            elif way == 1:
                del mutant[place:]
            else:
                mutant[place:place] = rng.randbytes(rng.randint(1, 8))
            if mutant == frame:
                continue
            with pytest.raises(SecureError):
                takes(peer, bytes(mutant))
            tried[0] += 1

    for name, groups in (("ucb", [1, 2]), ("pursuit", [3]), ("epsilon-greedy", [1, 1, 1])):
        meddle(change, Algorithm(name), MEANS, 30, 5, groups=groups)
    assert tried[0] >= 4000
    assert len(kinds) >= 10, "all links, both ways"


def assert_forged_is_refused(role, takes, peer, frame, payload, match):
    """Lets a peer say something else in a frame's place."""
    cipher, number = role.links[peer]._receiving, frame[:8]
    with pytest.raises(SecureError, match=match):
        takes(peer, number + cipher.encrypt(bytes(4) + number, payload, None))
    role.links[peer]._received -= 1


def test_items_of_an_earlier_round_are_refused():
    kept = {}

    def change(role, takes, peer, frame):
        if role.name == "controller" or peer != "controller":
            return
        payload = role.links[peer]._receiving.decrypt(bytes(4) + frame[:8], frame[8:], None)
        if payload[0] in (Kind.SCORES, Kind.MARKS):
            if role.name in kept:
                said = role, takes, peer, frame, kept[role.name]
                assert_forged_is_refused(*said, "does not decrypt as one of round")
            kept[role.name] = payload

    meddle(change, Algorithm("pursuit"), MEANS, 8, 2)
    assert set(kept) == {"comp", "owner-0"}


def test_a_common_score_has_no_place_in_a_second_iteration():
    tried = []

    def change(role, takes, peer, frame):
        if role.name == "comp" and role.round and role.iteration == 1:
            common = bytes((Kind.COMMON_SCORE,)) + bytes(3 * SCORE.layout.itemsize)
            assert_forged_is_refused(role, takes, peer, frame, common, "does not expect it")
            tried.append(role.round)

    meddle(change, Algorithm("pursuit"), MEANS, 8, 2)
    assert tried == [4, 5, 6, 7, 8]


def test_frames_of_two_owners_swapped_within_a_round_are_refused():
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 0, [1, 1, 1])
    first = roles["customer"].start()[0].data
    told = {sealed.receiver: sealed.data for sealed in roles["controller"].handle("customer", first)}
    scores = {name: roles[name].handle("controller", told[name])[0].data for name in ("owner-0", "owner-1")}
    with pytest.raises(SecureError, match="wrong tag"):
        roles["controller"].handle("owner-0", scores["owner-1"])
    with pytest.raises(SecureError, match="no link to owner-9"):
        roles["controller"].handle("owner-9", scores["owner-1"])
    assert roles["controller"].waits_for() == ["owner-0", "owner-1", "owner-2"]


def test_a_frame_that_is_lost_ends_a_run_without_a_result():
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 0)
    takes = roles["comp"].handle
    roles["comp"].handle = lambda peer, frame: [] if roles["comp"].round == 9 else takes(peer, frame)
    with pytest.raises(SecureError, match="waits for"):
        play(roles)
    assert roles["customer"].reward is None


def say(roles, sender: str, receiver: str, kind: int, content: bytes):
    """Lets a role say something that it would not."""
    frame = roles[sender].links[receiver].seal(bytes((kind,)) + content)
    return roles[receiver].handle(sender, frame)


@pytest.mark.parametrize(
    ("sender", "receiver", "kind", "content", "reason"),
    [
        ("comp", "controller", Kind.PLAN, b"{}", "does not expect it"),
        ("customer", "controller", Kind.SCORES, bytes(36), "does not expect it"),
        ("owner-0", "controller", Kind.SCORES, bytes(36), "does not expect it"),
        ("controller", "owner-0", Kind.MARKS, bytes(29), "does not expect it"),
        ("controller", "comp", Kind.SCORES, bytes(108), "does not expect it"),
        ("controller", "customer", Kind.MARKS, bytes(29), "does not expect it"),
        ("controller", "customer", Kind.TOTAL, bytes(128), "no ciphertext"),
        ("controller", "comp", 77, b"", "of kind 77 to comp, which does not expect it"),
        ("customer", "controller", Kind.PLAN, b"no JSON", "cannot be read"),
        ("customer", "controller", Kind.PLAN, b"[1]", "cannot be read"),
        ("customer", "controller", Kind.PLAN, b'{"arms": "many"}', "cannot be read"),
        ("customer", "controller", Kind.PLAN, b"[" * 10_000, "cannot be read"),
    ],
)
def test_messages_out_of_turn_are_refused(sender, receiver, kind, content, reason):
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 0, [1, 2])
    with pytest.raises(SecureError, match=reason):
        say(roles, sender, receiver, kind, content)
    waiting = roles[receiver].waits_for()
    assert waiting == (["customer"] if receiver == "controller" else ["controller"])
    assert roles[receiver].round == 0


@pytest.mark.parametrize("algorithm", [Algorithm("thompson"), Algorithm("ucb", {"scale": 3.0})])
def test_nobody_plays_what_it_has_not_agreed_to(algorithm):
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 0)
    modulus = (1 << 511) + 1
    told = SambaPlan.make(algorithm, 3, 30).to_bytes(modulus)
    for sender, receiver in (("customer", "controller"), ("controller", "owner-0")):
        with pytest.raises(SecureError, match="the plan is for"):
            say(roles, sender, receiver, Kind.PLAN, told)


def test_plans_that_cannot_be_are_refused():
    parts = json.loads(SambaPlan.make(Algorithm("ucb"), 3, 30).to_bytes((1 << 511) + 1))
    for change in (
        {"arms": 4},
        {"budget": 2},
        {"choice": "first"},
        {"iterations": 0},
        {"modulus": "f"},
        {"modulus": "-" + parts["modulus"]},
        {"extra": 1},
    ):
        roles = make_roles(Algorithm("ucb"), MEANS, 30, 0)
        with pytest.raises(SecureError, match=r"cannot be read|the plan is for|the customer's modulus has"):
            say(roles, "customer", "controller", Kind.PLAN, json.dumps({**parts, **change}).encode())
        assert roles["controller"].waits_for() == ["customer"]


def test_a_stop_ends_the_run_and_names_the_culprit():
    roles = make_roles(Algorithm("ucb"), MEANS, 30, 0)
    stop = {sealed.receiver: sealed for sealed in roles["controller"].stop("owner-2", "it is gone")}["comp"]
    with pytest.raises(SecureError, match="controller stopped the run: it is gone") as caught:
        roles["comp"].handle("controller", stop.data)
    assert caught.value.culprit == "owner-2"
