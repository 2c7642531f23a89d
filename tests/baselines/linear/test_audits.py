"""Claims of two registered baselines under attack, at the epsilon and delta they are listed with.

Lower bounds are too high with probability 1e-4 each: were their seeds not fixed, one of the three audits of honest
baselines would raise a false alarm in 1 of 3,000 runs.
"""

from functools import partial

import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers.privacy.audit import attack
from fedbandit_envs.wrappers.privacy.observers import attack_stage


def privatizer(name):
    """Returns the function that puts a baseline's privatizer, without its transport, around an environment."""
    baseline = BASELINES[name]
    return lambda env: baseline.wrappers["privatizer"].make(
        env, **baseline.wrapper_arguments(env.unwrapped)["privatizer"]
    )


def local(samples=100_000):
    """Attacks LDP-FedLinUCB: six releases, one every 25 rounds, of histories that differ in one observation."""
    private = privatizer("LDP-FedLinUCB")
    evidence = attack(
        private, LinearEnv, "one-observation", releases=6, altered=1, samples=samples, horizon=150
    )
    return evidence.against(0.1)


def shuffled(agents=2, samples=100_000):
    """Attacks SDP-FedLinUCB-amplified: three releases, as a fellow of the attacked agent reads them.

    With two agents the fellow knows which of two messages is its own, so that nothing is amplified.
    """
    private = privatizer("SDP-FedLinUCB-amplified")
    small = partial(LinearEnv, num_arms=2, dim=2)
    evidence = attack_stage(private, small, "shuffler", "fellow", agents=agents, releases=3, samples=samples)
    return evidence.against(0.1)


@pytest.mark.parametrize(("audited", "tightness"), [(local, 0.8), (shuffled, 0.6)])
def test_its_claim_holds_and_is_hardly_too_large(audited, tightness):
    audit = audited()
    assert audit.claim.epsilon == pytest.approx(0.2, rel=1e-3)
    assert audit.claim.epsilon <= 0.2 * (1 + 1e-9)
    assert audit.holds, audit
    assert audit.tightness >= tightness, audit


def test_the_claim_behind_a_shuffler_of_more_agents_holds():
    audit = shuffled(agents=4, samples=20_000)
    assert audit.claim.epsilon == pytest.approx(0.2, rel=1e-3)
    assert audit.holds, audit
