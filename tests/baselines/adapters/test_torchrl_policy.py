"""TorchRL: its check of our environments, and its modules as policies."""

import numpy as np
import pytest
from registered import FIRST_IDS, small

from fedbandit_envs.baselines.adapters import TorchRLPolicy
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.exposure_v0 import parallel_env
from fedbandit_envs.randomness.streams import EpisodeSeeds
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_policy
from fedbandit_envs.views.parallel import parallel

pytestmark = pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested using")

ARMS, EXPOSURE, PROCUREMENT = "FedArms-v0", "FedExposure-v0", "FedProcurement-v0"


@pytest.fixture(autouse=True, scope="module")
def libraries():
    global torch, nn, envs, nets
    names = "torch", "tensordict.nn", "torchrl.envs", "torchrl.modules"
    torch, nn, envs, nets = map(pytest.importorskip, names)


def make(env_id, **changes):
    return make_federation(env_id, **{**small(env_id), "num_agents": 3, "max_cycles": 9, **changes})


@pytest.mark.parametrize("env_id", FIRST_IDS)
def test_torchrls_check_passes_and_regret_reaches_its_keys(env_id):
    federation = make(env_id)
    # TorchRL samples boxes, and no simplex.
    face = parallel(federation, "logits") if "logits" in federation.action_formats else federation
    told = []
    step = face.step

    def watched(actions):
        result = step(actions)
        told.append([info["regret"] for info in result[4].values()])
        return result

    face.step = watched
    env = envs.PettingZooWrapper(face)
    envs.check_env_specs(env, seed=0)
    told.clear()
    rollout = env.rollout(20)
    assert rollout.batch_size == (9,)
    regret = rollout["next", "agent", "info", "regret"].numpy()
    np.testing.assert_array_equal(regret, np.array(told, np.float32))
    assert regret.max() > 0
    assert rollout["next", "agent", "truncated"][-1].all()
    assert not rollout["next", "agent", "terminated"].any()


def grouped(env_id, action_format):
    """A network shared by agents, each of which sees itself alone."""
    spaces = make(env_id).policy_spec
    inputs = spaces.features(spaces).space.shape[0]
    outputs = spaces.action_formats[action_format].space.shape[0]
    torch.manual_seed(0)
    net = nets.MultiAgentMLP(inputs, outputs, 3, centralized=False, share_params=True, depth=1, num_cells=16)
    net = torch.nn.Sequential(net, torch.nn.Sigmoid())
    return nn.TensorDictModule(net, in_keys=[("agent", "observation")], out_keys=[("agent", "action")])


def sampler():
    """A categorical actor on raw counts, without a group."""
    torch.manual_seed(0)
    mlp, pulls = nets.MLP(5, 5, num_cells=[16]), ("observation", "total_pulls")
    net = nn.TensorDictModule(lambda counts: mlp(counts.float()), in_keys=[pulls], out_keys=["logits"])
    return nets.ProbabilisticActor(
        net, in_keys=["logits"], out_keys=["action"], distribution_class=torch.distributions.Categorical,
        return_log_prob=False,
    )  # fmt: skip


def test_modules_act_row_by_row(monkeypatch):
    """In 15 rounds: networks take longer than all else, and what is compared is equal to the bit."""
    monkeypatch.setattr("fedbandit_envs.testing.policy.HORIZON", 15)
    module, actor = grouped(EXPOSURE, "logits"), sampler()
    check_policy(lambda: TorchRLPolicy(module, "logits"), lambda: make(EXPOSURE))
    check_policy(lambda: TorchRLPolicy(actor, features=False, group=None), lambda: make(ARMS, num_arms=5))


def test_a_module_plays_as_in_torchrls_own_loop():
    module = grouped(EXPOSURE, "logits")
    # TorchRL resets with the seed, and then once more without.
    episodes = EpisodeSeeds()
    episodes.next(5)
    curve = simulate(make(EXPOSURE), TorchRLPolicy(module, "logits"), [episodes.next()])
    sizes = {**small(EXPOSURE), "num_agents": 3, "max_cycles": 9}
    env = envs.PettingZooWrapper(parallel_env(**sizes, action_format="logits", features=True))
    env.set_seed(5)
    with torch.no_grad():
        rollout = env.rollout(9, module)
    assert curve.regret[-1].min() > 0
    regret = rollout["next", "agent", "info", "regret"].sum(dim=0).numpy()
    np.testing.assert_allclose(regret, curve.regret[-1, 0], rtol=1e-4)
