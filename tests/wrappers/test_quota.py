"""A limit on releases is kept, whoever asks for them."""

import numpy as np
import pytest

from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.releases import Quota
from fedbandit_envs.wrappers.transport.channel import Channel


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_each_agent_releases_as_often_as_it_may(limit):
    env = Quota(parallel_env(num_agents=3, num_arms=4, max_cycles=20), limit)
    generator = np.random.default_rng(0)
    env.reset_batch([0, 1])
    asked = np.zeros((2, 3), int)
    for _ in range(8):
        env.step_batch(generator.integers(4, size=(2, 3)))
        senders = generator.random((2, 3)) < 0.7
        released = env.release(senders)
        may = senders & (asked < limit)
        # Something was pulled since: whoever may send has something to say.
        assert (released["pulls"].any(axis=-1) == may).all()
        asked += senders
    assert env.privacy().epsilon == (np.inf if limit else 0.0)


def test_a_new_episode_has_all_of_them_again():
    env = Quota(parallel_env(num_agents=2, num_arms=3), 1)
    everyone = np.ones((1, 2), bool)
    for _ in range(2):
        env.reset_batch([0])
        assert env.allowed_senders(everyone).all()
        env.release(everyone)
        assert not env.allowed_senders(everyone).any()


def test_what_may_not_leave_is_neither_noised_nor_carried_nor_paid_for():
    spent = []
    for limited in (True, False):
        inner = parallel_env(num_agents=2, max_cycles=8)
        private = ContinualPrivatizer(Quota(inner, 2) if limited else inner, 1.0, 1e-5, releases=8)
        env = Channel(private, schedule="every_round")
        env.reset_batch([0])
        for _ in range(8 if limited else 2):
            env.step_batch(np.zeros((1, 2), int))
        assert env.traffic["messages"].tolist() == [[2, 2]]
        spent.append(env.privacy().epsilon)
    assert spent[0] == spent[1]
