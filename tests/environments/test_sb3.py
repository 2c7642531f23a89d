"""The view for Stable-Baselines3: rows, episodes, masks, attributes, refusals, and what follows the horizon."""

import gymnasium
import numpy as np
import pytest
from refusals import refusals
from registered import FIRST, small, two_agents

from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.views import to_sb3
from fedbandit_envs.views.parallel import ParallelView
from fedbandit_envs.wrappers.transport.channel import Channel

ARMS, PROCUREMENT = "FedArms-v0", "FedProcurement-v0"
# To make an optimizer imports a compiler, for a second, and nothing is optimised here.
IDLE = {"optimizer_class": lambda parameters, lr, **settings: None}


@pytest.fixture(autouse=True, scope="module")
def libraries():
    """Imported by the processes that run these tests: to import networks takes seconds."""
    global sb3, contrib, torch
    pytest.importorskip("stable_baselines3.common.env_checker")
    sb3, contrib, torch = map(pytest.importorskip, ("stable_baselines3", "sb3_contrib", "torch"))


def formats(env_id):
    """Names of the action formats that SB3 takes."""
    names = list(make_federation(env_id, **small(env_id)).action_formats)
    return [name for name in names if name != "distribution"]


@pytest.mark.parametrize(
    ("env_id", "features"),
    [
        pytest.param(env_id, features, marks=pytest.mark.slow if env_id not in FIRST else ())
        for env_id in sorted(REGISTRY)
        for features in (True, False)
    ],
)
def test_rows_are_the_agents_of_the_federation(env_id, features):
    """Three episodes of two replicas, row by row, against PettingZoo's view of a federation for each replica.

    Ids that are not the first of their problem are played in slow runs.
    """
    for action_format in formats(env_id):
        env = to_sb3(two_agents(env_id, max_cycles=3), action_format, replicas=2, features=features)
        alone = [ParallelView(two_agents(env_id, max_cycles=3), action_format, features) for _ in range(2)]
        agents = alone[0].possible_agents
        assert env.num_envs == 2 * len(agents)
        env.action_space.seed(3)
        env.seed(5)
        seen = env.reset()
        theirs = [one.reset(5 + r)[0] for r, one in enumerate(alone)]
        ends = 0
        for _ in range(7):
            _assert_rows(seen, theirs, env)
            actions = np.array([env.action_space.sample() for _ in range(env.num_envs)])
            seen, reward, done, infos = env.step(actions)
            split = actions.reshape(2, -1, *actions.shape[1:])
            steps = [
                one.step(dict(zip(agents, choice, strict=True)))
                for one, choice in zip(alone, split, strict=True)
            ]
            for row, info in enumerate(infos):
                replica, agent = divmod(row, len(agents))
                _, paid, _, over, told = (part[agents[agent]] for part in steps[replica])
                assert (reward[row], done[row]) == (np.float32(paid), over)
                assert {name: info[name] for name in told} == told
                assert info["TimeLimit.truncated"] == done[row]
                assert ("terminal_observation" in info) == done[row]
            theirs = [step[0] for step in steps]
            if done.all():
                ends += 1
                last = [info["terminal_observation"] for info in infos]
                _assert_rows(_stacked(last), theirs, env)
                theirs = [one.reset()[0] for one in alone]
        assert ends == 2


def _stacked(rows):
    if isinstance(rows[0], dict):
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return np.stack(rows)


def _assert_rows(mine, theirs, env):
    theirs = _stacked([row for replica in theirs for row in replica.values()])
    if isinstance(mine, dict):
        assert mine.keys() == theirs.keys()
        for name, array in mine.items():
            np.testing.assert_array_equal(array, theirs[name])
        assert env.observation_space.contains({name: array[0] for name, array in mine.items()})
    else:
        assert mine.dtype == np.float32
        np.testing.assert_array_equal(mine, theirs)
        assert env.observation_space.contains(mine[0])


