"""The examples run, at a small scale; those of `by_hand` need minutes, or other versions of libraries."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
PROBLEMS = ("FedArms-v0", "FedExposure-v0", "FedLinear-v0", "FedMixed-v0", "FedProcurement-v0")
SMALL = {
    **{f"sb3_recipes {one}": ("stable_baselines3", [one, "--episodes", "1"], {"PPO"}) for one in PROBLEMS},
    "torchrl_arms": ("torchrl", ["--episodes", "2"], {"TorchRL", "uniform"}),
    "ppo_single_file": ("torch", ["--steps", "2000"], {"PPO", "uniform"}),
    "pettingzoo_loop": ("numpy", ["--rounds", "30"], {f"agent_{j}" for j in range(4)}),
}


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {run.split()[0] for run in SMALL}


@pytest.mark.filterwarnings("ignore:PettingZoo in TorchRL is tested using")
@pytest.mark.parametrize(
    "run",
    [pytest.param(run, marks=pytest.mark.ci if run.startswith(("sb3", "torchrl")) else ()) for run in SMALL],
)
def test_examples_run(run, capsys, monkeypatch):
    (library, arguments, names), name = SMALL[run], run.split()[0]
    pytest.importorskip(library)
    monkeypatch.syspath_prepend(FOLDER)
    regret = importlib.import_module(name).main(arguments)
    assert all(regret[name] > 0 for name in names)
    assert "regret" in capsys.readouterr().out
    assert name != "sb3_recipes" or max(regret, key=regret.get) != "PPO", "random is worse after one episode"
