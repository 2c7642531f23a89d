"""Views where agents choose when to send: flat action formats, control of all agents, and peers that send by a rule."""

import gymnasium
import numpy as np
import pytest
from view_stacks import CHANNEL, FEDERATION, SS_UCB

from fedbandit_envs.arms_v0 import parallel_env as arms_env
from fedbandit_envs.baselines.procurement import OneOfEach
from fedbandit_envs.core.actions import FlatSending
from fedbandit_envs.linear_v0 import parallel_env as linear_env
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.views.control import Rows
from fedbandit_envs.views.gymnasium_env import FederationEnv
from fedbandit_envs.wrappers.transport.channel import Channel

ASKING = [[CHANNEL, {"schedule": "on_request"}]]


def test_a_learner_chooses_when_to_send():
    """Among silent peers the learner's messages reach them, and no one else's reach it."""
    env = gymnasium.make("FedProcurement-v0", stack=ASKING, num_agents=3, peers_send="silent")
    assert list(env.action_space) == ["action", "send"]
    env.reset(seed=0)
    quantity = np.ones(30, np.int64)
    for send in (0, 1, np.int64(1), 0):
        seen, _, _, _, info = env.step({"action": quantity, "send": send})
        assert info["messages"] == 2 * send
        assert not seen["inbox_mask"].any()
        inbox = env.unwrapped._control._rows._peers._observation["inbox_mask"][0]
        np.testing.assert_array_equal(inbox, [[False] * 3] + [[bool(send), False, False]] * 2)
    # Raw data has left; through noise there would be no answer, since the learner chose when.
    assert env.unwrapped.privacy().epsilon == np.inf


@pytest.mark.parametrize(
    ("rule", "rounds"),
    [({}, [1, 2, 4, 8]), ({"peers_send": {"name": "fixed_gap", "gap": 3}}, [3, 6, 9])],
    ids=["default", "fixed gap"],
)
def test_peers_send_by_a_rule(rule, rounds):
    """In its rounds the learner hears both its peers, whether or not it sends; nobody is heard in others."""
    env = gymnasium.make("FedArms-v0", stack=ASKING, num_agents=3, num_arms=4, **rule)
    env.reset(seed=0)
    heard = []
    for t in range(1, 11):
        seen, _, _, _, info = env.step({"action": 0, "send": t % 2})
        np.testing.assert_array_equal(seen["inbox_mask"], [False, t in rounds, t in rounds])
        assert info["messages"] == 2 * (t % 2)
        heard.append(seen["inbox_pulls"].sum())
    # What both have pulled up to the last of those rounds.
    assert sum(heard) == 2 * rounds[-1]


def test_bad_rules_for_peers_are_refused():
    with pytest.raises(ValueError, match="peers_send is 'silent'; a schedule fixed in advance"):
        gymnasium.make("FedArms-v0", peers_send="silent")
    with pytest.raises(ValueError, match="peers_send is 'on_request'; a schedule fixed in advance"):
        gymnasium.make("FedArms-v0", stack=ASKING, peers_send="on_request")
    with pytest.raises(ValueError, match="schedule name is 'often'"):
        gymnasium.make("FedArms-v0", stack=ASKING, peers_send="often")


def test_peers_may_choose_when_to_send():
    class Talkative(OneOfEach):
        def act(self, observation):
            action = super().act(observation)
            return {"action": action, "send": np.ones(action.shape[:2], np.bool_)}

    env = FederationEnv(FEDERATION, stack=ASKING, peers=Talkative(), num_agents=3)
    env.reset(seed=0)
    seen, *_ = env.step({"action": np.ones(30, np.int64), "send": 0})
    np.testing.assert_array_equal(seen["inbox_mask"], [False, True, True])


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (
            np.ones(30, np.int64),
            TypeError,
            r"action is (.|\n)*; a mapping of \['action', 'send'\] is required",
        ),
        ({"action": np.ones(29, np.int64), "send": 1}, ValueError, r"action\['action'\] has shape \(29,\)"),
        ({"action": np.ones(30, np.int64), "send": 2}, ValueError, r"an integer in \[0, 1\] is required"),
    ],
)
def test_bad_choices_to_send_are_named(action, error, message):
    env = FederationEnv(FEDERATION, stack=ASKING, peers=SS_UCB)
    env.reset(seed=0)
    with pytest.raises(error, match=message):
        env.step(action)


