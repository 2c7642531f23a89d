"""Environments that lie in observations, random draws, releases or rewards, each beside an honest twin.

They are registered and described as in :mod:`lying_environments`.
"""

import arms_env
import numpy as np
from gymnasium import spaces
from lying_environments import lies_beside

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
    def with_others(self, own):
        """Returns what agents have, and for agent 0 the sum over all agents."""
        return np.concatenate([own.sum(axis=1, keepdims=True), own[:, 1:]], axis=1)


@lies_beside(SeesOwnSum)
class SeesAll(Spies, SeesOwnSum):
    """SeesAll shows agents the data of another agent in round 1\\['observation'\\]\\['sum'\\] is"""

    def seen(self):
        return self.with_others(self._reward)


@lies_beside(arms_env.ArmsEnv)
class PaysForAll(Spies):
    """PaysForAll shows agents the data of another agent in round 1\\['reward'\\] is"""

    def _play_round(self, action):
        super()._play_round(action)
        self._reward[...] = self.with_others(self._reward) * self._active / self.max_num_agents


# Random numbers


@lies_beside(arms_env.ArmsEnv)
class DrawsByHistory(arms_env.ArmsEnv):
    """of agents that act otherwise in one round, elsewhere, is .*; common random numbers are required"""

    def _play_round(self, action):
        drawn = self._outcomes
        past = self._observation["total_pulls"][..., 0].astype(np.uint32)
        self._outcomes = drawn._replace(round=drawn.round + 1000 * past)
        super()._play_round(action)
        self._outcomes = drawn


# Releases and statistics


@lies_beside(arms_env.ArmsEnv)
class ReleasesNothingOfAnArm(arms_env.ArmsEnv):
    """releases of 'pulls' add up to \\[0\\], where 'total_pulls' grew by \\[\\d+\\]"""

    def _release(self, sends):
        return {name: array * (np.arange(4) > 0) for name, array in super()._release(sends).items()}


@lies_beside(arms_env.ArmsEnv)
class CountsForTheInactive(arms_env.ArmsEnv):
    """total_pulls of agents that do not act is \\[1\\]"""

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["total_pulls"][..., 0] += ~self._active


@lies_beside(arms_env.ArmsEnv)
class PaysTheInactive(arms_env.ArmsEnv):
    """reward of agents that do not act is \\[1.\\]"""

    def _play_round(self, action):
        super()._play_round(action)
        self._reward[~self._active] = 1.0


@lies_beside(arms_env.ArmsEnv)
class PromisesMoreLater(arms_env.ArmsEnv):
    """after a round,\\['largest_reward\\(\\)'\\] is .*; a constant is required"""

    def _largest_reward(self):
        return super()._largest_reward() + self._observation["total_pulls"].sum(axis=-1)


# What is shown


class Hints(SeesOwnSum):
    def seen(self):
        return 0.5


@lies_beside(Hints)
class HintsAtTheBestMean(Hints):
    """observation 'sum' has a number of hidden 'mean' in 108 of 108 rows at reset"""

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
    """after a round,\\['public'\\]\\['price'\\] is .*; a constant is required"""

    @property
    def public(self):
        return {"price": np.arange(4.0) + (self._round or 0)}
