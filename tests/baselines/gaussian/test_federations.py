"""Federations of unlike agents decide as plain numpy programs do on the same rewards; and what they cost."""

import numpy as np
import pytest
from pairs import every_pair, every_second
from played import played, refused, wrapped
from shi_reference import PF, Epochs, Fed2, Leader

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.gaussian import NamedArm, PersonalPulls, PlannedPulls
from fedbandit_envs.baselines.servers.plans import complete
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Server

SEEDS = (0, 1, 2)
EASY = {"means": [0.0, 0.3, 0.5, 0.6], "law": "concentrated", "num_agents": 3, "reward_sd": 0.3}
SAMPLED = {"means": [0.3, 0.5, 0.6], "spread": 0.03, "num_agents": 40, "reward_sd": 0.3}
MIXED = {"means": [[1.0, 0.0, 0.7, 0.4], [0.0, 1.0, 0.3, 0.8], [0.2, 0.5, 0.9, 0.1]], "reward_sd": 0.5}


def play(name, env_id, rounds, server=None, **kwargs):
    """Arms, which agents act, rewards and information, round by round."""
    env = wrapped(name, make_federation(env_id, max_cycles=rounds, **kwargs), server)
    for arm, seen, step in played(env, BASELINES[name].make_policy(), SEEDS):
        active = seen.get("active", np.ones((3, env.max_num_agents, 1), bool))[..., 0]
        yield arm, active, step.reward.copy(), {k: v.copy() for k, v in step.info.items()}, env


def require_equal(rounds, twins):
    for t, (arm, active, reward, _, _) in enumerate(rounds):
        for r, twin in enumerate(twins):
            acting = zip(arm[r].tolist(), active[r].tolist(), strict=True)
            assert [k if acts else None for k, acts in acting] == [*twin.arms()], (t, r)
            twin.learn(reward[r])


@pytest.mark.parametrize("c", [4.0, 6.0])
def test_fed1_ucb_decides_like_the_twin(c):
    rounds = 2000
    each = int(10 * np.log(rounds))
    twins = [Fed2(3, 4, rounds, each, lambda p: 3 * (p == 1), c, c, 0.3, 0.0) for _ in SEEDS]
    require_equal(play("Fed1-UCB", "FedGaussian-v0", rounds, {"c1": c, "c2": c}, **EASY), twins)
    assert all(len(twin.left) == 1 and twin.phase > 1 for twin in twins)
    assert [twin.left for twin in twins] == [[3]] * 3


@pytest.mark.parametrize(("c1", "c2"), [(1.0, 1.0), (0.5, 2.0)])
def test_fed2_ucb_decides_like_the_twin(c1, c2):
    rounds = 1500
    twins = [Fed2(40, 3, rounds, 30, lambda p: 2**p, c1, c2, 0.3, 0.03) for _ in SEEDS]
    server = {"pulls": 30, "c1": c1, "c2": c2}
    require_equal(play("Fed2-UCB", "FedGaussianSampled-v0", rounds, server, **SAMPLED), twins)
    assert all(len(twin.left) == 1 for twin in twins)
    assert max(sum(twin.joins) for twin in twins) > 2


def test_agents_stop_joining_when_there_are_no_more():
    twins = [Fed2(5, 3, 600, 10, lambda p: 2**p, 1.0, 1.0, 0.3, 0.03) for _ in SEEDS]
    kwargs = {**SAMPLED, "num_agents": 5, "means": [0.5, 0.501, 0.502]}
    found = list(play("Fed2-UCB", "FedGaussianSampled-v0", 600, {"pulls": 10}, **kwargs))
    require_equal(found, twins)
    joined = np.array([info["agents_joined"] for *_, info, _ in found])
    assert (joined[0] == 2).all()
    assert (joined[-1] == 5).all()
    # Phases of 30 rounds, at whose end agents join.
    assert (joined[28] == 2).all()
    assert (joined[29] == 5).all()


@pytest.mark.parametrize(("enhanced", "alpha"), every_second(every_pair([False, True], [0.0, 0.3, 0.9, 1.0])))
def test_pf_ucb_decides_like_the_twin(alpha, enhanced):
    rounds = 4_500
    twins = [PF(3, 4, rounds, alpha, 1.0, 0.5, enhanced=enhanced) for _ in SEEDS]
    require_equal(play("PF-UCB", "FedMixed-v0", rounds, {"enhanced": enhanced}, regret=alpha, **MIXED), twins)
    assert all(twin.left is None for twin in twins)


