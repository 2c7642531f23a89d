"""What each role, and an observer, gets to see, and to read in words: no more than SAMBA's Figure 7 allows.

Transcripts are written where links and ciphers open, and compared with the same run in the open.
"""

from struct import pack
from typing import NamedTuple

import numpy as np
import pytest
from samba_runs import ALGORITHMS, Noted, make_roles, means_of, plain, play, streams_of

from fedbandit_envs.samba import messages
from fedbandit_envs.samba.keys import deal_keys
from fedbandit_envs.samba.messages import MARK, SCORE, Frame, Kind, Record, sightings
from fedbandit_envs.samba.owners import Algorithm, VerticalResult

ARMS, BUDGET, SEED = 12, 72, 11
MEANS = means_of("movielens", ARMS)


class Seen(NamedTuple):
    """A run, the same in the open, and what everybody saw."""

    name: str
    noted: list[Noted]
    open_result: VerticalResult
    transcripts: dict[str, Record]
    observed: list[Frame]


def watch(name: str, means: list[float] = MEANS, seed: int = SEED) -> Seen:
    """Runs SAMBA with an owner a role, and looks over everybody's shoulder."""
    result, noted = plain(Algorithm(name), means, BUDGET, seed)
    roles = make_roles(Algorithm(name), means, BUDGET, seed, [1] * ARMS, transcripts=True)
    observed: list[Frame] = []
    play(roles, observed)
    return Seen(name, noted, result, {name: role.record for name, role in roles.items()}, observed)


@pytest.fixture(scope="module", params=ALGORITHMS)
def seen(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "KEY_BITS", 512)
        return watch(request.param)


def kinds(transcript: Record) -> set[tuple[str, Kind]]:
    return {(peer, Kind(payload[0])) for peer, payload in transcript.received}


def submitted(seen: Seen) -> list[Noted]:
    return [one for one in seen.noted if one.scores is not None]


def scores_of(seen: Seen) -> list[float]:
    """All scores above 0, with their masks and without."""
    masks = streams_of(SEED, ARMS).masks
    scores = [(one.scores, masks.uniform(one.round, one.iteration) * one.scores) for one in submitted(seen)]
    return sorted({score for score in np.ravel(scores).tolist() if score > 0})


def test_comp_sees_masked_and_permuted_scores_alone(seen):
    streams = streams_of(SEED, ARMS)
    transcript = seen.transcripts["comp"]
    assert kinds(transcript) <= {("controller", kind) for kind in (Kind.PLAN, Kind.SCORES, Kind.COMMON_SCORE)}
    assert len(transcript.decrypted) == len(submitted(seen))
    for (bound, plain_items), one in zip(transcript.decrypted, submitted(seen), strict=True):
        at = one.round, one.iteration
        assert bound == SCORE.associated_data(*at)
        scores = np.frombuffer(plain_items, "<f8")
        masked = streams.masks.uniform(*at) * one.scores
        np.testing.assert_array_equal(scores, masked[streams.permutations.words(*at)])
        # A mask cannot hide a 0; nothing else is as it was.
        assert not np.isin(scores[scores > 0], one.scores).any()


def test_comp_sees_no_index(seen):
    own = {
        place: [payload[1:] for peer, payload in seen.transcripts["controller"].received
                if peer == f"owner-{place}" and payload[0] == Kind.SCORES]
        for place in range(ARMS)
    }  # fmt: skip
    width = SCORE.layout.itemsize
    for peer, payload in seen.transcripts["comp"].received:
        assert b"owner" not in payload
        if payload[0] != Kind.PLAN:
            assert (peer, len(payload)) == ("controller", 1 + ARMS * width)
    # Nonces say nothing of who drew them: none is used twice, and no byte of an owner's stays the same.
    nonces = np.array([[np.frombuffer(item[:12], np.uint8) for item in items] for items in own.values()])
    assert len({bytes(nonce) for nonce in nonces.reshape(-1, 12)}) == nonces.shape[0] * nonces.shape[1]
    if nonces.shape[1] > 20:
        # By chance 20 bytes are all alike in one of 256^19.
        assert (nonces.min(axis=1) < nonces.max(axis=1)).all()


def test_controller_opens_nothing(seen):
    transcript = seen.transcripts["controller"]
    assert transcript.decrypted == []
    expected = {("customer", Kind.PLAN), ("comp", Kind.MARKS)}
    for place in range(ARMS):
        expected |= {(f"owner-{place}", Kind.SCORES), (f"owner-{place}", Kind.SUMS)}
    assert kinds(transcript) == expected
    lengths = {(peer, payload[0], len(payload)) for peer, payload in transcript.received}
    assert len(lengths) == len(expected), "ciphertexts of constant length"
    everything = b"".join(payload for _, payload in transcript.received)
    assert not any(pack("<d", score) in everything for score in scores_of(seen))
    sums = [int.from_bytes(payload[1:]) for _, payload in transcript.received if payload[0] == Kind.SUMS]
    assert min(sums).bit_length() > 900


def test_owners_see_their_own_marks_alone(seen):
    for place in range(ARMS):
        transcript = seen.transcripts[f"owner-{place}"]
        assert kinds(transcript) == {("controller", Kind.PLAN), ("controller", Kind.MARKS)}
        assert {len(payload) for _, payload in transcript.received[1:]} == {1 + MARK.layout.itemsize}
        expected = [
            (MARK.associated_data(one.round, one.iteration), bytes([int(one.picked[place])]))
            for one in seen.noted
        ]
        assert transcript.decrypted == expected


