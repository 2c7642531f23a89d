"""Learners of arms by river and MABWiser, one a row."""

import sys

import numpy as np
import pytest
from registered import small

from fedbandit_envs.baselines.adapters import MABWiserPolicy, RiverPolicy
from fedbandit_envs.baselines.adapters.learners import RowLearners
from fedbandit_envs.baselines.arms import UniformArms
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_policy
from fedbandit_envs.wrappers.participation import Participation


def make(**changes):
    return make_federation("FedArms-v0", **{"num_agents": 2, "num_arms": 4, "max_cycles": 150, **changes})


def thompson(seed):
    from river import bandit, proba

    return bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed)


POLICIES = {
    "river UCB": ("river", lambda: RiverPolicy("UCB", {"delta": 1.0})),
    "river Thompson": ("river", lambda: RiverPolicy(thompson)),
    "MABWiser UCB1": ("mabwiser", lambda: MABWiserPolicy("UCB1", {"alpha": 1.25})),
    "MABWiser Thompson": ("mabwiser", lambda: MABWiserPolicy("ThompsonSampling")),
}


@pytest.fixture(params=POLICIES)
def make_policy(request):
    library, policy = POLICIES[request.param]
    pytest.importorskip(library)
    return policy


def test_learners_act_row_by_row(make_policy):
    check_policy(make_policy, make)


def test_learners_learn(make_policy):
    """Half the regret of chance: 20 rows each, whose regrets differ by some ten standard errors."""
    regret = [
        simulate(make(), policy, range(10)).regret[-1].mean() for policy in (make_policy(), UniformArms())
    ]
    assert regret[0] < regret[1] / 2


class Told:
    """Remembers what it was told, and pulls the last arm it may."""

    everyone: list = []  # noqa: RUF012 - read by the test

    def __init__(self, arms, seed):
        self.heard = []
        self.everyone.append(self)

    def choose(self, arms):
        self.heard.append(arms)
        return arms[-1]

    def learn(self, arm, reward):
        self.heard.append((arm, reward))


def test_learners_are_told_of_their_own_pulls_alone():
    """Round by round: which arms were awake, which was pulled and what it earned; and nothing for those who sit out."""
    env = Participation(make(awake=0.7), {"name": "probability", "probability": 0.5})
    Told.everyone = []
    policy = RowLearners("Told", Told)
    reset = env.reset_batch([3, 4])
    policy.reset(env.policy_spec, np.zeros((2, 2), np.uint64))
    expected = [[] for _ in range(4)]
    observation = reset.observation
    for _ in range(20):
        before = {name: array.copy() for name, array in observation.items()}
        step = env.step_batch(policy.act(observation))
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
        observation = step.observation
    policy.act(observation)
    for learner, mine in zip(Told.everyone, expected, strict=True):
        assert learner.heard[: len(mine)] == mine
        assert len(learner.heard) - len(mine) <= 1


def test_what_learners_cannot_play_is_named(make_policy):
    with pytest.raises(UnfitError, match=r"pulls one arm a round of FedArms and its like"):
        simulate(make_federation("FedLinear-v0", **small("FedLinear-v0")), make_policy(), [0])
    with pytest.raises(UnfitError, match=r"pulls one arm a round"):
        simulate(make(slots=2), make_policy(), [0])


def test_wrong_answers_name_agent_and_row():
    class Wrong(Told):
        def choose(self, arms):
            return 9 if len(self.everyone) and self is self.everyone[3] else 0

    Told.everyone = []
    with pytest.raises(
        ValueError, match=r"Wrong answers 9 for agent_1 of replica 1; one of the arms \[0, 1, 2, 3\]"
    ):
        simulate(make(), RowLearners("Wrong", Wrong), range(2))


def test_wrong_names_are_refused():
    pytest.importorskip("river")
    pytest.importorskip("mabwiser")
    with pytest.raises(ValueError, match=r"policy is 'UCB7'; one of .*'UCB'.* is required"):
        RiverPolicy("UCB7")
    with pytest.raises(ValueError, match=r"learning_policy is 'UCB7'; one of .*'UCB1'.* is required"):
        MABWiserPolicy("UCB7")
    with pytest.raises(
        UnfitError, match=r"MABWiser does not support sleeping arms; awake=1.0, or RiverPolicy"
    ):
        simulate(make(awake=0.5), MABWiserPolicy(), [0])


@pytest.mark.parametrize(("policy", "library"), [(RiverPolicy, "river"), (MABWiserPolicy, "mabwiser")])
def test_without_the_library_it_is_named(policy, library, monkeypatch):
    for name in [library, f"{library}.mab"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"needs: python -m pip install {library}"):
        policy()
