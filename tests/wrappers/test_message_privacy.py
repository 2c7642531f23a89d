"""Authored messages behind privatizers and stages: what is claimed, and what a clip does."""

from functools import partial

import numpy as np
import pytest
from arms_env import ArmsEnv
from authored import ONE, check_stack
from played import begun
from scipy.stats import norm

from fedbandit_envs.testing.episodes import random_choices
from fedbandit_envs.wrappers import (
    Channel,
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    Messages,
    Server,
)


def test_no_claim_without_a_clip():
    env = begun(Messages(ArmsEnv(), ONE))
    scale, changes, symmetric, pair = env.sensitivity()
    assert (scale["gradient"] == np.inf).all()
    assert changes == {}
    assert not symmetric
    assert pair is None
    assert env.privacy().epsilon == 0
    env.release(np.ones((1, 3), bool))
    assert env.privacy().epsilon == np.inf


def test_privatizers_without_a_clip_refuse_messages():
    private = GaussianPrivatizer(Messages(ArmsEnv(), ONE), epsilon_per_release=0.9)
    with pytest.raises(ValueError, match=r"'gradient' lies .* \(authored message without a clip\)"):
        private.reset_batch([0])


PRIVATIZERS = {
    "gaussian": partial(GaussianPrivatizer, noise_multiplier=8.0, releases=30, clip=0.5),
    "laplace": partial(LaplacePrivatizer, epsilon_per_release=1.0, clip=0.5),
    "continual": partial(ContinualPrivatizer, epsilon=1.0, delta=0.1, clip=0.5),
}


@pytest.mark.parametrize("privatizer", PRIVATIZERS)
def test_questions_about_events_get_the_agents_number(privatizer):
    """An event may change this message and all later ones: what is claimed of all of an agent's data covers it."""
    env = begun(PRIVATIZERS[privatizer](Messages(ArmsEnv(), ONE)))
    assert env.privacy().epsilon == 0
    for action in random_choices(env.single_action_space, (1, 3), 3):
        env.step_batch(action)
        env.release(np.ones((1, 3), bool))
    accountant = env.accountant
    for composition in ("basic", "exact", "zcdp", "parallel"):
        agent = accountant.epsilon(1e-3, composition=composition, adjacency="agent")
        for adjacency in ("one-observation", "one-outcome"):
            event = accountant.epsilon(1e-3, composition=composition, adjacency=adjacency)
            assert event.epsilon == agent.epsilon
            assert event.adjacency == adjacency
            assert event.reason.startswith("authored messages: ")
            assert "'agent'" in event.reason
            np.testing.assert_array_equal(
                accountant.epsilon_by_agent(1e-3, composition=composition, adjacency=adjacency),
                accountant.epsilon_by_agent(1e-3, composition=composition, adjacency="agent"),
            )
        assert composition == "parallel" or "authored" not in agent.reason
    assert env.privacy().adjacency == "agent"
    if privatizer == "gaussian":
        # Three releases of 2 C at sd 8 C: mu = sqrt(3) / 4, whose epsilon at 1e-3 follows from Phi.
        mu = np.sqrt(3) / 4
        epsilon = accountant.epsilon(1e-3, composition="exact", adjacency="one-outcome").epsilon
        delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert delta == pytest.approx(1e-3, rel=1e-6)
    with pytest.raises(ValueError, match="adjacency is 'one-quantity'"):
        accountant.epsilon(adjacency="one-quantity")


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    ("author", "checked", "privatizer"),
    [("policy", "with messages", "gaussian"), ("reporter", "without", "continual")],
)
def test_privatizers_around_messages(privatizer, author, checked):
    private = PRIVATIZERS[privatizer]
    # With messages a channel stands around them; without, nothing does.
    check_stack(
        (lambda env: Channel(private(env))) if checked == "with messages" else private, author, checked
    )


@pytest.mark.parametrize("stage", ["shuffler", {"name": "aggregator", "honest": 3}, "server"])
@pytest.mark.parametrize("transport", [Channel, Server])
def test_stages_add_up_clipped_messages(transport, stage):
    env = Messages(ArmsEnv(num_agents=4), {"gradient": {"shape": [2]}})
    private = GaussianPrivatizer(env, noise_multiplier=0.0, releases=9, clip=5.0)
    env = begun(transport(private, schedule="every_round", stage=stage, echo=False))
    # The second one is clipped to the first.
    gradient = np.array([[[3.0, 4.0], [6.0, 8.0], [-1.0, 0.0], [0.0, 0.5]]])
    step = env.step_batch({"action": np.zeros((1, 4), np.int64), "message": {"gradient": gradient}})
    clipped = gradient.copy()
    clipped[0, 1] /= 2
    expected = clipped.sum(axis=1, keepdims=True) - clipped
    np.testing.assert_allclose(step.observation["inbox_gradient"][:, :, 0], expected, rtol=1e-9)
    assert private.env._ledger.clipped_releases.tolist() == [[0, 1, 0, 0]]
