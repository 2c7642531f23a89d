"""The checks of environments catch what they should, and name it: each of these is broken in one way."""

import numpy as np
import pytest
from arms_env import Arm, ArmsEnv
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Buffers
from fedbandit_envs.core.policy_spec import Features
from fedbandit_envs.core.privacy import Change
from fedbandit_envs.randomness.streams import Purpose, row_keys
from fedbandit_envs.testing import check_federation
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.testing.policy import check_features


class ShowsItsReward(ArmsEnv):
    """step_batch: whether one can write into\\['reward'\\]"""

    def step_batch(self, action):
        return super().step_batch(action)._replace(reward=self._reward)


class TellsNothingAtReset(ArmsEnv):
    """reset_batch: regret of info is NoneType"""

    def reset_batch(self, seeds):
        return super().reset_batch(seeds)._replace(info={})


class TellsLessAtReset(ArmsEnv):
    """reset_batch must return the names and dtypes of step_batch"""

    information = {"paid": np.float64}  # noqa: RUF012 - never written to

    def reset_batch(self, seeds):
        reset = super().reset_batch(seeds)
        return reset._replace(info={"regret": reset.info["regret"]})


class RegretsAtReset(ArmsEnv):
    """info 'regret' at reset is \\[1.\\]"""

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
    """after step_batch with an axis more, the next round"""

    def step_batch(self, action):
        if self._round is not None:
            self._observation["total_pulls"] += 1
        return super().step_batch(action)


class TakesAnyArm(ArmsEnv):
    """step_batch with a value below the space's: it goes through"""

    def step_batch(self, action):
        return super().step_batch(action % 4 if np.issubdtype(action.dtype, np.integer) else action)


class SharesABase(ArmsEnv):
    """observation 'round' of agent_0 in the PettingZoo API is a view"""

    def _observations(self, observation):
        rows = {name: array[0].copy() for name, array in observation.items()}
        return {
            agent: {name: row[j] for name, row in rows.items()}
            for j, agent in enumerate(self.possible_agents)
        }


class ReleasesTwice(ArmsEnv):
    """a second time in a row"""

    def _release(self, sends):
        return {name: self._observation[f"total_{name}"] * sends[..., np.newaxis] for name in self.statistics}


class ReleasesWithoutATotal(ArmsEnv):
    """observations have no 'total_spare'; whatever is released needs one"""

    def __init__(self):
        super().__init__()
        pulls = self.single_release_space["pulls"]
        self.single_release_space = spaces.Dict({**self.single_release_space, "spare": pulls})

    def _release(self, sends):
        released = super()._release(sends)
        return {**released, "spare": released["pulls"]}


class LosesWhatIsNotSent(ArmsEnv):
    """releases of 'pulls' add up to"""

    def _release(self, sends):
        everything = super()._release(np.ones_like(sends))
        return {name: array * sends[..., np.newaxis] for name, array in everything.items()}


class ForgetsOnRelease(ArmsEnv):
    """a release must not change what agents live through"""

    def _release(self, sends):
        released = super()._release(sends)
        self._observation["total_pulls"][sends] = 0
        self._released["pulls"][sends] = 0
        return released


class SharesLuck(ArmsEnv):
    """of replica 0, alone and among the others"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        shared = [sum(randomness.seeds) + place for place in range(len(randomness.seeds))]
        key = row_keys(shared, randomness.round.shape[1], Purpose.OUTCOME)
        self._outcomes = self._outcomes._replace(key=key)


class DrawsFromNowhere(ArmsEnv):
    """repetition after reset, round"""

    def _largest_reward(self):
        return None

    def _play_round(self, action):
        super()._play_round(action)
        self._reward += np.random.random()  # noqa: NPY002 - what is wrong here


class HidesOutsideOfItsSpace(ArmsEnv):
    """hidden\\(\\) after reset_batch: 'mean' is"""

    def _hidden(self):
        return {"mean": super()._hidden()["mean"] + 1}


class HidesItsBuffer(ArmsEnv):
    """after writing into what release, hidden and sensitivity return"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._shown_mean = super()._hidden()["mean"]

    def _hidden(self):
        return {"mean": self._shown_mean}


class KeepsAFunction(ArmsEnv):
    """pickling in mid-episode: Can't pickle"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._helper = lambda: None


class KeepsViews(ArmsEnv):
    """after pickling in mid-episode, the next round"""

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
    """shape of sensitivity's scale has the names \\['pulls'\\]"""

    def _sensitivity(self):
        told = super()._sensitivity()
        return told._replace(scale={"pulls": told.scale["pulls"]})


class BetraysNothing(ArmsEnv):
    """'one-observation' with 0 values"""

    def _sensitivity(self):
        return super()._sensitivity()._replace(changes={"one-observation": Change(0, 0.0)})


class BetraysByData(ArmsEnv):
    """whatever the data are"""

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


class Lingers(ArmsEnv):
    """parallel_api_test of Lingers finds"""

    def step(self, actions):
        result = super().step(actions)
        self.agents = list(self.possible_agents)
        return result


class SeedsItself(ArmsEnv):
    """reset\\(seed=None\\)"""

    resets = 0

    def reset(self, seed=None, options=None):
        SeedsItself.resets += 1
        return super().reset(SeedsItself.resets if seed is None else seed)


class Shares(Features):
    """How often each arm was pulled, a round: what features are."""

    each = ("share",)
    shared = ()

    def __init__(self, spec):
        super().__init__(spec)
        self.items = spec.action.n

    def reset(self, rows):
        super().reset(rows)
        self.rounds = 0

    def _write(self, observation, each, shared):
        self.rounds += 1
        each[..., 0] = observation["total_pulls"] / self.rounds


class Counts(Shares):
    """Counts.see: features is"""

    def _write(self, observation, each, shared):
        each[..., 0] = observation["total_pulls"]


class SharesOfAll(Shares):
    """agent 0 of replica 0, alone and among the others, the features SharesOfAll in round"""

    def _write(self, observation, each, shared):
        super()._write({"total_pulls": observation["total_pulls"].mean((0, 1))}, each, shared)


class OneBuffer(Shares):
    """the features OneBuffer in round.*copy what is to be kept of what is seen or returned"""

    def see(self, observation):
        super().see(observation)
        return self._features


class Half(Arm):
    def to_action(self, choice, observation):
        return choice / 2


class OffersHalves(ArmsEnv):
    """action of agent_1 .* is 0.5; an integer in"""

    def __init__(self):
        super().__init__()
        self.action_formats = {**self.action_formats, "half": Half(4)}


FEDERATIONS = [
    thing for thing in list(vars().values()) if isinstance(thing, type) and ArmsEnv in thing.__mro__[1:]
]


@pytest.mark.parametrize("broken", FEDERATIONS)
def test_broken_federations_are_caught(broken):
    with pytest.raises((AssertionError, TypeError, ValueError), match=broken.__doc__):
        check_federation(broken)


def with_features(kind):
    return type("HasFeatures", (ArmsEnv,), {"features": kind})


def test_sound_features_pass():
    check_features(Trial(with_features(Shares)))


@pytest.mark.parametrize("broken", [Counts, SharesOfAll, OneBuffer])
def test_broken_features_are_caught(broken):
    with pytest.raises(AssertionError, match=broken.__doc__):
        check_features(Trial(with_features(broken)))
