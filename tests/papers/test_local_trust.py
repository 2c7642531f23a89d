"""The script on Zhou and Chowdhury's federations: the claims of their lines."""

from math import isinf

import pytest

from fedbandit_envs.papers import local_trust
from fedbandit_envs.papers.experiment import Scale

TINY = Scale(200, 2)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.1), (1.0, 1e-5)])
@pytest.mark.parametrize(
    ("line", "trust"),
    [
        (local_trust.LOCAL, "local"),
        (local_trust.PLACEBO, "local"),
        (local_trust.MOST, "aggregator"),
        (local_trust.HALF, "aggregator"),
        (local_trust.SERVER, "server"),
    ],
)
def test_a_line_claims_the_epsilon_that_is_asked_for(line, trust, epsilon, delta):
    # Three synchronisations.
    scale = TINY._replace(rounds=75)
    claim = local_trust.run(line, scale, epsilon=epsilon, delta=delta, agents=10.0).run().privacy
    assert (claim.trust, claim.delta, claim.adjacency) == (trust, delta, "one-observation")
    # The noise of half of the agents makes up the whole noise, and all add theirs.
    least = 0.3 if line == local_trust.HALF else 1 - 1e-3
    assert least * epsilon <= claim.epsilon <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize(("line", "trust"), [(local_trust.LOCAL, "local"), (local_trust.MOST, "aggregator")])
@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_all_data_of_an_agent_are_protected_with_the_epsilon_that_is_asked_for(line, trust, epsilon):
    claim = local_trust.protecting_agents(line, epsilon, TINY).run().privacy
    assert (claim.trust, claim.adjacency, claim.composition) == (trust, "agent", "exact")
    assert claim.delta == 0.1
    assert (1 - 1e-3) * epsilon <= claim.epsilon <= epsilon * (1 + 1e-6)


def test_half_of_the_agents_make_up_the_noise():
    stages = [
        local_trust.run(local_trust.HALF, TINY, agents=agents).wrapper_kwargs["channel"]["stage"]
        for agents in (1.0, 10.0)
    ]
    assert stages == [{"name": "aggregator", "honest": honest} for honest in (1, 5)]


def test_lines_without_noise_claim_nothing_but_silence():
    assert isinf(local_trust.run(local_trust.TRUE, TINY, agents=4.0).run().privacy.epsilon)
    assert local_trust.run(local_trust.SILENT, TINY, agents=4.0).run().privacy.epsilon == 0


@pytest.mark.parametrize("gap", [5, 40])
def test_releases_follow_the_synchronisations(gap):
    result = local_trust.run(local_trust.LOCAL, TINY, gap=float(gap), agents=4.0).run()
    assert (result.traffic["messages"] == 200 // gap * 4 * 3 / 4).all()
