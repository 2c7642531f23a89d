"""Policies made of bandit learners of other libraries (MABWiser, river): one learner for each agent."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.policy_spec import PolicySpec


class _RowLearners:
    """The base class of policies in which one bandit learner for each agent chooses one arm in each round.

    A learner has the methods ``pull``, which is given a list of the available arms and returns one of them, and
    ``update``, which is given an arm that was pulled and its reward. Learners do not get the messages that agents
    receive. A learner does not choose in rounds in which all its arms sleep or its agent does not act.
    """

    def __init__(self, who: str, make: Callable[[int, int], Any]) -> None:
        """Sets the library's name and the function that makes learners from a number of arms and a seed below 2^32."""
        self._who = who
        self._make = make

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Makes a new learner for each agent of each replica; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment is not one of Bernoulli arms, or several arms are pulled in a round.
        """
        arms = spec.action
        if not isinstance(arms, gym_spaces.Discrete) or "total_successes" not in spec.observation.spaces:
            raise UnfitError(
                f"{self._who} pulls one arm a round of FedArms and its like; actions here are {arms}"
            )
        number = int(arms.n)
        self._learners = [self._make(number, int(seed) % 2**32) for seed in seeds.flat]
        self._known = np.zeros((2, seeds.size, number), np.int64)
        self._arms: Array = np.zeros(seeds.shape, np.int64)

    def act(self, observation: Arrays) -> Array:
        """Returns the arms that the learners choose, int64 ``(replicas, agents)``; see :meth:`Policy.act`.

        Raises:
            ValueError: A learner chose an arm that is not available; the message names agent and replica.
        """
        shape = self._known.shape[1:]
        counts = np.stack([observation[f"total_{name}"].reshape(shape) for name in ("pulls", "successes")])
        pulls, successes = counts - self._known
        self._known = counts
        for row, arm in np.argwhere(pulls):
            self._learners[row].update(int(arm), float(successes[row, arm]))
        active = observation.get("active", np.ones(self._arms.shape, np.bool_)).reshape(-1)
        awake = observation.get("awake", np.ones(shape, np.bool_)).reshape(shape)
        for row in np.flatnonzero(active & awake.any(axis=1)).tolist():
            arms = np.flatnonzero(awake[row]).tolist()
            arm = self._learners[row].pull(arms)
            if arm not in arms:
                replica, agent = divmod(row, self._arms.shape[1])
                raise ValueError(
                    f"{self._who} answers {arm!r} for agent_{agent} of replica {replica}; one of the arms {arms} is "
                    "required"
                )
            self._arms.flat[row] = arm
        return self._arms


class _Wiser:
    """A ``MAB`` of MABWiser that learns from one agent's pulls; every arm is pulled once before it predicts."""

    def __init__(self, bandit: Any, arms: int) -> None:
        self._bandit = bandit
        self._untried = list(range(arms))
        self._rewards: dict[int, float] = {}

    def pull(self, arms: list[int]) -> Any:
        return self._untried[0] if self._untried else self._bandit.predict()

    def update(self, arm: int, reward: float) -> None:
        if not self._untried:
            self._bandit.partial_fit([arm], [reward])
            return
        self._untried.remove(arm)
        self._rewards[arm] = reward
        if not self._untried:
            self._bandit.fit(list(self._rewards), list(self._rewards.values()))


class MABWiserPolicy(_RowLearners):
    """Pulls the arms that the library MABWiser chooses, after one pull of each arm; arms may not sleep.

    Example:
        >>> from fedbandit_envs.baselines.adapters import MABWiserPolicy
        >>> policy = MABWiserPolicy("EpsilonGreedy", {"epsilon": 0.2})  # doctest: +SKIP
    """

    def __init__(self, learning_policy: str = "UCB1", parameters: Mapping[str, Any] | None = None) -> None:
        """Sets MABWiser's learning policy.

        Args:
            learning_policy: Name of a learning policy in ``mabwiser.mab.LearningPolicy`` that uses no contexts.
            parameters: Keyword arguments of the learning policy.

        Raises:
            ImportError: MABWiser is not installed.
            ValueError: MABWiser has no such learning policy.
        """
        try:
            from mabwiser.mab import MAB, LearningPolicy
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{error.name} cannot be imported; MABWiserPolicy needs: python -m pip install mabwiser"
            ) from error
        known = [name for name in vars(LearningPolicy) if not name.startswith(("_", "Lin"))]
        require_choice("learning_policy", learning_policy, known)
        chosen = getattr(LearningPolicy, learning_policy)(**(parameters or {}))
        super().__init__(
            "MABWiser", lambda arms, seed: _Wiser(MAB(list(range(arms)), chosen, seed=seed), arms)
        )

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Makes a new learner for each agent; see :meth:`RiverPolicy.reset`.

        Raises:
            UnfitError: Arms of the environment may sleep, which MABWiser does not support.
        """
        if "awake" in spec.observation.spaces:
            raise UnfitError(
                "MABWiser does not support sleeping arms; awake=1.0, or RiverPolicy, is required"
            )
        super().reset(spec, seeds)


def _plays(member: Any, base: Any) -> bool:
    """Returns whether ``member``, an attribute of ``river.bandit``, is a class of policies that use no contexts."""
    return (
        isinstance(member, type)
        and issubclass(member, base.Policy)
        and not issubclass(member, base.ContextualPolicy)
    )


class RiverPolicy(_RowLearners):
    """Pulls the arms that a bandit policy of ``river.bandit`` chooses; arms may sleep.

    Example:
        >>> from fedbandit_envs.baselines.adapters import RiverPolicy
        >>> policy = RiverPolicy("UCB", {"delta": 1.0})  # doctest: +SKIP
    """

    def __init__(
        self, policy: str | Callable[[int], Any] = "UCB", parameters: Mapping[str, Any] | None = None
    ) -> None:
        """Sets river's bandit policy.

        Args:
            policy: Name of a class of bandit policies in ``river.bandit``; or a function that makes a bandit policy,
                given a seed (for classes that need arguments other than numbers and text).
            parameters: Keyword arguments of the class, besides its seed.

        Raises:
            ImportError: river is not installed.
            ValueError: river has no such class.
        """
        try:
            from river import bandit
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{error.name} cannot be imported; RiverPolicy needs: python -m pip install river"
            ) from error
        if isinstance(policy, str):
            known = [name for name in bandit.__all__ if _plays(getattr(bandit, name), bandit.base)]
            require_choice("policy", policy, known)

        def make(arms: int, seed: int) -> Any:
            if not isinstance(policy, str):
                return policy(seed)
            return getattr(bandit, policy)(**(parameters or {}), seed=seed)

        super().__init__("river", make)