# SB3 takes raw contexts for pictures.
@pytest.mark.filterwarnings("ignore:It seems", "ignore:The minimal", "ignore:Your obs", "ignore:We recommend")
@pytest.mark.parametrize("env_id", sorted(FIRST))
def test_sb3s_check_passes_gymnasiums_views(env_id):
    """Of a learner among peers and of joint control, in every format that SB3 takes, on features and on raw data."""
    check_env = sb3.common.env_checker.check_env
    for action_format in formats(env_id):
        for joint in (False, True):
            for features in (True, False):
                env = gymnasium.make(
                    env_id, action_format=action_format, joint=joint, features=features, max_cycles=20,
                    **{**small(env_id), "num_agents": 2},
                )  # fmt: skip
                check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("slots", [1, 2])
def test_masks_are_of_arms_awake(slots):
    env = to_sb3(two_agents(ARMS, awake=0.5, slots=slots, num_arms=4), replicas=3, features=False)
    assert contrib.common.maskable.utils.is_masking_supported(env)
    env.seed(0)
    seen = env.reset()
    none_awake = 0
    for _ in range(40):
        masks = np.stack(env.env_method("action_masks"))
        assert masks.shape == (6, 4 * slots)
        awake = seen["awake"]
        none_awake += (~awake.any(axis=1)).sum()
        expected = np.where(awake.any(axis=1)[:, None], awake, True)
        np.testing.assert_array_equal(masks.reshape(6, slots, 4), np.repeat(expected[:, None], slots, axis=1))
        assert env.env_method("action_masks", indices=[4])[0].tolist() == masks[4].tolist()
        choice = masks.reshape(6, slots, 4).argmax(axis=2)
        seen, _, _, infos = env.step(choice if slots > 1 else choice[:, 0])
        if slots == 1:
            assert [info["wasted"] for info in infos] == (~awake.any(axis=1)).tolist()
    assert none_awake > 0


def test_masks_of_quantities_are_capacities():
    env = to_sb3(two_agents(PROCUREMENT), "quantities", replicas=2)
    env.seed(0)
    env.reset()
    masks = np.stack(env.env_method("action_masks"))
    largest = env.action_space.nvec[0]
    most = masks.reshape(4, -1, largest).sum(axis=2) - 1
    infos = env.step(most)[3]
    assert [info["excess"] for info in infos] == [0] * 4
    assert env.env_method("hidden")[0].keys() == two_agents(PROCUREMENT).hidden_space.spaces.keys()
    more = np.minimum(most + 1, largest - 1)
    infos = env.step(more)[3]
    assert [info["excess"] for info in infos] == (more - most).sum(axis=1).tolist()


def test_algorithms_without_masks_are_told():
    env = to_sb3(two_agents(PROCUREMENT), "index")
    assert not env.has_attr("action_masks")
    with pytest.raises(AttributeError, match="allowed"):
        env.env_method("action_masks")


def test_attributes_are_the_federations():
    federation = Channel(two_agents(ARMS), schedule="every_round")
    env = to_sb3(federation, replicas=2)
    assert env.get_attr("max_cycles") == [7] * 4
    assert env.get_attr("max_cycles", indices=1) == [7]
    env.set_attr("max_cycles", 5)
    assert federation.max_cycles == 5
    with pytest.raises(
        ValueError, match="indices is 1; None is required, since all rows share one federation"
    ):
        env.set_attr("max_cycles", 3, indices=1)
    assert env.env_is_wrapped(Channel) == [True] * 4
    assert env.env_is_wrapped(sb3.common.vec_env.VecMonitor, indices=0) == [False]
    env.reset()
    env.step(np.zeros(4, np.int64))
    # Raw data has left.
    assert env.env_method("privacy", indices=0)[0].epsilon == np.inf
    env.close()


