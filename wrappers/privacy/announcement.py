"""What messages say of the noise in them, so that receivers can reckon with it.

Beside each array of a release stands the variance of its noise, value by value: by how much that of the sums of all
that the agent has released grows. Added up like everything else it tells receivers how noisy is what they hold. It
depends on no data but what leaves exactly anyway.

Where a mechanism makes every message's noise by itself, the growth is the message's own variance, and the space of
what is announced begins at 0. Where noises of an agent's messages hang together, as in continual release, only sums
have a known variance: it may shrink, and the space goes below 0.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.announcement import variance_of


def with_variances(released: spaces.Dict, low: float = 0.0, high: float = np.inf) -> spaces.Dict:
    """Returns the space of releases that say how noisy they are.

    Args:
        released: That of releases that do not.
        low: The least that a variance can be announced to grow by.
        high: The largest variance that can be announced.
    """
    announced: dict[str, spaces.Space[Any]] = {
        variance_of(name): spaces.Box(low, high, space.shape or (), np.float64)
        for name, space in released.items()
    }
    return spaces.Dict({**released.spaces, **announced})


def independent(released: spaces.Dict) -> bool:
    """Says whether all noise that is announced is that of one message: nothing that is announced can shrink."""
    return all(
        float(space.low.min()) >= 0
        for name, space in released.items()
        if name.endswith(variance_of("")) and isinstance(space, spaces.Box)
    )
