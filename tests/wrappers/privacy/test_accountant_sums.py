"""Accountants of several episodes of the same agents add up, unless the episodes drew the same noise."""

import math
from copy import deepcopy

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from values_env import ValuesEnv

from fedbandit_envs.core.privacy import AGENT
from fedbandit_envs.wrappers import Channel, ContinualPrivatizer, GaussianPrivatizer, LaplacePrivatizer
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant

SECRET = 2**80 + 7


def private(multiplier=20.0, **kwargs) -> GaussianPrivatizer:
    return GaussianPrivatizer(ValuesEnv(), noise_multiplier=multiplier, clip=1.0, **kwargs)


def episode(env, seeds, releases=1, senders=(True, True)) -> Accountant:
    """Plays an episode in which some agents release several times; returns its accountant."""
    env.reset_batch(seeds)
    for _ in range(releases):
        env.release(np.array([senders] * len(seeds)))
    return env.accountant


def exact(accountant: Accountant, adjacency=AGENT):
    return accountant.epsilon(1e-3, composition="exact", adjacency=adjacency)


def test_two_episodes_cost_as_much_as_one_that_is_as_long():
    env = private()
    first, second = episode(env, [0], 4), episode(env, [1], 6)
    both = exact(first + second)
    assert both == exact(episode(private(), [2], 10))
    assert round(both.epsilon, 5) == 0.78289
    assert both == exact(second + first)


def test_different_mechanisms_and_agents_add_up():
    first = episode(private(20.0), [0, 1], 2)
    second = episode(private(30.0), [2, 3], 3, senders=(True, False))
    total = first + second
    other = PLDAccountant(value_discretization_interval=1e-4)
    other.compose(dp_event.GaussianDpEvent(10.0), 2)
    other.compose(dp_event.GaussianDpEvent(15.0), 3)
    by_agent = total.epsilon_by_agent(1e-3, composition="exact", adjacency=AGENT)
    assert by_agent[:, 0] == pytest.approx(other.get_epsilon(1e-3), abs=1e-4)
    assert by_agent[:, 1].tolist() == [exact(episode(private(20.0), [4], 2)).epsilon] * 2
    for composition in ("basic", "zcdp"):
        added = [
            each.epsilon(0.99, composition=composition, adjacency=AGENT).epsilon for each in (first, second)
        ]
        assert max(added) < total.epsilon(0.99, composition=composition, adjacency=AGENT).epsilon


def test_continual_releases_add_up():
    def accountant(seed):
        env = ContinualPrivatizer(ValuesEnv(), 1.0, 1e-3, releases=5, adjacency=AGENT, clip=1.0)
        return episode(env, [seed], 5)

    (event,) = accountant(0).events
    other = PLDAccountant(value_discretization_interval=1e-4)
    other.compose(dp_event.GaussianDpEvent(1 / event.mu(AGENT)), 3)
    total = accountant(0) + accountant(1) + accountant(2)
    assert exact(total).epsilon == pytest.approx(other.get_epsilon(1e-3), abs=1e-4)


def test_the_terms_stay_as_they_are():
    env = private()
    first, second = episode(env, [0], 2), episode(env, [1], 3)
    before = exact(first), exact(second)
    total = first + second
    env.release(np.ones((1, 2), np.bool_))
    assert exact(first) == before[0]
    assert exact(second).epsilon > before[1].epsilon
    assert total.counts.sum() == 10


def test_an_ended_episode_keeps_its_claim():
    """As it was at its last round, whatever the next one releases."""
    env = private()
    first = episode(env, [0], 3)
    claim = exact(first)
    episode(env, [1], 5)
    assert exact(first) == claim


def test_a_reset_that_fails_ends_nothing():
    env = private()
    accountant = episode(env, [0])
    with pytest.raises(ValueError, match="seeds"):
        env.reset_batch([])
    env.env.release(np.ones((1, 2), np.bool_))
    assert exact(accountant).epsilon == math.inf


