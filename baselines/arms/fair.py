"""FAIR-LEARN: a policy around any bandit learner that guarantees each arm a share of the pulls."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbandit_envs.baselines.arms.classics import LEARNERS
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.policy_spec import PolicySpec


class FairLearn:
    """FAIR-LEARN around any learner (Patil, Ghalme, Nair and Narahari 2021; thesis, Algorithm 4.1).

    Arm i is guaranteed ``share_i (t - 1)`` pulls by each agent before round t. If some arm falls short of its guarantee
    by more than the tolerance, the arm with the largest deficit is pulled (the first of several), else the arm that the
    learner chooses. Only the agent's own pulls and the rounds in which it has acted count. A sleeping arm counts as
    having no deficit.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.arms import FairLearn
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = FairLearn("ThompsonSampling", shares=0.1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(
        self,
        learner: Policy | str | Mapping[str, Any] = "UCB1",
        shares: float | Sequence[float] = 0.05,
        tolerance: float = 0.0,
    ) -> None:
        """Sets the learner and the guarantees.

        Args:
            learner: A policy that pulls arms; or the name of one in ``LEARNERS`` of ``baselines/arms/classics.py``; or
                a mapping of ``name`` and the policy's arguments.
            shares: Guaranteed share of the pulls of each arm (delta in the algorithm), in [0, 1], or one number for all
                arms; they sum to at most 1.
            tolerance: Number of pulls, >= 0, by which an arm may fall short of its guarantee (epsilon_2 in the
                algorithm).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._tolerance = require_number("tolerance", tolerance, 0, np.inf)
        if isinstance(shares, Sequence) and not isinstance(shares, str):
            for arm, share in enumerate(shares):
                require_number(f"shares[{arm}]", share, 0, 1)
            _require_sum(np.array(shares))
        else:
            require_number("shares", shares, 0, 1)
        self._shares = np.array(shares, np.float64)
        self._learner = make("learner", learner, LEARNERS, Policy)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares the learner for an episode, after checking the shares; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Several arms are pulled in a round, or shares are for another number of arms, or sum to more
                than 1.
        """
        action = spec.own_action
        if action.shape:
            raise UnfitError(f"the action space is {action}; FAIR-LEARN pulls one arm a round")
        arms = (spec.observation["total_pulls"].shape or (0,))[0]
        if self._shares.ndim and self._shares.size != arms:
            raise UnfitError(f"shares has {self._shares.size} entries; {arms}, one an arm, are required")
        try:
            _require_sum(np.broadcast_to(self._shares, arms))
        except ValueError as error:
            raise UnfitError(str(error)) from None
        self._learner.reset(spec, seeds)

    def act(self, observation: Arrays) -> Array:
        """Returns the arms to pull, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        learnt = self._learner.act(observation)
        played = observation.get("own_round", observation["round"])
        lacking = self._shares * played - observation["total_pulls"]
        if "awake" in observation:
            lacking = np.where(observation["awake"], lacking, -np.inf)
        worst = lacking.argmax(axis=-1)
        return np.where(lacking.max(axis=-1) > self._tolerance, worst, learnt)

    def r_regret(self, means: Array, pulls: Array, rounds: int) -> Array:
        """Returns r-regret, the regret beyond that which the guaranteed shares force on any learner.

        It is ``sum_i gap_i (N_i - max(0, floor(share_i t) - tolerance))`` over arms i, where gap_i is the difference
        between the largest mean and the arm's.

        Args:
            means: True means of the arms, float64 ``(..., arms)``.
            pulls: Numbers of pulls N_i of the arms, same shape.
            rounds: Number of rounds t.

        Returns:
            r-regret, ``(...)``.
        """
        gaps = means.max(axis=-1, keepdims=True) - means
        # The factor undoes rounding errors: 0.29 * 100 is slightly below 29 in floating point, and would be cut to 28.
        forced = np.floor(self._shares * rounds * (1 + 1e-12)) - self._tolerance
        return (gaps * (pulls - np.maximum(forced, 0.0))).sum(axis=-1)


def _require_sum(shares: Array) -> None:
    if shares.sum() > 1.0 + 1e-9:
        raise ValueError(f"shares add up to {shares.sum():g}; at most 1 is required")
