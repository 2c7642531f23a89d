"""The page on digits at a tiny scale, and its runs."""

import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers.classification.experiments import ALPHA, EXPERIMENTS
from fedbandit_envs.papers.reproduction.experiment import Plan

pytest.importorskip("sklearn")


@pytest.mark.parametrize("panel", EXPERIMENTS["classification"].panels)
def test_all_runs_are_of_the_same_digits_in_one_form_or_the_other(panel):
    experiment = EXPERIMENTS["classification"]
    runs = experiment.runs(Plan(panel, experiment.scales["small"], "default"))
    assert len({str(run.key) for run in runs}) == len({run.labels["line"] for run in runs}) == len(runs)
    for run in runs:
        contexts = run.env_kwargs["contexts"]
        assert contexts.get("alpha") == (ALPHA if panel == "unlike" else None)
        assert contexts.get("features") == ("shared" if run.baseline == "LinUCB-disjoint" else None)


@pytest.mark.ci
@pytest.mark.usefixtures("blank_pictures")
def test_the_page_on_digits(tmp_path):
    words = ["reproduce", "classification", "--scale", "tiny", "--rounds", "8", "--out", str(tmp_path)]
    ran = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "classification-tiny-rounds8.md").read_text()
    for text in ("## Agents with the same classes", "all shared", "FedUCB-weighted, epsilon = 10"):
        assert text in page
    check_page(tmp_path / "classification-tiny-rounds8.md")
