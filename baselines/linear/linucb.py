"""LinUCB with one regression parameter for all arms, and a policy that pulls arms at random."""

from math import log

import numpy as np

from fedbandit_envs.baselines.linear.optimism import Confidence, choose
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.buffers import everyone
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.ridge import Ridges, arms_last, observe
from fedbandit_envs.randomness.draws import Draws


class UniformArm:
    """Pulls an arm uniformly at random.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import UniformArm
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = UniformArm()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores the seed of each agent; see :meth:`Policy.reset`."""
        self._seeds = seeds

    def act(self, observation: Arrays) -> Array:
        """Returns random arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        drawn = Draws.of_policy(self._seeds, observation["round"]).uniforms()
        return (drawn * observation["contexts"].shape[2]).astype(np.int64)


class LinUCB:
    """LinUCB on an agent's own data: upper confidence bounds from one ridge regression for all arms (Li et al. 2010).

    Pulls the arm with the largest <x, V^-1 b> + beta ||x||_{V^-1}, where V = ridge I + sum x x^T and b = sum y x. The
    radius beta is beta_scale (noise_sd sqrt(2 ln(1/failure) + log det V - d ln ridge) + sqrt(ridge) parameter_bound)
    for contexts of dimension d (Abbasi-Yadkori et al. 2011, Theorem 2), or Li et al.'s constant alpha.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import LinUCB
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = LinUCB(beta_scale=0.3)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
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
            ridge: Multiple of I in V, > 0.
            noise_sd: R, the sub-Gaussian constant of rewards; 0.5 holds for all rewards in an interval of length 1.
            parameter_bound: S, an upper bound of ||theta*||.
            failure: Probability, in (0, 1], that the confidence bounds fail in some round.
            beta_scale: Factor of the radius of the formula; 1 is the theory's, 0 means no exploration.
            alpha: A constant radius that replaces the formula; None for the formula.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._noise_sd = require_number("noise_sd", noise_sd, 0, np.inf)
        self._parameter_bound = require_number("parameter_bound", parameter_bound, 0, np.inf)
        self._failure = require_number("failure", failure, 0, 1, open_below=True)
        self._beta_scale = require_number("beta_scale", beta_scale, 0, np.inf)
        self._constant = -1.0 if alpha is None else require_number("alpha", alpha, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`."""
        self._start(spec, seeds.shape, 1)

    def _start(self, spec: PolicySpec, rows: tuple[int, ...], estimators: int, alone: int = 0) -> None:
        """Starts without data.

        Args:
            spec: The environment's spaces.
            rows: Numbers of replicas and agents.
            estimators: Number of estimators of each agent, which are used in turn.
            alone: 1 if each agent has one more estimator, whose bounds cap those of the others; else 0.
        """
        dim = (spec.observation["contexts"].shape or (0, 0))[1]
        (self._ridges, self._confidence), (self._alone, self._alone_confidence) = (
            (
                Ridges.without_data((*rows, number), dim, self._ridge),
                Confidence.without_noise((*rows, number), dim, self._ridge, self._parameter_bound),
            )
            for number in (estimators, alone)
        )
        self._parameter = np.zeros((*rows, dim))
        self._arm = np.zeros(rows, np.int64)
        self._everyone = everyone(*rows, 1)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        last = observation["round"], observation["pulled_context"], observation["last_reward"]
        observe(*last, np.empty(self._parameter.shape[-1]), *self._ridges)
        return self._choose(observation, -np.log(self._failure))

    def _choose(self, observation: Arrays, log_failure: float) -> Array:
        """Returns the arms with the largest upper confidence bounds, int64 ``(replicas, agents)``.

        Args:
            observation: The observation of this round.
            log_failure: ln(1/failure), for bounds that fail with probability ``failure``.
        """
        caps = (*self._alone, *self._alone_confidence, -log(self._failure / 2))
        choose(
            observation.get("active", self._everyone), observation["round"], arms_last(observation["contexts"]),
            *self._ridges, *self._confidence, log_failure, caps if self._alone.moment.size else None,
            self._noise_sd, self._beta_scale, self._constant, np.empty((5, observation["contexts"].shape[2])),
            self._parameter, self._arm,
        )  # fmt: skip
        return self._arm
