"""The variance of the noise in a release, which messages carry so that receivers can weigh what they receive.

Beside each array ``name`` of a noisy release stands ``{name}_noise_variance``: value by value, by how much the
variance of the noise on the sum of all that the agent has released grows with this release. It depends on no data but
what leaves without noise anyway.

Where releases get independent noise, the growth is the variance of the release's own noise and is never negative.
Where the noise of an agent's releases is correlated (continual release) only sums have a known variance, which may
shrink: the space then has a negative lower bound.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

COVARIANCE = "noise_covariance"
"""Name of the covariance, value by value, between the noise of two arrays of a release, where it is not 0."""


def variance_of(name: str) -> str:
    """Returns the name of the array that holds the variance of the noise in the array ``name``."""
    return f"{name}_noise_variance"


def with_variances(released: spaces.Dict, low: float = 0.0, high: float = np.inf) -> spaces.Dict:
    """Returns the space of releases that carry the variance of their noise.

    Args:
        released: Space of the releases without variances.
        low: Smallest growth of a variance; below 0 where the noise of releases is correlated.
        high: Largest growth of a variance.
    """
    variances: dict[str, spaces.Space[Any]] = {
        variance_of(name): spaces.Box(low, high, space.shape or (), np.float64)
        for name, space in released.items()
    }
    return spaces.Dict({**released.spaces, **variances})


def independent(released: spaces.Dict) -> bool:
    """Returns whether releases of this space have independent noise: no variance in it can shrink."""
    return all(
        float(space.low.min()) >= 0
        for name, space in released.items()
        if name.endswith(variance_of("")) and isinstance(space, spaces.Box)
    )
