"""What is handed out cannot be used to move the environment; the checks of conformance look at every array of it."""

import copy
import pickle

import numpy as np
import pytest
from channels import small
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Parts
from fedbandit_envs.core.federated_env import BatchReset
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.wrapper import FederatedWrapper


class Counts(FederatedWrapper):
    """Shows rounds alone, in an array that is always the same one."""

    layer = "observation"

    def __init__(self, env):
        super().__init__(env)
        self.single_observation_space = spaces.Dict({"count": spaces.Box(0, MOST, (1,), np.int64)})

    def reset_batch(self, seeds):
        self._observation = {"count": np.zeros((len(seeds), self.max_num_agents, 1), np.int64)}
        return BatchReset(self._observation, super().reset_batch(seeds).info)

    def step_batch(self, action):
        step = super().step_batch(action)
        self._observation["count"] += 1
        return step._replace(observation=self._observation)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_does_not_show_what_its_original_was_shown(duplicate):
    """The PettingZoo API keeps views of arrays that come again; a copy of such a view stands still."""
    env = Counts(small())
    env.reset(seed=0)
    idle = {agent: np.zeros(3, np.int64) for agent in env.possible_agents}
    env.step(idle)
    twin = duplicate(env)
    for count in (2, 3):
        for each in (env, twin):
            observations = each.step(idle)[0]
            assert [seen["count"].item() for seen in observations.values()] == [count] * len(idle)


def test_parts_are_those_of_the_arrays_that_come():
    """Another array under the same name, or the same ones under other names, are cut anew."""
    parts = Parts(lambda arrays: {name: array[:1] for name, array in arrays.items()})
    first, second = np.arange(3), np.arange(3) + 10
    kept = parts.of({"a": first, "b": second})
    assert parts.of({"a": first, "b": second}) is kept
    first[0] = 7
    assert kept["a"] == 7
    assert parts.of({"b": first, "a": second}) == {"b": 7, "a": 10}
    assert parts.of({"b": first.copy(), "a": second})["b"].base is not first
    assert list(parts.of({"b": first})) == ["b"]
