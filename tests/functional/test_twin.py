"""The functional twin plays what the batch API plays: the same instances, outcomes and actions under equal seeds."""

from functools import partial

import numpy as np
import pytest

from fedbandit_envs.baselines import arms, gaussian
from fedbandit_envs.core.wrapper import build
from fedbandit_envs.experiments import simulate
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import find_registered

jax = pytest.importorskip("jax", reason="jax is not installed: the extra 'jax' has it")

from fedbandit_envs import functional as twin  # noqa: E402 - it imports jax
from fedbandit_envs.functional.environment import COMMON, axes  # noqa: E402

DOUBLING = {"name": "doubling", "start": 1, "stop": None}
CHANNEL = [["Channel", {"schedule": DOUBLING}]]
SERVER = [["Server", {"schedule": "every_round", "answers": "every_round", "echo": False}]]

CASES = {
    "arms-UCB1": ("FedArms-v0", {"spread": 0.2, "regret": 0.5}, [], twin.PureUCB1(), arms.UCB1()),
    "arms-UCB1-told": (
        "FedArmsMovieLens-v1",
        {"num_agents": 4, "num_arms": 20},
        CHANNEL,
        twin.PureUCB1(0.3, "horizon"),
        arms.UCB1(0.3, "horizon"),
    ),
    "arms-UCB1-weighted": (
        "FedArms-v0",
        {"num_agents": 4},
        SERVER,
        twin.PureUCB1(0.3, pool="precision"),
        arms.UCB1(0.3, pool="precision"),
    ),
    "arms-Thompson": ("FedArms-v0", {"num_agents": 4}, CHANNEL, twin.PureThompson(), arms.ThompsonSampling()),
    "gaussian": ("FedMixed-v0", {}, [], twin.PureGaussianUCB(), gaussian.GaussianUCB()),
    "gaussian-told": (
        "FedGaussianSampled-v0",
        {"num_agents": 6, "reward_bound": 1.5},
        CHANNEL,
        twin.PureGaussianUCB(0.3),
        gaussian.GaussianUCB(0.3),
    ),
}


def built(env_id, stack, **kwargs):
    """The package's own environment with these arguments."""
    entry = find_registered(env_id)
    return build(entry.federation, (*entry.stack, *stack), **{**entry.kwargs, **kwargs})


@pytest.mark.parametrize("case", CASES)
def test_every_round_is_the_same(case):
    env_id, kwargs, stack, mine, theirs = CASES[case]
    seeds, kwargs = [3, 4], {**kwargs, "max_cycles": 100}
    env, host = twin.make(env_id, stack, np.float64, **kwargs), built(env_id, stack, **kwargs)
    policy_seeds = row_seeds(seeds, host.max_num_agents)
    seen = host.reset_batch(seeds).observation
    theirs.reset(host.policy_spec, policy_seeds)
    with env.precision():
        params = env.params(seeds)
        keys = policy_seeds.view(np.uint32).reshape(*policy_seeds.shape, 2)
        memory = jax.vmap(jax.vmap(partial(mine.start, env)))(params, keys)
        state, observation = jax.jit(jax.vmap(env.reset))(params)
        play = jax.jit(jax.vmap(env.step))
        act = jax.jit(jax.vmap(jax.vmap(partial(mine.act, mine.params()), (0, axes(observation, COMMON)))))
        for _ in range(100):
            for name, array in observation.items():
                if not name.startswith("inbox"):
                    assert_same(array, seen[name][..., 0] if name == "round" else seen[name], name)
            memory, action = act(memory, observation)
            wanted = theirs.act(seen)
            np.testing.assert_array_equal(action, wanted)
            state, observation, reward, info = play(params, state, action)
            step = host.step_batch(wanted)
            seen = step.observation
            np.testing.assert_allclose(reward, step.reward, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(info["regret"], step.info["regret"], rtol=1e-9, atol=1e-9)


def assert_same(array, wanted, name):
    wanted = np.broadcast_to(wanted[:, 0] if name == "round" else wanted, array.shape)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(array, wanted, rtol=1e-9, atol=1e-9, err_msg=name)
    else:
        np.testing.assert_array_equal(array, wanted, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_regret_is_the_same(case):
    compare_regret(case, 500)


def compare_regret(case, rounds):
    env_id, kwargs, stack, mine, theirs = CASES[case]
    kwargs = {**kwargs, "max_cycles": rounds}
    wanted = simulate(built(env_id, stack, **kwargs), theirs, range(5))
    result = twin.rollout(twin.make(env_id, stack, np.float64, **kwargs), mine, range(5))
    np.testing.assert_array_equal(result.rounds, wanted.rounds)
    np.testing.assert_allclose(result.regret, wanted.regret, rtol=1e-6, atol=1e-9)
    for name in result.info:
        np.testing.assert_allclose(result.info[name], wanted.info[name], rtol=1e-6, atol=1e-9)
    assert result.privacy == wanted.privacy
    assert (result.messages is None) == (wanted.messages is None)
    for name, wanted_traffic in wanted.traffic.items():
        np.testing.assert_array_equal(result.traffic[name], wanted_traffic)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_regret_is_the_same_over_2000_rounds(case):
    compare_regret(case, 2000)
