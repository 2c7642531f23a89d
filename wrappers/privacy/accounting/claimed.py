"""From a claim back to the noise: what a privatizer must be told for its releases to be just so private together."""

from math import sqrt
from typing import Any

import numpy as np

from fedbandit_envs.checks import require_integer, require_number
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.budget import decreasing

_EACH = 1e-9
# The classic formula is proven for shares below 1 only: a large delta of single values keeps them small.
_LARGEST = 0.5


def equal_shares(epsilon: float, delta: float, releases: int, norm: float = 1.0) -> dict[str, Any]:
    """Returns arguments of ``GaussianPrivatizer`` that make releases (epsilon, delta) private, exactly composed.

    Releases share the budget equally: mu^2 = sum (norm/multiplier)^2 has as many equal terms. The privatizer's own
    epsilon and delta stand for single values and only name a multiplier, that of the exact calibration (Balle and Wang,
    ICML 2018); whether it is the classic or the exact one makes no difference once releases are composed exactly.

    Args:
        epsilon: Of all releases together, > 0; infinity for no noise.
        delta: Of all releases together, in (0, 1).
        releases: How many there are, >= 1.
        norm: By how much neighbours differ in one release, in scales
            (:class:`~fedbandit_envs.sensitivity.Change`), > 0; all releases are taken to differ as much.

    Returns:
        ``epsilon``, ``delta``, ``calibration`` and ``releases``.

    Raises:
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range, or so little is claimed that no epsilon names the multiplier.
    """
    require_integer("releases", releases, 1)
    require_number("norm", norm, 0, float("inf"), open_below=True)
    multiplier = analytic_noise_multiplier(epsilon, delta) * norm * sqrt(releases)
    # A hair less: rounding must not spend more than was claimed.
    share = float("inf") if multiplier == 0 else float(gaussian_epsilon(_EACH, 1 / multiplier)) * (1 - 1e-9)
    if share == 0:
        raise ValueError(
            f"epsilon is {epsilon!r} and delta {delta!r} for {releases} releases; more is required for each "
            f"of them to have an epsilon at delta {_EACH:g}"
        )
    return {"epsilon": releases * share, "delta": _EACH, "calibration": "analytic", "releases": releases}


def decreasing_shares(
    epsilon: float, delta: float, horizon: int, releases: int, norm: float = 1.0
) -> dict[str, Any]:
    """Returns the same for P-FCB's decreasing shares, which spend most of a budget on the first releases.

    Args:
        epsilon: Of all releases together, > 0.
        delta: Of all releases together, in (0, 1).
        horizon: T, on which the shares depend, >= 2.
        releases: How many there are in it, >= 1; later ones would spend more.
        norm: See :func:`equal_shares`.

    Returns:
        ``epsilon`` and ``delta``, for the classic calibration.

    Raises:
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range.
    """
    require_integer("releases", releases, 1)
    require_number("norm", norm, 0, float("inf"), open_below=True)
    shares = decreasing(1.0, horizon)
    # All later releases get as much as the last.
    spent = shares[np.minimum(np.arange(releases), shares.size - 1)] / classic_noise_multiplier(1.0, _LARGEST)
    mu = norm * float(np.sqrt(np.square(spent).sum()))
    return {"epsilon": (1 - 1e-9) / (analytic_noise_multiplier(epsilon, delta) * mu), "delta": _LARGEST}
