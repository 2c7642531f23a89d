"""Servers that decide which agents take part: who acts, hears and sends when, and first answers without a message."""

from typing import ClassVar

import numpy as np
import pytest
from played import begun

from fedbandit_envs.arms_v0 import parallel_env as arms
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.testing import check_federation, check_server_policy
from fedbandit_envs.wrappers import Channel, Participation, Server


class Doorman:
    """Lets agents join in their order, one after each round in which somebody has uploaded."""

    def __init__(self, first=1, says_so=True):
        self.first, self.says_so = first, says_so

    downloads: ClassVar = {
        "active": {"shape": [], "dtype": "bool"},
        "word": {"shape": [2], "dtype": "float64"},
    }

    def reset(self, spec, seeds):
        self.joined, self.agents = np.full(len(seeds), self.first), spec.agents
        return self.said() if self.says_so else None

    def answer(self, uploads, mask):
        self.joined += mask.any(axis=1)
        return self.said()

    def said(self):
        return {
            "active": np.arange(self.agents) < self.joined[:, np.newaxis],
            "word": np.stack([self.joined, -self.joined], axis=1).astype(float),
        }


def make(env, schedule="every_round", **kwargs):
    return Server(env, schedule, "every_round", policy=Doorman(), **kwargs)


def test_agents_join_from_the_round_after_the_answer_on():
    env = make(arms(num_agents=4, max_cycles=6))
    seen = env.reset_batch([0, 1])
    assert seen.observation["active"][..., 0].tolist() == [[True, False, False, False]] * 2
    assert seen.observation["server_word"][0, 0].tolist() == [1.0, -1.0]
    assert "server_active" not in seen.observation
    for t in range(6):
        before = seen.observation["active"][..., 0].copy()
        seen = env.step_batch(np.zeros((2, 4), np.int64))
        np.testing.assert_array_equal(seen.observation["total_pulls"][..., 0] > 0, before)
        np.testing.assert_array_equal(before, np.arange(4) <= np.full((2, 1), t))
        joined = min(t + 2, 4)
        assert (seen.info["agents_joined"] == joined).all()
        # Uploads of those who acted, and answers to them and to the agent who joins.
        up, down = min(t + 1, 4), joined
        assert (seen.info["messages"].sum(axis=1) == up + down).all()
        assert not seen.info["regret"][~before].any()


def test_an_agent_that_has_not_joined_sends_and_hears_nothing():
    env = begun(make(arms(num_agents=3, max_cycles=4), "on_request"))
    for _ in range(3):
        # Agent 2 asks to send all the time, the others never.
        step = env.step_batch(
            {"action": np.zeros((1, 3), np.int64), "send": np.array([[False, False, True]])}
        )
        assert not step.info["messages"].any()
        assert not step.observation["server_mask"].any()
        assert (step.info["agents_joined"] == 1).all()
    step = env.step_batch({"action": np.zeros((1, 3), np.int64), "send": np.array([[True, False, False]])})
    assert step.observation["server_mask"][0, :, 0].tolist() == [True, True, False]
    assert step.observation["active"][0, :, 0].tolist() == [True, True, False]


class Fickle(Doorman):
    """Changes its mind about everybody; nobody leaves all the same."""

    def answer(self, uploads, mask):
        return {**super().answer(uploads, mask), "active": np.zeros(mask.shape, bool)}


def test_nobody_leaves():
    env = begun(Server(arms(num_agents=2, max_cycles=4), "every_round", "every_round", policy=Fickle()))
    for _ in range(3):
        seen = env.step_batch(np.zeros((1, 2), np.int64)).observation
        assert seen["server_mask"][0, :, 0].tolist() == seen["active"][0, :, 0].tolist() == [True, False]


def test_a_delayed_or_lost_answer_delays_joining():
    env = begun(make(arms(num_agents=2, max_cycles=8), delay=1))
    active = [env.step_batch(np.zeros((1, 2), np.int64)).observation["active"][0, 1, 0] for _ in range(4)]
    # Up in round 1, taken in in round 2, down in round 3.
    assert active == [False, False, True, True]
    env = begun(make(arms(num_agents=2, max_cycles=60), loss=0.8))
    found = []
    for _ in range(60):
        seen = env.step_batch(np.zeros((1, 2), np.int64)).observation
        found.append((bool(seen["server_mask"][0, 1, 0]), bool(seen["active"][0, 1, 0])))
    first = found.index((True, True))
    assert first > 0
    assert found[:first] == [(False, False)] * first


