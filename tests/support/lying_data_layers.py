"""Data layers, and problems, that release more than their sensitivity says, each a lie about neighbours of its own.

The docstring of a liar is a regular expression that the error message must match.
"""

import arms_env
import numpy as np

from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.wrappers import Quota


class Changes(FederatedWrapper):
    """A data layer whose releases are what ``changed`` makes of those inside."""

    layer = "data"

    def reset_batch(self, seeds):
        self.kept, self.releases = [], 0
        return self.env.reset_batch(seeds)

    def _release(self, sends):
        released = self.env._release(sends)
        self.kept.append(released)
        self.releases += 1
        return {
            name: array * 0 + self.changed(name, array) * sends.reshape(sends.shape + (1,) * (array.ndim - 2))
            for name, array in released.items()
        }

    def before(self, name):
        return self.kept[-2][name] if self.releases > 1 else 0


VALUES, RELEASES = "the number of values that differ is \\d+", "differ in \\d+ releases; 1 is required"
CHANGING = [
    type(name, (Changes,), {"__doc__": says, "changed": changed})
    for name, says, changed in (
        ("Thousandfold", VALUES, lambda self, name, array: 1000 * array),
        ("Twice", RELEASES, lambda self, name, array: array + self.before(name)),
        ("InAllLaterReleases", RELEASES, lambda self, name, array: sum(one[name] for one in self.kept)),
        (
            "FromTheTenthReleaseOn",
            VALUES,
            lambda self, name, array: array * (100 if self.releases > 9 else 1),
        ),
    )
]


class HalfNowHalfLater(Changes):
    """differ in 2 releases; 1 is required"""

    def reset_batch(self, seeds):
        self.owed = {}
        return super().reset_batch(seeds)

    def changed(self, name, array):
        owed, self.owed[name] = self.owed.get(name, 0), array // 2
        return array - self.owed[name] + owed


class StopsWhereItHasWon(FederatedWrapper):
    """differ in \\d+ releases; 1 is required"""

    layer = "data"

    def step_batch(self, action):
        step = self.env.step_batch(action)
        self.env.set_active(step.reward == 0)
        return step


class QuotaOfWhatItHolds(Quota):
    """differ in \\d+ releases; 1 is required"""

    def _release(self, sends):
        released = super()._release(sends)
        self._left -= released["successes"].sum(axis=-1) > 0
        return released


DATA_LAYERS = [*CHANGING, HalfNowHalfLater, StopsWhereItHasWon, QuotaOfWhatItHolds]


class Rare(arms_env.ArmsEnv):
    """the number of values that differ is \\d+"""

    least, most = 1e-4, 1.0

    def _play_round(self, action):
        super()._play_round(action)
        luck = np.take_along_axis(self._outcomes.uniforms(4), action[..., np.newaxis], 2)
        rare = (luck < self.least) | (luck >= self.most)
        pulled = np.arange(4) == action[..., np.newaxis]
        self._observation["total_successes"] += 1000 * (pulled & rare & self._active[..., np.newaxis])


class RareOfTheLargest(Rare):
    """the number of values that differ is \\d+"""

    least, most = 0.0, 1 - 1e-4


class RareOfItsOwn(arms_env.ArmsEnv):
    """the number of values that differ is \\d+"""

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._own = np.random.default_rng(list(randomness.seeds))

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["total_pulls"] += 1000 * (self._own.random(action.shape) < 2e-3)[..., np.newaxis]


class CountsAgainLater(arms_env.ArmsEnv):
    """differ in \\d+ releases; 1 is required"""

    def _play_round(self, action):
        before = self._observation["total_successes"].copy()
        super()._play_round(action)
        again, self._again = getattr(self, "_again", 0), self._observation["total_successes"] - before
        self._observation["total_successes"] += again * (self._round > 0)


PROBLEMS = [Rare, RareOfTheLargest, RareOfItsOwn, CountsAgainLater]
