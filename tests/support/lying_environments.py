"""Environments that lie about sensitivity or regret, each beside an honest twin.

A liar declares what does not hold. Its docstring is a regular expression that the error message must match, so that a
check that stops working fails a test. All seeds are fixed.
"""

import arms_env
import pytest

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.core.privacy import Change
from fedbandit_envs.linear.env import LinearEnv

LIARS = []
"""Pairs of a liar and its honest twin."""


def lies_beside(honest):
    """Registers a liar beside its honest twin."""

    def register(liar):
        LIARS.append(pytest.param(liar, honest, id=liar.__name__))
        return liar

    return register


def declared(sensitivity, scale=1.0, norm=1.0, values=None):
    """Returns a sensitivity with factors on scales and norms, and perhaps another number of values."""
    changes = {
        adjacency: Change(change.values if values is None else values, change.norm * norm)
        for adjacency, change in sensitivity.changes.items()
    }
    return sensitivity._replace(
        scale={name: array * scale for name, array in sensitivity.scale.items()}, changes=changes
    )


# Sensitivity


class Arms(ArmsEnv):
    def __init__(self, num_agents=3, **kwargs):
        super().__init__(num_agents=num_agents, **{"num_arms": None if "means" in kwargs else 4, **kwargs})


@lies_beside(Arms)
class DeclaresATenth(Arms):
    """sensitivity is too small: .* the number of values that differ is [1-4]00 in declared units; at most 4 is"""

    def _sensitivity(self):
        return declared(super()._sensitivity(), scale=0.1)


@lies_beside(Arms)
class DeclaresFewerValues(Arms):
    """sensitivity is too small: .* the number of values that differ is 4 .*; at most 3 is declared"""

    def _sensitivity(self):
        return declared(super()._sensitivity(), values=3)


@lies_beside(Arms)
class DeclaresASmallerPair(Arms):
    """sensitivity is too small: good and defective outcomes .* the Euclidean norm is 1.41421 .*; at most 0.14"""

    def _sensitivity(self):
        told = super()._sensitivity()
        changes = {name: Change(2, norm / 10) for name, (_, norm) in told.pair.changes.items()}
        return told._replace(pair=told.pair._replace(changes=changes))


@lies_beside(Arms)
class DeclaresFewerOutcomes(Arms):
    """sensitivity is too small: good and defective outcomes .* the number of values that differ is 2 .* most 1 is"""

    def _sensitivity(self):
        told = super()._sensitivity()
        changes = {name: Change(1, norm) for name, (_, norm) in told.pair.changes.items()}
        return told._replace(pair=told.pair._replace(changes=changes))


class Linear(LinearEnv):
    def __init__(self, num_agents=3, **kwargs):
        super().__init__(num_agents=num_agents, **{"dim": None if "contexts" in kwargs else 3, **kwargs})


@lies_beside(Linear)
class DeclaresALittleLess(Linear):
    """sensitivity is too small: releases of the pair that neighbours\\('one-observation'\\) returns differ"""

    def _sensitivity(self):
        return declared(super()._sensitivity(), norm=0.99)


@lies_beside(Arms)
class NamesNoNeighbours(DeclaresATenth):
    """sensitivity is too small: releases of agents that act otherwise in one round"""

    neighbours = staticmethod(lambda adjacency: [])


class ProtectsOutcomes(arms_env.ArmsEnv):
    def _sensitivity(self):
        told = super()._sensitivity()
        return told._replace(changes={"one-outcome": told.changes["one-outcome"]}, pair=None)


@lies_beside(ProtectsOutcomes)
class ProtectsHalfAnOutcome(ProtectsOutcomes):
    """sensitivity is too small: releases of agents with other outcomes in one round"""

    def _sensitivity(self):
        return declared(super()._sensitivity(), scale=0.5)


# Regret


class Clairvoyant(arms_env.ArmsEnv):
    def clairvoyant(self, observation):
        return self.hidden()["mean"].argmax(axis=-1)


class AltersRegret(Clairvoyant):
    def _play_round(self, action):
        super()._play_round(action)
        self._info["regret"][...] = self.altered(self._info["regret"])


@lies_beside(arms_env.ArmsEnv)
class GainsInPlaceOfRegret(AltersRegret):
    """regret is -0.9\\d* under random actions; a number >= 0 is required"""

    clairvoyant = arms_env.ArmsEnv.clairvoyant

    def altered(self, regret):
        return -regret


@lies_beside(Clairvoyant)
class RegretsTheBest(AltersRegret):
    """regret is 0.01 under the actions of clairvoyant; 0 is required"""

    def altered(self, regret):
        return (regret + 0.01) * self._active


@lies_beside(Clairvoyant)
class RegretsNothing(AltersRegret):
    """regret is 0 under all random actions"""

    def altered(self, regret):
        return 0.0 * regret


@lies_beside(arms_env.ArmsEnv)
class RegretsBadLuck(arms_env.ArmsEnv):
    """regret of agents with other outcomes in one round, elsewhere, is .*; regret is an expectation over outcomes"""

    def _play_round(self, action):
        super()._play_round(action)
        self._info["regret"][...] = (1 - self._reward) * self._active
