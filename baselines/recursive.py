"""Recursive least squares: an estimate corrected by each observation's surprise (compiled).

It is what V^-1 b is, but more exact: V^-1 b multiplies the rounding errors of V^-1 by a moment that grows with the
rounds, and where contexts are nearly collinear that costs three digits.
"""

from fedbandit_envs.baselines.ridge import rank_one
from fedbandit_envs.compiled import kernel


@kernel
def correct(inverse, parameter, x, y, product):
    """Takes in one observation.

    Args:
        inverse: V^-1, ``(dim, dim)``, replaced by (V + x x^T)^-1.
        parameter: The estimate V^-1 b, ``(dim,)``, replaced by (V + x x^T)^-1 (b + y x).
        x: ``(dim,)``.
        y: What was observed there.
        product: Receives V^-1 x, of V as it was.

    Returns:
        The surprise y - <x, parameter>, and the weight 1 / (1 + x^T V^-1 x) with which ``product`` times it was added;
        both of what was before.
    """
    surprise = y
    for i in range(x.shape[0]):
        surprise -= x[i] * parameter[i]
    weight = 1.0 / (1.0 + rank_one(inverse, x, product))
    for i in range(x.shape[0]):
        parameter[i] += weight * surprise * product[i]
    return surprise, weight
