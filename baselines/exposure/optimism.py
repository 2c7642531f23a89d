"""Optimistic parameters for fair shares: under which theta of a confidence ellipsoid they would pay most.

For one row the objective is sum_i pi_i(theta) <theta, x_i>, with shares pi_i in proportion to f(<theta, x_i>), over
||theta - estimate||_V <= radius (thesis, Algorithm 6.1, line 6). It is not concave; both solvers start at the
estimate and ascend from there:

* ``frank_wolfe`` goes in each step to the point of the whole ellipsoid that is best for the linearised objective,
  estimate + radius V^-1 g / ||g||_{V^-1};
* ``projected_gradient`` (the thesis') moves along the gradient g, then to the nearest point of the ellipsoid.

With l the derivative of ln f and v = sum_i pi_i mu_i, the gradient is sum_i pi_i (1 + l_i (mu_i - v)) x_i.
"""

from typing import Any, Literal

import numpy as np

from fedbandit_envs.baselines.linear.optimism import reach
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.exposure.merit import Merits, share_row
from fedbandit_envs.linear.expectation import expected_rewards
from fedbandit_envs.linear.ridge import arms_last, estimate, factorise

SolverName = Literal["frank_wolfe", "projected_gradient"]

_SIZE = 0.1
"""Step size of the thesis' gradient steps."""


@kernel
def centre(
    round_, inverse, moment, log_det, log_floor, inflation, bias, tilt, noise_sd, log_failure, scale, middle,
    radius,
):  # fmt: skip
    """Writes the centre and the radius of each row's ellipsoid.

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``; several estimators are used in turn.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: See :class:`~fedbandit_envs.baselines.linear.optimism.Confidence`.
        inflation: See there.
        bias: See there.
        tilt: See there. In the norm of V it is at most tilt ||V^-1||^(1/2), and the Frobenius norm bounds ||V^-1||.
        noise_sd: Sub-Gaussian constant of rewards.
        log_failure: ln(1/failure).
        scale: Factor of the radius.
        middle: Receives V^-1 b, ``(replicas, agents, dim)``.
        radius: Receives radii, ``(replicas, agents)``.
    """
    for r in range(radius.shape[0]):
        for j in range(radius.shape[1]):
            e = round_[r, j, 0] % moment.shape[2]
            estimate(inverse[r, j, e], moment[r, j, e], middle[r, j])
            width = reach(
                log_det[r, j, e], log_floor[r, j, e], inflation[r, j, e], bias[r, j, e], noise_sd, log_failure
            )
            if tilt[r, j, e] > 0.0:
                square = 0.0
                for entry in inverse[r, j, e].flat:
                    square += entry * entry
                width += tilt[r, j, e] * np.sqrt(np.sqrt(square))
            radius[r, j] = scale * width


@kernel(forceinline=True)
def _climb(contexts, means, logarithms, slopes, weights, gradient):
    """Writes the gradient of one row; ``contexts`` are ``(dim, arms)``, ``weights`` is scratch, ``(arms,)``."""
    dim, arms = contexts.shape
    share_row(logarithms, weights)
    value = 0.0
    for k in range(arms):
        value += weights[k] * means[k]
    for k in range(arms):
        weights[k] *= 1.0 + slopes[k] * (means[k] - value)
    for i in range(dim):
        total = 0.0
        for k in range(arms):
            total += weights[k] * contexts[i, k]
        gradient[i] = total


@kernel
def _solve(factor, right, solution):
    """Solves L L^T solution = right."""
    dim = right.shape[0]
    for i in range(dim):
        value = right[i]
        for h in range(i):
            value -= factor[i, h] * solution[h]
        solution[i] = value / factor[i, i]
    for i in range(dim - 1, -1, -1):
        value = solution[i]
        for h in range(i + 1, dim):
            value -= factor[h, i] * solution[h]
        solution[i] = value / factor[i, i]


