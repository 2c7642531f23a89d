"""Models of SB3 and sb3-contrib as policies: the same actions as on the view they were trained on, row by row."""

import numpy as np
import pytest
from registered import small

from fedbandit_envs.baselines.adapters import SB3Policy
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.experiments.spec import RunSpec, read_assignments
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_policy
from fedbandit_envs.views import to_sb3

ARMS, PROCUREMENT, EXPOSURE = "FedArms-v0", "FedProcurement-v0", "FedExposure-v0"
LSTM = {"lstm_hidden_size": 16}
MODELS = {
    "PPO": ("MlpPolicy", EXPOSURE, "logits", True, {}),
    "PPO-dict": ("MultiInputPolicy", ARMS, None, False, {}),
    "DQN": ("MlpPolicy", ARMS, None, True, {"exploration_final_eps": 0.5}),
    "SAC": ("MlpPolicy", PROCUREMENT, "index", True, {"policy_kwargs": {"net_arch": [16]}}),
    "RecurrentPPO": ("MlpLstmPolicy", PROCUREMENT, "index", True, {"policy_kwargs": LSTM}),
    "MaskablePPO": ("MlpPolicy", ARMS, None, True, {}),
}


@pytest.fixture(autouse=True, scope="module")
def libraries():
    global sb3, contrib, torch
    sb3, contrib, torch = map(pytest.importorskip, ("stable_baselines3", "sb3_contrib", "torch"))


def make(env_id, **changes):
    return make_federation(env_id, **{**small(env_id), "num_agents": 2, "max_cycles": 9, **changes})


def changes_of(name):
    return {"awake": 0.6} if name == "MaskablePPO" else {}


def model_of(name):
    """A model as it is before training: its mean is not 0, since a small noise is put on its parameters."""
    network, env_id, action_format, features, arguments = MODELS[name]
    env = to_sb3(make(env_id, **changes_of(name)), action_format, replicas=3, features=features)
    algorithm = name.removesuffix("-dict")
    library = sb3 if hasattr(sb3, algorithm) else contrib
    model = getattr(library, algorithm)(network, env, seed=0, device="cpu", **arguments)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model, env_id, {"action_format": action_format, "features": features}


@pytest.mark.parametrize(
    ("name", "deterministic"), [*((name, True) for name in MODELS), ("PPO", False), ("DQN", False)]
)
def test_models_act_row_by_row(name, deterministic, monkeypatch):
    """In 15 rounds: networks take longer than all else, and what is compared is equal to the bit."""
    monkeypatch.setattr("fedbandit_envs.testing.policy.HORIZON", 15)
    model, env_id, view = model_of(name)
    # Samples take longer: a single agent, in several replicas.
    changes = {**changes_of(name), **({} if deterministic else {"num_agents": 1})}
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002 - SB3's
    check_policy(
        lambda: SB3Policy(model, deterministic=deterministic, **view), lambda: make(env_id, **changes)
    )
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002 - SB3's


@pytest.mark.parametrize("name", MODELS)
def test_models_act_as_on_the_view(name):
    """Two episodes: regrets of the policy are those of SB3's own loop over the VecEnv, memory and masks included."""
    model, env_id, view = model_of(name)
    changes = changes_of(name)
    env = to_sb3(make(env_id, **changes), replicas=3, **view)
    policy = SB3Policy(model, **view)
    for seed in (4, 9):
        curve = simulate(make(env_id, **changes), policy, range(seed, seed + 3))
        env.seed(seed)
        seen, state, start, regret = env.reset(), None, np.ones(6, np.bool_), np.zeros(6)
        for _ in range(9):
            masked = name == "MaskablePPO"
            masks = {"action_masks": np.stack(env.env_method("action_masks"))} if masked else {}
            action, state = model.predict(seen, state, start, deterministic=True, **masks)
            seen, _, start, infos = env.step(action)
            regret += [info["regret"] for info in infos]
        np.testing.assert_allclose(curve.regret[-1].ravel(), regret, rtol=1e-5, atol=1e-9)
        assert regret.std() > 0


def test_a_saved_model_plays_with_its_normalizer(tmp_path):
    """As a file, from the command line's settings, through the averages of its training."""
    view = {"action_format": "logits"}
    env = sb3.common.vec_env.VecNormalize(to_sb3(make(EXPOSURE), replicas=2, **view))
    model = sb3.PPO("MlpPolicy", env, n_steps=9, batch_size=12, seed=0, device="cpu").learn(72)
    model.save(tmp_path / "ppo.zip")
    env.save(tmp_path / "averages.pkl")
    env.training = False
    env.seed(0)
    seen, regret = env.reset(), np.zeros(4)
    for _ in range(9):
        seen, _, _, infos = env.step(model.predict(seen, deterministic=True)[0])
        regret += [info["regret"] for info in infos]
    assignments = [
        f"model={tmp_path / 'ppo.zip'}", "algorithm=PPO", "action_format=logits",
        f"normalizer={tmp_path / 'averages.pkl'}", "num_agents=2",
        *(f"env.{name}={value}" for name, value in small(EXPOSURE).items() if name != "num_agents"),
    ]  # fmt: skip
    settings = RunSpec("fedbandit_envs.baselines.adapters:SB3Policy", EXPOSURE, 9, 2)
    result = settings.changed(read_assignments(assignments)).run().as_json()
    np.testing.assert_allclose(result["per_seed"], regret.reshape(2, 2).mean(axis=1), rtol=1e-5)
    unnormalized = simulate(make(EXPOSURE), SB3Policy(model, **view), range(2))
    assert not np.allclose(unnormalized.regret[-1], regret.reshape(2, 2))


def test_what_does_not_fit_is_named(tmp_path):
    model, *_ = model_of("PPO")
    with pytest.raises(UnfitError, match=r"trained with action_space Box.*; rows have"):
        simulate(make(EXPOSURE), SB3Policy(model, action_format="parameter"), [0])
    with pytest.raises(UnfitError, match=r"trained with observation_space Box"):
        simulate(make(EXPOSURE), SB3Policy(model, action_format="logits", features=False), [0])
    with pytest.raises(ValueError, match=r"algorithm is None; a class in stable_baselines3 or sb3_contrib"):
        SB3Policy(tmp_path / "model.zip")
    with pytest.raises(FileNotFoundError):
        SB3Policy(tmp_path / "model.zip", "PPO")
