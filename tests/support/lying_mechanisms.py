"""Mechanisms that lie, each of them the Laplace mechanism except for one lie.

The docstring of a liar is a regular expression that the error message must match; ``MECHANISMS`` has what disables the
check that catches it.
"""

import re
from copy import deepcopy

import numpy as np

from fedbandit_envs.core.privacy import Change, variance_of
from fedbandit_envs.testing import assertions, noise
from fedbandit_envs.wrappers import Privatizer
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace

EPSILON = 20.0
"""So large that clipping shows beside the noise."""


def behind(mechanism, **arguments):
    return lambda env: Privatizer(env, mechanism(EPSILON, **arguments))


class NoNoise(Laplace):
    """the noise on 'pulls' in release 1 has 0 times the variance"""

    def draw(self, generator, share, out):
        out.fill(0.0)


class HalfOfTheNoise(Laplace):
    """the noise on 'pulls' in release 1 has 0.2\\d* times the variance"""

    def draw(self, generator, share, out):
        out[...] = generator.laplace(size=out.shape) / 2


class AnnouncesMore(Laplace):
    """has 0.49\\d* times the variance that 'successes_noise_variance' announces"""

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        return {**released, variance_of("successes"): 2 * released[variance_of("successes")]}


class SpendsTheFirstShareAlways(Laplace):
    """but the booked event 'laplace' of loss .* claims"""

    def noise_multiplier(self, share):
        return 1 / self._shares[0]


class DrawsTheFirstShareAlways(Laplace):
    """in release 2 has 0.\\d* times the variance"""

    def randomise(self, statistic, sends, index):
        announced = super().randomise(statistic, sends, index)
        drawn = super().randomise(statistic, sends, 0 * index)
        return {name: (announced if "variance" in name else drawn)[name] for name in announced}


class SameNoiseInAllReleases(Laplace):
    """noise in two releases of an agent is correlated"""

    def randomise(self, statistic, sends, index):
        kept, self._generators = self._generators, deepcopy(self._generators)
        released = super().randomise(statistic, sends, index)
        self._generators = kept
        return released


class SameNoiseForAllAgents(Laplace):
    """noise in two agents is correlated"""

    def start(self, sensitivity, horizon, generators):
        agents = sensitivity.scale["pulls"].shape[1]
        generators = [deepcopy(generators[row - row % agents]) for row in range(len(generators))]
        super().start(sensitivity, horizon, generators)


class SameNoiseInAllReplicas(Laplace):
    """the noise on 'pulls' is the same in two replicas"""

    def start(self, sensitivity, horizon, generators):
        agents = sensitivity.scale["pulls"].shape[1]
        generators = [np.random.default_rng(row % agents) for row in range(len(generators))]
        super().start(sensitivity, horizon, generators)


class SameNoiseForAllValues(Laplace):
    """noise in two values of a release is correlated"""

    def draw(self, generator, share, out):
        out.fill(generator.laplace())


class LargerNoiseOnMore(Laplace):
    """the size of the noise on 'pulls' in release 1 depends on the data"""

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        for name, data in statistic.items():
            # Where data are 0, nine values of sixteen at random, noise is smaller, and larger elsewhere: 1 on average.
            factor = np.where(data > 0, np.sqrt(1 + 0.5 * 9 / 7), np.sqrt(0.5))
            released[name] = data + (released[name] - data) * (factor if name == "pulls" else 1)
        return released


class NoiseOnOneArray(Laplace):
    """the noise on 'successes' in release 1 has 0 times the variance"""

    def randomise(self, statistic, sends, index):
        return {**super().randomise(statistic, sends, index), "successes": statistic["successes"] + 0.0}


class ClipsDataSilently(Laplace):
    """in release 1 has a mean that is not 0|mean of the noise .* depends on the data|times the variance"""

    def randomise(self, statistic, sends, index):
        clipped = {name: np.minimum(array, 1) for name, array in statistic.items()}
        return super().randomise(clipped, sends, index)


class ClipsWhatLeaves(Laplace):
    """times the variance|a mean that is not 0|depends on the data"""

    def randomise(self, statistic, sends, index):
        return {name: np.maximum(a, 0) for name, a in super().randomise(statistic, sends, index).items()}


class BooksHalf(Laplace):
    """but the booked event 'laplace' of loss .* claims"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share / 2, share / 2, 0.0, tuple(changes.items()))


class PromisesHalf(Laplace):
    """the booked event 'laplace' promises epsilon .* more than its loss"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share, share / 2, 0.0, tuple(changes.items()))


class BooksAnotherKind(Laplace):
    """the booked event 'gaussian' promises epsilon .* more than its loss"""

    def event(self, share, noise_multiplier, changes):
        return Event("gaussian", share / np.sqrt(2), share / 10, 1e-9, tuple(changes.items()))


class BooksOneChange(Laplace):
    """has a change of 1 under 'one-observation', where sensitivity has 2"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share, share, 0.0, tuple((name, Change(1, 1.0)) for name in changes))


class AnnouncesNothing(Laplace):
    """release has no '.*_noise_variance' beside '.*', but privacy\\(\\) is finite"""

    def release_space(self, released):
        return released

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        return {name: released[name] for name in statistic}


def without(module, name):
    """Disables a check."""

    def disable(liar, monkeypatch):
        monkeypatch.setattr(module, name, lambda *arguments: None)

    return disable


def lenient(module):
    """Disables those requirements of a module that accuse the liar."""

    def disable(liar, monkeypatch):
        def require(holds, message):
            if not re.search(liar.__doc__, message):
                assertions.require(holds, message)

        monkeypatch.setattr(module, "require", require)

    return disable


MECHANISMS = {
    **dict.fromkeys(
        (
            NoNoise,
            HalfOfTheNoise,
            AnnouncesMore,
            DrawsTheFirstShareAlways,
            LargerNoiseOnMore,
            NoiseOnOneArray,
            ClipsDataSilently,
            ClipsWhatLeaves,
        ),
        without(noise, "_require_mean_0"),
    ),
    **dict.fromkeys(
        (SameNoiseInAllReleases, SameNoiseForAllAgents, SameNoiseForAllValues, AnnouncesNothing),
        lenient(noise),
    ),
    SameNoiseInAllReplicas: without(noise, "_require_as_announced"),
    **dict.fromkeys((SpendsTheFirstShareAlways, BooksHalf), without(noise, "_require_booked")),
    **dict.fromkeys((PromisesHalf, BooksAnotherKind, BooksOneChange), without(noise, "_require_promise")),
}


# A kind that no check knows is attacked.


class OwnKind(Laplace):
    """Laplace noise under another name."""

    def event(self, share, noise_multiplier, changes):
        return Event("two_sided_exponential", share, share, 0.0, tuple(changes.items()))


class OwnKindBookedLow(Laplace):
    """an attack on one release proves an epsilon of at least"""

    def event(self, share, noise_multiplier, changes):
        return Event("two_sided_exponential", share, share / 10, 0.0, tuple(changes.items()))
