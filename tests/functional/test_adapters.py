"""The twin behind Gymnasium's functional API and JaxMARL's: their own loops run it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.functional_jax_env import FunctionalJaxEnv, FunctionalJaxVectorEnv

from fedbandit_envs.functional import make
from fedbandit_envs.functional.adapters import ByAgent, Gymnax, OneAgent

# Observations of arms in the order of names: inbox_mask, round, then pulls and successes of each arm.
ROUND, PULLS = 1, slice(2, 6)


def test_gymnasium_s_vector_loop_begins_new_episodes():
    one = OneAgent(make("FedArms-v0", num_agents=1, num_arms=4), instances=20)
    env = FunctionalJaxVectorEnv(one, num_envs=3, max_episode_steps=4)
    one.transform(jax.jit)
    observation, _ = env.reset(seed=5)
    assert env.observation_space.contains(np.asarray(observation))
    rounds, rewards = [], []
    for step in range(11):
        observation, reward, terminated, _, info = env.step(jnp.array([0, 1, step % 4]))
        assert not terminated.any()
        assert (info["regret"] >= 0).all()
        np.testing.assert_array_equal(observation[:, PULLS].sum(axis=1), observation[:, ROUND])
        rounds.append(observation[:, ROUND].tolist())
        rewards += reward.tolist()
    # After the last round of an episode Gymnasium's next step begins a new one.
    assert rounds == [[t] * 3 for t in (1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1)]
    assert set(rewards) == {0.0, 1.0}


def test_gymnasium_s_single_loop_plays_the_twin_s_rounds():
    twin = make("FedProcurement-v0", num_agents=1, num_producers=3)
    env = FunctionalJaxEnv(OneAgent(twin, instances=5))
    env.reset(seed=1)
    state = env.func_env._state(env.state)
    params, state = state["params"], state["state"]
    for t in range(3):
        action = np.array([t, 1, 2])
        state, _, reward, info = twin.step(params, state, action[np.newaxis])
        _, paid, _, _, told = env.step(action)
        assert paid == pytest.approx(float(reward[0]))
        assert float(told["regret"]) == float(info["regret"][0])


@pytest.mark.parametrize("adapter", [OneAgent, Gymnax])
def test_federations_have_one_agent_only(adapter):
    with pytest.raises(ValueError, match="env has num_agents=10; 1 is required"):
        adapter(make("FedArms-v0"))


def check_gymnax_episodes(rounds, pulls, actions, rewards):
    """Holds that 9 rounds of many environments are episodes of 4; ``rounds`` and ``pulls`` are seen after each."""
    np.testing.assert_array_equal(rounds, np.tile([1, 2, 3, 0, 1, 2, 3, 0, 1], (len(rounds), 1)))
    for t in range(9):
        since = actions[:, t // 4 * 4 : t + 1] if rounds[0, t] else actions[:, :0]
        np.testing.assert_array_equal(pulls[:, t], np.stack([(since == k).sum(axis=1) for k in range(2)], 1))
    assert set(np.unique(rewards)) == {0, 1}
    # Outcomes are new in every episode.
    assert (rewards[:, :4] != rewards[:, 4:8]).any()


def test_gymnax_s_steps_begin_new_episodes():
    env = Gymnax(make("FedArms-v0", num_agents=1, num_arms=2), instances=20)
    params = env.default_params.replace(max_steps_in_episode=4)
    actions, keys = np.arange(270).reshape(30, 9) % 7 % 2, jax.random.split(jax.random.key(1), (30, 9))

    def episode(keys, actions):
        def play(state, given):
            observation, state, reward, terminated, truncated, info = env.step(
                given[0], state, given[1], params
            )
            return state, (observation, reward, terminated, truncated, info)

        return jax.lax.scan(play, env.reset(keys[0], params)[1], (keys, actions))[1]

    seen, rewards, terminated, truncated, info = jax.jit(jax.vmap(episode))(keys, actions)
    check_gymnax_episodes(seen[..., ROUND], seen[..., 2:4], actions, np.asarray(rewards))
    np.testing.assert_array_equal(truncated, np.tile(np.arange(1, 10) % 4 == 0, (30, 1)))
    np.testing.assert_array_equal(
        info["final_observation"][..., ROUND], np.tile([1, 2, 3, 4, 1, 2, 3, 4, 1], (30, 1))
    )
    assert not terminated.any()
    assert (info["regret"] >= 0).all()


def test_gymnax_s_own_loop_plays_the_twin():
    rollout = pytest.importorskip("gymnax.experimental.rollout", reason="gymnax is not installed")
    env = Gymnax(make("FedArms-v0", num_agents=1, num_arms=2), instances=20)
    own = rollout.RolloutWrapper(env=env, num_env_steps=9, env_params={"max_steps_in_episode": 4})
    _, actions, rewards, seen, over, returns = own.batch_rollout(
        jax.random.split(jax.random.key(3), 30), None
    )
    check_gymnax_episodes(seen[..., ROUND], seen[..., 2:4], np.asarray(actions), np.asarray(rewards))
    np.testing.assert_array_equal(over, np.tile(np.arange(1, 10) % 4 == 0, (30, 1)))
    np.testing.assert_allclose(returns[:, 0], rewards[:, :4].sum(axis=1))
    space = env.observation_space()
    assert (space.shape, env.num_actions) == (own.input_shape, 2)
    assert Gymnax(make("FedExposure-v0", num_agents=1), instances=2).action_space().shape == (10,)


def test_mappings_by_agent_play_and_begin_again_in_one_compiled_loop():
    every = [["Channel", {"schedule": "every_round"}]]
    env = ByAgent(make("FedArms-v0", every, num_agents=2, num_arms=4, max_cycles=5), instances=1)

    def play(state, key):
        actions = {"agent_0": jnp.int32(0), "agent_1": jnp.int32(3)}
        observations, state, rewards, dones, infos = env.step(key, state, actions)
        return state, (observations, rewards, dones, infos)

    observations, state = env.reset(jax.random.key(0))
    assert sorted(observations) == env.agents == ["agent_0", "agent_1"]
    seen, rewards, dones, infos = jax.jit(lambda state, keys: jax.lax.scan(play, state, keys))(
        state, jax.random.split(jax.random.key(1), 40)
    )[1]
    over = np.arange(1, 41) % 5 == 0
    np.testing.assert_array_equal(dones["__all__"], over)
    # Names in order: inbox_mask, inbox_pulls, inbox_successes, round, total_pulls, total_successes.
    told, rounds, pulls = seen["agent_0"][:, 1:5], seen["agent_0"][:, 9], seen["agent_0"][:, 10:14]
    np.testing.assert_array_equal(rounds, np.arange(1, 41) % 5)
    np.testing.assert_array_equal(pulls[:, 0], rounds)
    np.testing.assert_array_equal(told, np.eye(4)[[3] * 40] * ~over[:, np.newaxis])
    assert (np.asarray(infos["regret"]["agent_1"]) >= 0).all()
    # There is one instance, whose outcomes are new in every episode.
    episodes = np.asarray(rewards["agent_0"]).reshape(8, 5)
    assert len(np.unique(episodes, axis=0)) > 1
