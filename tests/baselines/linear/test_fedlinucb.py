"""FedLinUCB and Async-LinUCB against plain numpy, round by round, and what they need around them."""

import numpy as np
import pytest
from asynchronous_references import AsyncLinUCBReference, FedLinUCBReference
from played import refused

from fedbandit_envs.baselines.linear.feducb import AsyncLinUCB, FedLinUCB
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import Channel, Participation, Server

AGENTS, DIM, ARMS = 5, 6, 12
PROBLEM = {
    "num_agents": AGENTS, "num_arms": ARMS, "dim": DIM, "contexts": "signed_hypercube", "parameter": "diagonal",
    "reward": "normal", "reward_sd": 0.3, "reward_bound": 5.0,
}  # fmt: skip


def side_by_side(env, policy, reference, rounds, seed=0):
    """Plays policy and reference on the same contexts and noise; yields nothing but asserts equal actions."""
    observation = env.reset_batch([seed]).observation
    policy.reset(env.policy_spec, row_seeds([seed], AGENTS))
    messages = np.zeros(AGENTS, int)
    for t in range(rounds):
        (agent,) = np.flatnonzero(observation["active"][0, :, 0])
        action = policy.act(observation)
        arm = reference.pull(agent, observation["contexts"][0, agent])
        assert action["action"][0, agent] == arm, t
        assert not np.delete(action["send"][0], agent).any()
        step = env.step_batch({"action": action["action"].copy(), "send": action["send"].copy()})
        observation = step.observation
        reference.learn(agent, observation["last_reward"][0, agent, 0])
        messages += step.info["messages"][0]
        np.testing.assert_array_equal(messages, reference.messages, err_msg=f"round {t}")
        assert (step.info["regret"][0] > 0).sum() <= 1
    return messages


@pytest.mark.parametrize(("law", "alpha", "growth"), [("uniform", 1.0, 6.0), ("in_turn", 0.04, 1.5)])
def test_they_are_their_listings(law, alpha, growth):
    inside = Participation(parallel_env(**PROBLEM, max_cycles=800), law)
    env, reference = Server(inside, "on_request"), FedLinUCBReference(AGENTS, DIM, alpha, 0.5, 1.0)
    assert side_by_side(env, FedLinUCB(alpha=alpha, beta=0.5), reference, 800).sum() > 50
    env = Server(inside, "on_request", {"name": "determinant", "growth": growth}, echo=False)
    reference = AsyncLinUCBReference(AGENTS, DIM, growth, growth, 0.5, 1.0)
    assert side_by_side(env, AsyncLinUCB(growth=growth, beta=0.5), reference, 800).sum() > 20


def test_the_radius_of_the_theory():
    """He et al. 2022, Theorem 5.1, by hand: M = 5, alpha = 1/25, T = 5000, L = 1."""
    policy = FedLinUCB()
    env = Server(Participation(parallel_env(**PROBLEM, max_cycles=5000)), "on_request")
    policy.reset(env.policy_spec, row_seeds([0], AGENTS))
    inside = np.log((1 + 5000 / (1 / 25)) / 0.01)
    expected = 1 + (np.sqrt(1 + 1 / 5) + 5 * np.sqrt(2 / 25)) * (0.3 * np.sqrt(DIM * inside) + 1)
    assert policy._constant == pytest.approx(expected)
    assert policy._growth == pytest.approx(1 / 25)


@pytest.mark.parametrize(("policy", "around"), [
    (FedLinUCB(), lambda env: env),
    (FedLinUCB(), lambda env: Channel(env, schedule="on_request")),
    (FedLinUCB(), lambda env: Server(env, "every_round")),
    (FedLinUCB(), lambda env: Server(env, "on_request", echo=False)),
    (AsyncLinUCB(), lambda env: Server(env, "on_request")),
    (AsyncLinUCB(), lambda env: Channel(env)),
])  # fmt: skip
def test_a_server_that_can_be_asked_is_needed(policy, around):
    refused(policy, around(parallel_env(**PROBLEM)), "a Server with schedule='on_request' and echo=")
