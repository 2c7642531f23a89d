"""Environments that lie in observations, random draws, releases or rewards, each beside an honest twin.

They are registered and described as in :mod:`lying_environments`.
"""

import arms_env
import numpy as np
from gymnasium import spaces
from lying_environments import declared, lies_beside

# Isolation


class SeesOwnSum(arms_env.ArmsEnv):
    """Agents also see a sum of rewards: their own, last round's."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.single_observation_space = spaces.Dict(
            {**self.single_observation_space, "sum": spaces.Box(-np.inf, np.inf, (1,), np.float64)}
        )

    def seen(self):
        return self._reward

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["sum"][..., 0] = self.seen()


class Spies(arms_env.ArmsEnv):
    checks = ("check_isolation",)

    def with_others(self, own):
        """Returns what agents have, and for agent 0 the sum over all agents."""
        return np.concatenate([own.sum(axis=1, keepdims=True), own[:, 1:]], axis=1)


@lies_beside(SeesOwnSum)
class SeesAll(Spies, SeesOwnSum):
    """of agents that act alike while another agent acts otherwise, round\\[\\d\\]\\['observation'\\]\\['sum'\\] is"""

    def seen(self):
        return self.with_others(self._reward)


class SaysOwnReward(arms_env.ArmsEnv):
    """Information also has a reward: the agent's own."""

    information = {"paid": np.float64}  # noqa: RUF012 - never written to

    def said(self):
        return self._reward

    def _play_round(self, action):
        super()._play_round(action)
        self._info["paid"][...] = self.said() * self._active


@lies_beside(SaysOwnReward)
class SaysAll(Spies, SaysOwnReward):
    """acts otherwise, round\\[\\d\\]\\['info'\\]\\['paid'\\] is .*: agents learn of others by what"""

    def said(self):
        return self.with_others(self._reward)


@lies_beside(arms_env.ArmsEnv)
class PaysForAll(Spies):
    """acts otherwise, round\\[\\d\\]\\['reward'\\] is"""

    def _play_round(self, action):
        super()._play_round(action)
        self._reward[...] = self.with_others(self._reward) * self._active / self.max_num_agents


@lies_beside(SeesOwnSum)
class SeesWhatWasReleased(Spies, SeesOwnSum):
    """a round after releases, in comparison with one after silence,\\['observation'\\]\\['sum'\\] is"""

    checks = ("check_increments",)

    def seen(self):
        return self.with_others(self._released["successes"].sum(axis=-1))


@lies_beside(arms_env.ArmsEnv)
class CountsForAll(Spies):
    """acts otherwise, round\\[\\d\\]\\['observation'\\]\\['total_successes'\\] is"""

    checks = ("check_isolation", "check_worse_neighbours")

    def _play_round(self, action):
        before = self._observation["total_successes"].copy()
        super()._play_round(action)
        grown = self._observation["total_successes"] - before
        shown = self.with_others(grown) * self._active[..., np.newaxis]
        self._observation["total_successes"][...] = before + shown


# Random numbers


@lies_beside(arms_env.ArmsEnv)
class DrawsByHistory(arms_env.ArmsEnv):
    """in rounds after one in which it acted otherwise, round.*; common random numbers are required"""

    checks = ("check_common_random_numbers",)

    def _play_round(self, action):
        drawn = self._outcomes
        past = self._observation["total_pulls"][..., 0].astype(np.uint32)
        self._outcomes = drawn._replace(round=drawn.round + 1000 * past)
        super()._play_round(action)
        self._outcomes = drawn


@lies_beside(arms_env.ArmsEnv)
class LooksAtItsNeighbourReplica(arms_env.ArmsEnv):
    """of a replica alone and as number"""

    checks = ("check_seeds",)

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._mean[...] = self._mean.mean(axis=0)


# Releases and statistics


