"""What agents of PF-UCB tell the server: their sample means and, once they know the global means, which arms remain."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec

MESSAGE: dict[str, dict[str, object]] = {
    "means": {"dtype": "float64"},
    "arms": {"dtype": "bool", "asked": True},
    "gaps": {"dtype": "float64", "asked": True},
}
"""The arrays of messages, without their shape: each has an entry for each arm."""


class PersonalReporter:
    """Reports an agent's sample means and, when the server asks with their averages, which arms remain for the agent.

    An arm remains if its mixed mean, alpha (own sample mean) + (1 - alpha) (average of all agents' sample means), is at
    most two radii below the largest mixed mean among the arms that remained before. Together with the arms the agent
    reports gaps d = min(1, largest mixed mean - mixed mean + 2 radii) for the enhanced algorithm. The radius comes with
    the question (:class:`~fedbandit_envs.baselines.servers.personal.PersonalServer`).

    Example:
        >>> from fedbandit_envs import make_federation
        >>> reporter = PersonalReporter()
        >>> env = make_federation("FedMixed-v0")
        >>> reporter.reset(env.policy_spec, np.zeros((1, 4), np.uint64))
        >>> reporter.observe(env.reset_batch([0]).observation)
        >>> reporter.report(None)["means"].shape
        (1, 4, 9)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores alpha, the weight of an agent's own mean; see :meth:`.Reporter.reset`."""
        self._alpha = float(spec.public["alpha"])

    def observe(self, observation: Arrays) -> None:
        """Keeps the sample means of all arms; see :meth:`.Reporter.observe`."""
        self._means = observation["total_rewards"] / np.maximum(observation["total_pulls"], 1)

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns means, remaining arms and gaps; see :meth:`.Reporter.report`.

        Args:
            question: ``mean``, the averages of sample means, and ``arms``, the arms that remained for the agent before,
                bool, each ``(replicas, agents, arms)``; and ``radius``, ``(replicas, agents)``. None for a report of
                sample means alone.
        """
        nothing = np.zeros(self._means.shape)
        if question is None:
            return {"means": self._means, "arms": nothing.astype(np.bool_), "gaps": nothing}
        mixed = self._alpha * self._means + (1 - self._alpha) * question["mean"]
        had, twice = question["arms"], 2 * question["radius"][..., np.newaxis]
        best = np.where(had, mixed, -np.inf).max(axis=-1, keepdims=True)
        short = np.where(np.isfinite(best), best, mixed) - mixed
        return {
            "means": self._means,
            "arms": had & (short <= twice),
            "gaps": np.clip(short + twice, 0.0, 1.0),
        }
