"""What is handed out cannot be used to move the environment; the checks of conformance look at every array of it."""

import copy
import pickle

import numpy as np
import pytest
from channels import buying, private, small

from fedbandit_envs.wrappers.transport.channel import Channel


def test_costs_of_minus_one_do_not_move_regret():
    """The attack that turned a regret of 24,751 into -209,785."""
    env = small()
    observation = env.reset_batch([0]).observation
    with pytest.raises(ValueError, match="read-only"):
        observation["cost"][...] = -1
    keyed = small()
    seen, _ = keyed.reset(seed=0)
    seen["agent_0"]["cost"][...] = -1
    ones = {agent: np.ones(3, np.int64) for agent in keyed.agents}
    _, _, _, _, infos = keyed.step(ones)
    assert infos["agent_0"]["regret"] == env.step_batch(buying(env)).info["regret"][0, 0]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_views_show_the_buffers_of_their_own_copy(duplicate):
    """A copied view would show nothing any more."""
    env = Channel(private(small()), echo=True)
    env.reset_batch([0])
    env.step_batch(buying(env))
    twin = duplicate(env)
    for _ in range(3):
        first, second = env.step_batch(buying(env)), twin.step_batch(buying(env))
        for a, b in zip(first[:1] + first[3:], second[:1] + second[3:], strict=True):
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
                assert not np.shares_memory(a[name], b[name])
        np.testing.assert_array_equal(first.reward, second.reward)
