"""Contexts from pools, fixed features, a parameter for each arm, and logistic rewards.

Frequencies are compared at 6 standard errors, under fixed seeds: one in 10^8 sets of seeds would raise a false alarm.
"""

import numpy as np
import pytest
from linear_offers import copied, of_arms, random_rounds
from refusals import refusals

from fedbandit_envs.exposure_v0 import parallel_env as exposure_env
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Participation

POOL = {"name": "pool", "size": 30}


def logistic(**kwargs):
    return make_federation(
        "FedLogistic-v0", **{"num_agents": 5, "num_arms": 6, "dim": 4, "contexts": POOL, **kwargs}
    )


def fixed(**kwargs):
    return make_federation("FedFixed-v0", **{"num_agents": 5, "num_arms": 6, **kwargs})


# Pools


def given():
    return fixed(contexts=np.full((3, 4, 2), 0.1).tolist(), num_agents=None, num_arms=None, dim=None)


@pytest.mark.parametrize("make", [logistic, fixed, given])
def test_data_by_the_number_of_a_vector_are_all_data(make):
    env = make()
    size = env.single_observation_space["pool_pulls"].shape[0]
    pulls, rewards = np.zeros((2, 2, env.max_num_agents, size))
    rounds = list(random_rounds(env, 12))
    seen = rounds[-1][-1]
    for before, arm, reward, *_ in rounds:
        place = (*np.indices(arm.shape), of_arms(before["pool_index"], arm))
        pulls[place] += 1
        rewards[place] += reward
    np.testing.assert_array_equal(seen["pool_pulls"], pulls)
    np.testing.assert_allclose(seen["pool_rewards"], rewards, rtol=1e-12)


def test_vectors_are_offered_uniformly_with_replacement():
    env = logistic(num_agents=50, num_arms=8)
    counts, repeated = np.zeros(30), 0
    observation = env.reset_batch(range(4)).observation
    for _ in range(50):
        index = observation["pool_index"]
        counts += np.bincount(index.ravel(), minlength=30)
        repeated += (np.diff(np.sort(index, axis=-1), axis=-1) == 0).any(axis=-1).sum()
        observation = env.step_batch(np.zeros((4, 50), np.int64)).observation
    n = counts.sum()
    assert np.abs(counts - n / 30).max() < 6 * np.sqrt(n / 30)
    # The probability that two of 8 draws from 30 are equal.
    chance = 1 - np.prod(1 - np.arange(8) / 30)
    assert repeated / 10_000 == pytest.approx(chance, abs=6 * np.sqrt(chance * (1 - chance) / 10_000))


def test_pools_follow_from_the_instance_and_offers_from_the_episode():
    env = logistic(instance_seed=7)
    first, second = (copied(env.reset_batch([seed]).observation) for seed in (1, 2))
    pools = []
    for seed in (1, 2):
        env.reset_batch([seed])
        pools.append(env._distribution._pool.copy())
    np.testing.assert_array_equal(*pools)
    assert (first["pool_index"] != second["pool_index"]).any()
    env = logistic()
    env.reset_batch([1])
    assert (env._distribution._pool != pools[0]).any()


def test_agents_that_do_not_act_pull_nothing():
    env = Participation(logistic(), "in_turn")
    observation = env.reset_batch([0]).observation
    for _ in range(7):
        observation = env.step_batch(np.ones((1, 5), np.int64)).observation
    assert observation["pool_pulls"].sum(axis=-1).tolist() == [[2, 2, 1, 1, 1]]


# Fixed features


def test_features_are_separated_and_stay():
    env = fixed(num_agents=40, dim=3)
    before = copied(env.reset_batch([0]).observation)
    after = env.step_batch(np.ones((1, 40), np.int64)).observation
    np.testing.assert_array_equal(before["contexts"], after["contexts"])
    x = before["contexts"][0]
    first = x[..., 0]
    best = first.argmax(axis=-1)
    assert (best < 5).all()
    assert len(np.unique(best)) > 3
    assert ((np.sort(first, axis=-1)[:, -1] >= 0.7) & (np.sort(first, axis=-1)[:, -1] <= 0.8)).all()
    others = np.sort(first, axis=-1)[:, :-1]
    assert ((others >= 0.5) & (others <= 0.6)).all()
    assert (x[..., 1:] >= 0).all()
    assert (x[..., 1:] <= 0.4).all()
    assert (x[np.arange(40), best, 1:] <= 0.3).all()
    assert x[..., 1:].max() > 0.38


# A parameter for each arm


