"""Ways to release more than is claimed, each of which was possible once."""

from functools import partial
from math import inf

import numpy as np
import pytest
from events import ONE_VALUE, gaussian
from gymnasium.error import ResetNeeded
from played import begun

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import (
    Channel,
    ContinualPrivatizer,
    GaussianPrivatizer,
    Interleaved,
    Messages,
    Quota,
    Server,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant, Event
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError, Clip

AGENTS = 6
TOLD = {"said": {"shape": [1]}, "reply": {"shape": [1], "asked": True}}
EXACT = {"delta": 1e-3, "composition": "exact", "adjacency": "agent"}


def played(env, rounds, agents=AGENTS, message=False):
    """Plays the first arm; returns the last step."""
    action = np.zeros((1, agents), np.int64)
    both = {"action": action, "message": {"g": np.ones((1, agents, 2))}}
    return [env.step_batch(both if message else action) for _ in range(rounds)][-1]


@pytest.mark.parametrize("shares", [[0.7 + 0.2, 0.9], [0.7 + 0.2, 0.7 + 0.2, 0.9]])
def test_shuffled_events_of_the_same_loss_add_up(shares):
    """Shares of epsilon that differ by rounding are events of their own, which may have the same loss."""
    claims = []
    for each in (shares, [0.9] * len(shares)):
        private = GaussianPrivatizer(
            ArmsEnv(num_agents=20), epsilon_per_release=each, delta=1e-6, calibration="analytic", clip=1.0, budget=EXACT
        )  # fmt: skip
        env = begun(Channel(private, schedule="every_round", stage="shuffler"))
        played(env, len(shares), 20)
        claims.append([claim.epsilon for claim in env.privacy_claims()])
    assert claims[0] == pytest.approx(claims[1], rel=1e-6)


class Told:
    """Answers questions with sevens, and has ones to say of its own."""

    def reset(self, spec, seeds):
        self.rows = seeds.shape

    def observe(self, observation): ...

    def report(self, question):
        return {"said": np.ones((*self.rows, 1)), "reply": np.full((*self.rows, 1), 7.0)}


@pytest.mark.parametrize(
    "inside",
    [partial(Clip, clip=0.5), partial(Quota, releases=3), lambda env: Messages(env, TOLD, reporter=Told())],
)
def test_slots_take_no_data_from_wrappers_that_count_releases(inside):
    with pytest.raises(
        ValueError, match="inside of Interleaved, which would take data from it in every round"
    ):
        Interleaved(inside(ArmsEnv()), period=2)
    with pytest.raises(ValueError, match="inside of Interleaved"):
        Interleaved(Quota(inside(ArmsEnv()), releases=5), period=2)


@pytest.mark.parametrize("mechanism", [None, "tree", "independent"])
def test_no_absence_lets_an_agent_exceed_its_budget(mechanism):
    """Of correlated noise only the shares of agents count that were in all sums, and any upload may be lost."""
    private = ContinualPrivatizer(
        ArmsEnv(num_agents=AGENTS, max_cycles=40), epsilon=1.0, delta=1e-3, releases=40, adjacency="agent", clip=1.0,
        mechanism=mechanism, budget={"epsilon": 0.8, **EXACT}, on_exhausted="silence",
    )  # fmt: skip
    env = Channel(private, schedule="every_round", stage={"name": "aggregator", "honest": 4}, loss=0.25)
    env.reset_batch([0])
    spent = played(env, 15).info["epsilon_spent"].max()
    assert 0 < env.privacy().epsilon <= min(0.8, spent) * (1 + 1e-9)


def test_an_adjacency_that_is_left_out_is_the_first_one():
    env = Messages(ArmsEnv(num_agents=AGENTS, max_cycles=40), {"g": {"shape": [2]}})
    private = ContinualPrivatizer(env, epsilon=1.0, delta=1e-3, releases=40, adjacency="agent", clip=1.0)
    channel = Channel(private, schedule="every_round", stage={"name": "aggregator", "honest": 4}, loss=0.25)
    channel.reset_batch([0])
    played(channel, 15, message=True)
    assert private.claims(adjacency=None) == private.claims(adjacency="agent")


def test_a_transport_does_not_go_on_after_a_reset_inside_of_it():
    """The reset would have forgotten that agents choose when to send."""
    private = GaussianPrivatizer(ArmsEnv(num_agents=2), noise_multiplier=2.0, releases=9)
    env = begun(Channel(private, schedule="on_request"))
    action = {"action": np.zeros((1, 2), np.int64), "send": np.ones((1, 2), bool)}
    env.step_batch(action)
    assert env.privacy().epsilon is None
    private.reset_batch([0])
    with pytest.raises(ResetNeeded, match="reset without its transport"):
        env.step_batch(action)
    env.reset_batch([0])
    env.step_batch(action)
    assert env.privacy().epsilon is None


def test_no_budget_is_left_after_a_release_past_the_privatizer():
    budget = {"epsilon": 5.0, "delta": 0.1, "composition": "exact"}
    private = GaussianPrivatizer(ArmsEnv(num_agents=2), noise_multiplier=9.0, releases=9, budget=budget)
    private.reset_batch([0])
    private.env.release([[True, False]])
    assert private.privacy().epsilon == inf
    with pytest.raises(BudgetExhaustedError, match="agent_0"):
        private.release([[True, True]])
    private.release([[False, True]])


def test_release_without_noise_stays_infinite_beside_what_has_no_epsilon():
    accounts = Accountant(1, 2)
    accounts.record(Event("gaussian", inf, inf, 0.0, ONE_VALUE), np.array([[1, 0]]))
    accounts.record(Event("gaussian", 1.0, 1.0, 0.01, ONE_VALUE, releases=3), np.array([[1, 1]]))
    assert accounts.epsilon(0.1, composition="parallel").epsilon == inf


@pytest.mark.parametrize("times", [[[0.9]], [["1"]], [[None]]])
def test_no_part_of_a_release_is_rounded_away(times):
    accounts = Accountant(1, 1)
    with pytest.raises(TypeError, match="times has dtype"):
        accounts.record(gaussian(1.0), np.array(times))
    assert not accounts.events


def test_a_reset_that_fails_leaves_no_books_to_release_on():
    private = begun(GaussianPrivatizer(ProcurementEnv(num_agents=2, max_cycles=100), epsilon_per_release=0.9))
    private.release([[True, True]])
    ended = private.accountant
    private.max_cycles = 1
    with pytest.raises(ValueError, match="releases"):
        private.reset_batch([1])
    for use in (lambda: private.accountant, lambda: private.release([[True, True]])):
        with pytest.raises(ResetNeeded):
            use()
    assert 0 < ended.epsilon().epsilon < inf


def test_a_reset_that_fails_leaves_no_stage():
    private = GaussianPrivatizer(ArmsEnv(num_agents=3), noise_multiplier=2.0, releases=3)
    env = Channel(private, stage="server")
    with pytest.raises(ValueError, match="-1"):
        env.reset_batch([-1])
    private.reset_batch([0])
    released = private.release(np.ones((1, 3), bool))
    assert released["pulls"].all(), "a server would have added the noise"
    assert private.privacy().epsilon < inf


def test_a_question_whose_answer_was_refused_is_not_answered_later():
    messages = Messages(ArmsEnv(num_agents=2), TOLD, reporter=Told())
    private = GaussianPrivatizer(messages, noise_multiplier=1e-9, releases=1, clip=100.0)
    env = begun(Server(private, "every_round"))
    private.release([[True, False]])
    asked = np.array([[True, False]])
    with pytest.raises(BudgetExhaustedError):
        env._converse({"model": np.zeros((1, 2, 1))}, asked, 1)
    released = private.release([[False, True]])
    assert released["said"][0, 1, 0] == pytest.approx(1, abs=1e-3)
    assert released["reply"][0, 1, 0] == pytest.approx(0, abs=1e-3)
