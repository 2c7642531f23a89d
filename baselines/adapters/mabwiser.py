"""A multi-armed bandit of MABWiser, one a row."""

from collections.abc import Mapping
from typing import Any

from fedbandit_envs.arrays import Array
from fedbandit_envs.baselines.adapters.row_learners import RowLearners
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.checks import require_choice
from fedbandit_envs.spaces import Spaces


class _Wiser:
    """Tells a ``MAB`` of one row's pulls; it can be asked once it was told of every arm."""

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
    """Pulls arms by MABWiser, each arm once first. Arms may not sleep: MABWiser has no word for it."""

    def __init__(self, learning_policy: str = "UCB1", parameters: Mapping[str, Any] | None = None) -> None:
        """Says which learning policy.

        Args:
            learning_policy: A name in ``mabwiser.mab.LearningPolicy``, without contexts.
            parameters: Its arguments.

        Raises:
            ImportError: MABWiser is not installed.
            ValueError: It has no such learning policy.
        """
        try:
            from mabwiser.mab import MAB, LearningPolicy
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{error.name} cannot be imported; MABWiserPolicy needs: python -m pip install mabwiser"
            ) from error
        known = [name for name in vars(LearningPolicy) if not name.startswith(("_", "Lin"))]
        require_choice("learning_policy", learning_policy, known)
        law = getattr(LearningPolicy, learning_policy)(**(parameters or {}))
        super().__init__("MABWiser", lambda arms, seed: _Wiser(MAB(list(range(arms)), law, seed=seed), arms))

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Makes learners of all rows; see :meth:`RowLearners.reset`.

        Raises:
            UnfitError: Arms sleep.
        """
        if "awake" in spaces.observation.spaces:
            raise UnfitError(
                "MABWiser cannot be told that arms sleep; awake=1.0, or RiverPolicy, is required"
            )
        super().reset(spaces, seeds)
