"""Mechanisms that lie, each of them the Laplace mechanism except for one lie.

The docstring of a liar is a regular expression that the error message must match.
"""

from dataclasses import replace

import numpy as np
from gymnasium.spaces import Box, Dict

from fedbandit_envs.core.privacy import Change
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.randomness.draws import Draws
from fedbandit_envs.randomness.streams import noise_streams
from fedbandit_envs.wrappers import Privatizer
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Gaussian, Laplace
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism

EPSILON = 20.0
"""So large that clipping shows beside the noise."""


def behind(mechanism, releases=None):
    each = EPSILON / (releases or 1)
    return lambda env: Privatizer(env, mechanism(releases=releases, epsilon_per_release=each))


def shared(generators, rows):
    """Returns a generator for each of some rows, the same noise for the same row."""
    seeds = [each.integers(2**63) for each in generators]
    return [one for (one,) in noise_streams([seeds[row] for row in rows], 1, None, 0)]


class HalfOfTheNoise(Laplace):
    """the noise on 'pulls' in release 1 has 0.2\\d* times the variance"""

    def draw(self, generator, share, out):
        out[...] = generator.laplace(size=out.shape) / 2


class SpendsTheFirstShareAlways(Laplace):
    """up to release \\d has the precision .* but under '.*' the booked event 'laplace' of loss .* claims"""

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
        kept = [each.bit_generator.state for each in self._generators]
        released = super().randomise(statistic, sends, index)
        for each, state in zip(self._generators, kept, strict=True):
            each.bit_generator.state = state
        return released


class SameNoiseForAllAgents(Laplace):
    """noise in two agents is correlated"""

    def start(self, sensitivity, horizon, generators):
        agents = sensitivity.scale["pulls"].shape[1]
        rows = [row - row % agents for row in range(len(generators))]
        super().start(sensitivity, horizon, shared(generators, rows))


class SameNoiseInTwoReplicas(Laplace):
    """noise in two replicas is correlated"""

    def start(self, sensitivity, horizon, generators):
        agents = sensitivity.scale["pulls"].shape[1]
        rows = [row % agents + row // (2 * agents) * 2 * agents for row in range(len(generators))]
        super().start(sensitivity, horizon, shared(generators, rows))


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


class ClipsDataSilently(Laplace):
    """in release 1 has a mean that is not 0|mean of the noise .* depends on the data|times the variance"""

    def randomise(self, statistic, sends, index):
        clipped = {name: np.minimum(array, 1) for name, array in statistic.items()}
        return super().randomise(clipped, sends, index)


class BooksHalf(Laplace):
    """up to release \\d has the precision .* but under '.*' the booked event 'laplace' of loss .* claims"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share / 2, share / 2, 0.0, tuple(changes.items()))


class BooksAnotherKind(Laplace):
    """booked events promise more than their loss gives"""

    def event(self, share, noise_multiplier, changes):
        return Event("gaussian", share / np.sqrt(2), share / 10, 1e-9, tuple(changes.items()))


class BooksOneChange(Laplace):
    """up to release \\d has the precision .* but under '.*' the booked event 'laplace' of loss .* claims"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share, share, 0.0, tuple((name, Change(1, 1.0)) for name in changes))


class TwoPoints(Laplace):
    """the noise is not laplace, as its event says: the share"""

    def draw(self, generator, share, out):
        out[...] = np.sqrt(2) * np.where(generator.random(out.shape) < 0.5, 1, -1)


class MostlyNone(Laplace):
    """the noise is not laplace, as its event says: the share"""

    def draw(self, generator, share, out):
        out[...] = np.sqrt(10) * generator.laplace(size=out.shape) * (generator.random(out.shape) < 0.1)


class SometimesNone(Laplace):
    """the noise is not laplace, as its event says: \\d+ of \\d+ numbers repeat others"""

    def draw(self, generator, share, out):
        out[...] = generator.laplace(size=out.shape) * (generator.random(out.shape) < 0.995) / np.sqrt(0.995)


class Bell(Gaussian):
    """Gaussian noise, an honest one."""

    def __init__(self, **arguments):
        super().__init__(calibration="analytic", **arguments)


class LaplaceForGaussian(Bell):
    """the noise is not gaussian, as its event says"""

    def draw(self, generator, share, out):
        out[...] = generator.laplace(size=out.shape) / np.sqrt(2)


class OfTheData(Bell):
    """noise of two seeds on equal data is correlated"""

    part = 0.5

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        for name, data in statistic.items():
            told = np.concatenate([*statistic.values()], axis=2)
            keys = np.dstack([np.indices(sends.shape)[0], told @ 7 ** np.arange(told.shape[2])])
            drawn = Draws(keys.astype(np.uint32), (index + 100 * len(name)).astype(np.uint32))
            own = drawn.normals(data.shape[2]) * np.sqrt(released[f"{name}_noise_variance"])
            released[name] = data + self.part * own + np.sqrt(1 - self.part**2) * (released[name] - data)
        return released


class OfItsOwnSeed(Laplace):
    """noise of two seeds on equal data is correlated"""

    def start(self, sensitivity, horizon, generators):
        generators = [np.random.default_rng(row) for row in range(len(generators))]
        super().start(sensitivity, horizon, generators)


class Matrix(MatrixMechanism):
    """An honest one."""

    def __init__(self, epsilon_per_release, releases):
        super().__init__(epsilon_per_release, 1e-5, releases=releases)


class BooksTheFirstOnly(Matrix):
    """up to release [23] has the precision .* but under '.*' the booked event 'gaussian'"""

    def joint_event(self, z):
        return replace(super().joint_event(1), releases=z)


class OwnKind(Laplace):
    """An honest one: Laplace noise under another name."""

    def event(self, share, noise_multiplier, changes):
        return Event("two_sided_exponential", share, share, 0.0, tuple(changes.items()))


class OwnKindBookedLow(Laplace):
    def event(self, share, noise_multiplier, changes):
        return Event("two_sided_exponential", share, share / 10, 0.0, tuple(changes.items()))


class MarksVariances(Laplace):
    """beside the data's arrays\\['\\w*_noise_variance'\\] is .* must be the same"""

    _mark = 1.0

    def observe(self, observation):
        self._mark = 1 + 1e-10 * observation["total_successes"].sum(axis=-1, keepdims=True)

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        return {name: array * (self._mark if "variance" in name else 1) for name, array in released.items()}


class ReleasesAgain(Laplace):
    """beside the data's arrays\\['again_\\w*'\\] is .* must be the same"""

    def release_space(self, released):
        spaces = {name: Box(0, MOST, one.shape, np.float64) for name, one in released.items()}
        return super().release_space(
            Dict({**released, **{f"again_{name}": one for name, one in spaces.items()}})
        )

    def randomise(self, statistic, sends, index):
        first, again = (super(ReleasesAgain, self).randomise(statistic, sends, index) for _ in range(2))
        return {
            **first,
            **{f"again_{name}": array for name, array in again.items() if "variance" not in name},
        }


MECHANISMS = [
    thing for thing in list(vars().values())
    if isinstance(thing, type) and thing.__module__ == __name__ and "honest" not in (vars(thing)["__doc__"] or "honest")
]  # fmt: skip
"""Whose noise is not as announced or booked."""
