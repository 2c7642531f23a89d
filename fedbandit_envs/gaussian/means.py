"""The means of Gaussian arms: the same for all agents or not, given or drawn."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedbandit_envs.arms.ratings import RatedItems, mean_ratings
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import chosen_sizes, require_choice, require_number, require_valid
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.randomness.streams import Purpose, stream

Law = Literal["exact", "concentrated", "approximate"]


def concentrated(common: npt.ArrayLike, num_agents: int) -> Array:
    """Returns means of M agents that average to common means, and of which one agent has most (Shi and Shen 2021).

    If c is the common mean of an arm, one agent has the mean (M - (M - 1)/M) c, and every other agent has c/M. That one
    agent is agent 0 for the first arm, 1 for the second, ..., M - 1, then M - 1 again, ..., 1, 0, 0, 1 and so on. So
    the best arm of an agent need not be the best one on average.

    Args:
        common: The common means, ``(arms,)``.
        num_agents: Number of agents, M.

    Returns:
        The means, float64 ``(num_agents, arms)``.
    """
    array = np.asarray(common, np.float64)
    factors = np.full((num_agents, array.size), 1 / num_agents)
    place = np.arange(array.size) % (2 * num_agents)
    whose = np.minimum(place, 2 * num_agents - 1 - place)
    factors[whose, np.arange(array.size)] = num_agents - (num_agents - 1) / num_agents
    return factors * array


class GaussianMeans:
    """The distribution of the means of all agents, and of the global means.

    Attributes:
        shape: Number of agents and number of arms.
    """

    def __init__(
        self, means: Any | None, num_agents: int | None, num_arms: int | None, law: Law, spread: float
    ) -> None:
        """Sets the distribution; see :class:`~fedbandit_envs.gaussian.env.GaussianEnv` for the arguments.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        self._law = require_choice("law", law, get_args(Law))
        self._spread = require_number("spread", spread, 0, np.inf, open_above=True)
        if spread > 0 and law != "approximate":
            raise ValueError(f"spread is {spread!r}; 0 is required with law={law!r}")
        given, agents = {}, 10
        if isinstance(means, str | Mapping):
            users = (agents if num_agents is None else num_agents) if law == "exact" else None
            read = partial(mean_ratings, num_arms=num_arms, num_agents=users)
            means = make("means", means, {"ratings": read}, RatedItems).means
        self._given: Array | None = None
        if means is not None:
            self._given = np.array(means, np.float64)
            if self._given.ndim not in (1, 2) or 0 in self._given.shape:
                raise ValueError(
                    f"means has shape {self._given.shape}; (arms,) or (agents, arms) is required"
                )
            require_valid("means", self._given, np.isfinite(self._given), "finite numbers")
            given["num_arms"] = self._given.shape[-1]
            if self._given.ndim == 2:
                agents = len(self._given)
                if law != "exact":
                    raise ValueError(
                        f"means has shape {self._given.shape}; (arms,) is required with law={law!r}, from which each "
                        "agent's means follow"
                    )
        asked = {"num_agents": num_agents, "num_arms": num_arms}
        sizes = chosen_sizes(asked, given, {"num_agents": agents, "num_arms": 10}, "means has")
        self.shape = (sizes["num_agents"], sizes["num_arms"])

    def draw(self, seeds: Sequence[int]) -> tuple[Array, Array]:
        """Draws an instance for each seed.

        Under one seed, an agent's means do not depend on the number of agents.

        Args:
            seeds: The seeds of the instances.

        Returns:
            Every agent's means, float64 ``(replicas, agents, arms)``, and the global means ``(replicas, 1, arms)``:
            those of the law if agents' means are drawn, else the average over agents.
        """
        own, common = (np.stack(arrays) for arrays in zip(*map(self._draw_one, seeds), strict=True))
        return own, common if self._law == "approximate" else own.mean(axis=1, keepdims=True)

    def _draw_one(self, seed: int) -> tuple[Array, Array]:
        given = self._given
        if given is None:
            drawn = self.shape if self._law == "exact" else self.shape[1]
            given = stream(seed, Purpose.PARAMETER).random(drawn)
        if given.ndim == 2:
            return given[np.arange(self.shape[0]) % len(given)], given[:1]
        if self._law == "concentrated":
            return concentrated(given, self.shape[0]), given[np.newaxis]
        own = np.tile(given, (self.shape[0], 1))
        if self._spread:
            own += stream(seed, Purpose.PARAMETER, 1).normal(0.0, self._spread, self.shape)
        return own, given[np.newaxis]
