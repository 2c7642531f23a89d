"""FAIR-LEARN: every arm gets the share of pulls it was promised, whatever the learner thinks of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.checks import require_number
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.spaces import Spaces

_LEARNERS = "fedbandit_envs.baselines.arms"


class FairLearn:
    """FAIR-LEARN around any learner (Patil, Ghalme, Nair and Narahari 2021; thesis, Algorithm 4.1).

    In round t, arm i was promised ``share_i (t - 1)`` pulls of each agent. Where one lacks more than the tolerance, the
    arm that lacks most is pulled (the first one of several), else the learner's. What counts is what the agent itself
    has pulled, in rounds of its own. Arms that sleep lack nothing for the time being.
    """

    def __init__(
        self,
        learner: Policy | str | Mapping[str, Any] = "UCB1",
        shares: float | Sequence[float] = 0.05,
        tolerance: float = 0.0,
    ) -> None:
        """Makes the promises.

        Args:
            learner: A policy of arms, the name of one in :mod:`fedbandit_envs.baselines.arms`, or a mapping of ``name``
                and its arguments.
            shares: delta, in [0, 1], of each arm, or one for all arms; they add up to 1 at most.
            tolerance: epsilon_2 >= 0, the pulls that an arm may lack.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        require_number("tolerance", tolerance, 0, np.inf)
        if isinstance(shares, Sequence) and not isinstance(shares, str):
            for arm, share in enumerate(shares):
                require_number(f"shares[{arm}]", share, 0, 1)
            _require_sum(np.array(shares))
        else:
            require_number("shares", shares, 0, 1)
        self._shares = np.array(shares, np.float64)
        self._tolerance = float(tolerance)
        self._learner = _make_learner(learner)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Starts the learner; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Superarms are pulled, or shares are promised to another number of arms, or more than there is.
        """
        action = spaces.own_action
        if action.shape:
            raise UnfitError(f"the action space is {action}; FAIR-LEARN pulls one arm a round")
        arms = (spaces.observation["total_pulls"].shape or (0,))[0]
        if self._shares.ndim and self._shares.size != arms:
            raise UnfitError(f"shares has {self._shares.size} entries; {arms}, one an arm, are required")
        try:
            _require_sum(np.broadcast_to(self._shares, arms))
        except ValueError as error:
            raise UnfitError(str(error)) from None
        self._learner.reset(spaces, seeds)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        learnt = self._learner.act(observation)
        played = observation.get("own_round", observation["round"])
        lacking = self._shares * played - observation["total_pulls"]
        if "awake" in observation:
            lacking = np.where(observation["awake"], lacking, -np.inf)
        worst = lacking.argmax(axis=-1)
        return np.where(lacking.max(axis=-1) > self._tolerance, worst, learnt)

    def r_regret(self, means: Array, pulls: Array, rounds: int) -> Array:
        """Returns the regret that promises did not force, ``sum_i gap_i (N_i - max(0, floor(share_i t) - tolerance))``.

        Args:
            means: True ones, float64 ``(..., arms)``.
            pulls: N, how often each arm was pulled, same shape.
            rounds: t.
        """
        gaps = means.max(axis=-1, keepdims=True) - means
        # A share of 0.29 is meant to give 29 of 100 pulls, which rounding would make 28.
        forced = np.floor(self._shares * rounds * (1 + 1e-12)) - self._tolerance
        return (gaps * (pulls - np.maximum(forced, 0.0))).sum(axis=-1)


def _require_sum(shares: Array) -> None:
    if shares.sum() > 1.0 + 1e-9:
        raise ValueError(f"shares add up to {shares.sum():g}; at most 1 is required")


def _make_learner(learner: Policy | str | Mapping[str, Any]) -> Policy:
    spec = {"name": learner} if isinstance(learner, str) else learner
    if not isinstance(spec, Mapping) and hasattr(spec, "act"):
        return spec
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        raise TypeError(f"learner is {learner!r}; a policy, a name or a mapping with a name is required")
    try:
        make = resolve(f"{_LEARNERS}:{spec['name']}")
    except AttributeError:
        raise ValueError(f"learner name is {spec['name']!r}; a policy of {_LEARNERS} is required") from None
    arguments = {name: value for name, value in spec.items() if name != "name"}
    try:
        return make(**arguments)
    except TypeError as error:
        raise TypeError(f"learner {spec['name']!r} with arguments {arguments}: {error}") from None
