"""Checks of features and of ways to say actions fail what is broken, naming it."""

import pytest
from arms_env import Arm, ArmsEnv

from fedbandit_envs.core.policy_spec import Features
from fedbandit_envs.testing import check_federation
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.testing.features import check_features


class Shares(Features):
    """How often each arm was pulled, a round: what features are."""

    each = ("share",)
    shared = ()

    def __init__(self, spec):
        super().__init__(spec)
        self.items = spec.action.n

    def _start(self, rows):
        self.rounds = 0

    def _write(self, observation, each, shared):
        self.rounds += 1
        each[..., 0] = observation["total_pulls"] / self.rounds


class Counts(Shares):
    def _write(self, observation, each, shared):
        each[..., 0] = observation["total_pulls"]


class SharesOfAll(Shares):
    def _write(self, observation, each, shared):
        super()._write({"total_pulls": observation["total_pulls"].mean((0, 1))}, each, shared)


class Remembering(Shares):
    rounds = 0

    def _start(self, rows):
        pass


class OneBuffer(Shares):
    def see(self, observation):
        super().see(observation)
        return self._features


class ShowsCounts(ArmsEnv):
    """Counts.see: 'features'"""

    features = Counts


class ShowsOthersRows(ArmsEnv):
    """SharesOfAll.see: features of one row, alone and among others"""

    features = SharesOfAll


class ShowsTheLastEpisode(ArmsEnv):
    """Remembering.reset: features of an episode and of the same one played again"""

    features = Remembering


class ShowsOneBuffer(ArmsEnv):
    """OneBuffer.see: what was returned before"""

    features = OneBuffer


class Half(Arm):
    def to_action(self, choice, observation):
        return choice / 2


class OffersHalves(ArmsEnv):
    """an element of action_formats\\['half'\\].space cannot be played"""

    def __init__(self):
        super().__init__()
        self.action_formats = {**self.action_formats, "half": Half(4)}


def test_sound_features_pass():
    class Sound(ArmsEnv):
        features = Shares

    check_features(Trial(Sound))


@pytest.mark.parametrize(
    "broken", [ShowsCounts, ShowsOthersRows, ShowsTheLastEpisode, ShowsOneBuffer, OffersHalves]
)
def test_broken_features_and_formats_are_caught(broken):
    with pytest.raises(AssertionError, match=broken.__doc__):
        check_federation(broken)
