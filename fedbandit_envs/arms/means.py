"""The means of arms, drawn, packaged or given, and what an arm is worth to an agent."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.arms.ratings import DataName, RatedItems, keep_largest, packaged_means, table_means
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import (
    chosen_sizes,
    require_array,
    require_choice,
    require_flag,
    require_number,
)
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.randomness.streams import Purpose, stream

Aim = Literal["own", "federation"] | float
"""``"own"`` or 1: an agent's own means; ``"federation"`` or 0: the global means; in between: alpha own + (1 - alpha)
global, for alpha in [0, 1] (Shi, Shen and Yang 2021)."""


def weight_of_own(regret: Any) -> float:
    """Returns alpha, the weight of an agent's own means in what its arms are worth.

    Args:
        regret: An :data:`Aim`.

    Raises:
        TypeError: ``regret`` is neither a string nor a number.
        ValueError: It is no aim.
    """
    if isinstance(regret, str):
        return {"own": 1.0, "federation": 0.0}[require_choice("regret", regret, ("own", "federation"))]
    return require_number("regret", regret, 0, 1)


class Means:
    """The distribution of the arms' means: means common to all agents, from which each agent's own means may differ.

    Under one seed, an agent's means do not depend on the number of agents. The mean of an arm does not depend on the
    number of arms, unless the largest means of a data set are taken.

    Attributes:
        shape: Number of agents and number of arms.
    """

    def __init__(
        self,
        means: DataName | Any | None,
        num_agents: int | None,
        num_arms: int | None,
        spread: float,
        permuted: bool,
    ) -> None:
        """Sets the distribution.

        Args:
            means: None draws means from U[0, 1]; the name of a data set takes its ``num_arms`` largest means, and so
                does a table of ratings, ``{"name": "ratings", ...}`` with the arguments of
                :func:`~fedbandit_envs.arms.ratings.table_means`; or the means themselves, ``(arms,)`` or ``(agents,
                arms)``, arrays or nested lists.
            num_agents: Number of agents; None for 10, or for the number of agents in given means.
            num_arms: Number of arms; None for 10, or for the number of arms in given means or in the data set.
            spread: Each agent's means differ from the common ones by U[-spread, spread], clipped to [0, 1].
            permuted: Whether each instance has the arms in a random order of its own, the same for all agents.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        self._spread = require_number("spread", spread, 0, 1)
        self._permuted = require_flag("permuted", permuted)
        self._given: Array | None = None
        if isinstance(means, str | Mapping):
            if isinstance(means, str):
                all_means = packaged_means(require_choice("means", means, get_args(DataName)))
            else:
                all_means = make("means", means, {"ratings": table_means}, RatedItems).means
            self._given = all_means if num_arms is None else keep_largest(all_means, num_arms)
        elif means is not None:
            self._given = require_array("means", means, {1: "(arms,)", 2: "(agents, arms)"}, 0, 1)
        own = self._given is not None and self._given.ndim == 2
        if own and spread > 0:
            raise ValueError(f"spread is {spread!r}; 0 is required where each agent's means are given")
        given = {} if self._given is None else {"num_arms": self._given.shape[-1]}
        if own and self._given is not None:
            given["num_agents"] = len(self._given)
        asked = {"num_agents": num_agents, "num_arms": num_arms}
        sizes = chosen_sizes(asked, given, {"num_agents": 10, "num_arms": 10}, "means has")
        self.shape = (sizes["num_agents"], sizes["num_arms"])

    def draw(self, seeds: Sequence[int]) -> Array:
        """Returns every agent's means, float64 ``(replicas, agents, arms)``."""
        return np.stack([self._draw_one(seed) for seed in seeds])

    def _draw_one(self, seed: int) -> Array:
        common = self._given
        if common is None:
            common = stream(seed, Purpose.PARAMETER).random(self.shape[1])
        if self._permuted:
            common = common[..., stream(seed, Purpose.PARAMETER, 2).permutation(self.shape[1])]
        means = np.broadcast_to(common, self.shape)
        if self._spread == 0.0:
            return means
        apart = stream(seed, Purpose.PARAMETER, 1).uniform(-self._spread, self._spread, self.shape)
        return np.clip(means + apart, 0.0, 1.0)
