"""A policy in which a multi-armed bandit of the library MABWiser plays for each agent."""

from collections.abc import Mapping
from typing import Any

from fedbandit_envs.baselines.adapters.row_learners import RowLearners
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.policy_spec import PolicySpec


class _Wiser:
    """A ``MAB`` of MABWiser that learns from one agent's pulls; every arm is pulled once before it predicts."""

    def __init__(self, bandit: Any, arms: int) -> None:
        self._bandit = bandit
        self._untried = list(range(arms))
        self._decisions: list[int] = []
        self._rewards: list[float] = []

    def choose(self, arms: list[int]) -> Any:
        return self._untried[0] if self._untried else self._bandit.predict()

    def learn(self, arm: int, reward: float) -> None:
        if not self._untried:
            self._bandit.partial_fit([arm], [reward])
            return
        self._untried.remove(arm)
        self._decisions.append(arm)
        self._rewards.append(reward)
        if not self._untried:
            self._bandit.fit(self._decisions, self._rewards)


class MABWiserPolicy(RowLearners):
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
        """Makes a new learner for each agent; see :meth:`RowLearners.reset`.

        Raises:
            UnfitError: Arms of the environment may sleep, which MABWiser does not support.
        """
        if "awake" in spec.observation.spaces:
            raise UnfitError(
                "MABWiser does not support sleeping arms; awake=1.0, or RiverPolicy, is required"
            )
        super().reset(spec, seeds)
