"""Optimistic parameters for fair shares: which theta of a confidence ellipsoid would make fair shares pay most.

For one row the objective is sum_i pi_i(theta) <theta, x_i>, where shares pi_i are in proportion to f(<theta, x_i>),
over ||theta - estimate||_V <= radius (thesis, Algorithm 6.1, line 6). It is not concave; both solvers start at the
estimate and end somewhere above it:

* ``frank_wolfe`` linearises it and goes to the best point of the whole ellipsoid, estimate + radius V^-1 g /
  ||g||_{V^-1}, in every step;
* ``projected_gradient`` (the thesis') goes along the gradient g, then to the nearest point of the ellipsoid.

With l the derivative of ln f and v = sum_i pi_i mu_i, the gradient is sum_i pi_i (1 + l_i (mu_i - v)) x_i.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.baselines.linear.optimism import reach
from fedbandit_envs.compiled import kernel
from fedbandit_envs.exposure.merit import Merits, share_row
from fedbandit_envs.linear.expectation import expected_rewards
from fedbandit_envs.linear.ridge import arms_last, estimate, factorise

SolverName = Literal["frank_wolfe", "projected_gradient"]

_SIZE = 0.1
"""Of the thesis' gradient steps."""


@kernel
def centre(
    round_, inverse, moment, log_det, log_floor, inflation, bias, tilt, noise_sd, log_failure, scale, middle,
    radius,
):  # fmt: skip
    """Writes the centre and the radius of each row's ellipsoid; see ``choose`` of LinUCB for what is not named here.

    Args:
        round_: Rounds played, ``(replicas, agents, 1)``; estimators are used in turn.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Likewise, and so on, as there.
        log_det: Likewise.
        log_floor: Likewise.
        inflation: Likewise.
        bias: Likewise.
        tilt: Likewise. In the norm of V it is at most tilt ||V^-1||^(1/2), and that of Frobenius bounds ||V^-1||.
        noise_sd: Likewise.
        log_failure: Likewise.
        scale: Likewise.
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
    """Writes one row's gradient; ``contexts`` are ``(dim, arms)``, ``weights`` scratch, ``(arms,)``."""
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
def _frank_wolfe(round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Takes one step in all rows: to the point of the ellipsoid that is best by the gradient."""
    dim, arms = contexts.shape[2:]
    weights, gradient, product = np.empty(arms), np.empty(dim), np.empty(dim)
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            _climb(contexts[r, j], means[r, j], logarithms[r, j], slopes[r, j], weights, gradient)
            e = round_[r, j, 0] % inverse.shape[2]
            estimate(inverse[r, j, e], gradient, product)
            form = 0.0
            for i in range(dim):
                form += gradient[i] * product[i]
            # Where no direction is better than another, the estimate stays.
            factor = radius[r, j] / np.sqrt(form) if form > 0.0 else 0.0
            for i in range(dim):
                parameter[r, j, i] = middle[r, j, i] + factor * product[i]


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
def project(inverse, middle, radius, point):
    """Moves a point to the nearest one of the ellipsoid ||point - middle||_V <= radius, in Euclidean distance.

    With W = V^-1 and u = point - middle it is middle + W a, where (W + nu I) a = u and nu >= 0 is such that the norm is
    the radius. Newton's method on 1 / radius - 1 / norm, from nu = 0, rises to it.

    Args:
        inverse: W, ``(dim, dim)``.
        middle: ``(dim,)``.
        radius: >= 0.
        point: ``(dim,)``, replaced.
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
def _projected_gradient(round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Takes one step in all rows: along the gradient, and to the nearest point of the ellipsoid."""
    dim, arms = contexts.shape[2:]
    weights, gradient = np.empty(arms), np.empty(dim)
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            _climb(contexts[r, j], means[r, j], logarithms[r, j], slopes[r, j], weights, gradient)
            for i in range(dim):
                parameter[r, j, i] += _SIZE * gradient[i]
            project(
                inverse[r, j, round_[r, j, 0] % inverse.shape[2]], middle[r, j], radius[r, j], parameter[r, j]
            )


class Ellipsoids(NamedTuple):
    """Where a parameter may lie, by row: ||theta - middle||_V <= radius.

    Attributes:
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        middle: The estimates, ``(replicas, agents, dim)``.
        radius: ``(replicas, agents)``.
    """

    inverse: Array
    middle: Array
    radius: Array


class Solver(NamedTuple):
    """A way to look for the optimum.

    Attributes:
        step: Takes one step in all rows.
        steps: How many are taken by default.
    """

    step: Callable[..., None]
    steps: int


SOLVERS: dict[SolverName, Solver] = {
    "frank_wolfe": Solver(_frank_wolfe, 3),
    "projected_gradient": Solver(_projected_gradient, 10),
}
"""The solvers by name."""


def optimise(
    solver: SolverName,
    steps: int,
    round_: Array,
    contexts: Array,
    ellipsoids: Ellipsoids,
    merits: Merits,
    which: Array | None,
    means: Array,
) -> tuple[Array, Any]:
    """Looks for the optimistic parameter of all rows.

    Args:
        solver: A name of :data:`SOLVERS`.
        steps: How many are taken; 0 stays at the estimate.
        round_: Rounds played, ``(replicas, agents, 1)``.
        contexts: ``(replicas, agents, arms, dim)``.
        ellipsoids: Where to look; estimators are used in turn.
        merits: The agents' merit functions.
        which: Number of each row's, ``(replicas, agents, 1)``; None where there is one for all.
        means: Receives <theta, x> of what is found, ``(replicas, agents, arms)``.

    Returns:
        What is found, ``(replicas, agents, dim)``, and the logarithms of arms' merits there.
    """
    step = SOLVERS[solver].step
    parameter, turned = ellipsoids.middle.copy(), arms_last(contexts)
    expected_rewards(contexts, parameter, means)
    logarithms = merits.logarithm(means, which)
    for _ in range(steps):
        step(round_, turned, means, logarithms, merits.slope(means, which), *ellipsoids, parameter)
        expected_rewards(contexts, parameter, means)
        logarithms = merits.logarithm(means, which)
    return parameter, logarithms
