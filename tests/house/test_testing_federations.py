"""The checks of environments catch what they should, and name it: each of these is broken in one way."""

import numpy as np
import pytest
from arms_env import ArmsEnv

from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.privacy import Change
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.randomness.streams import Purpose, row_keys
from fedbandit_envs.testing import check_federation


class ShowsBuffers(ArmsEnv):
    """can be written to"""

    def step_batch(self, action):
        return super().step_batch(action)._replace(observation=dict(self._observation))


class ShowsItsReward(ArmsEnv):
    """step_batch: reward can be written to"""

    def step_batch(self, action):
        return super().step_batch(action)._replace(reward=self._reward)


class TellsNothingAtReset(ArmsEnv):
    """regret, float64, is required"""

    def reset_batch(self, seeds):
        return super().reset_batch(seeds)._replace(info={})


class TellsLessAtReset(ProcurementEnv):
    """reset_batch must return the names and dtypes of step_batch"""

    def __init__(self):
        super().__init__(num_agents=2, num_producers=3)

    def reset_batch(self, seeds):
        reset = super().reset_batch(seeds)
        return reset._replace(info={"regret": reset.info["regret"]})


class RegretsAtReset(ArmsEnv):
    """info 'regret' is \\[1.\\] at reset; zeros are required"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._info["regret"] += 1


class TruncatesLate(ArmsEnv):
    """with max_cycles 5, truncated is"""

    def step_batch(self, action):
        self.max_cycles += 1
        try:
            return super().step_batch(action)
        finally:
            self.max_cycles -= 1


class CountsBeforeItChecks(ArmsEnv):
    """step_batch with an axis more is refused, but then"""

    def step_batch(self, action):
        if self._round is not None:
            self._observation["total_pulls"] += 1
        return super().step_batch(action)


class TakesAnyArm(ArmsEnv):
    """step_batch with a value below the space's goes through"""

    def step_batch(self, action):
        return super().step_batch(action % 4 if np.issubdtype(action.dtype, np.integer) else action)


class SharesABase(ArmsEnv):
    """observation 'round' of agent_1 shares its base"""

    def _observations(self, observation):
        rows = {name: array[0].copy() for name, array in observation.items()}
        return {
            agent: {name: row[j] for name, row in rows.items()}
            for j, agent in enumerate(self.possible_agents)
        }


class GivesViews(ArmsEnv):
    """in the PettingZoo API cannot be written to"""

    def _observations(self, observation):
        rows = {name: array[0] for name, array in observation.items()}
        return {
            agent: {name: row[j] for name, row in rows.items()}
            for j, agent in enumerate(self.possible_agents)
        }


class ReleasesTwice(ArmsEnv):
    """a second time in a row"""

    def _release(self, sends):
        return {name: self._observation[f"total_{name}"] * sends[..., np.newaxis] for name in self.statistics}


class LosesWhatIsNotSent(ArmsEnv):
    """releases of 'pulls' add up to"""

    def _release(self, sends):
        everything = super()._release(np.ones_like(sends))
        return {name: array * sends[..., np.newaxis] for name, array in everything.items()}


class SpeaksForTheSilent(ArmsEnv):
    """for agents that do not send; zero"""

    def _release(self, sends):
        return {name: array + 1 for name, array in super()._release(sends).items()}


class ForgetsOnRelease(ArmsEnv):
    """a release must not change what agents live through"""

    def _release(self, sends):
        released = super()._release(sends)
        self._observation["total_pulls"][sends] = 0
        self._released["pulls"][sends] = 0
        return released


class SharesLuck(ArmsEnv):
    """of a replica alone"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        shared = [sum(randomness.seeds) + place for place in range(len(randomness.seeds))]
        key = row_keys(shared, randomness.round.shape[1], Purpose.OUTCOME)
        self._outcomes = self._outcomes._replace(key=key)


class DrawsFromNowhere(ArmsEnv):
    """of two episodes of the same seeds"""

    def _largest_reward(self):
        return None

    def _play_round(self, action):
        super()._play_round(action)
        self._reward += np.random.random()  # noqa: NPY002 - what is wrong here


class Remembers(ArmsEnv):
    """let reset_batch forget"""

    episodes = 0

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, [seed + self.episodes for seed in instance_seeds])
        self.episodes += 1


class HidesOutsideOfItsSpace(ArmsEnv):
    """hidden\\(\\) after reset_batch: 'mean' is"""

    def _hidden(self):
        return {"mean": super()._hidden()["mean"] + 1}


class HidesItsBuffer(ArmsEnv):
    """after somebody wrote into what release, hidden and sensitivity returned"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._shown_mean = super()._hidden()["mean"]

    def _hidden(self):
        return {"mean": self._shown_mean}


class KeepsAFunction(ArmsEnv):
    """pickling in mid-episode raises"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._helper = lambda: None


class KeepsViews(ArmsEnv):
    """of a pickled federation and its original"""

    def reset_batch(self, seeds):
        reset = super().reset_batch(seeds)
        self._kept = dict(reset.observation)
        return reset

    def step_batch(self, action):
        return super().step_batch(action)._replace(observation=dict(Buffers(self._kept).views))


class BetraysEverything(ArmsEnv):
    """scale of 'pulls' lies between inf and inf"""

    def _sensitivity(self):
        told = super()._sensitivity()
        return told._replace(scale={name: array * np.inf for name, array in told.scale.items()})


class BetraysHalf(ArmsEnv):
    """sensitivity has scales of \\['pulls'\\]"""

    def _sensitivity(self):
        told = super()._sensitivity()
        return told._replace(scale={"pulls": told.scale["pulls"]})


class BetraysNothing(ArmsEnv):
    """'one-observation' with 0 values"""

    def _sensitivity(self):
        return super()._sensitivity()._replace(changes={"one-observation": Change(0, 0.0)})


class BetraysByData(ArmsEnv):
    """it must not depend on data"""

    def _sensitivity(self):
        told = super()._sensitivity()
        return told._replace(scale={**told.scale, "pulls": 1.0 + self._observation["total_pulls"]})


class PaysMoreThanItSays(ArmsEnv):
    """reward is \\[1.\\] where largest_reward\\(\\) is \\[0.5\\]"""

    def _largest_reward(self):
        return np.full(self._reward.shape, 0.5)


class DrawsNothing(ArmsEnv):
    """render\\(\\) in the mode 'ansi' returns ''"""

    viewers = {"ansi": "".format}  # noqa: RUF012 - never written to


class AnotherFace(ArmsEnv):
    """reward of agent_0 in the PettingZoo API and in the batch API"""

    def step(self, actions):
        observations, rewards, *rest = super().step(actions)
        return observations, {agent: reward + 1 for agent, reward in rewards.items()}, *rest


class Lingers(ArmsEnv):
    """parallel_api_test of Lingers finds"""

    def step(self, actions):
        result = super().step(actions)
        self.agents = list(self.possible_agents)
        return result


class SeedsItself(ArmsEnv):
    """in reset\\(seed=None\\)"""

    resets = 0

    def reset(self, seed=None, options=None):
        SeedsItself.resets += 1
        return super().reset(SeedsItself.resets if seed is None else seed)


FEDERATIONS = [
    thing
    for thing in list(vars().values())
    if isinstance(thing, type) and issubclass(thing, ArmsEnv | ProcurementEnv)
]
FEDERATIONS = [thing for thing in FEDERATIONS if thing not in (ArmsEnv, ProcurementEnv)]


@pytest.mark.parametrize("broken", FEDERATIONS)
def test_broken_federations_are_caught(broken):
    with pytest.raises(AssertionError, match=broken.__doc__):
        check_federation(broken)
