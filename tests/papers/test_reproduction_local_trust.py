"""The pages on Zhou and Chowdhury's federations: their runs, the claims of their lines, and pages at a tiny scale."""

from dataclasses import replace
from math import isinf

import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers.local_trust.experiments import (
    BASELINE_OF,
    EXPERIMENTS,
    HALF,
    LADDER,
    LOCAL,
    MOST,
    PLACEBO,
    SERVER,
    SILENT,
    TRUE,
    protecting_agents,
    run,
)
from fedbandit_envs.papers.reproduction.experiment import Plan

TINY = EXPERIMENTS["local-trust"].scales["tiny"]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.1), (1.0, 1e-5)])
@pytest.mark.parametrize(
    ("line", "trust"),
    [(LOCAL, "local"), (PLACEBO, "local"), (MOST, "aggregator"), (HALF, "aggregator"), (SERVER, "server")],
)
def test_a_line_claims_the_epsilon_that_is_asked_for(line, trust, epsilon, delta):
    # Three synchronisations.
    scale = replace(TINY, rounds=75)
    claim = run(line, scale, epsilon=epsilon, delta=delta, agents=10.0).run().privacy
    assert (claim.trust, claim.delta, claim.adjacency) == (trust, delta, "one-observation")
    # The noise of half of the agents makes up the whole noise, and all add theirs.
    least = 0.3 if line == HALF else 1 - 1e-3
    assert least * epsilon <= claim.epsilon <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize(("line", "trust"), [(LOCAL, "local"), (MOST, "aggregator")])
@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_all_data_of_an_agent_are_protected_with_the_epsilon_that_is_asked_for(line, trust, epsilon):
    claim = protecting_agents(line, epsilon, 200, 2).run().privacy
    assert (claim.trust, claim.adjacency, claim.composition) == (trust, "agent", "exact")
    assert claim.delta == 0.1
    assert (1 - 1e-3) * epsilon <= claim.epsilon <= epsilon * (1 + 1e-6)


def test_lines_without_noise_claim_nothing_but_silence():
    assert isinf(run(TRUE, TINY, agents=4.0).run().privacy.epsilon)
    assert run(SILENT, TINY, agents=4.0).run().privacy.epsilon == 0


@pytest.mark.parametrize("gap", [5, 40])
def test_releases_follow_the_synchronisations(gap):
    result = run(LOCAL, TINY, gap=float(gap), agents=4.0).run()
    assert (result.traffic["messages"] == 200 // gap * 4 * 3 / 4).all()


@pytest.mark.parametrize("name", ["zhou-fig2a", "zhou-fig2b", "local-trust"])
@pytest.mark.parametrize("scale", ["tiny", "small", "paper"])
def test_no_two_runs_of_a_panel_are_alike(name, scale):
    experiment = EXPERIMENTS[name]
    for panel in experiment.panels:
        runs = experiment.runs(Plan(panel, experiment.scales[scale], "default"))
        labels = [tuple(sorted(run.labels.items())) for run in runs]
        assert len(set(labels)) == len(labels)
        assert {run.baseline for run in runs} <= set(BASELINE_OF.values())
        if panel == "order":
            assert {run.labels["line"] for run in runs} >= {*LADDER}


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    "name", ["zhou-fig2a", "zhou-fig2b", pytest.param("local-trust", marks=pytest.mark.ci)]
)
def test_the_page_is_made(tmp_path, name):
    words = ["reproduce", name, "--scale", "tiny", "--rounds", "30", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert found.exit_code == 0, found.output
    check_page(tmp_path / f"{name}-tiny-rounds30.md")
