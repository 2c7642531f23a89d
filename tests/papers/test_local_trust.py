"""The script on Zhou and Chowdhury's federations: the claims of their lines."""

from dataclasses import replace
from math import isinf

import pytest

from fedbandit_envs.papers.experiment import Scale
from fedbandit_envs.papers.local_trust import (
    HALF,
    LOCAL,
    MOST,
    PLACEBO,
    SERVER,
    SILENT,
    TRUE,
    protecting_agents,
    run,
)

TINY = Scale(200, 2)


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
    claim = protecting_agents(line, epsilon, TINY).run().privacy
    assert (claim.trust, claim.adjacency, claim.composition) == (trust, "agent", "exact")
    assert claim.delta == 0.1
    assert (1 - 1e-3) * epsilon <= claim.epsilon <= epsilon * (1 + 1e-6)


def test_half_of_the_agents_make_up_the_noise():
    stages = [run(HALF, TINY, agents=agents).wrapper_kwargs["channel"]["stage"] for agents in (1.0, 10.0)]
    assert stages == [{"name": "aggregator", "honest": honest} for honest in (1, 5)]


def test_lines_without_noise_claim_nothing_but_silence():
    assert isinf(run(TRUE, TINY, agents=4.0).run().privacy.epsilon)
    assert run(SILENT, TINY, agents=4.0).run().privacy.epsilon == 0


@pytest.mark.parametrize("gap", [5, 40])
def test_releases_follow_the_synchronisations(gap):
    result = run(LOCAL, TINY, gap=float(gap), agents=4.0).run()
    assert (result.traffic["messages"] == 200 // gap * 4 * 3 / 4).all()
