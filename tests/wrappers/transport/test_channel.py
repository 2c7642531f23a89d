"""The channel: what is delivered, when, to whom, at what cost, and what is refused."""

import pickle
import re

import networkx as nx
import numpy as np
import pytest
from channels import PRODUCERS, assert_same, buying, private, run_of, small
from gymnasium.error import ResetNeeded
from pettingzoo.test import parallel_api_test, parallel_seed_test

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.observation import Reveal
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import Schedule

ROUNDS = 20


def brief():
    return small(max_cycles=ROUNDS)


LEVELS = {
    "plain": lambda: Channel(brief()),
    "private": lambda: Channel(private(brief())),
    "requests": lambda: Channel(private(brief()), schedule="on_request"),
    "faults": lambda: Channel(brief(), "ring", {"name": "fixed_gap", "gap": 3}, 2, None, 0.3, 0.3),
    "drawn": lambda: Channel(brief(), {"name": "erdos_renyi", "probability": 0.5}, delay=1),
    "synchronised": lambda: Channel(private(brief()), "star", "synchronise", 1, echo=True),
    "cliques": lambda: Channel(brief(), "line", "on_request", 2, 1, echo=True, cliques=True),
    "alone": lambda: Channel(private(brief()), {"edges": []}, echo=True),
    "revealed": lambda: Reveal(Reveal(Channel(brief(), schedule="on_request"))),
}


@pytest.fixture(params=sorted(LEVELS))
def make_level(request):
    return LEVELS[request.param]


def sampled(env, rounds: int, seed: int = 0) -> list[dict]:
    for agent in env.possible_agents:
        env.action_space(agent).seed(seed)
    return [{agent: env.action_space(agent).sample() for agent in env.possible_agents} for _ in range(rounds)]


def rows_of(actions, agents):
    """The batch API's form of actions by agent."""
    rows = [actions[agent] for agent in agents]
    if isinstance(rows[0], dict):
        return {name: np.stack([row[name] for row in rows])[np.newaxis] for name in rows[0]}
    return np.stack(rows)[np.newaxis]


def test_parallel_api(make_level):
    parallel_api_test(make_level(), num_cycles=ROUNDS + 10)


def test_parallel_seed(make_level):
    parallel_seed_test(make_level)


def test_same_seed_same_trajectory(make_level):
    envs = [make_level() for _ in range(2)]
    first, second = (env.reset(seed=5)[0] for env in envs)
    assert_same(first, second)
    for actions in sampled(envs[0], ROUNDS):
        for part, twin in zip(*(env.step(actions) for env in envs), strict=True):
            assert_same(part, twin)
    assert not envs[0].agents


def test_both_faces_are_equal(make_level):
    batched, keyed = make_level(), make_level()
    observation, _ = batched.reset_batch([9])
    by_agent, _ = keyed.reset(seed=9)
    agents = keyed.possible_agents
    for actions in [*sampled(keyed, ROUNDS), None]:
        for j, agent in enumerate(agents):
            assert by_agent[agent] in keyed.observation_space(agent)
            assert_same(by_agent[agent], {name: array[0, j] for name, array in observation.items()})
        if actions is None:
            break
        step = batched.step_batch(rows_of(actions, agents))
        observation = step.observation
        by_agent, rewards, _, truncated, infos = keyed.step(actions)
        for j, agent in enumerate(agents):
            assert rewards[agent] == step.reward[0, j]
            assert truncated[agent] == step.truncated[0, j]
            assert infos[agent] == {name: array[0, j] for name, array in step.info.items()}


def test_observations_of_the_keyed_face_are_copies():
    env = Channel(small(), schedule={"name": "fixed_gap", "gap": 2})
    env.reset(seed=0)
    actions = {agent: np.ones(PRODUCERS, np.int64) for agent in env.agents}
    env.step(actions)
    kept = env.step(actions)[0]["agent_0"]["inbox_delivered"]
    assert kept.any()
    env.step(actions)
    assert kept.any()


