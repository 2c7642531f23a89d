"""LinUCB with one parameter shared by all arms, and uniform arms as a placebo."""

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.linear.optimism import Confidence, choose
from fedbandit_envs.checks import require_number
from fedbandit_envs.draws import Draws
from fedbandit_envs.linear.ridge import Ridges, arms_last, observe
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
