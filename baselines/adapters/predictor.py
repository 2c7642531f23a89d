"""A policy made of any object that has a method ``predict``."""

from typing import Any

from fedbandit_envs.baselines.adapters.agent_io import AgentIO
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.views.control import flat


class PredictPolicy:
    """A policy that calls ``predict(observations) -> actions`` of an object once in each round, for all agents.

    Scikit-learn's estimators have this method, as have the agents of many libraries. Each action must depend on the
    observation in the same row alone, so that agents do not see each other's observations; this is not checked.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.adapters import PredictPolicy
        >>> class First:
        ...     def predict(self, rows):
        ...         return np.zeros(len(rows), int)
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = PredictPolicy(First())
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)
        array([[0, 0, 0]])
    """

    def __init__(self, agent: Any, action_format: str | None = None, features: bool = True) -> None:
        """Sets the agent.

        Args:
            agent: An object whose ``predict`` takes one array of features, or arrays of observations by name, whose
                first axis goes over the agents of all replicas, and returns actions with the same first axis; of a
                tuple the first entry is used. Or the entry point ``"module:Class"`` of its class.
            action_format: Format of the returned actions; None for the environment's own actions.
            features: Whether ``predict`` is given features instead of raw observations.

        Raises:
            TypeError: The agent has no ``predict``.
        """
        self._agent = resolve(agent)() if isinstance(agent, str) else agent
        if not callable(getattr(self._agent, "predict", None)):
            raise TypeError(f"agent is {self._agent!r}; an object with predict(observations) is required")
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode; the agent is not called. See :meth:`Policy.reset`."""
        self._io.reset(spec, seeds)

    def act(self, observation: Arrays) -> Any:
        """Returns the agent's actions; see :meth:`Policy.act`.

        Raises:
            ValueError: An action has the wrong shape or is NaN.
        """
        answers = self._agent.predict(flat(self._io.shown(observation)))
        return self._io.action_of_rows(type(self._agent).__name__, answers)