def test_information_counts_the_round_s_own_release():
    env = Channel(private(small(3)), schedule={"name": "fixed_gap", "gap": 2})
    env.reset_batch([0])
    for _ in range(6):
        spent = env.step_batch(buying(env)).info["epsilon_spent"]
        np.testing.assert_array_equal(spent, env.privacy().epsilon)


def test_the_paper_s_schedule_sends_8_messages_to_each_agent():
    env = Channel(small(2, max_cycles=100_000), schedule="doubling")
    env.reset_batch([0])
    action = buying(env)
    times = []
    # The ninth message would be sent in round 2^16.
    for t in range(1, 2**16 + 1):
        step = env.step_batch(action)
        if step.info["messages"].any():
            times.append(t)
            assert step.observation["inbox_delivered"][0, 0, 1].sum() > 0
        else:
            assert not step.observation["inbox_mask"].any()
    assert times == [2**k for k in range(8, 16)]
    assert env.traffic["messages"].tolist() == [[8, 8]]


def test_silence_releases_nothing_and_draws_nothing(monkeypatch):
    env = Channel(small(), schedule="silent", loss=0.3)
    env.reset_batch([0])
    monkeypatch.setattr("fedbandit_envs.wrappers.transport.channel.stream", None)
    monkeypatch.setattr(env.env, "_release", None)
    for _ in range(60):
        step = env.step_batch(buying(env))
        assert not step.observation["inbox_mask"].any()
    assert not env.traffic["messages"].any()
    assert env.privacy().epsilon == 0.0


def test_messages_under_way_are_dropped_at_reset():
    env = Channel(small(), "line", delay=2)
    run_of(env, [0], 5)
    assert not env.reset_batch([0])[0]["inbox_mask"].any()
    again, fresh = run_of(env, [0], 10), run_of(Channel(small(), "line", delay=2), [0], 10)
    for first, second in zip(again, fresh, strict=True):
        assert_same(first, second)
    assert fresh[-1]["inbox_mask"].sum() == 12


class Reusing(ProcurementEnv):
    """Releases in buffers that it uses again, as environments may."""

    def _release(self, sends):
        released = super()._release(sends)
        self.buffers = getattr(
            self, "buffers", {name: array.astype(float) for name, array in released.items()}
        )
        for name, array in released.items():
            self.buffers[name][:] = array
        return self.buffers


def test_what_is_under_way_outlives_the_buffers_of_releases():
    arguments = {"num_agents": 4, "num_producers": PRODUCERS, "instance_seed": 1}
    for first, second in zip(
        run_of(Channel(Reusing(**arguments), "line", delay=1), [0], 10),
        run_of(Channel(ProcurementEnv(**arguments), "line", delay=1), [0], 10),
        strict=True,
    ):
        assert_same(first, second)


@pytest.mark.parametrize("arguments", [{}, {"echo": True, "cliques": True, "time_to_live": 1}], ids=str)
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_pickling_in_mid_episode(loss, arguments):
    env = Channel(private(small(5)), "ring", delay=2, loss=loss, **arguments)
    env.reset_batch([1, 2])
    for _ in range(7):
        env.step_batch(buying(env, 2))
    twin = pickle.loads(pickle.dumps(env))
    for _ in range(20):
        first, second = env.step_batch(buying(env, 2)), twin.step_batch(buying(env, 2))
        assert first.observation["inbox_mask"].any()
        assert_same(first._asdict(), second._asdict())
    assert_same(env.traffic, twin.traffic)


def test_policies_are_told_of_inboxes():
    env = Channel(small())
    told = env.policy_spec
    assert told.horizon == 60
    assert told.observation["inbox_good"].shape == (4, PRODUCERS)
    assert told.observation["inbox_mask"].dtype == np.bool_
    assert told.action == env.env.single_action_space
    observation, _ = env.reset_batch([0, 1])
    assert observation.keys() == set(told.observation)
    assert observation["inbox_good"].shape == (2, 4, 4, PRODUCERS)
    assert observation["inbox_good"].dtype == np.float64


