"""The examples run, at a small scale; those of `by_hand` need libraries that do not install beside the others."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
RECIPES = ("FedArms-v0", "FedExposure-v0", "FedLinear-v0", "FedMixed-v0", "FedProcurement-v0")
SMALL = {
    "torchrl_arms": ("torchrl", ["--episodes", "2"], {"TorchRL", "uniform"}),
    "ppo_single_file": ("torch", ["--steps", "2000"], {"PPO", "uniform"}),
    "pettingzoo_loop": ("numpy", ["--rounds", "30"], {f"agent_{j}" for j in range(4)}),
}
RUNS = [(name, *run) for name, run in SMALL.items()]
RUNS += [("sb3_recipes", "stable_baselines3", [env_id, "--episodes", "1"], {"PPO"}) for env_id in RECIPES]


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {name for name, *_ in RUNS}


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested using")
@pytest.mark.parametrize(
    ("name", "library", "arguments", "names"),
    [
        pytest.param(*run, marks=pytest.mark.ci if run[0].endswith(("_arms", "_recipes")) else ())
        for run in RUNS
    ],
)
def test_examples_run(name, library, arguments, names, capsys):
    pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    regret = module.main(arguments)
    assert set(regret) >= names
    assert all(total > 0 for total in regret.values())
    assert "regret" in capsys.readouterr().out
    assert name != "sb3_recipes" or max(regret, key=regret.get) != "PPO", (
        "one episode of training: better than random"
    )
