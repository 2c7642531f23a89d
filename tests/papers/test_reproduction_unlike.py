"""The pages on Fed1-UCB, Fed2-UCB and PF-UCB: their runs, the rest of the horizon, and pages at a tiny scale."""

import numpy as np
import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.leaderboard.cli import app
from fedbandit_envs.leaderboard.reproduction.experiment import Plan
from fedbandit_envs.papers.unlike.analysis import cost, regret_at, slope, total
from fedbandit_envs.papers.unlike.experiments import EXPERIMENTS


@pytest.mark.parametrize("name", ["fed-ucb", "pf-ucb"])
@pytest.mark.parametrize("scale", ["tiny", "small", "paper"])
def test_no_two_runs_of_a_panel_are_alike(name, scale):
    experiment = EXPERIMENTS[name]
    for panel in experiment.panels:
        runs = experiment.runs(Plan(panel, experiment.scales[scale], "default"))
        assert len({tuple(sorted(run.labels.items())) for run in runs}) == len(runs)
        assert len({str(run.key) for run in runs}) == len(runs)


def runs_of(panel):
    experiment = next(one for one in EXPERIMENTS.values() if panel in one.panels)
    found = experiment.runs(Plan(panel, experiment.scales["tiny"], "default"))
    return {run.labels["line"]: run for run in found}


def test_what_is_not_simulated_goes_on_as_before():
    alone = runs_of("exact")["alone"].run()
    rate = slope(alone)
    early = alone.rounds[-2]
    assert 1500 < early < 2000
    regret = alone.regret.sum(axis=2)
    np.testing.assert_allclose(rate, (regret[-1] - regret[-2]) / (2000 - early))
    np.testing.assert_allclose(regret_at(alone, 5000.0), regret[-1] + 3000 * rate)
    assert (rate > 0).all()
    assert not cost(alone).any()
    shared = runs_of("exact")["shared"].run()
    # Five agents send to four others in each round.
    np.testing.assert_array_equal(cost(shared), 2000 * 5 * 4 / 2)
    np.testing.assert_allclose(total(shared, 2000.0), shared.regret[-1].sum(axis=1) + cost(shared))


def test_a_run_that_ends_early_decides_by_the_whole_horizon():
    spec = runs_of("approximate")["Fed2-UCB"]
    assert spec.rounds == 40
    assert spec.wrapper_kwargs["server"]["policy"]["horizon"] == 2000
    assert spec.labels["horizon"] == 2000


@pytest.mark.parametrize("name", ["fed-ucb", "pf-ucb"])
def test_the_page_is_made(tmp_path, name):
    words = ["reproduce", name, "--scale", "tiny", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert found.exit_code == 0, found.output
    check_page(tmp_path / f"{name}-tiny.md")
