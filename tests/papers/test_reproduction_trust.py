"""The page on trust: the claim of every line is the epsilon asked for; pages at a tiny scale."""

from itertools import product

import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.cli import app
from fedbandit_envs.papers.reproduction.experiment import Plan
from fedbandit_envs.papers.trust import experiments
from fedbandit_envs.papers.trust.experiments import (
    AGENT,
    EPSILONS,
    EVENT,
    EXPERIMENTS,
    HALF,
    LADDER,
    LOCAL,
    MOST,
    PROBLEMS,
    SCALES,
    SERVER,
    SHUFFLER,
    Releases,
)
from fedbandit_envs.papers.trust.tuning import GRID

TRUST = {LOCAL: "local", SHUFFLER: "shuffler", HALF: "aggregator", MOST: "aggregator", SERVER: "server"}


@pytest.mark.parametrize(
    ("level", "line", "epsilon"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case[1:] == (SHUFFLER, 1.0) else ())
        for case in product((EVENT, AGENT), TRUST, (0.1, 1.0))
        if case[:2] != (EVENT, SHUFFLER)
    ],
)
def test_a_line_claims_the_epsilon_that_is_asked_for(level, line, epsilon):
    """Slow runs try a shuffler at the larger epsilon as well."""
    spec = experiments.run("arms", level, line, 300, 2, 40, epsilon, releases=Releases(0.5, 32, 2))
    claim = spec.run().privacy
    # Among few agents shuffling buys nothing, and then the claim needs no shuffler.
    assert claim.trust == TRUST[line] or (line, claim.trust) == (SHUFFLER, "local")
    assert claim.adjacency == (AGENT if level == AGENT else "one-observation")
    assert (claim.delta, claim.composition) == (experiments.DELTA, "exact")
    # Half of the agents are promised to be honest, and all are, so that the claim is better than asked for.
    most, least = epsilon * (1 + 1e-6), epsilon * (0.4 if line == HALF else 1 - 1e-3)
    assert least <= claim.epsilon <= most


def test_each_step_of_trust_needs_less_noise():
    noise = [experiments._noise_multiplier(line, 0.2, 1000, 1) for line in (LOCAL, SHUFFLER)]
    assert noise[0] > 1.5 * noise[1]
    with pytest.raises(KeyError):
        experiments.tuned_releases("arms", LOCAL, 0.3, 30)


def test_constants_are_tuned_for_every_line_and_epsilon():
    for name, line, epsilon, agents in product(PROBLEMS, (*TRUST, PLACEBO), EPSILONS, (4, 30, 300)):
        assert experiments.tuned_releases(name, line, epsilon, agents) in GRID
    for scale in ("small", "paper"):
        assert SCALES[scale].sweeps["epsilon"] == EPSILONS


@pytest.mark.parametrize(
    "scale", ["tiny", *(pytest.param(one, marks=pytest.mark.slow) for one in SCALES if one != "tiny")]
)
@pytest.mark.parametrize("panel", EXPERIMENTS["trust"].panels)
def test_a_panel_has_all_lines_at_all_numbers_of_agents(monkeypatch, panel, scale):
    # How much noise a line has is not asked here.
    monkeypatch.setattr(experiments, "_noise_multiplier", lambda *of: 1.0)
    found = {(run.labels["line"], run.labels["agents"], run.labels.get("epsilon")) for run in
             experiments.runs(Plan(panel, SCALES[scale], "default"))}  # fmt: skip
    lines = {line for line, _, _ in found}
    assert lines == {*LADDER, TUNED, PLACEBO} - ({SHUFFLER} if panel.endswith(EVENT) else set())
    assert {epsilon for line, _, epsilon in found if line in (TUNED, TRUE)} == {None}


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("panel", ["procurement-event", pytest.param("arms-agent", marks=pytest.mark.ci)])
def test_the_page_is_made(tmp_path, panel):
    words = ["reproduce", "trust", "--scale", "tiny", "--panel", panel, "--out", str(tmp_path)]
    found = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert found.exit_code == 0, found.output
    page = tmp_path / f"trust-tiny-{panel}.md"
    check_page(page)
    assert all(line in page.read_text() for line in LADDER if line != SHUFFLER)
