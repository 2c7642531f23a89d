"""The pages on servers that compute: their runs, what is counted as sent, and pages at a tiny scale."""

import numpy as np
import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers.reproduction.experiment import Plan
from fedbandit_envs.papers.servers.analysis import sent
from fedbandit_envs.papers.servers.experiments import EXPERIMENTS


@pytest.mark.parametrize("name", ["fedglb", "fed-pe"])
@pytest.mark.parametrize("scale", ["tiny", "small", "paper"])
def test_no_two_runs_of_a_panel_are_alike(name, scale):
    experiment = EXPERIMENTS[name]
    for panel in experiment.panels:
        runs = experiment.runs(Plan(panel, experiment.scales[scale], "default"))
        assert len({tuple(sorted(run.labels.items())) for run in runs}) == len(runs)
        assert len({str(run.key) for run in runs}) == len(runs)


def test_what_is_sent_is_counted_without_headers():
    experiment = EXPERIMENTS["fedglb"]
    runs = {
        run.labels["line"]: run
        for run in experiment.runs(Plan("regret", experiment.scales["tiny"], "default"))
    }
    messages, numbers = sent(runs["all shared"].run())
    # In each of 40 rounds five agents tell ten numbers, a reward and half a number (32 bits), and download 110.
    np.testing.assert_array_equal(messages, 2 * 40 * 5)
    np.testing.assert_array_equal(numbers, 40 * 5 * (10 + 1 + 0.5 + 110))
    messages, numbers = sent(runs["alone"].run())
    assert not messages.any()
    assert not numbers.any()


def test_the_threshold_is_a_multiple_of_the_printed_one():
    experiment = EXPERIMENTS["fedglb"]
    runs = experiment.runs(Plan("threshold", experiment.scales["small"], "default"))
    found = {run.labels["factor"]: run.policy_kwargs["threshold"] for run in runs}
    assert found[1.0] == pytest.approx(0.0775, abs=5e-5)
    assert found[10.0] == pytest.approx(10 * found[1.0])


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("name", ["fedglb", "fed-pe"])
def test_the_page_is_made(tmp_path, name):
    words = ["reproduce", name, "--scale", "tiny", "--rounds", "20", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert found.exit_code == 0, found.output
    check_page(tmp_path / f"{name}-tiny-rounds20.md")
