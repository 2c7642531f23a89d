"""The script on trust: the claim of every line is the epsilon asked for."""

from itertools import product

import pytest

from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.papers import trust
from fedbandit_envs.papers.experiment import Plan

TRUSTED = {
    trust.LOCAL: "local",
    trust.SHUFFLER: "shuffler",
    trust.HALF: "aggregator",
    trust.MOST: "aggregator",
    trust.SERVER: "server",
}


@pytest.mark.parametrize(
    ("level", "line", "epsilon"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case[1:] == (trust.SHUFFLER, 1.0) else ())
        for case in product((trust.EVENT, trust.AGENT), TRUSTED, (0.1, 1.0))
        if case[:2] != (trust.EVENT, trust.SHUFFLER)
    ],
)
def test_a_line_claims_the_epsilon_that_is_asked_for(monkeypatch, level, line, epsilon):
    """Slow runs try a shuffler at the larger epsilon as well."""
    monkeypatch.setattr(trust, "tuned", lambda *of: trust.Releases(0.5, 32, 2))
    claim = trust.run("arms", level, line, 300, 2, 40, epsilon).run().privacy
    # Among few agents shuffling buys nothing, and then the claim needs no shuffler.
    assert claim.trust == TRUSTED[line] or (line, claim.trust) == (trust.SHUFFLER, "local")
    assert claim.adjacency == (trust.AGENT if level == trust.AGENT else "one-observation")
    assert (claim.delta, claim.composition) == (trust.DELTA, "exact")
    # Half of the agents are promised to be honest, and all are, so that the claim is better than asked for.
    most, least = epsilon * (1 + 1e-6), epsilon * (0.4 if line == trust.HALF else 1 - 1e-3)
    assert least <= claim.epsilon <= most


def test_each_step_of_trust_needs_less_noise():
    noise = [
        trust._noise_multiplier(line, 0.2, trust.DELTA, 1000, 1) for line in (trust.LOCAL, trust.SHUFFLER)
    ]
    assert noise[0] > 1.5 * noise[1]
    with pytest.raises(KeyError):
        trust.tuned("arms", trust.LOCAL, 0.3, 30)


def test_constants_are_tuned_for_every_line_and_epsilon():
    for name, line, epsilon, agents in product(
        trust.PROBLEMS, (*TRUSTED, PLACEBO), trust.EPSILONS, (4, 30, 300)
    ):
        clip, first, number = trust.tuned(name, line, epsilon, agents)
        assert clip in (0.03, 0.3, 1)
        assert first in (8, 32, 128)
        assert number in (1, 3)
    # Other numbers of agents have those of the next smaller one; the fewest stand for even fewer.
    assert (
        trust.tuned("arms", trust.SHUFFLER, 10, 31)
        == (0.3, 128, 3)
        == trust.tuned("arms", trust.LOCAL, 10, 30)
    )
    assert trust.tuned("arms", trust.HALF, 10, 9) == (1, 32, 3) == trust.tuned("arms", PLACEBO, 10, 10)
    (_, noise), schedule = trust.Releases(0.5, 32, 3).settings(trust.LOCAL, 4.0, 0.3, 30, unit=2.0)
    assert (noise["delta"], noise["clip"], noise["budget"]["delta"]) == (pytest.approx(0.1), 32, 0.3)
    assert schedule == {"name": "doubling", "start": 32, "stop": 128}


@pytest.mark.parametrize("panel", trust.EXPERIMENTS["trust"].panels)
def test_a_panel_has_all_lines_at_all_numbers_of_agents(monkeypatch, panel):
    # How much noise a line has is not asked here.
    monkeypatch.setattr(trust, "_noise_multiplier", lambda *of: 1.0)
    experiment = trust.EXPERIMENTS["trust"]
    labels = [run.labels for run in experiment.runs(Plan(panel, experiment.scales["small"], "default"))]
    found = {(own["line"], own["agents"], own.get("epsilon")) for own in labels}
    lines = {line for line, _, _ in found}
    assert lines == {*trust.LADDER, TUNED, PLACEBO} - (
        {trust.SHUFFLER} if panel.endswith(trust.EVENT) else set()
    )
    assert {epsilon for line, _, epsilon in found if line in (TUNED, TRUE)} == {None}
