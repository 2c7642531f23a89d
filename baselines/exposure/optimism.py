"""Optimistic parameters for fair shares: the theta of a confidence ellipsoid for which fair shares earn most.

For one agent the objective is the expected reward sum_i pi_i(theta) <theta, x_i>, with shares pi_i proportional to
the merit f(<theta, x_i>) of arm i with context x_i. It is maximised over ||theta - estimate||_V <= radius (thesis,
Algorithm 6.1, line 6). The objective is not concave; both solvers start at the estimate and ascend from there:

* ``frank_wolfe`` goes in each step to the point of the whole ellipsoid that is best for the linearised objective,
  estimate + radius V^-1 g / ||g||_{V^-1}, where g is the gradient;
* ``projected_gradient`` (the thesis' solver) moves along the gradient g, then to the nearest point of the ellipsoid.

The gradient is sum_i pi_i (1 + l_i (mu_i - v)) x_i, where mu_i = <theta, x_i>, l_i is the derivative of ln f at mu_i,
and v = sum_i pi_i mu_i.
"""

from typing import Any, Literal

import numpy as np

from fedbandit_envs.baselines.linear.optimism import reach
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel, kernel
from fedbandit_envs.exposure.merit import Merits, share_row
from fedbandit_envs.linear.ridge import arms_last, estimate, expected_rewards, factorise, solve

SolverName = Literal["frank_wolfe", "projected_gradient"]

_SIZE = 0.1
"""Step size of the projected gradient method, which is the thesis'."""


@kernel
def centre(
    round_, inverse, moment, log_det, log_floor, inflation, bias, tilt, noise_sd, log_failure, scale, middle,
    radius,
):  # fmt: skip
    """Writes the centre V^-1 b and the radius, in the norm of V, of each agent's confidence ellipsoid.

    Args:
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Moments b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: Log-determinant that ``log_det`` is compared with; see
            :class:`~fedbandit_envs.baselines.linear.optimism.Confidence`.
        inflation: Factor of the radius's term for noise, see the same class.
        bias: Error bound in the norm of V^-1, see the same class.
        tilt: Error bound in the Euclidean norm, see the same class. In the norm of V this error is at most
            tilt ||V^-1||^(1/2); the Frobenius norm is used as a bound of ||V^-1||.
        noise_sd: Sub-Gaussian constant of rewards.
        log_failure: ln(1/failure), for ellipsoids that fail with probability ``failure``.
        scale: Factor of the whole radius, ``bias`` and ``tilt`` included.
        middle: Receives the centres, ``(replicas, agents, dim)``.
        radius: Receives the radii, ``(replicas, agents)``.
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


@inlined_kernel
def _climb(contexts, means, logarithms, slopes, weights, gradient):
    """Writes the gradient of one agent's objective, by the formula of the module's docstring.

    Args:
        contexts: Contexts x_i of the arms, ``(dim, arms)``.
        means: mu_i, ``(arms,)``.
        logarithms: ln f(mu_i), the logarithms of the arms' merits, ``(arms,)``.
        slopes: l_i, the derivatives of ln f at mu_i, ``(arms,)``.
        weights: Scratch, ``(arms,)``.
        gradient: Receives the gradient, ``(dim,)``.
    """
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


@allocating_kernel
def _project(inverse, middle, radius, point):
    """Moves a point to the nearest point of the ellipsoid ||point - middle||_V <= radius, in Euclidean distance.

    With W = V^-1 and u = point - middle the nearest point is middle + W a, where (W + nu I) a = u and nu >= 0 is such
    that ||W a||_V is the radius. Newton's method on 1 / radius - 1 / ||W a||_V, started at nu = 0, converges to this nu
    from below. A point inside of the ellipsoid does not move.

    Args:
        inverse: W, ``(dim, dim)``.
        middle: Centre of the ellipsoid, ``(dim,)``.
        radius: Radius of the ellipsoid in the norm of V, >= 0.
        point: The point, ``(dim,)``, which is overwritten.
    """
    dim = middle.shape[0]
    if radius <= 0.0:
        for i in range(dim):
            point[i] = middle[i]
        return
    factor = np.empty((dim, dim))
    away, weight, moved, bent = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for i in range(dim):
        away[i] = point[i] - middle[i]
    nu = 0.0
    for _ in range(100):
        factorise(inverse, nu, factor)
        solve(factor, away, weight)
        estimate(inverse, weight, moved)
        square = 0.0
        for i in range(dim):
            square += weight[i] * moved[i]
        norm = np.sqrt(max(square, 0.0))
        if norm <= radius * (1.0 + 1e-13):
            break
        solve(factor, weight, bent)
        fall = 0.0
        for i in range(dim):
            fall += bent[i] * moved[i]
        nu += square * (norm / radius - 1.0) / fall
    if nu > 0.0:
        for i in range(dim):
            point[i] = middle[i] + moved[i]


@allocating_kernel
def _project_gradients(round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Updates the parameters of all agents by one step of the projected gradient method.

    Arguments are those of :func:`optimise` and ``_climb``; ``parameter``, ``(replicas, agents, dim)``, is updated.
    """
    dim, arms = contexts.shape[2:]
    weights, gradient = np.empty(arms), np.empty(dim)
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            _climb(contexts[r, j], means[r, j], logarithms[r, j], slopes[r, j], weights, gradient)
            for i in range(dim):
                parameter[r, j, i] += _SIZE * gradient[i]
            e = round_[r, j, 0] % inverse.shape[2]
            _project(inverse[r, j, e], middle[r, j], radius[r, j], parameter[r, j])


