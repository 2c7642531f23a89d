"""The experiments on exposure fairness: pages at a tiny scale, and what is asked of them over 1e5 rounds."""

import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.leaderboard.cli import app
from fedbandit_envs.leaderboard.reproduction import fairx
from fedbandit_envs.leaderboard.reproduction.comparison import ordered, ratio
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.reproduction.experiments import EXPERIMENTS
from fedbandit_envs.leaderboard.sweep import store
from fedbandit_envs.leaderboard.sweep.engine import play


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("fairx")])
def test_every_experiment_on_exposure_writes_its_page(tmp_path, name):
    words = ["reproduce", name, "--out", str(tmp_path), "--rounds", "70", "--trials", "2"]
    ran = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    stem = f"{name}-small-rounds70-trials2"
    page = (tmp_path / f"{stem}.md").read_text()
    assert "T = 70 (the thesis has 100,000" in page
    assert "2 runs make no interval" in page
    assert "fairness regret" in page
    for title in EXPERIMENTS[name].panels.values():
        assert f"## {title}" in page
    # Silence stands beside everything, at the radius that serves it best too.
    assert fairx.SILENT in page
    if name.startswith("fairx-exp"):
        assert fairx.PRIV in page
        assert "placebo" in page
        assert "The thesis says" in page
    assert (tmp_path / f"{stem}.png").stat().st_size > 10_000
    check_page(tmp_path / f"{stem}.md")


def test_placebos_are_the_same_runs_on_noise():
    plan = Plan("all", Scale(50, 2), "default")
    runs = fairx.exp2(plan)
    for name in fairx.PROTOCOLS:
        real, placebo = (runs[name + end].settings for end in ("", fairx.PLACEBO))
        assert placebo.stack == [("fedbandit_envs.wrappers.placebo:Placebo", {})]
        assert (real.baseline, real.wrapper_kwargs) == (placebo.baseline, placebo.wrapper_kwargs)


def _played(runs, tmp_path):
    work = store.missing_shards([part for run in runs.values() for part in run.split()], tmp_path)
    play(work, tmp_path)
    return {name: store.load(run.split(), tmp_path) for name, run in runs.items()}


@pytest.mark.slow
def test_the_thesis_over_1e5_rounds(tmp_path):
    """Ten agents, epsilon 2: Fed < Priv < B0, Priv < B1; regret falls with agents and epsilon. Half an hour."""
    scale = Scale(100_000, 5, {"agents": (2, 5, 10), "epsilon": (0.5, 2.0, 8.0)})
    first = _played(fairx.exp1(Plan("thesis", scale, "default")), tmp_path)
    assert ordered([first[name] for name in (fairx.FED, fairx.PRIV, fairx.SILENT)])[0] == "holds"
    second = _played(fairx.exp2(Plan("all", scale, "default")), tmp_path)
    assert ratio(second[fairx.PRIV], second["B1"]).at_most(1) == "holds"
    third = _played(fairx.exp3(Plan("all", scale, "default")), tmp_path)
    for name in (fairx.FED, fairx.PRIV):
        assert ordered([third[f"{name} {agents}"] for agents in (10, 5, 2)])[0] == "holds"
    fourth = _played(fairx.exp4(Plan("all", scale, "default")), tmp_path)
    assert ordered([fourth[f"{fairx.PRIV} {epsilon}"] for epsilon in ("8", "2", "0.5")])[0] == "holds"


@pytest.mark.slow
@pytest.mark.parametrize("panel", fairx.PRIVATE_PANELS)
def test_weighing_never_costs_and_pays_somewhere(tmp_path, panel):
    """Ten and forty agents, epsilon 0.5, 2 and 8: never above 1.05 of tuned silence, below Priv. An hour."""
    scale = EXPERIMENTS["fairx-private"].scales["paper"]
    played = _played(fairx.private(Plan(panel, scale, "default")), tmp_path)
    for agents in (10, 40):
        silence = played[f"{fairx.GREEDY} {agents}"]
        for epsilon in ("0.5", "2", "8"):
            ours = played[f"{fairx.WEIGHTED} {agents} {epsilon}"]
            assert ratio(ours, silence).at_most(1.05) == "holds"
            assert ratio(ours, played[f"{fairx.PRIV} {agents} {epsilon}"]).at_most(1) == "holds"
    assert ratio(played[f"{fairx.WEIGHTED} 40 8"], played[f"{fairx.GREEDY} 40"]).at_most(0.8) == "holds"