@lies_beside(arms_env.ArmsEnv)
class ReleasesNothingOfAnArm(arms_env.ArmsEnv):
    """releases of 'pulls' add up to \\[0\\] where 'total_pulls' has grown by \\[[1-6]\\]"""

    checks = ("check_totals",)

    def _release(self, sends):
        return {name: array * (np.arange(4) > 0) for name, array in super()._release(sends).items()}


@lies_beside(arms_env.ArmsEnv)
class ReleasesAgain(arms_env.ArmsEnv):
    """release of 'pulls' a second time in a row is \\[1\\]; zero is required"""

    checks = ("check_increments",)

    def _release(self, sends):
        grown = super()._release(sends)
        again = sends & ~grown["pulls"].any(axis=-1) & (self._round > 0)
        return {name: array + again[..., np.newaxis] for name, array in grown.items()}


@lies_beside(arms_env.ArmsEnv)
class CountsForTheInactive(arms_env.ArmsEnv):
    """total_pulls of agents that do not act is or grows by \\[1\\]"""

    checks = ("check_inactive",)

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["total_pulls"][..., 0] += ~self._active


@lies_beside(arms_env.ArmsEnv)
class PaysTheInactive(arms_env.ArmsEnv):
    """reward of agents that do not act is or grows by \\[1.\\]"""

    checks = ("check_inactive",)

    def _play_round(self, action):
        super()._play_round(action)
        self._reward[~self._active] = 1.0


@lies_beside(arms_env.ArmsEnv)
class NeedsLessNoiseForAWhile(arms_env.ArmsEnv):
    """sensitivity after round 4 and at reset.*; a constant is required over an episode"""

    checks = ("check_sensitivity",)

    def _sensitivity(self):
        return declared(super()._sensitivity(), norm=0.99 if self._round == 5 else 1.0)


@lies_beside(arms_env.ArmsEnv)
class PromisesMoreLater(arms_env.ArmsEnv):
    """largest_reward\\(\\) after a round and at reset.*; a constant is required"""

    checks = ("check_arrays",)

    def _largest_reward(self):
        return super()._largest_reward() + self._observation["total_pulls"].sum(axis=-1)


@lies_beside(arms_env.ArmsEnv)
class PaysTwice(arms_env.ArmsEnv):
    """reward is \\[2.\\] where largest_reward\\(\\) is \\[1.\\]"""

    checks = ("check_arrays",)

    def _play_round(self, action):
        super()._play_round(action)
        self._reward *= 1 + (action == 3)


# What is shown


class Hints(SeesOwnSum):
    def seen(self):
        return 0.5


@lies_beside(Hints)
class HintsAtTheBestMean(Hints):
    """observation 'sum' has a number of hidden 'mean' in 108 of 108 rows at reset"""

    checks = ("check_hidden",)

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._observation["sum"][...] = self._mean.max(axis=-1)[:, np.newaxis, np.newaxis]

    def seen(self):
        return self._mean.max(axis=-1)[:, np.newaxis]


class HasConstants(arms_env.ArmsEnv):
    @property
    def public(self):
        return {"price": np.arange(4.0)}


@lies_beside(HasConstants)
class HasVariables(HasConstants):
    """public is \\{'price': .*\\} after round 0; what it was before the episode is required"""

    checks = ("check_public",)

    @property
    def public(self):
        return {"price": np.arange(4.0) + (self._round or 0)}


@lies_beside(arms_env.ArmsEnv)
class EndsEarly(arms_env.ArmsEnv):
    """with max_cycles 5, truncated is \\[False, False, False, True, True\\] by round"""

    checks = ("check_horizon",)

    def step_batch(self, action):
        step = super().step_batch(action)
        early = self.max_cycles == 5 and self._round == 4
        return step._replace(truncated=self._result.views["over"]) if early else step


@lies_beside(arms_env.ArmsEnv)
class KnowsAtReset(SaysOwnReward):
    """info 'paid' is \\[1.\\] at reset; zeros are required"""

    checks = ("check_arrays",)

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._info["paid"][:, 0] = 1.0
