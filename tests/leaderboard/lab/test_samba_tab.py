"""What the lab shows of SAMBA: the reward of the run in the open, and what each role saw and no more."""

import pytest
from samba_runs import means_of, plain, streams_of

from fedbandit_envs.leaderboard.lab.samba import KNOWS, samba_outcome, sightings
from fedbandit_envs.leaderboard.runs.spec import SettingsError

pytest.importorskip("phe", reason="the extra 'secure' is not installed")

ARMS, BUDGET, SEED = 5, 40, 3


@pytest.fixture(scope="module", params=["ucb", "epsilon-greedy", "pursuit"])
def played(request):
    from fedbandit_envs.samba.crypto import paillier
    from fedbandit_envs.samba.owners.algorithm import Algorithm

    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paillier, "KEY_BITS", 512)
        outcome = samba_outcome(request.param, "movielens", ARMS, BUDGET, SEED, told.append)
    result, noted = plain(Algorithm(request.param), means_of("movielens", ARMS), BUDGET, SEED)
    return outcome, result, noted


def test_the_reward_is_that_in_the_open(played):
    outcome, result, _ = played
    assert outcome.result["cumulative_reward"] == outcome.open_reward == result.reward


def test_time_is_that_of_four_roles(played):
    outcome, _, _ = played
    assert set(outcome.seconds) == {"customer", "controller", "comp", "owners"}
    assert sum(outcome.seconds.values()) == pytest.approx(sum(outcome.result["cpu_seconds"].values()))


def test_every_role_has_words(played):
    assert {role.partition("-")[0] for role in played[0].transcripts} == set(KNOWS)
    assert len(played[0].transcripts) == 3 + ARMS


def test_an_owner_reads_when_it_is_picked(played):
    outcome, result, noted = played
    for place in range(ARMS):
        seen = sightings(f"owner-{place}", outcome.transcripts[f"owner-{place}"])
        assert [one["kind"] for one in seen] == ["plan", *["marks"] * len(noted)]
        read = [one["read"] for one in seen[1:]]
        assert read == ["picked" if one.picked[place] else "not picked" for one in noted]
        assert all(one["opened"] for one in seen[1:])
        if len(noted) == BUDGET - ARMS:
            # Of one iteration a round: besides, every arm is pulled once first.
            assert read.count("picked") + 1 == result.pulls[place]


def test_comp_reads_masked_scores_and_controller_s_own(played):
    outcome, _, noted = played
    streams = streams_of(SEED, ARMS)
    seen = sightings("comp", outcome.transcripts["comp"])[1:]
    assert [one["opened"] for one in seen] == [one.scores is not None for one in noted]
    for one, truth in zip(seen, noted, strict=True):
        if truth.scores is None:
            assert "explores" in one["read"]
            continue
        at = truth.round, truth.iteration
        masked = streams.masks.uniform(*at) * truth.scores
        shown = ", ".join(f"{score:.4g}" for score in masked[streams.permutations.order(*at)])
        assert one["read"].rpartition(": ")[2] == shown


def test_controller_can_open_nothing(played):
    outcome, _, _ = played
    seen = sightings("controller", outcome.transcripts["controller"])
    assert not any(one["opened"] for one in seen)
    assert {one["kind"] for one in seen} == {"plan", "scores", "marks", "sums"}
    assert all(one["read"].startswith("cannot open it") for one in seen if one["kind"] != "plan")
    assert [one["number"] for one in seen] == list(range(1, len(seen) + 1))


def test_the_customer_reads_the_total_alone(played):
    outcome, result, _ = played
    (one,) = sightings("customer", outcome.transcripts["customer"])
    assert (one["kind"], one["sender"], one["opened"]) == ("total", "controller", True)
    assert one["read"] == f"the cumulative reward, {result.reward:,}"


@pytest.mark.parametrize(
    ("algorithm", "ratings", "arms", "budget", "message"),
    [
        ("reinforcement-comparison", "movielens", 3, 9, "needs other owners' data"),
        ("nothing", "movielens", 3, 9, "algorithm is 'nothing'"),
        ("ucb", "movielens", 9, 3, "budget is 3"),
        ("ucb", "movielens", 10**6, 2 * 10**6, "num_arms|arms"),
        ("ucb", "nowhere.data", 3, 9, "nowhere.data"),
        ("ucb", "movielens", None, 9, "num_arms|arms"),
        ("ucb", "movielens", 3, None, "budget is None"),
    ],
)
def test_what_cannot_be_run_is_a_sentence(algorithm, ratings, arms, budget, message):
    with pytest.raises(SettingsError, match=message):
        samba_outcome(algorithm, ratings, arms, budget, 0)


def test_without_a_seed_both_runs_have_the_same_secret_one(monkeypatch):
    from fedbandit_envs.samba.crypto import paillier

    monkeypatch.setattr(paillier, "KEY_BITS", 512)
    outcome = samba_outcome("thompson", "jester", 3, 60, None)
    assert outcome.result["cumulative_reward"] == outcome.open_reward
    assert outcome.result["claim"]["noise"] == "secret"
