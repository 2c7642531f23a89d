"""Large federations: where one server speaks to all agents, memory grows as their number."""

import tracemalloc

import numpy as np
import pytest

from fedbandit_envs import make_federation
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


def test_channels_hold_the_square():
    """Every inbox tells its senders apart; what is between them holds no more than inboxes do."""
    for topology in ("complete", "star", "ring"):
        assert kilobytes(lambda env, graph=topology: Channel(env, graph), 300) < 3 * 300**2 * 8 * 8 / 1000