def test_what_is_sent_is_what_the_privatizer_released():
    noisy, raw = Channel(private(small())), Channel(small())
    for env in (noisy, raw):
        env.reset_batch([0])
    heard, truth = (env.step_batch(buying(env)).observation["inbox_good"] for env in (noisy, raw))
    twin = private(small())
    twin.reset_batch([0])
    twin.step_batch(buying(twin))
    released = twin.release(np.ones((1, 4), bool))["good"]
    assert np.array_equal(heard[0, 0, 1:], released[0, 1:])
    assert not np.array_equal(heard, truth)
    assert (heard < 0).any()


def test_privacy_is_claimed_only_where_times_are_fixed_in_advance():
    fixed = Channel(private(small()))
    fixed.reset_batch([0])
    fixed.step_batch(buying(fixed))
    assert fixed.privacy() == fixed.env.privacy()
    for schedule in ("on_request", "synchronise"):
        asked = Channel(private(small()), schedule=schedule)
        asked.reset_batch([0])
        asked.step_batch({"action": buying(asked), "send": np.ones((1, 4), np.bool_)})
        claim = asked.privacy()
        assert claim.epsilon is None
        assert "times may depend on raw local data" in claim.reason
        assert claim.adjacency == fixed.privacy().adjacency
    open_channel = Channel(small())
    open_channel.reset_batch([0])
    open_channel.step_batch(buying(open_channel))
    assert open_channel.privacy().epsilon == np.inf


def test_who_has_spent_the_budget_is_not_permitted_to_send():
    silenced = Channel(private(small(), releases=2, on_exhausted="silence"))
    silenced.reset_batch([0])
    traffic = [silenced.step_batch(buying(silenced)).info["messages"].sum() for _ in range(4)]
    assert traffic == [12, 12, 0, 0]
    echoing = Channel(private(small(), releases=2, on_exhausted="silence"), echo=True)
    echoing.reset_batch([0])
    sent = [echoing.step_batch(buying(echoing)).observation["sent"].tolist() for _ in range(4)]
    assert sent == [[[[True]] * 4]] * 2 + [[[[False]] * 4]] * 2
    strict = Channel(private(small(), releases=1), schedule=Schedule(lambda t: min(t, 2)))
    strict.reset_batch([0])
    assert strict.step_batch(buying(strict)).observation["inbox_good"].any()
    with pytest.raises(BudgetExhaustedError):
        strict.step_batch(buying(strict))
    # The first round's messages are not seen again.
    later = strict.step_batch(buying(strict)).observation
    assert not any(later[name].any() for name in ("inbox_mask", "inbox_good", "inbox_delivered"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"topology": "torus"}, ValueError, "topology name is 'torus'"),
        ({"topology": nx.cycle_graph(5)}, ValueError, "a graph of 5 nodes"),
        ({"schedule": "often"}, ValueError, "schedule name is 'often'"),
        ({"delay": -1}, ValueError, "delay is -1; an integer >= 0"),
        ({"time_to_live": 0}, ValueError, "time_to_live is 0; an integer >= 1"),
        ({"topology": "star", "time_to_live": 1}, ValueError, "time_to_live is 1; None or at least 2"),
        ({"loss": 1.0}, ValueError, "loss is 1.0; a number in [0, 1)"),
        ({"duplication": 1}, ValueError, "duplication is 1; a number in [0, 1)"),
        ({"echo": "no"}, TypeError, "echo is 'no'; True or False"),
        ({"cliques": None}, TypeError, "cliques is None; True or False"),
        ({"cliques": True}, ValueError, "time_to_live is None; an integer >= 1, the reach of a clique"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        Channel(small(), **arguments)


def test_a_schedule_of_ones_own():
    env = Channel(small(), schedule=Schedule(lambda t: int(t >= 3)))
    env.reset_batch([0])
    assert [int(env.step_batch(buying(env)).info["messages"].sum()) for _ in range(5)] == [0, 0, 12, 0, 0]


def test_stepping_before_reset():
    for schedule in ("every_round", "on_request"):
        env = Channel(small(), schedule=schedule)
        with pytest.raises(ResetNeeded):
            env.step_batch({"action": buying(env), "send": np.ones((1, 4), bool)})
