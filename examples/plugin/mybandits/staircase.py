"""The staircase mechanism of Geng and Viswanath (2014): less noise than Laplace's at the same pure epsilon."""

from math import exp, log

import numpy as np

from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import AdditiveMechanism


class StaircaseEvent(Event):
    """One release with staircase noise; its privacy loss is epsilon, 0 or -epsilon for each value that differs."""

    def loss_distribution(self, change, interval):
        """Returns the privacy loss distribution of all values that differ, each by its whole sensitivity.

        Noise that is shifted by 1 is exp(loss) times as likely on one side, exp(-loss) times on the other, and as
        likely between, where the steps of both overlap.
        """
        from dp_accounting.pld import privacy_loss_distribution as pld

        gamma, decay = _gamma(self.loss), exp(-self.loss)
        height = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))
        up, between = 0.5 + gamma * height, (1 - 2 * gamma) * height * decay
        upper = {"up": log(up), "between": log(between), "down": log(up * decay)}
        lower = {"up": upper["down"], "between": upper["between"], "down": upper["up"]}
        one = pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=interval)
        return one.self_compose(change.values)


class Staircase(AdditiveMechanism):
    """Adds staircase-shaped noise to every value of a release.

    The density of the noise is constant on steps of the width of the sensitivity, each ``exp(-epsilon)`` times as high
    as the one nearer to 0. A step is split at ``gamma = 1 / (1 + exp(epsilon / 2))``, which minimises the expected size
    of the noise (Geng and Viswanath, Algorithm 1).

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.wrappers import Privatizer
        >>> env = Privatizer(arms_v0.parallel_env(num_agents=2), Staircase(epsilon=1.0, releases=4))
    """

    def noise_multiplier(self, share: float) -> float:
        """Returns 1: noise is drawn in units of the sensitivity."""
        return 1.0

    def unit_variance(self, share: float) -> float:
        """Returns the variance of the noise, from the moments of the number of whole steps and of the place in one."""
        b, gamma, inner = exp(-share), _gamma(share), _inner(share)
        mean, square = b / (1 - b), b * (1 + b) / (1 - b) ** 2
        near = square + mean * gamma + gamma**2 / 3
        far = square + mean * (1 + gamma) + (1 + gamma + gamma**2) / 3
        return inner * near + (1 - inner) * far

    def draw(self, generator: np.random.Generator, share: float, out: np.ndarray) -> None:
        """Fills ``out`` with noise: a sign, a number of whole steps, and a place in the step."""
        gamma = _gamma(share)
        steps = generator.geometric(1 - exp(-share), out.shape) - 1
        place, near = generator.random(out.shape), generator.random(out.shape) < _inner(share)
        size = steps + np.where(near, gamma * place, gamma + (1 - gamma) * place)
        out[...] = size * generator.choice([-1.0, 1.0], out.shape)

    def event(self, share: float, noise_multiplier: float, changes) -> Event:
        """Returns a release of pure differential privacy, with its exact curve."""
        return StaircaseEvent("staircase", share, share, 0.0, tuple(changes.items()))


def _gamma(share: float) -> float:
    return 1 / (1 + exp(share / 2))


def _inner(share: float) -> float:
    """Returns the probability of the nearer part of a step."""
    gamma = _gamma(share)
    return gamma / (gamma + (1 - gamma) * exp(-share))
