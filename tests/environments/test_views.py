"""Gymnasium views: horizons, peers, joint control, action formats."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import FlattenObservation, TimeAwareObservation
from registered import FIRST, small
from view_stacks import CHANNEL, FEDERATION, GAUSSIAN, PFCB, stack

from fedbandit_envs.baselines.procurement import PFCB as PFCBPolicy
from fedbandit_envs.baselines.procurement import SSUCB, OneOfEach
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.procurement.oracle import procure
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.views.gymnasium_env import FederationEnv, FederationVectorEnv
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel

HORIZONS = [
    ({"max_cycles": 3}, 3),
    ({}, 1000),
    ({"max_episode_steps": 3}, 3),
    ({"max_cycles": 5, "max_episode_steps": 3}, 3),
    ({"max_cycles": 3, "max_episode_steps": 5}, 3),
]


@pytest.mark.parametrize(("limits", "steps"), HORIZONS, ids=str)
def test_an_episode_ends_at_the_horizon_or_where_it_is_cut_short(limits, steps):
    sizes = {"num_agents": 1, "num_producers": 2, **limits}
    single = gymnasium.make("FedProcurement-v0", **sizes)
    vector = gymnasium.make_vec("FedProcurement-v0", num_envs=2, autoreset_mode="SameStep", **sizes)
    for env, action in ((single, np.ones(2, np.int64)), (vector, np.ones((2, 2), np.int64))):
        env.reset(seed=0)
        for _ in range(2):
            flags = [np.all(env.step(action)[3]) for _ in range(steps)]
            assert flags[-1]
            assert not any(flags[:-1])
            if env is single:
                env.reset()


@pytest.mark.parametrize("steps", [{}, {"max_episode_steps": 40}, {"max_episode_steps": 4000}], ids=str)
def test_cutting_an_episode_short_moves_no_claim(steps):
    """Every view of the same call plans for the same horizon, and no number of steps exhausts its budget."""
    call = {"stack": stack("every_round"), "max_cycles": 60, "num_agents": 2, **steps}
    call["stack"][0] = [GAUSSIAN, {"epsilon_per_release": 1 / 60, "releases": 60}]
    single = gymnasium.make("FedProcurement-v0", **call)
    vector = gymnasium.make_vec("FedProcurement-v0", num_envs=2, **call)
    sync = gymnasium.make_vec("FedProcurement-v0", num_envs=2, vectorization_mode="sync", **call)
    claims = []
    for env in (single, vector, sync):
        env.reset(seed=0)
        for _ in range(40):
            env.step(env.action_space.sample())
        claims += [each.unwrapped.privacy() for each in (sync.envs if env is sync else [env])]
    assert len(set(claims)) == 1
    assert claims[0].epsilon == pytest.approx(2 * 40 / 60)


@pytest.mark.parametrize(
    "peers", ["fedbandit_envs.baselines.procurement:OneOfEach", OneOfEach()], ids=["entry point", "policy"]
)
def test_a_learner_plays_among_its_peers(peers):
    """The learner's rewards and regrets are those of agent_0 in the federation with the same actions."""
    view = gymnasium.make("FedProcurement-v0", peers=peers, max_episode_steps=10)
    env = parallel_env(max_cycles=10)
    seen, _ = view.reset(seed=3)
    ones = np.minimum(env.reset_batch([3]).observation["capacity"], 1).astype(np.int64)
    view.action_space.seed(0)
    for _ in range(10):
        mine = view.action_space.sample()
        action = ones.copy()
        action[0, 0] = mine
        step = env.step_batch(action)
        seen, reward, terminated, _, info = view.step(mine)
        assert reward == step.reward[0, 0]
        assert not terminated
        assert info == {name: array[0, 0] for name, array in step.info.items()}
        for name, array in step.observation.items():
            np.testing.assert_array_equal(seen[name], array[0, 0])