def test_joint_control_chooses_when_to_send_in_a_flat_format():
    with pytest.raises(ValueError, match=r"joint is True, but actions are mappings of .*; joint=False"):
        FederationEnv(FEDERATION, stack=ASKING, joint=True)
    sizes = {"num_agents": 3, "num_arms": 4}
    env = gymnasium.make("FedArms-v0", stack=ASKING, joint=True, action_format="arm_and_send", **sizes)
    assert env.action_space == gymnasium.spaces.MultiDiscrete([8, 8, 8])
    env.reset(seed=0)
    seen, *_, info = env.step([1, 4, 7])
    np.testing.assert_array_equal(seen["total_pulls"].argmax(1), [1, 0, 3])
    np.testing.assert_array_equal(info["messages"], [0, 2, 2])
    np.testing.assert_array_equal(
        seen["inbox_mask"], [[False, True, True], [False, False, True], [False, True, False]]
    )


ASKED = np.array([[[False], [True]]])


@pytest.mark.parametrize(
    ("federation", "name", "space", "inner"),
    [
        (arms_env(num_agents=2, num_arms=4), "arm", gymnasium.spaces.Discrete(8), [[2, 0]]),
        (
            arms_env(num_agents=2, num_arms=4, slots=2),
            "arm",
            gymnasium.spaces.MultiDiscrete([4, 4, 2]),
            [[[1, 2], [3, 0]]],
        ),
        (
            parallel_env(num_agents=2, num_producers=2),
            "portions",
            gymnasium.spaces.Box(0, 1, (3,), np.float32),
            [[[0.0, 0.7], [1.0, 0.2]]],
        ),
        (
            linear_env(num_agents=2, dim=2),
            "parameter",
            gymnasium.spaces.Box(np.float32([-1, -1, 0]), np.float32([1, 1, 1])),
            [[[-0.5, 0.7], [1.0, -1.0]]],
        ),
    ],
)
def test_flat_sending_says_what_dicts_say(federation, name, space, inner):
    """The first agent keeps silent and the second sends; all else is the format's own."""
    env = Channel(federation, schedule="on_request")
    flat, mapping = env.action_formats[f"{name}_and_send"], env.action_formats[name]
    assert flat.space == space
    seen = env.reset_batch([0]).observation
    own = np.array(inner, space.dtype)
    beside = np.concatenate([own, ASKED.astype(space.dtype)], axis=-1) if own.ndim == 3 else None
    choice = own + 4 * ASKED[..., 0] if beside is None else beside
    assert all(space.contains(row) for row in choice[0])
    found, expected = (
        form.to_action(chosen, seen)
        for form, chosen in ((flat, choice), (mapping, {"action": own, "send": ASKED[..., 0]}))
    )
    assert not difference(np.asarray(found["action"]), np.asarray(expected["action"]))
    np.testing.assert_array_equal(found["send"], expected["send"])


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        (([[8, 0]], "arm"), ValueError, r"action\[0, 0\] is 8; integers in \[0, 7\]"),
        (([[0, -1]], "arm"), ValueError, r"action\[0, 1\] is -1; integers"),
        (([[[0.5] * 5, [0.5] * 4 + [np.nan]]], "values"), ValueError, r"choice\[0, 1, 4\] is nan"),
        (([[[0.5] * 5, [np.nan] * 5]], "values"), ValueError, r"values\[0, 1, 0\] is nan"),
    ],
)
def test_bad_flat_choices_are_named(choice, error, message):
    env = Channel(arms_env(num_agents=2, num_arms=4), schedule="on_request")
    rows = Rows(env, action_format=f"{choice[1]}_and_send")
    rows.reset([0])
    with pytest.raises(error, match=message):
        rows.step(np.array(choice[0]))


def test_flat_sending_starts_where_arms_do():
    class FromTwo:
        space = gymnasium.spaces.Discrete(3, start=2)

        def to_action(self, choice, observation):
            return choice

    flat = FlatSending(FromTwo())
    assert flat.space == gymnasium.spaces.Discrete(6, start=2)
    told = flat.to_action(np.arange(2, 8)[np.newaxis], {})
    assert told["action"].tolist() == [[2, 3, 4, 2, 3, 4]]
    assert told["send"].tolist() == [[False] * 3 + [True] * 3]


def test_half_a_wish_to_send_sends_nothing():
    env = Channel(arms_env(num_agents=2, num_arms=4), schedule="on_request")
    rows = Rows(env, action_format="values_and_send")
    rows.reset([0])
    choice = np.full((1, 2, 5), 0.5, np.float32)
    assert rows.step(choice)[3]["messages"].tolist() == [[0, 0]]
    choice[0, 1, -1] = np.nextafter(np.float32(0.5), np.float32(1.0))
    assert rows.step(choice)[3]["messages"].tolist() == [[0, 1]]
