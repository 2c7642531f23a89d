"""Rewards to learn from: by hand, through every view, and what is refused."""

import gymnasium
import numpy as np
import pytest
from played import begun
from refusals import refusals
from registered import small

from fedbandit_envs.arms_v0 import parallel_env as arms_env
from fedbandit_envs.procurement_v0 import parallel_env as procurement_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing.episodes import SEEDS, random_choices
from fedbandit_envs.wrappers import Channel, LearningReward

SIZES = {"num_agents": 3, "num_producers": 4, "max_cycles": 30, "quality_threshold": 0.6}
STACK = [
    ["fedbandit_envs.wrappers:Channel", {"schedule": "on_request"}],
    ["fedbandit_envs.wrappers:LearningReward", {"prices": {"violation": 0.5, "messages": 0.125}}],
]


def random_actions(env, seeds=SEEDS, rounds=12):
    return random_choices(env.single_action_space, (len(seeds), env.max_num_agents), rounds)


def test_procurement_by_hand():
    """Revenue over the largest there is in that market, less what violations and messages cost."""
    inside = Channel(procurement_env(**SIZES), schedule={"name": "fixed_gap", "gap": 3})
    bare = Channel(procurement_env(**SIZES), schedule={"name": "fixed_gap", "gap": 3})
    env = LearningReward(inside, prices={"violation": 0.5, "messages": 0.125})
    seen = env.reset_batch(SEEDS).observation
    bare.reset_batch(SEEDS)
    best = ((1 - seen["cost"]) * seen["capacity"]).sum(-1)
    worst = (seen["cost"] * seen["capacity"]).sum(-1)
    scale = np.maximum(best, worst)
    violations = 0
    for t, action in enumerate(random_actions(env, rounds=30), 1):
        step, raw = env.step_batch(action), bare.step_batch(action)
        np.testing.assert_array_equal(step.info["raw_reward"], raw.reward)
        assert (np.abs(raw.reward) <= scale).all()
        sent = 2 * (t % 3 == 0)
        expected = raw.reward / scale - 0.5 * raw.info["violation"] - 0.125 * sent
        np.testing.assert_allclose(step.reward, expected, rtol=0, atol=1e-12)
        violations += raw.info["violation"].sum()
    assert violations > 0


def test_scaled_rewards_reach_their_ends():
    """The largest and the least reward there can be, in markets where all units are good, or none is."""
    for quality, end in ((1.0, 1.0), (0.0, -1.0)):
        cost = np.full((2, 3), 0.25 if quality else 0.75)
        market = {"quality": [quality] * 3, "cost": cost, "capacity": [[5, 0, 7], [1, 2, 3]]}
        env = begun(LearningReward(procurement_env(market=market, max_cycles=3)))
        everything = np.array([[[5, 0, 7], [1, 2, 3]]])
        np.testing.assert_allclose(env.step_batch(everything).reward, end, atol=1e-12)
        np.testing.assert_array_equal(env.step_batch(0 * everything).reward, 0.0)


def test_where_nothing_can_be_earned_nothing_is_paid():
    market = {"quality": [0.5], "cost": [[0.5], [0.5]], "capacity": [[0], [3]]}
    env = begun(LearningReward(procurement_env(market=market, max_cycles=3)))
    reward = env.step_batch(np.array([[[0], [3]]])).reward
    assert reward[0, 0] == 0
    assert reward[0, 1] != 0


def test_every_problem_says_how_large_rewards_are(env_id):
    env = begun(LearningReward(make_federation(env_id, **small(env_id))), SEEDS)
    assert (env.largest_reward() == 1).all()
    for action in random_actions(env):
        assert np.abs(env.step_batch(action).reward).max() <= 1


@pytest.mark.parametrize("joint", [False, True])
def test_views_pay_it(joint):
    """Written as JSON in a stack: a learner that sends is paid less by the price, and is told the raw reward."""
    kwargs = {"stack": STACK, "action_format": "index_and_send", "joint": joint, "peers_send": "silent"}
    if joint:
        del kwargs["peers_send"]
    sending = [gymnasium.make("FedProcurement-v0", features=True, **SIZES, **kwargs) for _ in range(2)]
    assert gymnasium.spec("FedProcurement-v0").to_json()
    sending[0].spec.to_json()
    paid = []
    for env, send in zip(sending, (0.0, 1.0), strict=True):
        env.reset(seed=1)
        action = np.full(env.action_space.shape, 0.75, np.float32)
        action[..., -1] = send
        _, reward, _, _, info = env.step(action)
        assert (np.asarray(info["raw_reward"]) != 0).any()
        paid.append(reward)
    agents = 3 if joint else 1
    assert paid[0] - paid[1] == pytest.approx(agents * 2 * 0.125)


test_bad_arguments_are_named = refusals(
    lambda kwargs: LearningReward(arms_env(), **kwargs).reset_batch([0]),
    ({"prices": {"messages": 1.0}}, ValueError, "a name in prices is 'messages'; one of 'regret'"),
    ({"prices": {"regret": -1.0}}, ValueError, r"prices\['regret'\] is -1.0"),
)


def test_one_is_enough_and_scales_must_be_known():
    with pytest.raises(ValueError, match="env has a LearningReward already"):
        LearningReward(LearningReward(arms_env()))

    class Unsaid(type(arms_env())):
        def _largest_reward(self):
            return None

    with pytest.raises(ValueError, match="env knows no largest reward"):
        LearningReward(Unsaid()).reset_batch([0])