def test_who_joins_sees_the_contexts_of_its_first_own_round():
    late = make(linear(num_agents=3, num_arms=4, dim=2, max_cycles=6))
    early = linear(num_agents=3, num_arms=4, dim=2, max_cycles=6)
    contexts = [early.reset_batch([5]).observation["contexts"].copy()]
    for _ in range(4):
        contexts.append(early.step_batch(np.zeros((1, 3), np.int64)).observation["contexts"].copy())
    seen = late.reset_batch([5]).observation["contexts"].copy()
    np.testing.assert_array_equal(seen[0, 0], contexts[0][0, 0])
    assert not seen[0, 1:].any()
    for t in range(1, 5):
        seen = late.step_batch(np.zeros((1, 3), np.int64)).observation["contexts"].copy()
        for j in range(3):
            if t >= j:
                np.testing.assert_array_equal(seen[0, j], contexts[t - j][0, j])


def test_it_keeps_the_rules_of_federations_and_servers():
    check_federation(lambda **kwargs: make(arms(num_agents=4, num_arms=3, **kwargs), "on_request"))
    check_server_policy(Doorman(), lambda: arms(num_agents=4, num_arms=3))


class Whispering(Doorman):
    """Tells a replica how many others there are."""

    def reset(self, spec, seeds):
        first = super().reset(spec, seeds)
        return {**first, "word": np.full_like(first["word"], len(seeds))}


class SameForAll(Doorman):
    """Draws the first answers of all replicas from the first replica's seed."""

    def reset(self, spec, seeds):
        first = super().reset(spec, seeds)
        drawn = np.random.default_rng(int(seeds[0])).random(len(seeds))
        return {**first, "word": np.stack([drawn, drawn], axis=1)}


@pytest.mark.parametrize("policy", [Whispering(), SameForAll()], ids=["others", "first seed"])
def test_first_answers_that_depend_on_other_replicas_are_caught(policy):
    with pytest.raises(AssertionError, match="alone and among the others"):
        check_server_policy(policy, lambda: arms(num_agents=4, num_arms=3))


def test_refusals():
    with pytest.raises(ValueError, match="env has a Participation; none is required"):
        make(Participation(arms(num_agents=3)))
    env = Server(arms(num_agents=3), "every_round", "every_round", policy=Doorman(says_so=False))
    with pytest.raises(ValueError, match="policy has no first answer"):
        env.reset_batch([0])

    class Wrong(Doorman):
        downloads: ClassVar = {"active": {"shape": [3], "dtype": "bool"}}

    with pytest.raises(ValueError, match=r"downloads\['active'\] is .*; a single bool is required"):
        Server(arms(num_agents=3), policy=Wrong())
    env = begun(make(arms(num_agents=3)))
    with pytest.raises(ValueError, match="seeds"):
        env.reset_batch([-1])
    active = env.step_batch(np.zeros((1, 3), np.int64)).observation["active"][0, :, 0]
    assert active.tolist() == [True, True, False]


class Announcer:
    """Announces the next upload of each agent after one, two, three ... rounds, and after five answers none."""

    downloads: ClassVar = {"rounds": {"shape": [], "dtype": "int64"}}

    def reset(self, spec, seeds):
        self.answers = np.ones(len(seeds), np.int64)
        return {"rounds": self.answers.copy()}

    def answer(self, uploads, mask):
        self.answers += mask.any(axis=1)
        return {"rounds": np.where(self.answers > 5, 0, self.answers)}


def uploads(**kwargs):
    env = Server(arms(num_agents=2, max_cycles=40), "announced", "every_round", policy=Announcer(), **kwargs)
    env.reset_batch([0, 1])
    steps = (env.step_batch(np.zeros((2, 2), np.int64)) for _ in range(40))
    return np.array([step.info["messages"].sum(axis=1) for step in steps])


def test_agents_upload_in_the_rounds_that_the_server_announces():
    sent = uploads()
    # After rounds 1, 1 + 2, 3 + 3, ..., from both agents, and answered to both at once.
    expected = np.zeros(40, int)
    expected[[0, 2, 5, 9, 14]] = 4
    np.testing.assert_array_equal(sent, np.stack([expected, expected], axis=1))


def test_what_is_delayed_or_lost_is_announced_from_when_it_arrives():
    sent = uploads(delay=1)[:, 0]
    # Up in round 1 and, since no answer has arrived, in rounds 2 and 3. Answers leave in rounds 2, 3 and 4 and announce
    # the third, fourth and fifth round after they have arrived, of which the last one counts.
    assert sent[:8].tolist() == [2, 4, 4, 2, 0, 0, 0, 0]
    assert uploads(loss=0.5).sum() > 5 * 4


def test_announcing_needs_a_policy_that_answers_rounds():
    for policy in (None, "average", Doorman()):
        with pytest.raises(ValueError, match=r"schedule is 'announced'.*'rounds', a single integer, is"):
            Server(arms(num_agents=2), "announced", policy=policy)
    with pytest.raises(ValueError, match="schedule is 'announced'; a Server with a policy is required"):
        Channel(arms(num_agents=2), schedule="announced")