@kernel
def _project(inverse, middle, radius, point):
    """Moves a point to the nearest point of the ellipsoid ||point - middle||_V <= radius, in Euclidean distance.

    With W = V^-1 and u = point - middle it is middle + W a, where (W + nu I) a = u and nu >= 0 is such that the norm is
    the radius. Newton's method on 1 / radius - 1 / norm, started at nu = 0, increases to it.

    Args:
        inverse: W, ``(dim, dim)``.
        middle: ``(dim,)``.
        radius: >= 0.
        point: ``(dim,)``, overwritten.
    """
    dim = middle.shape[0]
    if radius <= 0.0:
        point[:] = middle
        return
    matrix, factor = np.empty((dim, dim)), np.zeros((dim, dim))
    away, weight, moved, bent = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for i in range(dim):
        away[i] = point[i] - middle[i]
    nu = 0.0
    for _ in range(100):
        for i in range(dim):
            for h in range(dim):
                matrix[i, h] = inverse[i, h]
            matrix[i, i] += nu
        factorise(matrix, factor)
        _solve(factor, away, weight)
        estimate(inverse, weight, moved)
        square = 0.0
        for i in range(dim):
            square += weight[i] * moved[i]
        norm = np.sqrt(max(square, 0.0))
        if norm <= radius * (1.0 + 1e-13):
            break
        _solve(factor, weight, bent)
        fall = 0.0
        for i in range(dim):
            fall += bent[i] * moved[i]
        nu += square * (norm / radius - 1.0) / fall
    if nu > 0.0:
        for i in range(dim):
            point[i] = middle[i] + moved[i]


@kernel
def _step(projected, round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Takes one step in all rows, of the projected gradient or of Frank and Wolfe's algorithm; see the module."""
    dim, arms = contexts.shape[2:]
    weights, gradient, product = np.empty(arms), np.empty(dim), np.empty(dim)
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            _climb(contexts[r, j], means[r, j], logarithms[r, j], slopes[r, j], weights, gradient)
            e = round_[r, j, 0] % inverse.shape[2]
            if projected:
                for i in range(dim):
                    parameter[r, j, i] += _SIZE * gradient[i]
                _project(inverse[r, j, e], middle[r, j], radius[r, j], parameter[r, j])
                continue
            estimate(inverse[r, j, e], gradient, product)
            form = 0.0
            for i in range(dim):
                form += gradient[i] * product[i]
            # A gradient of 0 leaves the estimate where it is.
            factor = radius[r, j] / np.sqrt(form) if form > 0.0 else 0.0
            for i in range(dim):
                parameter[r, j, i] = middle[r, j, i] + factor * product[i]


SOLVERS: dict[SolverName, int] = {"frank_wolfe": 3, "projected_gradient": 10}
"""Default numbers of steps by the name of the solver."""


def optimise(
    solver: SolverName,
    steps: int,
    round_: Array,
    contexts: Array,
    inverse: Array,
    middle: Array,
    radius: Array,
    merits: Merits,
    which: Array | None,
    means: Array,
) -> tuple[Array, Any]:
    """Returns the optimistic parameters of all rows, in the ellipsoids ||theta - middle||_V <= radius.

    Args:
        solver: A name of :data:`SOLVERS`.
        steps: Number of steps; 0 stays at the estimate.
        round_: Rounds played, ``(replicas, agents, 1)``; several estimators are used in turn.
        contexts: ``(replicas, agents, arms, dim)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        middle: The estimates, ``(replicas, agents, dim)``.
        radius: ``(replicas, agents)``.
        merits: The agents' merit functions.
        which: Index of each row's merit function, ``(replicas, agents, 1)``; None where there is one for all.
        means: Receives <theta, x> of the result, ``(replicas, agents, arms)``.

    Returns:
        The parameters, ``(replicas, agents, dim)``, and the logarithms of the arms' merits under them.
    """
    parameter, turned = middle.copy(), arms_last(contexts)
    expected_rewards(contexts, parameter, means)
    logarithms = merits.logarithm(means, which)
    for _ in range(steps):
        slopes = merits.slope(means, which)
        _step(
            solver == "projected_gradient", round_, turned, means, logarithms, slopes, inverse, middle, radius,
            parameter,
        )  # fmt: skip
        expected_rewards(contexts, parameter, means)
        logarithms = merits.logarithm(means, which)
    return parameter, logarithms
