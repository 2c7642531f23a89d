"""Secret noise: exact random numbers on a grid, made of random bits of the operating system.

Noise in floating-point numbers betrays in its last digits what it was added to (Mironov, CCS 2012). So here a statistic
is first rounded to a grid, and then noise that lies on the same grid is added. Both are integers, in units of the
grid's step; what is computed from their sum, floating-point numbers included, says nothing further about the statistic.

The noise is that of the continuous mechanism, rounded: normal and exponential numbers are drawn exactly, digit by
digit, as many digits as are needed (von Neumann 1951; C. Karney: Sampling Exactly from the Normal Distribution. ACM
TOMS 2016). Rounding x + noise to the grid gives x + rounded noise if x lies on the grid. So a release is a function of
the continuous mechanism's, and exactly as private, whatever the composition. Only the statistic's own rounding counts:
neighbours may differ by up to two steps more in each number (:func:`rounded`).
"""

from functools import lru_cache
from math import ceil, sqrt
from random import Random, SystemRandom

import numpy as np
import scipy

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.ledger import flatten
from fedbandit_envs.core.privacy import Change, Sensitivity
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Gaussian, Laplace, Mechanism, unflatten
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise

STEPS = 1 << 22
"""Number of steps of the grid in the scale of a number, the most by which one event changes it."""

SAMPLING = (
    "exact random numbers on a grid of 2^-22 of the most by which one event changes a number; "
    "the statistic is rounded to the grid first, which the events count"
)
"""How noise is computed, for reports."""

MOST_CORRELATED = 1000
"""The most releases of a matrix mechanism; each release takes time and memory in proportion to those before it."""

_MOST = float(1 << 51)

Digits = list[int]
"""Leading digits of a uniform number on [0, 1), to the base 2^32; further ones are drawn when they are needed."""


class SecretDraws:
    """Draws normal and Laplace numbers, rounded to integers, from the operating system's random bits.

    Example:
        >>> draws = SecretDraws()
        >>> abs(draws.normal(1 << 20)) < 10 * (1 << 20)
        True
    """

    def __init__(self, source: Random | None = None) -> None:
        """Takes the source of random bits; None for the operating system's."""
        self._bits = SystemRandom() if source is None else source

    def normal(self, size: int) -> int:
        """Returns a normal number of standard deviation ``size``, an integer > 0, rounded to an integer."""
        while True:
            k = 0
            while self._coin():
                k += 1
            if all(self._coin() for _ in range(k * (k - 1))):
                x: Digits = []
                if all(self._falls(x, k) for _ in range(k + 1)):
                    return self._signed(k, x, size)

    def laplace(self, size: int) -> int:
        """Returns a Laplace number of scale ``size``, an integer > 0, rounded to an integer."""
        k = 0
        while self._coin() and self._coin():
            k += 1
        x: Digits = []
        while not self._falls(x, None):
            x = []
        return self._signed(k, x, size)

    def _less(self, one: Digits, other: Digits) -> bool:
        """Returns whether a uniform number is less than another, for both of which it draws digits if need be."""
        place = 0
        while True:
            for digits in (one, other):
                if len(digits) == place:
                    digits.append(self._bits.getrandbits(32))
            if one[place] != other[place]:
                return one[place] < other[place]
            place += 1

    def _falls(self, x: Digits, k: int | None) -> bool:
        """Returns True with probability exp(-x), or with a ``k`` exp(-x (2 k + x) / (2 k + 2)).

        The length of the longest falling run of uniform numbers below x is even with that probability.
        """
        last, even = x, True
        while True:
            one: Digits = []
            if not self._less(one, last) or (k is not None and not self._goes_on(x, k)):
                return even
            last, even = one, not even

    def _goes_on(self, x: Digits, k: int) -> bool:
        """Returns True with probability (2 k + x) / (2 k + 2)."""
        choice = self._bits.randrange(2 * k + 2)
        return choice < 2 * k or (choice == 2 * k and self._less([], x))

    def _coin(self) -> bool:
        """Returns True with probability exp(-1/2)."""
        # One half, to more digits than ever are compared.
        return self._falls([1 << 31, *[0] * 64], None)

    def _signed(self, k: int, x: Digits, size: int) -> int:
        """Returns plus or minus (k + x) ``size``, rounded, with as many digits of x as that takes."""
        while True:
            x.append(self._bits.getrandbits(32))
            bits = 32 * len(x)
            value = (k << bits) + sum(word << (bits - 32 * place) for place, word in enumerate(x, 1))
            low, high = ((2 * size * end + (1 << bits)) >> (bits + 1) for end in (value, value + 1))
            if low == high:
                return low if self._bits.getrandbits(1) else -low


