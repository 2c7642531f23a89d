"""What happens in rounds of arms and of exposure has the law that it is said to have, and is an agent's own.

Laws are tested at 1e-4 each, under fixed seeds: of the 4 tests one in 2,500 would raise a false alarm.
"""

import numpy as np
import pytest
from scipy import stats

from fedbandit_envs import arms_v0, exposure_v0
from fedbandit_envs.wrappers.participation import Participation

LEVEL = 1e-4
REPLICAS, AGENTS, ROUNDS = 200, 10, 40


def test_arms_succeed_as_often_as_their_means_say():
    means = np.array([0.0, 0.003, 0.1, 0.5, 0.77, 0.999, 1.0])
    env = arms_v0.parallel_env(means=means.tolist(), num_agents=AGENTS, slots=7, max_cycles=ROUNDS)
    env.reset_batch(range(REPLICAS))
    everything = np.broadcast_to(np.arange(7), (REPLICAS, AGENTS, 7))
    for _ in range(ROUNDS):
        observation = env.step_batch(everything).observation
    good, pulls = observation["total_successes"].sum(axis=(0, 1)), REPLICAS * AGENTS * ROUNDS
    assert (good[0], good[-1]) == (0, pulls)
    inside = slice(1, -1)
    z = (good - pulls * means)[inside] / np.sqrt(pulls * means * (1 - means))[inside]
    assert stats.chi2(5).sf(np.square(z).sum()) > LEVEL
    # Neither agents nor replicas are luckier than others.
    part = observation["total_successes"][..., 3]
    z = (part - ROUNDS / 2) / np.sqrt(ROUNDS / 4)
    assert stats.chi2(part.size).sf(np.square(z).sum()) > LEVEL


def test_arms_wake_independently():
    """All 2^4 patterns of four arms, over rows and rounds."""
    env = arms_v0.parallel_env(num_arms=4, num_agents=AGENTS, awake=0.3, max_cycles=ROUNDS)
    observation = env.reset_batch(range(REPLICAS)).observation
    counts = np.zeros(16)
    for _ in range(ROUNDS):
        counts += np.bincount((observation["awake"] @ (1 << np.arange(4))).ravel(), minlength=16)
        observation = env.step_batch(np.zeros((REPLICAS, AGENTS), np.int64)).observation
    some = np.array([bin(pattern).count("1") for pattern in range(16)])
    assert stats.chisquare(counts, counts.sum() * 0.3**some * 0.7 ** (4 - some)).pvalue > LEVEL


def test_arms_are_drawn_by_their_shares():
    shares = np.array([0.0, 0.5, 0.001, 0.3, 0.199, 0.0])
    env = exposure_v0.parallel_env(num_arms=6, num_agents=AGENTS, max_cycles=ROUNDS)
    env.reset_batch(range(REPLICAS))
    counts = np.zeros(6)
    for _ in range(ROUNDS):
        step = env.step_batch(np.broadcast_to(shares, (REPLICAS, AGENTS, 6)))
        counts += np.bincount(step.info["arm"].ravel(), minlength=6)
    assert counts[[0, 5]].sum() == 0
    assert stats.chisquare(counts[1:5], counts.sum() * shares[1:5]).pvalue > LEVEL


MAKE = {
    "arms": lambda: arms_v0.parallel_env(num_agents=3, num_arms=5, awake=0.6, instance_seed=1),
    "exposure": lambda: exposure_v0.parallel_env(num_agents=3, num_arms=5, instance_seed=1),
}


@pytest.mark.parametrize("name", MAKE)
def test_agents_in_turn_meet_in_their_own_rounds_what_they_would_have_met_together(name, sample_actions):
    together, turns = MAKE[name](), Participation(MAKE[name](), "in_turn")
    same = [array[:, :1] for array in sample_actions(together, 2, seed=3, rounds=8)]
    together.reset_batch([4, 9])
    observation = turns.reset_batch([4, 9]).observation
    rewards = np.zeros((8, 2, 3))
    expected = np.array([together.step_batch(np.repeat(one, 3, axis=1)).reward.copy() for one in same])
    for t in range(24):
        active = observation["active"][..., 0].copy()
        step = turns.step_batch(np.repeat(same[t // 3], 3, axis=1))
        rewards[t // 3] += np.where(active, step.reward, 0.0)
        observation = step.observation
    assert expected.any()
    np.testing.assert_array_equal(rewards, expected)
