"""The scripts on trust and on Zhou and Chowdhury's federations: the claim of every line is the epsilon asked for."""

from itertools import product
from math import isinf

import pytest

from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.papers import local_trust, trust
from fedbandit_envs.papers.experiment import Plan, Scale
from fedbandit_envs.papers.trust import AGENT, EVENT, HALF, LOCAL, MOST, SERVER, SHUFFLER

TRUSTED = {LOCAL: "local", SHUFFLER: "shuffler", HALF: "aggregator", MOST: "aggregator", SERVER: "server"}
TINY = Scale(200, 2)


def check(claim, epsilon, least=1 - 1e-3):
    assert least * epsilon <= claim.epsilon <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize(
    ("level", "line", "epsilon"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case[1:] == (SHUFFLER, 1.0) else ())
        for case in product((EVENT, AGENT), TRUSTED, (0.1, 1.0))
        if case[:2] != (EVENT, SHUFFLER)
    ],
)
def test_a_line_claims_the_epsilon_that_is_asked_for(monkeypatch, level, line, epsilon):
    """Slow runs try a shuffler at the larger epsilon as well."""
    monkeypatch.setattr(trust, "tuned", lambda *of: trust.Releases(0.5, 32, 2))
    claim = trust.run("arms", level, line, Scale(64, 2), 40, epsilon).run().privacy
    # Among few agents shuffling buys nothing, and then the claim needs no shuffler.
    assert claim.trust == TRUSTED[line] or (line, claim.trust) == (SHUFFLER, "local")
    assert claim.adjacency == (AGENT if level == AGENT else "one-observation")
    assert (claim.delta, claim.composition) == (trust.DELTA, "exact")
    # Half of the agents are promised to be honest, and all are, so that the claim is better than asked for.
    check(claim, epsilon, 0.4 if line == HALF else 1 - 1e-3)


def test_constants_are_tuned_for_every_line_and_epsilon():
    for name, line, epsilon, agents in product(
        trust.UNITS, (*TRUSTED, PLACEBO), trust.EPSILONS, (4, 30, 300)
    ):
        clip, first, number = trust.tuned(name, line, epsilon, agents)
        assert clip in (0.03, 0.3, 1)
        assert first in (8, 32, 128)
        assert number in (1, 3)
    # Other numbers of agents have those of the next smaller one; the fewest stand for even fewer.
    assert trust.tuned("arms", SHUFFLER, 10, 31) == (0.3, 128, 3) == trust.tuned("arms", LOCAL, 10, 30)
    assert trust.tuned("arms", HALF, 10, 9) == (1, 32, 3) == trust.tuned("arms", PLACEBO, 10, 10)
    (_, noise), schedule = trust.Releases(0.5, 32, 3).settings(LOCAL, 4.0, 0.3, 30, unit=2.0)
    assert (noise["delta"], noise["clip"], noise["budget"]["delta"]) == (pytest.approx(0.1), 32, 0.3)
    assert schedule == {"name": "doubling", "start": 32, "stop": 128}


@pytest.mark.parametrize("panel", trust.EXPERIMENTS["trust"].panels)
def test_a_panel_has_all_lines_at_all_numbers_of_agents(monkeypatch, panel):
    # How much noise a line has is not asked here.
    monkeypatch.setattr(trust, "_noise_multiplier", lambda *of: 1.0)
    experiment = trust.EXPERIMENTS["trust"]
    labels = [run.labels for run in experiment.runs(Plan(panel, experiment.scales["small"]))]
    lines = {own["line"] for own in labels}
    assert lines == {*trust.LADDER, TUNED, PLACEBO} - ({SHUFFLER} if panel.endswith(EVENT) else set())
    assert {own.get("epsilon") for own in labels if own["line"] in (TUNED, TRUE)} == {None}


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.1), (1.0, 1e-5)])
@pytest.mark.parametrize("line", [LOCAL, PLACEBO, MOST, HALF, SERVER])
def test_a_line_of_zhou_claims_the_epsilon_that_is_asked_for(line, epsilon, delta):
    # Three synchronisations.
    varied = {"epsilon": epsilon, "delta": delta, "agents": 10.0, "gap": 5.0}
    claim = local_trust.run(line, Scale(15, 2), **varied).run().privacy
    assert (claim.trust, claim.delta, claim.adjacency) == (
        TRUSTED.get(line, "local"), delta, "one-observation",
    )  # fmt: skip
    # The noise of half of the agents makes up the whole noise, and all add theirs.
    check(claim, epsilon, 0.3 if line == HALF else 1 - 1e-3)


@pytest.mark.parametrize("line", [LOCAL, MOST])
@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_all_data_of_an_agent_are_protected_with_the_epsilon_that_is_asked_for(line, epsilon):
    claim = local_trust.protecting_agents(line, epsilon, Scale(128, 2)).run().privacy
    assert (claim.trust, claim.adjacency, claim.composition) == (TRUSTED[line], AGENT, "exact")
    assert claim.delta == 0.1
    check(claim, epsilon)


def test_half_of_the_agents_make_up_the_noise():
    for agents, honest in ((1.0, 1), (10.0, 5)):
        channel = local_trust.run(HALF, TINY, agents=agents).wrapper_kwargs["channel"]
        assert channel["stage"] == {"name": "aggregator", "honest": honest}


def test_lines_without_noise_claim_nothing_but_silence():
    assert isinf(local_trust.run(TRUE, TINY, agents=4.0).run().privacy.epsilon)
    assert local_trust.run(local_trust.SILENT, TINY, agents=4.0).run().privacy.epsilon == 0


@pytest.mark.parametrize("gap", [5, 40])
def test_releases_follow_the_synchronisations(gap):
    result = local_trust.run(LOCAL, TINY, gap=float(gap), agents=4.0).run()
    assert (result.traffic["messages"] == 200 // gap * 4 * 3 / 4).all()