def rounded(sensitivity: Sensitivity, rounds: int, windows: int) -> Sensitivity:
    """Returns the sensitivity of releases that are first rounded to the grid, by up to two steps in each number.

    It also bounds the errors of floating-point sums, which neighbours may have otherwise in every round after the first
    difference (Casacuberta et al.: Widespread Underestimation of Sensitivity, CCS 2022).

    Args:
        sensitivity: The sensitivity of exact sums, whose terms are at most as large as the scales.
        rounds: The number of terms of a sum, at most.
        windows: In how many releases rounding may make a difference that events count in one release only.
    """
    more = 2 / STEPS + 2 * (rounds + 1) ** 2 * 2.0**-53
    entries = sum(array[0, 0].size for array in sensitivity.scale.values())
    return sensitivity._replace(
        scale={name: array * (1 + more) for name, array in sensitivity.scale.items()},
        changes={
            name: Change(change.values, change.norm + windows * more * sqrt(entries))
            for name, change in sensitivity.changes.items()
        },
    )


def require_fit(mechanism: Mechanism) -> None:
    """Raises an ``UnfitError`` if there is no secret noise for a mechanism."""
    if isinstance(mechanism, MatrixMechanism):
        # Estimates in trees take several draws for one release.
        fits = mechanism._noise.releases <= MOST_CORRELATED and mechanism._noise.draws(2) == 1
    else:
        fits = (
            type(mechanism) in (Gaussian, Laplace) and getattr(mechanism, "_pair", "as_given") == "as_given"
        )
    if not fits:
        raise UnfitError(
            f"the plan's mechanism is a {type(mechanism).__name__}; Gaussian or Laplace noise of the arrays as given, "
            f"or a MatrixMechanism, not 'honaker', of at most {MOST_CORRELATED} releases is required of secret noise"
        )


def randomised(mechanism: Mechanism, statistic: Arrays, index: Array, past: Arrays) -> Arrays:
    """Returns one agent's release with secret noise, and the variances of the noise.

    A matrix mechanism releases B (C x + noise), see :mod:`.prefix_noise`. Each number of C x is rounded, and gets noise
    on the grid, once. All that is multiplied by B says nothing further about x.

    Args:
        mechanism: The mechanism, which :func:`require_fit`, started with a :func:`rounded` sensitivity.
        statistic: The statistic, arrays ``(1, 1, ...)`` by name.
        index: How often the agent has released before, int ``(1, 1)``.
        past: What a matrix mechanism needs of earlier releases; this one is added. ``grown`` is x and ``shown`` is C x
            with noise, float64 ``(releases, draws)``.

    Raises:
        OverflowError: A number of the statistic is too large for the grid.
    """
    assert isinstance(mechanism, Gaussian | Laplace | MatrixMechanism)
    flat, scale, sizes = (array[0, 0] for array in (flatten(statistic), *mechanism.sizes(index)))
    draws, done, each = SecretDraws(), int(index[0, 0]), np.arange(len(flat))
    if isinstance(mechanism, MatrixMechanism):
        # Both halves of a symmetric statistic have the same draws.
        each, noise = mechanism._drawn, mechanism._noise
        # The cache needs what can be hashed, and mypy does not take a class for that.
        mixing, unmixing = _factors(type(noise), noise.releases)  # type: ignore[arg-type]
    first = np.unique(each, return_index=True)[1]
    exact = flat[first]
    if isinstance(mechanism, MatrixMechanism):
        past["grown"] = np.vstack([*past.get("grown", ()), exact])
        exact = unmixing[done, : done + 1] @ past["grown"]
    draw, unit = (draws.laplace, 2.0) if isinstance(mechanism, Laplace) else (draws.normal, 1.0)
    shown, variances = exact.copy(), np.zeros(len(exact))
    for k, (value, step, size) in enumerate(zip(exact, scale[first] / STEPS, sizes[first], strict=True)):
        if step * size == 0:
            continue
        count = ceil(size * STEPS)
        if abs(value) > _MOST * step:
            raise OverflowError(f"the statistic has {value:.6g}; at most {_MOST * step:.6g} is required")
        shown[k] = (round(value / step) + draw(count)) * step
        variances[k] = unit * (count * step) ** 2
    if isinstance(mechanism, MatrixMechanism):
        past["shown"] = np.vstack([*past.get("shown", ()), shown])
        shown = mixing[done, : done + 1] @ past["shown"]
        variances *= noise.variance(done + 1) - noise.variance(done)
    return unflatten(shown[each].reshape(1, 1, -1), variances[each].reshape(1, 1, -1), statistic)


@lru_cache(maxsize=8)
def _factors(kind: type[PrefixNoise], releases: int) -> tuple[Array, Array]:
    """Returns the matrix that makes noise of releases from draws, and its inverse: C, and what B adds at a release."""
    noise, row = kind(releases), np.zeros(1, np.int64)
    noise.start(1, releases)
    added = [noise.advance(row, z, draw[None, None]) for z, draw in enumerate(np.eye(releases), 1)]
    mixing = np.concatenate(added)
    return mixing, scipy.linalg.solve_triangular(mixing, np.eye(releases), lower=True)
