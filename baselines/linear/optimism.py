"""Upper confidence bounds of ridge regressions, and the arms with the largest bound (compiled)."""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.linear.ridge import estimate, largest, upper_bounds


class Confidence(NamedTuple):
    """Bounds of the errors of ridge estimates, one entry a row and estimator, ``(replicas, agents, estimators)``.

    With probability 1 - failure, for all x and rounds at once, |<x, estimate - theta*>| is at most ``(inflation
    noise_sd sqrt(2 ln(1/failure) + log det V - log_floor) + bias) ||x||_{V^-1} + tilt ||V^-1 x||``.

    Attributes:
        log_floor: Log-determinant of a regulariser that V exceeds by at least sum x x^T.
        inflation: Factor for a V that is slightly smaller than that; else 1.
        bias: Error from regularisation and noise, in the norm of V^-1.
        tilt: The same in the Euclidean norm; one of the two is 0.
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
            shape: ``(replicas, agents, estimators)``.
            dim: Dimension of contexts.
            ridge: The regulariser.
            parameter_bound: S, an upper bound of ||theta*||.
        """
        return cls(
            np.full(shape, dim * np.log(ridge)),
            np.ones(shape),
            np.full(shape, np.sqrt(ridge) * parameter_bound),
            np.zeros(shape),
        )


@kernel
def reach(log_det, log_floor, inflation, bias, noise_sd, log_failure):
    """Returns the radius of a confidence ellipsoid in the norm of V, without the tilt; see :class:`Confidence`."""
    # The determinants' ratio is at least 1 but for rounding.
    growth = max(log_det - log_floor, 0.0)
    return inflation * noise_sd * np.sqrt(2.0 * log_failure + growth) + bias


@kernel
def choose(
    active, round_, contexts, inverse, moment, log_det, log_floor, inflation, bias, tilt,
    noise_sd, log_failure, scale, constant, parameter, cap, bound, arm,
):  # fmt: skip
    """Pulls the arm with the largest upper confidence bound, for all active rows.

    Args:
        active: Rows that act, bool ``(replicas, agents, 1)``; the others keep their last arm.
        round_: Rounds played, ``(replicas, agents, 1)``; several estimators are used in turn.
        contexts: ``(replicas, agents, dim, arms)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: See :class:`Confidence`.
        inflation: See there.
        bias: See there.
        tilt: See there.
        noise_sd: Sub-Gaussian constant of rewards.
        log_failure: ln(1/failure).
        scale: Factor of the bound's width.
        constant: A constant radius in the place of the formula, unless it is negative.
        parameter: Receives the estimates used, ``(replicas, agents, dim)``.
        cap: Bounds from elsewhere, the smaller of the two counts, ``(replicas, agents, arms)``; of size 0 for none.
        bound: Receives the bounds, ``(replicas, agents, arms)``.
        arm: Receives the arms, ``(replicas, agents)``.
    """
    width = np.empty((3, contexts.shape[3]))
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j, 0]:
                continue
            e = round_[r, j, 0] % moment.shape[2]
            estimate(inverse[r, j, e], moment[r, j, e], parameter[r, j])
            radius = constant
            if constant < 0.0:
                radius = scale * reach(
                    log_det[r, j, e],
                    log_floor[r, j, e],
                    inflation[r, j, e],
                    bias[r, j, e],
                    noise_sd,
                    log_failure,
                )
            upper_bounds(
                contexts[r, j],
                inverse[r, j, e],
                parameter[r, j],
                radius,
                scale * tilt[r, j, e],
                width,
                bound[r, j],
            )
            if cap.size > 0:
                for k in range(bound.shape[2]):
                    bound[r, j, k] = min(bound[r, j, k], cap[r, j, k])
            arm[r, j] = largest(bound[r, j])
