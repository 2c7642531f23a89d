"""What each role could read of its messages, in words: that of its part, and no more."""

import pytest
from samba_runs import make_roles, means_of, plain, play, streams_of

from fedbandit_envs.samba.messages import sightings
from fedbandit_envs.samba.owners import Algorithm

pytest.importorskip("phe", reason="the extra 'secure' is not installed")

ARMS, BUDGET, SEED = 5, 40, 3


@pytest.fixture(scope="module", params=["ucb", "epsilon-greedy", "pursuit"])
def played(request):
    from fedbandit_envs.samba import messages

    algorithm, means = Algorithm(request.param), means_of("movielens", ARMS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "KEY_BITS", 512)
        roles = make_roles(algorithm, means, BUDGET, SEED, [1] * ARMS, transcripts=True)
        play(roles)
    transcripts = {name: role.record for name, role in roles.items()}
    return transcripts, *plain(algorithm, means, BUDGET, SEED)


def test_an_owner_reads_when_it_is_picked(played):
    transcripts, result, noted = played
    for place in range(ARMS):
        seen = sightings(f"owner-{place}", transcripts[f"owner-{place}"])
        assert [one["kind"] for one in seen] == ["plan", *["marks"] * len(noted)]
        read = [one["read"] for one in seen[1:]]
        assert read == ["picked" if one.picked[place] else "not picked" for one in noted]
        assert all(one["opened"] for one in seen[1:])
        if len(noted) == BUDGET - ARMS:
            # Of one iteration a round: besides, every arm is pulled once first.
            assert read.count("picked") + 1 == result.pulls[place]


def test_comp_reads_masked_scores_and_controller_s_own(played):
    transcripts, _, noted = played
    streams = streams_of(SEED, ARMS)
    seen = sightings("comp", transcripts["comp"])[1:]
    assert [one["opened"] for one in seen] == [one.scores is not None for one in noted]
    for one, truth in zip(seen, noted, strict=True):
        if truth.scores is None:
            assert "explores" in one["read"]
            continue
        at = truth.round, truth.iteration
        masked = streams.masks.uniform(*at) * truth.scores
        shown = ", ".join(f"{score:.4g}" for score in masked[streams.permutations.order(*at)])
        assert one["read"].rpartition(": ")[2] == shown


def test_controller_can_open_nothing_and_the_customer_the_total(played):
    transcripts, result, _ = played
    seen = sightings("controller", transcripts["controller"])
    assert {one["kind"] for one in seen} == {"plan", "scores", "marks", "sums"}
    assert all(one["read"].startswith("cannot open it") for one in seen if one["kind"] != "plan")
    assert [(one["number"], one["opened"]) for one in seen] == [(n, False) for n in range(1, len(seen) + 1)]
    (one,) = sightings("customer", transcripts["customer"])
    assert (one["kind"], one["sender"], one["opened"]) == ("total", "controller", True)
    assert one["read"] == f"the cumulative reward, {result.reward:,}"