test_wrong_arguments_are_named = refusals(
    lambda arguments: to_sb3(two_agents(ARMS), **arguments),
    ({"action_format": "votes"}, ValueError, "action_format is 'votes'; one of 'arm', 'values'"),
    ({"replicas": 0}, ValueError, "replicas is 0; an integer >= 1 is required"),
    ({"replicas": 1.5}, TypeError, "replicas is 1.5"),
    ({"features": 1}, TypeError, "features is 1"),
)


def test_what_sb3_does_not_take_is_named():
    with pytest.raises(
        TypeError, match=r"env is a str; a FederatedEnv is required, such as .*make_federation"
    ):
        to_sb3(ARMS)
    with pytest.raises(ValueError, match=r"one of \['logits', 'parameter'\], whose spaces SB3 takes"):
        to_sb3(two_agents("FedExposure-v0"))
    asking = Channel(two_agents(ARMS), schedule="on_request")
    with pytest.raises(ValueError, match="whose spaces SB3 takes") as caught:
        to_sb3(asking)
    named = str(caught.value).split("one of ['")[1].split("'")[0]
    env = to_sb3(asking, named)
    env.reset()
    env.step(np.array([env.action_space.sample() for _ in range(env.num_envs)]))


def test_actions_of_the_wrong_shape_are_named():
    env = to_sb3(two_agents(PROCUREMENT), "index", replicas=2)
    env.reset()
    with pytest.raises(
        ValueError, match=r"actions has shape \(3, 3\); \(rows, ...\) = \(4, \d\) is required"
    ):
        env.step(np.zeros((3, 3), np.float32))


def test_without_sb3_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    monkeypatch.delitem(sys.modules, "fedbandit_envs.views.sb3", raising=False)
    with pytest.raises(ImportError, match=r"comes with the \[sb3\] extra: python -m pip install"):
        to_sb3(two_agents(ARMS))


def test_truncated_episodes_bootstrap_on_policy():
    """The value target of a horizon's last round is its reward and what the last observation is worth."""
    env = to_sb3(two_agents(ARMS, max_cycles=3), replicas=2)
    model = sb3.PPO("MlpPolicy", env, n_steps=6, batch_size=12, gamma=0.9, seed=0, device="cpu",
                    policy_kwargs=IDLE)  # fmt: skip
    last, rewards = [], []
    step_wait = env.step_wait

    def watched():
        seen, reward, done, infos = step_wait()
        rewards.append(reward.copy())  # SB3 adds to it
        last.append(np.stack([info["terminal_observation"] for info in infos]) if done.all() else None)
        return seen, reward, done, infos

    env.step_wait = watched
    _, callback = model._setup_learn(24)
    model.collect_rollouts(env, callback, model.rollout_buffer, 6)
    for place in (2, 5):
        worth = model.policy.predict_values(torch.as_tensor(last[place])).detach().numpy().ravel()
        assert np.abs(worth).min() > 1e-3
        target = rewards[place] + 0.9 * worth
        np.testing.assert_allclose(model.rollout_buffer.returns[place], target, rtol=1e-5)


def test_truncated_episodes_bootstrap_off_policy():
    """No transition is learned as the last one, and what follows the last round is the episode's own observation."""
    env = to_sb3(two_agents(ARMS, max_cycles=3), replicas=2)
    model = sb3.DQN("MlpPolicy", env, seed=0, device="cpu", learning_starts=100, policy_kwargs=IDLE)
    model.learn(24)
    stored = model.replay_buffer
    np.testing.assert_array_equal(stored.dones[:6, 0], [0, 0, 1] * 2)
    np.testing.assert_array_equal(stored.timeouts[:6], stored.dones[:6])
    assert not stored.sample(50).dones.any()
    # Time left is the last feature: 1 before the first round, -1 after the last.
    assert (stored.next_observations[[2, 5], :, -1] == -1).all()
    assert (stored.observations[[0, 3], :, -1] == 1).all()