def test_joint_control_sums_rewards_and_keeps_agents_apart():
    view = gymnasium.make("FedProcurement-v0", joint=True, num_agents=3, num_producers=4)
    env = parallel_env(num_agents=3, num_producers=4)
    view.reset(seed=1)
    env.reset_batch([1])
    assert view.action_space.shape == (12,)
    action = view.action_space.sample()
    step = env.step_batch(action.reshape(1, 3, 4))
    seen, reward, _, _, info = view.step(action)
    assert reward == pytest.approx(step.reward.sum())
    np.testing.assert_array_equal(info["regret"], step.info["regret"][0])
    np.testing.assert_array_equal(seen["good"], step.observation["good"][0])


def test_action_formats_by_hand():
    kwargs = {"num_agents": 2, "num_producers": 6, "joint": True}
    portions = gymnasium.make("FedProcurement-v0", action_format="portions", **kwargs)
    seen, _ = portions.reset(seed=0)
    share = np.linspace(0, 1, 12, dtype=np.float32).reshape(2, 6)
    bought = portions.step(share)[0]["delivered"]
    np.testing.assert_array_equal(bought, np.rint(share * seen["capacity"]))

    index = gymnasium.make("FedProcurement-v0", action_format="index", quality_threshold=0.7, **kwargs)
    seen, _ = index.reset(seed=0)
    estimate = np.random.default_rng(0).random((2, 6), np.float32)
    bought = index.step(estimate)[0]["delivered"]
    market = {"cost": seen["cost"][None], "capacity": seen["capacity"][None]}
    market |= {"quality_threshold": np.full((1, 2, 1), 0.7), "unit_revenue": np.ones((1, 2, 1))}
    expected = procure(estimate[None].astype(float), market)
    np.testing.assert_array_equal(bought, expected[0])


@pytest.mark.parametrize(
    ("kwargs", "action", "error", "message"),
    [
        ({}, np.full(30, -1), ValueError, "agent_0 .*, entry 0, is -1"),
        ({}, np.full(30, 0.5), ValueError, "agent_0 .*, entry 0, is 0.5"),
        ({}, np.ones(29, np.int64), ValueError, r"action has shape \(29,\); \(30,\) is required"),
        ({"action_format": "portions"}, np.full(30, 1.5), ValueError, r"portions\[0, 0, 0\] is 1.5"),
        ({"action_format": "index"}, np.full(30, np.nan), ValueError, r"quality estimates\[0, 0, 0\] is nan"),
    ],
)
def test_bad_choices_are_named(kwargs, action, error, message):
    env = gymnasium.make("FedProcurement-v0", disable_env_checker=True, **kwargs)
    env.reset(seed=0)
    with pytest.raises(error, match=message):
        env.step(action)


def test_bad_views_are_refused():
    with pytest.raises(ValueError, match="action_format is 'votes'; one of"):
        gymnasium.make("FedProcurement-v0", action_format="votes")
    with pytest.raises(ValueError, match="entry point is 'SSUCB'"):
        gymnasium.make("FedProcurement-v0", peers="SSUCB")
    with pytest.raises(ValueError, match="peers is None; a policy or its entry point is required"):
        FederationEnv("sums_env:SumsEnv")


def test_a_problem_has_default_peers():
    assert isinstance(FederationEnv(FEDERATION)._control._rows._peers._policy, SSUCB)


def test_a_stack_is_the_federation_it_names():
    """The view's rounds are those of the federation wrapped by hand, with the peers' policy on the other rows."""
    view = FederationEnv(FEDERATION, stack=stack("every_round"), peers=PFCB, max_cycles=30)
    env = GaussianPrivatizer(parallel_env(max_cycles=30), epsilon_per_release=1.0)
    env = Channel(env, "complete", "every_round", delay=1, loss=0.1)
    policy = PFCBPolicy()
    view.reset(seed=4)
    observation, _ = env.reset_batch([4])
    policy.reset(env.policy_spec, row_seeds([4], 10))
    heard = 0
    for _ in range(30):
        action = policy.act(observation).copy()
        step = env.step_batch(action)
        seen, reward, _, _, info = view.step(action[0, 0])
        observation = step.observation
        assert reward == step.reward[0, 0]
        assert info == {name: array[0, 0] for name, array in step.info.items()}
        for name, array in {**observation, **concealed(observation)}.items():
            np.testing.assert_array_equal(seen[name], array[0, 0])
        heard += seen["inbox_mask"].sum()
    assert heard > 200
    assert view.privacy() == env.privacy()


