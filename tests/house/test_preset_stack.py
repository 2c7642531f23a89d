"""An id that brings wrappers of its own: every face builds them, and every baseline looks through them."""

import gymnasium
import numpy as np
import pytest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.core.wrapper import layers
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.registry.problems import Registered
from fedbandit_envs.registry.registration import REGISTRY, make_federation, register

ID = "FedProcurementKeptApart-v0"
STACK = [["fedbandit_envs.wrappers:Interleaved", {"period": 3}]]
CHANNEL = ["fedbandit_envs.wrappers:Channel", {"schedule": "every_round"}]


@pytest.fixture(scope="module", autouse=True)
def kept_apart():
    """Registers an id whose statistics are kept apart in three slots."""
    entry = Registered(
        REGISTRY["FedProcurement-v0"].problem, ID, {"num_producers": 4, "num_agents": 3}, STACK
    )
    REGISTRY[ID] = entry
    register(entry)
    yield
    del REGISTRY[ID]
    del gymnasium.registry[ID]


def names(env):
    return [type(layer).__name__ for layer in layers(env)]


@pytest.mark.parametrize("joint", [False, True])
def test_gymnasium_has_it_and_puts_stacks_around_it(joint):
    single = gymnasium.make(ID, stack=[CHANNEL], joint=joint)
    vector = gymnasium.make_vec(ID, num_envs=2, stack=[CHANNEL], joint=joint)
    for env in (single.unwrapped, vector):
        assert names(env._control.federation) == ["Channel", "Interleaved", "ProcurementEnv"]
    seen, _ = single.reset(seed=0)
    assert seen["inbox_good"].shape[-3:] == (3, 3, 4)
    twin = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(single.spec.to_json()))
    assert names(twin.unwrapped._control.federation) == ["Channel", "Interleaved", "ProcurementEnv"]


def test_a_baseline_plays_what_is_inside():
    env = BASELINES["SS-UCB"].wrap(make_federation(ID, max_cycles=50))
    assert names(env) == ["Interleaved", "ProcurementEnv"]
    plain = BASELINES["SS-UCB"].wrap(
        make_federation("FedProcurement-v0", num_agents=3, num_producers=4, max_cycles=50)
    )
    curves = [simulate(each, BASELINES["SS-UCB"].make_policy(), range(3)).regret for each in (env, plain)]
    np.testing.assert_array_equal(*curves)
    with pytest.raises(ValueError, match="env is a ProcurementEnv; this baseline plays LinearEnv"):
        BASELINES["LinUCB"].wrap(make_federation(ID))