def test_pf_ucb_with_slower_growth_and_another_constant_decides_like_the_twin():
    twins = [PF(3, 4, 2000, 0.5, 2.0, 0.5, growth=1.3) for _ in SEEDS]
    require_equal(play("PF-UCB", "FedMixed-v0", 2000, {"growth": 1.3, "c": 2.0}, regret=0.5, **MIXED), twins)
    assert min(twin.p for twin in twins) > 3


def test_epochs_decide_like_the_twin():
    twins = [Epochs(3, 4, 1000, 0.3) for _ in SEEDS]
    require_equal(play("Gaussian-epochs", "FedGaussian-v0", 1000, **EASY), twins)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_leader_against_challenger_decides_like_the_twin(alpha):
    twins = [Leader(3, 4, 100, alpha, 1.0, 0.5) for _ in SEEDS]
    require_equal(play("PF-leader", "FedMixed-v0", 100, regret=alpha, **MIXED), twins)


def test_a_phase_is_complete_once_all_agents_have_uploaded_in_it():
    heard = np.zeros((2, 2), np.bool_)
    some, rest = np.array([[True, False], [True, True]]), np.array([[False, True], [False, False]])
    found = [complete(heard, new).tolist() for new in (some, rest, some)]
    assert found == [[False, True], [True, False], [False, True]]


def test_agents_without_messages_and_with_all_of_them():
    """UCB on own rewards, and on all rewards: then all agents pull the same arm, by the average of their means."""
    for name, together in (("Gaussian-UCB", False), ("Gaussian-UCB-shared", True)):
        counts, sums = np.zeros((2, 3, 3, 4))
        for t, (arm, _, reward, _, _) in enumerate(play(name, "FedGaussian-v0", 300, **EASY), start=1):
            n, s = (array.sum(axis=1, keepdims=True) if together else array for array in (counts, sums))
            many = np.maximum(n, 1)
            index = np.where(n > 0, s / many + np.sqrt(2 * 0.09 * np.log(t) / many), np.inf)
            np.testing.assert_array_equal(arm, np.broadcast_to(index.argmax(axis=-1), arm.shape))
            pulled = np.arange(4) == arm[..., np.newaxis]
            counts += pulled
            sums += pulled * reward[..., np.newaxis]


def test_private_epochs_claim_no_more_than_was_asked_for():
    """Uploads at announced times, with shares of noise: at epsilon 1 for all 400 planned releases."""
    *_, (_, _, _, _, env) = play(
        "Gaussian-epochs-private", "FedGaussian-v0", 600, reward_bound=3.5, **{**EASY, "num_agents": 6}
    )
    claims = {(claim.trust, claim.observer): claim for claim in env.privacy_claims()}
    fellow = claims["aggregator", "fellow"]
    assert 0 < fellow.epsilon <= 1
    assert (fellow.delta, fellow.adjacency) == (1e-5, "one-observation")
    assert claims["local", "everybody"].epsilon > fellow.epsilon > claims["aggregator", "server"].epsilon


# What communication costs


@pytest.mark.parametrize(("policy", "wrap", "match"), [
    (PlannedPulls, lambda env: env, "a Server whose policy answers plans"),
    (PersonalPulls, lambda env: Server(env, "every_round", policy="average"), "a Server whose policy answers plans"),
    (PlannedPulls, lambda env: Server(env, policy="epochs"), "with schedule='announced'"),
    (NamedArm, lambda env: Server(env, policy="leader"), "with a schedule fixed in advance"),
    (NamedArm, lambda env: env, "a Server whose policy answers an arm"),
])  # fmt: skip
def test_policies_need_their_server(policy, wrap, match):
    refused(policy(), wrap(make_federation("FedMixed-v0")), match)


SINGLE = ["PF-UCB", "Fed1-UCB", "PF-leader", "Fed-PE", "UCB-GLM-shared", "OFUL-disjoint-shared"]


@pytest.mark.parametrize("name", SINGLE)
def test_stages_are_refused_where_a_server_must_know_whose_upload_is_whose(name):
    env = make_federation(BASELINES[name].only or "FedMixed-v0")
    with pytest.raises(ValueError, match="stage is 'shuffler'; None is required"):
        BASELINES[name].wrap(env, {"server": {"stage": "shuffler"}})