def test_the_customer_sees_the_total_alone(seen):
    transcript = seen.transcripts["customer"]
    assert kinds(transcript) == {("controller", Kind.TOTAL)}
    assert len(transcript.received) == 1
    ((_, total),) = transcript.decrypted
    assert int.from_bytes(total, "big") == seen.open_result.reward


def test_an_observer_sees_nothing_but_lengths(seen):
    everything = b"".join(one.data for one in seen.observed)
    assert b"algorithm" not in everything
    for score in scores_of(seen):
        # 1.0, or 0.6875, is six zeros and two bytes: as, in a run of a hundred, a counter and what is sealed behind it.
        short = pack("<d", score).startswith(bytes(6))
        assert everything.count(pack("<d", score)) <= 2 * short
    for sent in seen.transcripts.values():
        for _, payload in sent.received:
            assert payload[1:] not in everything, "sealed payloads do not show"
    assert len({one.data for one in seen.observed}) == len(seen.observed)


def test_traffic_has_one_shape_whatever_the_data(seen):
    there = watch(seen.name, [0.0] * 6 + [1.0] * 6)
    shape, other = ([(*one[:2], len(one.data)) for one in one_run.observed] for one_run in (seen, there))
    assert shape == other


def test_rounds_that_explore_are_silent_and_of_one_score():
    seen = watch("epsilon-greedy", seed=4)
    streams = streams_of(4, ARMS)
    received = seen.transcripts["comp"].received
    common = [payload[1:] for _, payload in received if payload[0] == Kind.COMMON_SCORE]
    explored = [one.round for one in seen.noted if one.scores is None]
    assert explored
    size = ARMS * SCORE.layout.itemsize
    assert common == [pack("<d", streams.common_scores.uniform(t)).ljust(size, b"\0") for t in explored]
    senders = [peer for peer, _ in seen.transcripts["controller"].received]
    for place in range(ARMS):
        assert senders.count(f"owner-{place}") == len(seen.noted) - len(explored) + 1


def test_keys_are_held_by_those_who_need_them():
    rings = deal_keys(SEED, [1, 2])

    def held(name: str) -> set[bytes]:
        ring = rings[name]
        links = {key for keys in ring.links.values() for key in keys}
        return links | set(ring.secrets.values()) | {key for keys in ring.owners for key in keys}

    def shared(one: str, other: str) -> set[bytes]:
        return held(one) & held(other)

    mask, coin = rings["owner-0"].owners[0].mask, rings["owner-0"].owners[0].coin
    cipher = rings["comp"].secrets["cipher"]
    assert shared("owner-0", "owner-1") == {mask, coin, cipher}
    assert shared("owner-0", "comp") == shared("owner-1", "comp") == {cipher}
    assert shared("customer", "comp") == shared("customer", "owner-0") == set()
    for name in rings:
        if name != "controller":
            ends = {*rings[name].links["controller"]}
            assert shared(name, "controller") == ends | ({coin} if name.startswith("owner") else set())
            assert [*rings[name].links] == ["controller"]
    keys = [key for name in rings for key in held(name)]
    # Keys of the four links are held twice, so is the mask; cipher and coin thrice.
    assert len(set(keys)) == len(keys) - 8 - 1 - 2 - 2


def test_keys_of_links_and_items_are_fresh_those_that_decide_repeat():
    first, second = deal_keys(SEED, [2]), deal_keys(SEED, [2])
    assert first["owner-0"].owners == second["owner-0"].owners
    assert first["controller"].secrets == second["controller"].secrets
    assert first["comp"].secrets["choice"] == second["comp"].secrets["choice"]
    assert first["comp"].secrets["cipher"] != second["comp"].secrets["cipher"]
    for name in first:
        assert not {*sum(first[name].links.values(), ())} & {*sum(second[name].links.values(), ())}


def test_an_owner_reads_when_it_is_picked(seen):
    for place in range(ARMS):
        plan, *rows = sightings(f"owner-{place}", seen.transcripts[f"owner-{place}"])
        assert plan["kind"] == "plan"
        read = ["picked" if one.picked[place] else "not picked" for one in seen.noted]
        assert [(row["kind"], row["read"], row["opened"]) for row in rows] == [
            ("marks", one, True) for one in read
        ]


def test_comp_reads_masked_scores_and_controller_s_own(seen):
    rows = sightings("comp", seen.transcripts["comp"])[1:]
    assert [row["opened"] for row in rows] == [one.scores is not None for one in seen.noted]
    assert all(row["opened"] or "explores" in row["read"] for row in rows)
    read = [row["read"].rpartition(": ")[2] for row in rows if row["opened"]]
    decrypted = [np.frombuffer(items, "<f8") for _, items in seen.transcripts["comp"].decrypted]
    assert read == [", ".join(f"{score:.4g}" for score in scores) for scores in decrypted]


def test_controller_can_read_nothing_and_the_customer_the_total(seen):
    rows = sightings("controller", seen.transcripts["controller"])
    assert {row["kind"] for row in rows} == {"plan", "scores", "marks", "sums"}
    assert all(row["read"].startswith("cannot open it") for row in rows if row["kind"] != "plan")
    assert [(row["number"], row["opened"]) for row in rows] == [(n + 1, False) for n in range(len(rows))]
    (row,) = sightings("customer", seen.transcripts["customer"])
    assert (row["kind"], row["sender"], row["opened"]) == ("total", "controller", True)
    assert row["read"] == f"the cumulative reward, {seen.open_result.reward:,}"
