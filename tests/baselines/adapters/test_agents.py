"""Agents of others as policies: objects that predict, functions of one observation, learners of river and MABWiser."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from played import played
from registered import small

from fedbandit_envs.baselines.adapters import AgentFunctions, MABWiserPolicy, PredictPolicy, RiverPolicy
from fedbandit_envs.baselines.adapters.functions import _RowLearners
from fedbandit_envs.baselines.arms import UCB1
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_policy
from fedbandit_envs.wrappers.participation import Participation
from fedbandit_envs.wrappers.transport.channel import Channel

ARMS, PROCUREMENT = "FedArms-v0", "FedProcurement-v0"


def make(env_id=ARMS, **changes):
    return make_federation(env_id, **{**small(env_id), "num_agents": 3, "max_cycles": 20, **changes})


class Optimist:
    """UCB1 on raw observations, as an object that predicts for all rows at once."""

    def predict(self, observation):
        pulls, successes = observation["total_pulls"], observation["total_successes"]
        radius = np.sqrt(2 * np.log(observation["round"] + 1) / np.maximum(pulls, 1))
        return np.where(pulls > 0, successes / np.maximum(pulls, 1) + radius, np.inf).argmax(axis=1)


def ucb1(observation):
    """The same for one row."""
    return Optimist().predict({name: array[np.newaxis] for name, array in observation.items()})[0]


EACH = {f"agent_{j}": ucb1 for j in range(3)}


@pytest.mark.parametrize("make_policy", [
    lambda: PredictPolicy(Optimist(), features=False),
    lambda: AgentFunctions(lambda agent, seed: ucb1),
    lambda: AgentFunctions(EACH),
], ids=["predict", "made functions", "functions"])  # fmt: skip
def test_an_adapted_ucb1_earns_what_the_baseline_earns(make_policy):
    env = make(max_cycles=200)
    adapted, baseline = (simulate(env, policy, range(4)) for policy in (make_policy(), UCB1()))
    np.testing.assert_allclose(adapted.regret, baseline.regret, rtol=0, atol=1e-9)


class Wary:
    """Pulls the first arm, and fails if it is shown a message that its agent has not received."""

    def predict(self, observation):
        assert not observation["inbox_pulls"][~observation["inbox_mask"]].any()
        return np.zeros(len(observation["round"]), np.int64)


def test_agents_are_shown_what_they_have_received():
    assert simulate(Channel(make()), PredictPolicy(Wary(), features=False), range(2)).messages[-1].all()


class Drawer:
    """Draws quality estimates, and remembers how often it was asked."""

    def __init__(self, agent, seed):
        self.rng, self.asked = np.random.default_rng(seed), 0

    def __call__(self, features):
        self.asked += 1
        size = 3 if self.asked % 2 else 2
        return np.repeat(self.rng.random(3)[:1], 3) * size / 3


class Doubtful:
    """Is as optimistic of producers as it is in doubt."""

    def predict(self, features):
        return (features[:, [1, 5, 9]] / 2 + 0.5).astype(np.float32), "state"


def test_adapted_agents_act_row_by_row():
    three = partial(make, PROCUREMENT, num_producers=3)
    check_policy(lambda: AgentFunctions(Drawer, "index", features=True), three)
    check_policy(lambda: PredictPolicy(Doubtful(), "index"), three)
    check_policy(lambda: AgentFunctions(lambda agent, seed: ucb1), make)


def test_functions_choose_when_to_send():
    def talkative(observation):
        return {"action": ucb1(observation), "send": int(observation["round"][0] % 2)}

    env = Channel(make(), schedule="on_request")
    curve = simulate(env, AgentFunctions(dict.fromkeys(env.possible_agents, talkative)), [0])
    assert curve.messages[-1].sum() == 10 * 3 * 2


@pytest.mark.parametrize(("answer", "message"), [
    (np.ones(2), r"the function of agent_1 of replica 0 answers array.*; an element of Box"),
    (np.array([0, 1, np.nan, 0]), r"the function answers nan, entry 2, for agent_1 of replica 0; a number"),
    (None, r"agent_1 of replica 0 answers None; an element of Box"),
])  # fmt: skip
def test_wrong_answers_name_agent_and_row(answer, message):
    agents = {f"agent_{j}": lambda observation: np.zeros(4) for j in range(3)}
    agents["agent_1"] = lambda observation: answer
    with pytest.raises(ValueError, match=message):
        simulate(make(PROCUREMENT, num_producers=4), AgentFunctions(agents, "index"), range(2))


@pytest.mark.parametrize(("answer", "message"), [
    (np.ones((5, 4)), r"SimpleNamespace answers all rows together with shape \(5, 4\); \(6, 4\) is required"),
    (np.ones((6, 3)), r"SimpleNamespace answers all rows together with shape \(6, 3\); \(6, 4\) is required"),
    (np.where(np.arange(24) == 18, np.nan, 0).reshape(6, 4), "nan, entry 2, for agent_1 of replica 1"),
    (np.ones((6, 4)) * 2, r"quality estimates\[0, 0, 0\] is 2.0"),
    (None, r"with shape \(\)"),
])  # fmt: skip
def test_wrong_predictions_name_agent_and_row(answer, message):
    agent = SimpleNamespace(predict=lambda features: answer)
    with pytest.raises(ValueError, match=message):
        simulate(make(PROCUREMENT, num_producers=4), PredictPolicy(agent, "index"), range(2))


def test_what_does_not_fit_is_named():
    with pytest.raises(TypeError, match=r"agent is 3; an object with predict\(observations\) is required"):
        PredictPolicy(3)
    with pytest.raises(UnfitError, match=r"action_format is 'index'; one of \['arm', 'values'\] is"):
        simulate(make(), PredictPolicy(Optimist(), "index"), [0])
    with pytest.raises(UnfitError, match=r"agents has no function for agent_1, agent_2; one an agent"):
        simulate(make(), AgentFunctions({"agent_0": ucb1}), [0])
    with pytest.raises(ValueError, match=r"agent_0 of replica 0 answers .*; an element of Dict\('action'"):
        simulate(Channel(make(), schedule="on_request"), AgentFunctions(EACH), [0])


def bandits(**changes):
    return make_federation("FedArms-v0", **{"num_agents": 2, "num_arms": 4, "max_cycles": 150, **changes})


def greedy(seed):
    from river import bandit

    return bandit.EpsilonGreedy(epsilon=0.1, seed=seed)


POLICIES = {
    "river UCB": ("river", lambda: RiverPolicy("UCB", {"delta": 1.0})),
    "river by a function": ("river", lambda: RiverPolicy(greedy)),
    "river's default": ("river", RiverPolicy),
    "MABWiser UCB1": ("mabwiser", lambda: MABWiserPolicy("UCB1", {"alpha": 1.25})),
    "MABWiser Thompson": ("mabwiser", lambda: MABWiserPolicy("ThompsonSampling")),
}


@pytest.fixture(params=POLICIES)
def make_policy(request):
    library, policy = POLICIES[request.param]
    pytest.importorskip(library)
    return policy


def test_learners_act_row_by_row(make_policy, monkeypatch):
    monkeypatch.setattr("fedbandit_envs.testing.policy.HORIZON", 40)
    check_policy(make_policy, bandits)


class Told:
    """Remembers what it was told, and pulls the last arm it may."""

    everyone: list = []  # noqa: RUF012 - read by the test

    def __init__(self, arms, seed):
        self.heard = []
        self.everyone.append(self)

    def pull(self, arms):
        self.heard.append(arms)
        return arms[-1]

    def update(self, arm, reward):
        self.heard.append((arm, reward))


def test_learners_are_told_of_their_own_pulls_alone():
    """Round by round: which arms were awake, which was pulled and what it earned; and nothing for those who sit out."""
    env = Participation(bandits(awake=0.7), {"name": "probability", "probability": 0.5})
    Told.everyone = []
    policy = _RowLearners("Told", Told)
    expected = [[] for _ in range(4)]
    for _, before, step in played(env, policy, (3, 4), 20):
        pulled = step.observation["total_pulls"] - before["total_pulls"]
        earned = step.observation["total_successes"] - before["total_successes"]
        for row in range(4):
            where = divmod(row, 2)
            if before["active"][where].item() and before["awake"][where].any():
                arms = np.flatnonzero(before["awake"][where]).tolist()
                expected[row].append(arms)
                assert pulled[where][arms[-1]] == 1
                expected[row].append((arms[-1], float(earned[where][arms[-1]])))
            else:
                assert pulled[where].sum() == 0
    policy.act(step.observation)
    for learner, mine in zip(Told.everyone, expected, strict=True):
        assert learner.heard[: len(mine)] == mine
        assert len(learner.heard) - len(mine) <= 1


def test_what_learners_cannot_play_is_named(make_policy):
    with pytest.raises(UnfitError, match=r"pulls one arm a round of FedArms and its like"):
        simulate(make_federation("FedLinear-v0", **small("FedLinear-v0")), make_policy(), [0])
    with pytest.raises(UnfitError, match=r"pulls one arm a round"):
        simulate(bandits(slots=2), make_policy(), [0])


def test_wrong_answers_of_learners_name_agent_and_row():
    class Wrong(Told):
        def pull(self, arms):
            return 9 if len(self.everyone) and self is self.everyone[3] else 0

    Told.everyone = []
    with pytest.raises(
        ValueError, match=r"Wrong answers 9 for agent_1 of replica 1; one of .*\[0, 1, 2, 3\]"
    ):
        simulate(bandits(), _RowLearners("Wrong", Wrong), range(2))


def test_wrong_names_are_refused():
    pytest.importorskip("river")
    pytest.importorskip("mabwiser")
    with pytest.raises(ValueError, match=r"policy is 'UCB7'; one of .*'UCB'.* is required"):
        RiverPolicy("UCB7")
    with pytest.raises(ValueError, match="policy is 'LinUCBDisjoint'"):
        RiverPolicy("LinUCBDisjoint")
    with pytest.raises(TypeError, match="delta"):
        RiverPolicy("UCB")
    with pytest.raises(ValueError, match=r"learning_policy is 'UCB7'; one of .*'UCB1'.* is required"):
        MABWiserPolicy("UCB7")
    with pytest.raises(UnfitError, match="MABWiser does not support sleeping arms"):
        simulate(bandits(awake=0.5), MABWiserPolicy(), [0])
