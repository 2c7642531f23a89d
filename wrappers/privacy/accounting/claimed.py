"""From a claim back to the noise: what a privatizer must be told for its releases to be just so private together."""

from math import sqrt
from typing import Any

from fedbandit_envs.checks import require_integer, require_number
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier, gaussian_epsilon

_EACH = 1e-9


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
