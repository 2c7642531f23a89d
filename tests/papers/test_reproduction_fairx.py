"""The experiments on exposure fairness: pages at a tiny scale, and what is asked of them over 1e5 rounds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from pages import check_paper
from pairs import every_second
from paper_runs import labelled, played
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers import fairx
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.experiment import PanelRuns, Plan, Scale
from fedbandit_envs.papers.stats import falls, judged, links, ratio


@pytest.mark.parametrize("name", every_second(name for name in experiments() if name.startswith("fairx")))
def test_every_experiment_on_exposure_writes_its_page(tmp_path, name):
    words = ["reproduce", name, "--out", str(tmp_path), "--rounds", "30", "--trials", "2"]
    ran = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    stem = f"{name}-small-rounds30-trials2"
    parts, rows = check_paper(tmp_path, "fairx", stem)
    assert {row["panel"] for row in rows} == {*experiments()[name].panels}
    # Silence stands beside everything.
    page = "".join(parts.values())
    assert fairx.SILENT in page
    if name.startswith("fairx-exp"):
        assert fairx.PRIV in page
        assert "| verdict |" in page


def test_placebos_are_the_same_runs_on_noise():
    plan = Plan("all", Scale(50, 2), "default")
    runs = experiments()["fairx-exp2"].runs(plan)
    for name in fairx.PROTOCOLS:
        ((real,), (placebo,)) = (labelled(runs, line=name + end) for end in ("", fairx.PLACEBO))
        assert placebo.stack == [("Placebo", {})]
        assert (real.baseline, real.wrapper_kwargs) == (placebo.baseline, placebo.wrapper_kwargs)


def test_shares_are_by_merit():
    pulls = np.array([[[10.0, 70, 20]], [[30.0, 50, 20]]])
    deserved = np.array([[[20.0, 50, 30]], [[20.0, 50, 30]]])
    result = SimpleNamespace(totals={"pulls": pulls, "deserved": deserved}, rounds=np.array([1, 100]))
    runs = PanelRuns(Plan("all", Scale(100, 2), "default"), [({"line": "best-arm"}, result)])
    assert fairx.shares(runs) == {
        "best-arm": {1: pytest.approx(0.6), 2: pytest.approx(0.2), 3: pytest.approx(0.2)},
        "deserved": {1: pytest.approx(0.5), 2: pytest.approx(0.3), 3: pytest.approx(0.2)},
    }


def _played(name, folder, panel="all", **sweeps):
    """The paper scale's runs of an experiment, with other values of its sweeps."""
    experiment = experiments()[name]
    scale = replace(experiment.scales["paper"], sweeps={**experiment.scales["paper"].sweeps, **sweeps})
    plan = Plan(panel, scale, "default")
    return played(experiment.runs(plan), plan, folder)


@pytest.mark.slow
def test_the_thesis_over_1e5_rounds(tmp_path):
    """Ten agents, epsilon 2: Fed < Priv < B0, Priv < B1; regret falls with agents and epsilon. Half an hour."""
    first = _played("fairx-exp1", tmp_path, "thesis")
    assert judged("", links(first[name] for name in (fairx.FED, fairx.PRIV, fairx.SILENT)))[2] == "holds"
    second = _played("fairx-exp2", tmp_path)
    assert ratio(second[fairx.PRIV], second["B1"]).at_most(1) == "holds"
    third = _played("fairx-exp3", tmp_path, agents=(2, 5, 10))
    for name in (fairx.FED, fairx.PRIV):
        assert falls(third.by("agents", line=name)) == "holds"
    fourth = _played("fairx-exp4", tmp_path, epsilon=(0.5, 2.0, 8.0))
    assert falls(fourth.by("epsilon", line=fairx.PRIV)) == "holds"


@pytest.mark.slow
@pytest.mark.parametrize("panel", experiments()["fairx-private"].panels)
def test_weighing_never_costs_and_pays_somewhere(tmp_path, panel):
    """Ten and forty agents, epsilon 0.5, 2 and 8: never above 1.05 of tuned silence, below Priv. An hour."""
    played_runs = _played("fairx-private", tmp_path, panel)
    silent = played_runs.by("agents", line=fairx.GREEDY)
    for agents, silence in silent.items():
        ours, theirs = (
            played_runs.by("epsilon", line=line, agents=agents) for line in (fairx.WEIGHTED, fairx.PRIV)
        )
        for epsilon in (0.5, 2.0, 8.0):
            assert ratio(ours[epsilon], silence).at_most(1.05) == "holds"
            assert ratio(ours[epsilon], theirs[epsilon]).at_most(1) == "holds"
    assert ratio(played_runs.one(fairx.WEIGHTED, agents=40, epsilon=8.0), silent[40]).at_most(0.8) == "holds"