@allocating_kernel
def _frank_wolfe(round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Overwrites the parameters of all agents by one step of Frank and Wolfe's algorithm.

    Arguments are those of :func:`optimise` and ``_climb``; ``parameter`` is ``(replicas, agents, dim)``.
    """
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
            # Where the gradient is 0 every point is a maximum of the linearised objective, and the step goes to the
            # centre of the ellipsoid.
            factor = radius[r, j] / np.sqrt(form) if form > 0.0 else 0.0
            for i in range(dim):
                parameter[r, j, i] = middle[r, j, i] + factor * product[i]


SOLVERS: dict[SolverName, int] = {"frank_wolfe": 3, "projected_gradient": 10}
"""The default number of steps of each solver, by the solver's name."""


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
    """Returns the optimistic parameters of all agents, in the ellipsoids ||theta - middle||_V <= radius.

    Args:
        solver: A name of :data:`SOLVERS`.
        steps: Number of the solver's steps; with 0 the result is ``middle``.
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        contexts: Contexts of all arms, ``(replicas, agents, arms, dim)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        middle: Centres of the ellipsoids, which are the estimates, ``(replicas, agents, dim)``.
        radius: Radii of the ellipsoids in the norm of V, ``(replicas, agents)``.
        merits: The merit functions of the problem.
        which: Index of each agent's merit function, ``(replicas, agents, 1)``; None if all agents have the same.
        means: Receives <theta, x> of every arm for the returned parameters, ``(replicas, agents, arms)``.

    Returns:
        The parameters, ``(replicas, agents, dim)``, and the logarithms of the arms' merits under them.
    """
    parameter, turned = middle.copy(), arms_last(contexts)
    expected_rewards(contexts, parameter, means)
    logarithms = merits.logarithm(means, which)
    # Two kernels, of which only the one that is used is compiled.
    step = _project_gradients if solver == "projected_gradient" else _frank_wolfe
    for _ in range(steps):
        slopes = merits.slope(means, which)
        step(round_, turned, means, logarithms, slopes, inverse, middle, radius, parameter)
        expected_rewards(contexts, parameter, means)
        logarithms = merits.logarithm(means, which)
    return parameter, logarithms
