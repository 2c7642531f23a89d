"""What every registered environment must pass, by Gymnasium's and PettingZoo's own checkers and ours."""

import json
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test
from registered import views

import fedbandit_envs
from fedbandit_envs.wrappers.reveal import Reveal


def stack(schedule):
    """Noisy messages by this schedule, as a user of gymnasium.make writes it."""
    return [
        ["fedbandit_envs.wrappers.privacy.gaussian:GaussianPrivatizer", {"epsilon": 1.0}],
        ["fedbandit_envs.wrappers.transport.channel:Channel", {"schedule": schedule}],
    ]


def assert_same(a, b):
    """Equality of nested dicts, sequences and arrays, to the bit."""
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            assert_same(left, right)
    else:
        np.testing.assert_array_equal(a, b)


def differ(a, b):
    """Whether some of two observations' arrays differ."""
    return any(not np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(("env_id", "view"), views(stack))
@pytest.mark.filterwarnings("error", r"ignore:.*A Box observation space m\w+ value is -?infinity")
def test_gymnasium_check_env(env_id, view):
    env = gymnasium.make(env_id, max_episode_steps=5, render_mode="ansi", **view)
    check_env(env.unwrapped)


@pytest.mark.parametrize("wrap", [lambda env: env, Reveal, lambda env: Reveal(Reveal(env))])
def test_parallel_api_at_every_level(make_federation, wrap, capsys):
    parallel_api_test(wrap(make_federation(max_cycles=20)), num_cycles=50)


def test_same_seed_same_trajectory_over_a_whole_episode(make_federation, sample_actions):
    envs = [make_federation(max_cycles=40) for _ in range(2)]
    actions = sample_actions(envs[0], 1, seed=3, rounds=40)
    first, second = (env.reset(seed=11) for env in envs)
    assert_same(first, second)
    for action in actions:
        by_agent = {agent: action[0, j] for j, agent in enumerate(envs[0].possible_agents)}
        first, second = (env.step(by_agent) for env in envs)
        assert_same(list(first), list(second))
    assert not envs[0].agents
    # Unseeded resets follow from the seed, and are new episodes.
    again = [env.reset() for env in envs]
    assert_same(again[0], again[1])
    assert differ(again[0][0]["agent_0"], make_federation().reset(seed=11)[0]["agent_0"])


def test_other_seed_other_trajectory(make_federation):
    env = make_federation()
    first, second = (env.reset(seed=seed)[0]["agent_0"] for seed in (0, 1))
    assert differ(first, second)


@pytest.mark.parametrize(("env_id", "view"), views(stack))
def test_spec_survives_json(env_id, view):
    env = gymnasium.make(env_id, max_episode_steps=7, **view)
    text = env.spec.to_json()
    json.loads(text)
    twin = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
    assert twin.spec == env.spec
    assert_same(twin.reset(seed=5)[0], env.reset(seed=5)[0])


def test_make_without_import_of_the_package(env_id):
    env = gymnasium.make(f"fedbandit_envs:{env_id}")
    assert env.reset(seed=0)


@pytest.mark.parametrize(("env_id", "view"), views(stack))
def test_views_pickle_in_mid_episode(env_id, view):
    env = gymnasium.make(env_id, **view)
    env.reset(seed=1)
    env.step(env.action_space.sample())
    copy = pickle.loads(pickle.dumps(env))
    for _ in range(3):
        action = env.action_space.sample()
        assert_same(list(copy.step(action)), list(env.step(action)))


def test_pickling_in_mid_episode(make_federation, sample_actions):
    env = make_federation(max_cycles=20)
    env.reset_batch([1, 2])
    actions = sample_actions(env, 2, seed=0, rounds=20)
    for action in actions[:10]:
        env.step_batch(action)
    twin = pickle.loads(pickle.dumps(env))
    for action in actions[10:]:
        assert_same(twin.step_batch(action)._asdict(), env.step_batch(action)._asdict())


def test_pettingzoo_registry(env_id):
    pettingzoo = pytest.importorskip("pettingzoo", minversion="1.27")
    env = pettingzoo.make("parallel", fedbandit_envs.REGISTRY[env_id].pettingzoo, max_cycles=9)
    assert env.max_cycles == 9
    env.reset(seed=0)


def test_presets_are_written_as_json(env_id):
    kwargs = fedbandit_envs.REGISTRY[env_id].kwargs
    assert json.loads(json.dumps(kwargs)) == kwargs


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_rendering(make_federation, sample_actions, mode):
    env = make_federation(render_mode=mode)
    env.reset(seed=0)
    before = env.render()
    env.step_batch(sample_actions(env, 1, seed=0, rounds=1)[0])
    after = env.render()
    if mode == "ansi":
        assert "round 0" in before
        assert "round 1" in after
    else:
        assert after.dtype == np.uint8
        assert after.shape == before.shape
        assert (after != before).any()
