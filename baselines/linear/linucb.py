"""LinUCB with one parameter shared by all arms, and uniform arms as a placebo."""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.draws import Draws
from fedbandit_envs.linear.ridge import Ridges, arms_last, estimate, largest, observe, upper_bounds
from fedbandit_envs.spaces import Spaces


class UniformArm:
    """Pulls an arm at random."""

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Takes one seed a row; see :meth:`Policy.reset`."""
        self._seeds = seeds

    def act(self, observation: Arrays) -> Array:
        """Draws arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        drawn = Draws.of_policy(self._seeds, observation["round"]).uniforms()
        return (drawn * observation["contexts"].shape[2]).astype(np.int64)


class Confidence(NamedTuple):
    """By how much estimates may err, an entry a row and estimator, ``(replicas, agents, estimators)``.

    With probability 1 - failure, for all x and rounds at once, |<x, estimate - theta*>| is at most
    ``(inflation noise_sd sqrt(2 ln(1/failure) + log det V - log_floor) + bias) ||x||_{V^-1} + tilt ||V^-1 x||``.

    Attributes:
        log_floor: log det of a regulariser that V is at least, with all observations on top of it.
        inflation: Factor where V is only nearly so large.
        bias: Of what shrinks estimates, in the norm of V^-1.
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
        """Says how much ridge regression may err (Abbasi-Yadkori et al. 2011, Theorem 2).

        Args:
            shape: ``(replicas, agents, estimators)``.
            dim: Dimension of contexts.
            ridge: The regulariser.
            parameter_bound: S, the most that ||theta*|| can be.
        """
        return cls(
            np.full(shape, dim * np.log(ridge)),
            np.ones(shape),
            np.full(shape, np.sqrt(ridge) * parameter_bound),
            np.zeros(shape),
        )


@kernel
def judge(
    contexts, inverse, moment, log_det, log_floor, inflation, bias, tilt,
    noise_sd, log_failure, scale, constant, parameter, width, bound,
):  # fmt: skip
    """Writes one estimator's estimate, and its upper confidence bound of every arm; see :func:`choose`.

    Args:
        contexts: ``(dim, arms)``.
        inverse: V^-1, ``(dim, dim)``.
        moment: b, ``(dim,)``.
        log_det: log det V.
        log_floor: See :class:`Confidence`; so are the next three.
        inflation: Likewise.
        bias: Likewise.
        tilt: Likewise.
        noise_sd: Of rewards.
        log_failure: ln(1/failure).
        scale: Multiplies the bound's width.
        constant: A radius in place of all this, if it is not negative.
        parameter: Receives the estimate, ``(dim,)``.
        width: Scratch, ``(3, arms)``.
        bound: Receives the bounds, ``(arms,)``.
    """
    estimate(inverse, moment, parameter)
    radius = constant
    if constant < 0.0:
        # The determinants' ratio is at least 1 but for rounding.
        growth = max(log_det - log_floor, 0.0)
        radius = scale * (inflation * noise_sd * np.sqrt(2.0 * log_failure + growth) + bias)
    upper_bounds(contexts, inverse, parameter, radius, scale * tilt, width, bound)


@kernel
def choose(
    active, round_, contexts, inverse, moment, log_det, log_floor, inflation, bias, tilt,
    noise_sd, log_failure, scale, constant, parameter, arm,
):  # fmt: skip
    """Pulls the arm with the largest upper confidence bound, for all rows that act.

    Args:
        active: Which do, bool ``(replicas, agents, 1)``; the others keep the arm they had.
        round_: Rounds played, ``(replicas, agents, 1)``; estimators are used in turn.
        contexts: ``(replicas, agents, dim, arms)``.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: See :class:`Confidence`; so are the next three.
        inflation: Likewise.
        bias: Likewise.
        tilt: Likewise.
        noise_sd: Of rewards.
        log_failure: ln(1/failure).
        scale: Multiplies the bound's width.
        constant: A radius in place of all this, if it is not negative.
        parameter: Receives the estimates used, ``(replicas, agents, dim)``.
        arm: Receives the arms, ``(replicas, agents)``.
    """
    arms = contexts.shape[3]
    width = np.empty((3, arms))
    bound = np.empty(arms)
    for r in range(contexts.shape[0]):
        for j in range(contexts.shape[1]):
            if not active[r, j, 0]:
                continue
            e = round_[r, j, 0] % moment.shape[2]
            judge(
                contexts[r, j], inverse[r, j, e], moment[r, j, e], log_det[r, j, e],
                log_floor[r, j, e], inflation[r, j, e], bias[r, j, e], tilt[r, j, e],
                noise_sd, log_failure, scale, constant, parameter[r, j], width, bound,
            )  # fmt: skip
            arm[r, j] = largest(bound)


class LinUCB:
    """LinUCB on own data: ridge regression and optimism, theta* shared by all arms (Li et al. 2010).

    Pulls the arm that maximises <x, V^-1 b> + beta ||x||_{V^-1} with V = ridge I + sum x x^T and b = sum y x. The
    radius is that of Abbasi-Yadkori et al. (2011, Theorem 2), beta_scale (noise_sd sqrt(2 ln(1/failure) + log det V -
    d ln ridge) + sqrt(ridge) parameter_bound), or Li et al.'s constant alpha.
    """

    def __init__(
        self,
        ridge: float = 1.0,
        noise_sd: float = 0.5,
        parameter_bound: float = 1.0,
        failure: float = 0.01,
        beta_scale: float = 1.0,
        alpha: float | None = None,
    ) -> None:
        """Sets the policy's constants.

        Args:
            ridge: > 0.
            noise_sd: Sub-Gaussian constant of rewards; 0.5 holds for any that lie in an interval of length 1.
            parameter_bound: S, the most that ||theta*|| can be.
            failure: Probability, in (0, 1], that the bounds fail in some round.
            beta_scale: Multiplies the radius.
            alpha: A constant radius instead; None for the formula.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        require_number("ridge", ridge, 0, np.inf, open_below=True)
        require_number("noise_sd", noise_sd, 0, np.inf)
        require_number("parameter_bound", parameter_bound, 0, np.inf)
        require_number("failure", failure, 0, 1, open_below=True)
        require_number("beta_scale", beta_scale, 0, np.inf)
        if alpha is not None:
            require_number("alpha", alpha, 0, np.inf)
        self._ridge = float(ridge)
        self._noise_sd = float(noise_sd)
        self._parameter_bound = float(parameter_bound)
        self._failure = float(failure)
        self._beta_scale = float(beta_scale)
        self._constant = -1.0 if alpha is None else float(alpha)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        self._begin(seeds.shape, (spaces.observation["contexts"].shape or (0, 0))[1], 1)

    def _begin(self, rows: tuple[int, ...], dim: int, estimators: int) -> None:
        shape = (*rows, estimators)
        self._ridges = Ridges.without_data(shape, dim, self._ridge)
        self._confidence = Confidence.without_noise(shape, dim, self._ridge, self._parameter_bound)
        self._parameter = np.zeros((*rows, dim))
        self._arm = np.zeros(rows, np.int64)
        self._everyone = np.ones((*rows, 1), np.bool_)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        observe(
            observation["round"], observation["pulled_context"], observation["last_reward"], *self._ridges
        )
        return self._choose(observation, self._failure)

    def _choose(self, observation: Arrays, failure: float) -> Array:
        choose(
            observation.get("active", self._everyone), observation["round"],
            arms_last(observation["contexts"]), *self._ridges, *self._confidence,
            self._noise_sd, -np.log(failure), self._beta_scale, self._constant, self._parameter, self._arm,
        )  # fmt: skip
        return self._arm
