"""P-FCB and FCB behind channel and privatizer: what must not change anything does not, to the bit."""

import numpy as np
import pytest

from fedbandit_envs.baselines.pfcb import PFCB
from fedbandit_envs.baselines.procurement import SSUCB
from fedbandit_envs.leaderboard.simulation import simulate
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.wrappers.channel import Channel
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privatizers.gaussian import GaussianPrivatizer

SEEDS = range(4)
DOUBLING = {"name": "doubling", "start": 4}


def market(**kwargs):
    return parallel_env(num_agents=4, num_producers=6, max_cycles=300, **kwargs)


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: Channel(env, schedule="silent")])
def test_without_messages_it_is_ss_ucb(wrap):
    silent, listening = simulate(market(), SSUCB(), SEEDS), simulate(wrap(market()), PFCB(), SEEDS)
    np.testing.assert_array_equal(listening.regret, silent.regret)


@pytest.mark.parametrize("check", [True, False])
def test_infinite_epsilon_is_no_noise(check):
    policy = PFCB(check=check)
    plain = simulate(Channel(market(), schedule=DOUBLING), policy, SEEDS)
    private = simulate(Channel(GaussianPrivatizer(market(), np.inf), schedule=DOUBLING), policy, SEEDS)
    np.testing.assert_array_equal(private.regret, plain.regret)
    assert (plain.regret != simulate(market(), SSUCB(), SEEDS).regret).any()


def test_the_placebo_tells_nothing():
    """Agents that bought everything and agents that bought nothing send the same, under the same noise."""
    told = []
    for portion in (0, 1):
        env = GaussianPrivatizer(Placebo(market()), 1.0)
        capacity = env.reset_batch([7]).observation["capacity"]
        for _ in range(5):
            env.step_batch(portion * capacity)
        told.append(env.release(np.ones((1, 4), np.bool_)))
    for name, array in told[0].items():
        assert array.any()
        np.testing.assert_array_equal(array, told[1][name])