@pytest.mark.parametrize("order", [1, -1])
def test_what_was_not_recorded_is_not_forgotten(order):
    env = private()
    episode(env, [0])
    env.env.release(np.array([[True, False]]))
    leaky = env.accountant
    silent_reset = episode(env, [1])
    first, second = (leaky, silent_reset)[::order]
    claim = exact(first + second)
    assert (claim.epsilon, claim.reason) == (math.inf, "data has left without passing the privatizer")
    by_agent = (first + second).epsilon_by_agent(1e-3, composition="exact", adjacency=AGENT)
    assert np.isinf(by_agent[0, 0])
    assert by_agent[0, 1] == exact(episode(private(), [5], 2)).epsilon


def test_an_episode_whose_times_may_depend_on_data_leaves_no_claim():
    asked = Channel(private(), schedule="on_request")
    asked.reset_batch([0])
    asked.step_batch({"action": np.zeros((1, 2), np.int64), "send": np.array([[True, False]])})
    for claim in (exact(asked.env.accountant + episode(private(), [1])), exact(asked.env.accountant)):
        assert claim.epsilon is None
        assert "agents choose when to send" in claim.reason


def test_without_a_clip_the_sum_has_no_claim_for_agents_either():
    def accountant(seed):
        return episode(GaussianPrivatizer(ValuesEnv(), noise_multiplier=9.0), [seed])

    total = accountant(0) + accountant(1)
    assert exact(total).epsilon is None
    assert exact(total, "one-round").epsilon > exact(accountant(2), "one-round").epsilon


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        ({}, {}, "seed 3"),
        ({"multiplier": 5.0}, {"multiplier": 50.0}, "seed 3"),
        (
            {"noise_seed": SECRET},
            {"noise_seed": SECRET},
            "noise_seed of hash [0-9a-f]{32}, episode 0, seed 3",
        ),
    ],
)
def test_episodes_of_the_same_noise_are_refused(one, other, named):
    first, second = episode(private(**one), [1, 3]), episode(private(**other), [3, 2])
    with pytest.raises(ValueError, match=rf"drew the same noise \({named}\); other noise is required"):
        first + second
    with pytest.raises(ValueError, match="drew the same noise"):
        first + first
    with pytest.raises(ValueError, match="drew the same noise"):
        (first + episode(private(), [8, 9])) + second


def test_a_copy_draws_the_same_noise():
    env = private(noise_seed=SECRET)
    twin = deepcopy(env)
    with pytest.raises(ValueError, match="drew the same noise"):
        episode(env, [0]) + episode(twin, [0])


def test_noise_of_another_seed_or_of_a_later_episode_is_other_noise():
    env = private(noise_seed=SECRET)
    total = episode(env, [0]) + episode(env, [0]) + episode(private(noise_seed=SECRET + 1), [0])
    assert exact(total).noise == "secret"
    assert str(SECRET) not in repr(vars(total))
    assert exact(total + episode(private(), [0])).noise == "repeatable"


def test_other_agents_and_other_adjacencies_are_refused():
    with pytest.raises(
        ValueError, match=r"have \(replicas, agents\) \(1, 2\) and \(2, 2\); equal ones are required"
    ):
        episode(private(), [0]) + episode(private(), [1, 2])
    unclipped = GaussianPrivatizer(ValuesEnv(), noise_multiplier=9.0)
    with pytest.raises(ValueError, match=r"adjacencies \['one-round', 'agent'\] and \['one-round'\]"):
        episode(private(), [0]) + episode(unclipped, [1])
    with pytest.raises(TypeError):
        episode(private(), [0]) + 1


def test_pure_and_gaussian_releases_add_up():
    laplace = episode(LaplacePrivatizer(ValuesEnv(), 1.0, releases=4, clip=1.0), [0], 2)
    gaussian = episode(private(), [1], 2)
    total = exact(laplace + gaussian).epsilon
    parts = exact(laplace).epsilon + exact(gaussian).epsilon
    assert max(exact(laplace).epsilon, exact(gaussian).epsilon) < total <= parts * (1 + 1e-9)
