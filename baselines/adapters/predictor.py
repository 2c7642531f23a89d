"""Anything with ``predict`` as a policy."""

from typing import Any

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.adapters.meaning import Meaning
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.views.rows import flat


class PredictPolicy:
    """Asks an agent once a round for the actions of all rows: ``predict(observations) -> actions``.

    So scikit-learn's estimators predict, and many agents besides. It acts row by row if the agent does.
    """

    def __init__(self, agent: Any, action_format: str | None = None, features: bool = True) -> None:
        """Takes an agent.

        Args:
            agent: Has ``predict``, which takes observations with the leading axis ``rows``, one array of features or
                arrays by name, and returns actions with the same axis; of a tuple the first is taken. Or the entry
                point ``"module:Class"`` that makes one.
            action_format: How its actions are to be read; None for the environment's own.
            features: Show it features, else raw observations.

        Raises:
            TypeError: The agent has no ``predict``.
        """
        self._agent = resolve(agent)() if isinstance(agent, str) else agent
        if not callable(getattr(self._agent, "predict", None)):
            raise TypeError(f"agent is {self._agent!r}; an object with predict(observations) is required")
        self._meaning = Meaning(action_format, features)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets an episode; the agent is told nothing. See :meth:`Policy.reset`."""
        self._meaning.reset(spaces, seeds)

    def act(self, observation: Arrays) -> Any:
        """Returns the agent's actions; see :meth:`Policy.act`.

        Raises:
            ValueError: An answer has the wrong shape or is NaN.
        """
        answers = self._agent.predict(flat(self._meaning.shown(observation)))
        return self._meaning.action_of_rows(type(self._agent).__name__, answers)
