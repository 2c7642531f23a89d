"""Upper confidence bounds from ridge regressions, and the choice of the arm with the largest bound (compiled)."""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.linear.ridge import estimate, largest, upper_bounds


class Confidence(NamedTuple):
    """Four numbers that bound the error of a ridge estimate V^-1 b, for each estimator of each agent.

    With probability 1 - failure, for all x and rounds at once, |<x, estimate - theta*>| is at most ``(inflation
    noise_sd sqrt(2 ln(1/failure) + log det V - log_floor) + bias) ||x||_{V^-1} + tilt ||V^-1 x||``. Here V is the
    regularised Gram matrix and theta* the true parameter. All arrays are ``(replicas, agents, estimators)``.

    Attributes:
        log_floor: log det A of a matrix A such that V >= A + sum x x^T, for instance of the ridge.
        inflation: Factor >= 1 of the first term; above 1 where V is slightly smaller than A + sum x x^T.
        bias: Bound of the error from regularisation and noise, in the norm of V^-1; 0 if ``tilt`` is used.
        tilt: Bound of the error from regularisation and noise, in the Euclidean norm; 0 if ``bias`` is used.
    """

    log_floor: Array
    inflation: Array
    bias: Array
    tilt: Array

    @classmethod
    def without_noise(
        cls, shape: tuple[int, ...], dim: int, ridge: float, parameter_bound: float
    ) -> "Confidence":
        """Returns the bounds of ridge regression on exact data (Abbasi-Yadkori et al. 2011, Theorem 2).

        Args:
            shape: Shape of the arrays, ``(replicas, agents, estimators)``.
            dim: Dimension of contexts.
            ridge: The ridge lambda in V = lambda I + sum x x^T.
            parameter_bound: S, an upper bound of ||theta*||.
        """
        return cls(
            np.full(shape, dim * np.log(ridge)),
            np.ones(shape),
            np.full(shape, np.sqrt(ridge) * parameter_bound),
            np.zeros(shape),
        )


@kernel(inline="always")
def reach(log_det, log_floor, inflation, bias, noise_sd, log_failure):
    """Returns the radius, in the norm of V, of a confidence ellipsoid around a ridge estimate.

    It is ``inflation noise_sd sqrt(2 log_failure + log_det - log_floor) + bias``; the term with ``tilt`` of
    :class:`Confidence` is not included.
    """
    # log_det is at least log_floor, except for rounding errors.
    growth = log_det - log_floor
    return inflation * noise_sd * np.sqrt(2.0 * log_failure + (0.0 if growth < 0.0 else growth)) + bias


@kernel
def choose(
    active, round_, contexts, inverse, moment, log_det, log_floor, inflation, bias, tilt, log_failure, caps,
    noise_sd, scale, constant, scratch, parameter, arm,
):  # fmt: skip
    """Writes the arm with the largest upper confidence bound, for each active agent.

    The bound is that of one estimator of each agent or, with caps, the smaller one of its bound and that of a second
    estimator, the cap. Both are computed while the agent's contexts are in the processor's cache.

    Args:
        active: Agents that act, bool ``(replicas, agents, 1)``; the others keep their last arm.
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        contexts: Contexts x of all arms, ``(replicas, agents, dim, arms)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Moments b = sum y x of rewards y, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: Log-determinant that ``log_det`` is compared with; see :class:`Confidence`.
        inflation: Factor of the radius; see :class:`Confidence`.
        bias: Error bound in the norm of V^-1; see :class:`Confidence`.
        tilt: Error bound in the Euclidean norm; see :class:`Confidence`.
        log_failure: ln(1/failure), for bounds that fail with probability ``failure``.
        caps: The eight arguments from ``inverse`` to ``log_failure`` of the second estimators, of which each agent has
            one; None without caps, for which Numba compiles a smaller kernel.
        noise_sd: Sub-Gaussian constant of rewards.
        scale: Factor of the radius and of ``tilt``.
        constant: A radius that replaces the scaled one, also of caps, unless it is negative.
        scratch: Scratch array, ``(5, arms)``.
        parameter: Receives the estimates V^-1 b of agents that act, ``(replicas, agents, dim)``.
        arm: Receives the arms, ``(replicas, agents)``.
    """
    width, bound, cap = scratch[:3], scratch[3], scratch[4]
    if caps is not None:
        cap_inverse, cap_moment, cap_log_det, cap_floor, cap_inflation, cap_bias, cap_tilt, cap_failure = caps
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j, 0]:
                continue
            if caps is not None:
                radius = reach(
                    cap_log_det[r, j, 0], cap_floor[r, j, 0], cap_inflation[r, j, 0], cap_bias[r, j, 0], noise_sd,
                    cap_failure,
                )  # fmt: skip
                estimate(cap_inverse[r, j, 0], cap_moment[r, j, 0], parameter[r, j])
                upper_bounds(
                    contexts[r, j], cap_inverse[r, j, 0], parameter[r, j],
                    scale * radius if constant < 0.0 else constant, scale * cap_tilt[r, j, 0], width, cap,
                )  # fmt: skip
            e = round_[r, j, 0] % moment.shape[2]
            radius = reach(
                log_det[r, j, e], log_floor[r, j, e], inflation[r, j, e], bias[r, j, e], noise_sd, log_failure
            )
            estimate(inverse[r, j, e], moment[r, j, e], parameter[r, j])
            upper_bounds(
                contexts[r, j], inverse[r, j, e], parameter[r, j],
                scale * radius if constant < 0.0 else constant, scale * tilt[r, j, e], width, bound,
            )  # fmt: skip
            if caps is not None:
                for k in range(contexts.shape[3]):
                    bound[k] = cap[k] if cap[k] < bound[k] else bound[k]
            arm[r, j] = largest(bound)