@pytest.mark.parametrize("contexts", ["separated", "pool", "unit_ball"])
def test_each_arm_has_its_own_parameter(contexts):
    parameter = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8]])
    env = fixed(num_arms=3, dim=2, parameter=parameter.tolist(), contexts=contexts, reward_sd=0.0)
    for before, arm, reward, info, after in random_rounds(env, 4):
        means = (before["contexts"] * parameter).sum(axis=-1)
        np.testing.assert_allclose(reward, of_arms(means, arm))
        np.testing.assert_allclose(info["regret"], means.max(axis=-1) - of_arms(means, arm), atol=1e-15)
        best = (after["contexts"] * parameter).sum(axis=-1).argmax(axis=-1)
        np.testing.assert_array_equal(env.clairvoyant(after), best)
    assert env.hidden()["parameter"].shape == (2, 5, 3, 2)
    assert env.hidden_space["parameter"].contains(env.hidden()["parameter"][0, 0])


test_wrong_arguments_are_refused = refusals(
    lambda wrong: parallel_env(
        **{"num_arms": 4, "num_agents": 2, "dim": 2, "contexts": "unit_ball", "reward": "normal", **wrong}
    ),
    ({"parameter": [[1.0, 0.0]] * 3, "num_arms": 4, "dim": None}, "num_arms is 4; None or 3"),
    ({"parameter": [[1.0, 1.0]] * 4, "dim": None}, "norm of at most 1"),
    ({"parameter": np.zeros((1, 1, 2)).tolist()}, r"parameter has shape \(1, 1, 2\); \(dim,\) or \(num_arms, dim"),
    ({"parameter": [[1.0, 0.0]] * 4, "contexts": "band", "dim": None}, "required with contexts='band'"),
    (
        {"parameter": [[1.0, 0.0]] * 4, "contexts": [[0.0] * 2] * 3, "dim": None, "num_arms": None},
        r"parameter has shape \(4, 2\), contexts have shape \(3, 2\)",
    ),
    ({"contexts": "separated", "dim": 1}, "num_arms is 4 and dim 1; at least 2 dimensions and 2 arms"),
    ({"contexts": {"name": "pool", "size": 0}}, "contexts size is 0"),
    ({"reward": "logistic", "reward_offset": 0.5}, "reward_offset must be 0"),
    *(
        ({"contexts": "sphere_and_bias", "num_arms": arms, "dim": dim}, f"dim {dim}; at least 2 dimensions")
        for arms, dim in ((3, 4), (5, 1))
    ),
    ({"parameter": "sphere_without_bias", "dim": 1}, "dim 1; at least 2 dimensions"),
    error=ValueError,
)  # fmt: skip


# Logistic rewards


def test_rewards_are_1_with_the_logistic_probability():
    env = logistic(num_agents=20, num_arms=2, contexts="unit_ball", instance_seed=1, context_bound=3.0)
    errors = variance = 0.0
    for before, arm, reward, info, _ in random_rounds(env, 20, range(50)):
        theta = env.hidden()["parameter"][:, :, np.newaxis]
        chances = 1 / (1 + np.exp(-(before["contexts"] * theta).sum(axis=-1)))
        chance = of_arms(chances, arm)
        assert set(np.unique(reward)) == {0.0, 1.0}
        errors += (reward - chance).sum()
        variance += (chance * (1 - chance)).sum()
        np.testing.assert_allclose(info["regret"], chances.max(axis=-1) - chance, atol=1e-12)
    assert abs(errors) < 6 * np.sqrt(variance)


def test_what_is_public_of_rewards():
    slope = np.exp(-np.sqrt(2)) / (1 + np.exp(-np.sqrt(2))) ** 2
    least = {"least_slope": pytest.approx(slope)}
    bounded, normal = {"noise_sd": 0.5, "reward_variance": 0.25}, {"noise_sd": 1.0, "reward_variance": 1.0}
    assert logistic().public == {"fixed": False, "reward": "logistic", **bounded, **least}
    assert fixed().public == given().public == {"fixed": True, "reward": "normal", "reward_sd": 1.0, **normal}
    assert parallel_env().public == {
        "fixed": False,
        "reward": "beta",
        "noise_sd": 0.5,
        "reward_variance": 0.125,
    }


def test_exposure_knows_neither():
    for wrong in ({"reward": "logistic"}, {"parameter": [[1.0] + [0.0] * 4] * 10}):
        with pytest.raises(ValueError, match="linear in one parameter"):
            exposure_env(**wrong)
