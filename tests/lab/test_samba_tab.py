"""What the lab shows of SAMBA: the reward of the run in the open, and the time of each role."""

import pytest
from samba_runs import means_of, plain

from fedbandit_envs.experiments.spec import SettingsError
from fedbandit_envs.lab.samba import samba_outcome
from fedbandit_envs.samba.runs import SambaSettings

pytest.importorskip("phe", reason="the extra 'secure' is not installed")

ARMS, BUDGET, SEED = 5, 40, 3


@pytest.fixture(scope="module", params=["ucb", "epsilon-greedy", "pursuit"])
def played(request):
    from fedbandit_envs.samba import ciphers
    from fedbandit_envs.samba.owners import Algorithm

    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ciphers, "KEY_BITS", 512)
        outcome = samba_outcome(SambaSettings(request.param, "movielens", ARMS, BUDGET, SEED), told.append)
    result, noted = plain(Algorithm(request.param), means_of("movielens", ARMS), BUDGET, SEED)
    return outcome, result, noted


def test_the_reward_is_that_in_the_open(played):
    outcome, result, _ = played
    assert outcome.result["cumulative_reward"] == outcome.open_reward == result.reward


def test_time_is_that_of_four_roles(played):
    outcome, _, _ = played
    assert set(outcome.seconds) == {"customer", "controller", "comp", "owners"}
    assert sum(outcome.seconds.values()) == pytest.approx(sum(outcome.result["cpu_seconds"].values()))


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
        samba_outcome(SambaSettings(algorithm, ratings, arms, budget, 0), print)


def test_without_a_seed_both_runs_have_the_same_secret_one(monkeypatch):
    from fedbandit_envs.samba import ciphers

    monkeypatch.setattr(ciphers, "KEY_BITS", 512)
    outcome = samba_outcome(SambaSettings("thompson", "jester", 3, 60, None), print)
    assert outcome.result["cumulative_reward"] == outcome.open_reward
    assert outcome.result["claim"]["noise"] == "secret"
