"""One computation behind two faces: threads, luck, and the PettingZoo API's errors; see also test_conformance.py."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from fedbandit_envs.baselines.procurement import SSUCB
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds


def play(env, policy, seeds):
    """A whole episode's observations, rewards and regrets, as one list of arrays."""
    observation, _ = env.reset_batch(seeds)
    policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
    kept = []
    for _ in range(env.max_cycles):
        step = env.step_batch(policy.act(observation))
        observation = step.observation
        kept.append(
            [array.copy() for array in (*step.observation.values(), step.reward, *step.info.values())]
        )
    return kept


def assert_rows_equal(whole, part, rows):
    for in_whole, in_part in zip(whole, part, strict=True):
        for a, b in zip(in_whole, in_part, strict=True):
            np.testing.assert_array_equal(a[rows], b)


def test_replica_alone_equals_replica_of_a_hundred_on_one_and_two_threads(make_federation, make_peers):
    def of(seeds):
        return play(make_federation(max_cycles=12), make_peers(), seeds)

    whole = of(range(100))
    for i in (0, 37, 99):
        assert_rows_equal(whole, of([i]), slice(i, i + 1))
    with ThreadPoolExecutor(2) as threads:
        halves = list(threads.map(of, (range(50), range(50, 100))))
    assert_rows_equal(whole, halves[0], slice(0, 50))
    assert_rows_equal(whole, halves[1], slice(50, 100))


@pytest.mark.parametrize("market", ["uniform", "normal"])
def test_two_policies_under_one_seed_meet_the_same_luck(market, sample_actions):
    """Wherever two trajectories buy the same from a producer in the same round, as many units are good."""
    careful, careless = (parallel_env(max_cycles=200, market=market) for _ in range(2))
    policy = SSUCB()
    observation, _ = careful.reset_batch([5])
    careless.reset_batch([5])
    policy.reset(careful.policy_spec, row_seeds([5], careful.max_num_agents))
    compared = 0
    for action in sample_actions(careless, 1, seed=2, rounds=200):
        observation = careful.step_batch(policy.act(observation)).observation
        other = careless.step_batch(action).observation
        same = (observation["delivered"] == other["delivered"]) & (other["delivered"] > 0)
        np.testing.assert_array_equal(observation["good"][same], other["good"][same])
        # One more unit adds one good or one defective unit: outcomes are monotone in the quantity.
        more = observation["delivered"] >= other["delivered"]
        defective = observation["delivered"] - observation["good"]
        assert (observation["good"] >= other["good"])[more].all()
        assert (defective >= other["delivered"] - other["good"])[more].all()
        compared += same.sum()
    assert compared > 100


def test_keyed_face_refuses_other_agents_and_shapes():
    env = parallel_env(num_agents=2, num_producers=3)
    with pytest.raises(ResetNeeded):
        env.step({})
    env.reset(seed=0)
    good = np.ones(3, np.int64)
    with pytest.raises(ValueError, match=r"actions are of \['agent_0', 'nobody'\]; one action for each"):
        env.step({"agent_0": good, "nobody": good})
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        env.step({"agent_0": good, "agent_1": np.ones(2, np.int64)})
