"""Third parties' arm learners as a policy: one learner a row, which learns from that row's pulls."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec


class RowLearners:
    """Lets one learner for each row choose its arms, one arm a round.

    Learners do not get what agents receive from each other. A learner is not asked in rounds in which all its arms
    sleep or its agent does not act.
    """

    def __init__(
        self, who: str, make: Callable[[int, int], Any], choose: str = "choose", learn: str = "learn"
    ) -> None:
        """Sets the kind of learners.

        Args:
            who: Name of their library, for error messages.
            make: Makes a learner, given the number of arms and a seed below 2^32.
            choose: The learner's method that returns one of the available arms, of which it is given a list.
            learn: The learner's method that takes an arm that was pulled and its reward.
        """
        self._who = who
        self._make = make
        self._methods = (choose, learn)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Makes the learners of all rows; see :meth:`Policy.reset`.

        Raises:
            UnfitError: This is no problem of arms, or several arms are pulled in a round.
        """
        arms = spec.action
        if not isinstance(arms, gym_spaces.Discrete) or "total_successes" not in spec.observation.spaces:
            raise UnfitError(
                f"{self._who} pulls one arm a round of FedArms and its like; actions here are {arms}"
            )
        number = int(arms.n)
        learners = [self._make(number, int(seed) % 2**32) for seed in seeds.flat]
        self._choose, self._learn = ([getattr(one, name) for one in learners] for name in self._methods)
        self._everything = list(range(number))
        self._known = np.zeros((2, seeds.size, number), np.int64)
        self._arms: Array = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`.

        Raises:
            ValueError: A learner chose an arm that is not available; the message names agent and replica.
        """
        shape = self._known.shape[1:]
        counts = np.stack([observation[f"total_{name}"].reshape(shape) for name in ("pulls", "successes")])
        pulls, successes = counts - self._known
        self._known = counts
        for row, arm in np.argwhere(pulls):
            self._learn[row](int(arm), float(successes[row, arm]))
        active = observation["active"].reshape(-1) if "active" in observation else np.ones(shape[0], np.bool_)
        awake = observation["awake"].reshape(shape) if "awake" in observation else None
        for row in np.flatnonzero(active):
            arms = self._everything if awake is None else np.flatnonzero(awake[row]).tolist()
            if arms:
                self._arms.flat[row] = self._choice(int(row), arms)
        return self._arms

    def _choice(self, row: int, arms: list[int]) -> int:
        arm = self._choose[row](arms)
        if arm not in arms:
            replica, agent = divmod(row, self._arms.shape[1])
            raise ValueError(
                f"{self._who} answers {arm!r} for agent_{agent} of replica {replica}; one of the arms {arms} is "
                "required"
            )
        return int(arm)
