"""The examples run, at a small scale; those of `by_hand` need libraries that do not install beside the others."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SMALL = {
    "sb3_arms": ("stable_baselines3", ["--steps", "8000"], {"PPO", "UCB1", "uniform"}),
    "torchrl_arms": ("torchrl", ["--episodes", "2"], {"TorchRL", "uniform"}),
    "ppo_single_file": ("torch", ["--steps", "2000"], {"PPO", "uniform"}),
    "pettingzoo_loop": ("numpy", ["--rounds", "30"], {f"agent_{j}" for j in range(4)}),
}


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SMALL)


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested using")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ci if name.endswith("_arms") else ()) for name in SMALL]
)
def test_examples_run(name, capsys):
    library, arguments, names = SMALL[name]
    pytest.importorskip(library)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    regret = module.main(arguments)
    assert set(regret) == names
    assert all(total > 0 for total in regret.values())
    assert "regret" in capsys.readouterr().out
