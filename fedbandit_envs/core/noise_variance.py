"""The variance of the noise in a release, which releases contain so that receivers can weight them.

A noisy release contains for each array ``name`` another array ``{name}_noise_variance`` of the same shape. Its entries
are the growth, with this release, of the variance of the noise in the sum of all of the agent's releases so far. They
do not depend on data, except on data that are released without noise.

If releases have independent noise, the growth is the variance of the noise in this release and never negative.
If the noise of an agent's releases is correlated (continual release), the variance of a sum may shrink with a further
release: the space of the array then has a negative lower bound.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

COVARIANCE = "noise_covariance"
"""Name of the array in a release with the covariance of the noise in two other arrays, entry by entry, if not 0."""


def variance_of(name: str) -> str:
    """Returns the name of the array that holds the variance of the noise in the array ``name``."""
    return f"{name}_noise_variance"


def with_variances(released: spaces.Dict, low: float = 0.0, high: float = np.inf) -> spaces.Dict:
    """Returns the space of releases that carry the variance of their noise.

    Args:
        released: Space of the releases without variances.
        low: Lower bound of the growth of a variance; below 0 if the noise of releases is correlated.
        high: Upper bound of the growth of a variance.
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