def test_a_refused_choice_does_not_count_for_peers():
    """Peers listen once a round, even if the learner has to try again."""
    envs = [FederationEnv(FEDERATION, stack=stack("every_round"), peers=PFCB) for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
    for _ in range(5):
        with pytest.raises(ValueError, match="entry 0, is -1"):
            envs[1].step(np.full(30, -1))
        (first, *_), (second, *_) = (env.step(np.ones(30, np.int64)) for env in envs)
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (CHANNEL, TypeError, r"stack is 'fed.*\[entry point, keyword arguments\] is required"),
        ([CHANNEL], TypeError, r"stack\[0\] is 'fed.*a string and a mapping, is required"),
        ([[CHANNEL, {1: 2}]], TypeError, r"stack\[0\] is \['fed"),
        ([["Pigeons", {}]], ValueError, "wrapper is 'Pigeons'; one of 'Byzantine', 'Channel'"),
        ([[GAUSSIAN, {"epsilon": -1.0}]], ValueError, r"epsilon is -1.0(.|\n)*raised by stack\[0\]"),
        (
            [[CHANNEL, {}], [GAUSSIAN, {"epsilon_per_release": 1.0}]],
            ValueError,
            "Channel, of layer 'transport', inside of GaussianPrivatizer",
        ),
    ],
)
@pytest.mark.parametrize(
    "view", [FederationEnv, lambda *args, **kwargs: FederationVectorEnv(2, *args, **kwargs)]
)
def test_bad_stacks_are_refused(view, bad, error, message):
    with pytest.raises(error, match=message):
        view(FEDERATION, stack=bad)


@pytest.mark.parametrize("env_id", sorted(FIRST))
def test_infos_are_what_json_and_vectors_take(env_id):
    """Python's numbers one by one, and arrays of their own kind in Gymnasium's vectors, not of objects."""
    env = gymnasium.make(env_id, **small(env_id))
    env.reset(seed=0)
    info = env.step(env.action_space.sample())[4]
    assert {type(value) for value in info.values()} <= {bool, int, float}
    assert json.loads(json.dumps(info)) == info
    vector = SyncVectorEnv([lambda: gymnasium.make(env_id, **small(env_id))] * 2)
    vector.reset(seed=0)
    infos = vector.step(vector.action_space.sample())[4]
    assert {array.dtype.kind for array in infos.values()} <= set("bif")


def test_the_horizon_is_in_the_spec():
    env = gymnasium.make("FedArms-v0", max_cycles=7)
    assert env.spec.max_episode_steps == gymnasium.make(env.spec).spec.max_episode_steps == 7
    assert gymnasium.make("FedArms-v0", max_cycles=7, max_episode_steps=5).spec.max_episode_steps == 5
    timed = TimeAwareObservation(FlattenObservation(env))
    timed.reset(seed=0)
    assert timed.step(0)[0][-1] == 1


def test_each_agent_has_a_space_of_its_own():
    env = make_federation("FedArms-v0", num_agents=2, num_arms=100)
    spaces = [env.action_space(agent) for agent in env.possible_agents]
    assert spaces[0] is env.action_space("agent_0")
    for space in spaces:
        space.seed(1)
    again = [space.sample() for space in spaces]
    assert again[0] == again[1]
    spaces[0].seed(2)
    assert [spaces[0].sample(), spaces[1].sample()] != again


def test_options_that_nothing_takes_are_refused():
    with pytest.raises(ValueError, match=r"options is \{'seed': 3\}; None is required"):
        gymnasium.make("FedArms-v0").reset(options={"seed": 3})
    with pytest.warns(UserWarning, match=r"options is \{'seed': 3\} and ignored"):
        make_federation("FedArms-v0").reset(options={"seed": 3})
    vector = gymnasium.make_vec("FedArms-v0", num_envs=2, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match=r"options is \{'mask'"):
        vector.reset(options={"mask": [True, True]})
