"""Environments that run without error but lie about themselves are caught, by name; their honest twins pass."""

from functools import partial

import arms_env
import numpy as np
import pytest
from lying_environments import LIARS, declared
from lying_observations import DrawsByHistory
from pairs import every_second
from registered import PROBLEMS
from undrawn import undrawn

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.testing import check_federation, federation, problem
from fedbandit_envs.testing.episodes import Trial


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(("liar", "honest"), LIARS)
def test_liars_are_caught(liar, honest):
    with pytest.raises(AssertionError, match=liar.__doc__):
        check_federation(liar)


@pytest.mark.parametrize("honest", sorted({pair.values[1] for pair in LIARS}, key=lambda twin: twin.__name__))
def test_their_honest_twins_are_not(honest):
    with undrawn():
        check_federation(honest)


CHECKS_OF_SENSITIVITY = [problem.check_neighbours, problem.check_worse_neighbours]


def trial(make):
    return Trial(make, range(problem.TRIES), problem.ROUNDS)


@pytest.mark.parametrize("check", CHECKS_OF_SENSITIVITY)
@pytest.mark.parametrize("env", PROBLEMS)
def test_both_checks_of_sensitivity_catch_every_problem_that_declares_too_little(env, check):
    class Liar(env):
        def _sensitivity(self):
            return declared(super()._sensitivity(), scale=0.1)

    small = PROBLEMS[env].small
    check(trial(partial(env, num_agents=3, **small)))
    with pytest.raises(AssertionError, match="sensitivity is too small"):
        check(trial(partial(Liar, num_agents=3, **small)))


@pytest.mark.parametrize("env_id", every_second(REGISTRY))
def test_presets_as_large_as_they_are_registered_declare_enough(env_id):
    """In the sizes of arms, dimensions and producers; more agents release no more each."""
    agents = min(REGISTRY[env_id].kwargs.get("num_agents", 10), 4)
    for check in CHECKS_OF_SENSITIVITY:
        check(trial(lambda: make_federation(env_id, num_agents=agents).unwrapped))


@pytest.mark.parametrize("env", PROBLEMS)
def test_one_agent_with_as_little_as_there_can_be(env):
    """With one arm or producer every action may be the best."""
    size = {"num_producers": 1} if env is ProcurementEnv else {"num_arms": 1}
    for check in federation.PROBLEM_CHECKS:
        if check is not problem.check_regret:
            check(trial(partial(env, num_agents=1, **size)))


@pytest.mark.parametrize("env", PROBLEMS)
def test_registered_problems_name_a_clairvoyant_and_worst_neighbours(env):
    made = env(num_agents=2, **PROBLEMS[env].small)
    observation = made.reset_batch([0]).observation
    assert made.clairvoyant(observation) is not None
    assert all(made.neighbours(adjacency) for adjacency in made.sensitivity().changes)


class Crowds(arms_env.ArmsEnv):
    """An arm that two agents pull pays half: agents interact."""

    interacting = True

    def _play_round(self, action):
        super()._play_round(action)
        pulls = (action[..., np.newaxis] == action[:, np.newaxis]).sum(axis=-1)
        self._reward /= np.maximum(pulls, 1)


def test_agents_that_interact_declare_it(monkeypatch):
    with pytest.warns(
        UserWarning, match="Crowds declares interacting = True: not checked is whether agents see"
    ):
        check_federation(Crowds)
    monkeypatch.setattr(Crowds, "interacting", False)
    with pytest.raises(AssertionError, match="if agents interact, declare interacting = True"):
        check_federation(Crowds)


def test_arms_that_wear_out_declare_it(monkeypatch):
    with pytest.raises(AssertionError, match="or stateful = True"):
        check_federation(DrawsByHistory)
    monkeypatch.setattr(DrawsByHistory, "stateful", True)
    check_federation(DrawsByHistory)


@pytest.mark.parametrize("oracle", ["greedy", "exact"])
def test_an_oracle_that_actions_beat_declares_it(oracle):
    env = ProcurementEnv(num_agents=2, num_producers=3, regret_oracle=oracle)
    assert env.approximate_oracle == (oracle == "greedy")
    with undrawn():
        check_federation(partial(ProcurementEnv, num_agents=2, num_producers=3, regret_oracle=oracle))
