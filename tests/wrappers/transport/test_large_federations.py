"""Large federations: where one server speaks to all agents, memory grows as their number."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

from fedbandit_envs import make_federation
from fedbandit_envs.testing import check_policy
from fedbandit_envs.wrappers import Channel, Server


def kilobytes(wrap, agents: int) -> float:
    """The most that is held while a federation is built, reset and stepped three times, with messages."""
    tracemalloc.start()
    env = wrap(make_federation("FedArms-v0", num_agents=agents, num_arms=4, max_cycles=3))
    env.reset_batch([0])
    for _ in range(3):
        step = env.step_batch(np.zeros((1, agents), np.int64))
    peak = tracemalloc.get_traced_memory()[1] / 1000
    tracemalloc.stop()
    assert step.info["messages"].all()
    return peak


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: Channel(env, stage={"name": "aggregator", "honest": 2}, delay=1, loss=0.1),
        lambda env: Server(env, "every_round", "every_round"),
    ],
    ids=["aggregator", "server"],
)
def test_memory_grows_as_agents(wrap):
    kilobytes(wrap, 2)
    assert kilobytes(wrap, 1200) < 4**1.1 * kilobytes(wrap, 300)


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("topology", ["complete", "star"])
def test_channels_hold_a_message_once(topology, delay):
    """And for each pair of agents no more than 30 bytes: who hears whom, and over how many hops."""

    def wrap(env):
        return Channel(env, topology, delay=delay)

    kilobytes(wrap, 2)
    assert kilobytes(wrap, 600) < 30 * 600**2 / 1000


@pytest.mark.parametrize(
    "copied", [lambda env: env, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]
)
def test_shared_inboxes_are_read_only_views_that_follow(copied):
    """Nobody can write to them or sees other replicas in them, and those of a copy show what the copy sends."""
    env = Channel(make_federation("FedArms-v0", num_agents=5, num_arms=2), "ring", time_to_live=1)
    env.reset_batch([0, 1])
    env = copied(env)
    action = np.array([[0, 0, 1, 1, 1], [1, 0, 0, 0, 0]])
    shown = [env.step_batch(action).observation["inbox_pulls"] for _ in range(2)][-1]
    np.testing.assert_array_equal(shown, np.eye(2)[action][:, np.newaxis].repeat(5, axis=1))
    assert shown.strides[1] == 0
    with pytest.raises(ValueError, match="read-only"):
        shown[0, 0, 0] = 9.0


def test_a_policy_that_reads_what_it_has_not_received_is_caught():
    class Eavesdropper:
        def reset(self, spec, seeds):
            self.heard = np.zeros(seeds.shape, np.int64)

        def act(self, observation):
            self.heard += observation["inbox_successes"].sum(axis=(2, 3)).astype(np.int64)
            return self.heard % 4

    def ring():
        return Channel(make_federation("FedArms-v0", num_agents=5, num_arms=4), "ring", time_to_live=1)

    with pytest.raises(AssertionError, match="alone and among the others"):
        check_policy(Eavesdropper, ring)
