"""How quantities are chosen and seen: action formats, features for neural networks, pictures."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_valid
from fedbandit_envs.core.actions import OwnActions
from fedbandit_envs.core.policy_spec import Features, PolicySpec, count_names, highest, judged, laplace
from fedbandit_envs.core.rendering import Picture
from fedbandit_envs.procurement.oracle import procure


class Quantities(OwnActions):
    """Integer units from each producer: the environment's own actions."""

    def __init__(self, num_producers: int, max_capacity: int) -> None:
        """Sets the space ``MultiDiscrete([max_capacity + 1] * num_producers)``."""
        sizes = np.full(num_producers, max_capacity + 1, np.int64)
        super().__init__(spaces.MultiDiscrete(sizes, dtype=np.int64))
        self._units = np.arange(max_capacity + 1)

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Returns which quantities are within capacity, bool ``(replicas, agents, producers * (max_capacity + 1))``."""
        capacity = observation["capacity"]
        return (self._units <= capacity[..., np.newaxis]).reshape(*capacity.shape[:2], -1)


def quantities_by_portions(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the quantities ``round(portion * capacity)``, int32 ``(replicas, agents, producers)``.

    Args:
        choice: Portions of each producer's capacity, ``(replicas, agents, producers)``.
        observation: The agents' observations.

    Raises:
        ValueError: A portion is outside [0, 1] or NaN.
    """
    _require_unit_interval("portions", choice)
    return np.rint(choice * observation["capacity"]).astype(np.int32)


def quantities_by_quality(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the quantities that Greedy SSA (Deva et al. 2021) would buy if the estimates were the true qualities.

    Args:
        choice: Estimates of each producer's quality, ``(replicas, agents, producers)``.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is outside [0, 1] or NaN.
    """
    _require_unit_interval("quality estimates", choice)
    return procure(np.asarray(choice, np.float64), observation)


def _require_unit_interval(name: str, choice: Array) -> None:
    require_valid(f"action: {name}", choice, (choice >= 0) & (choice <= 1), "numbers in [0, 1]")


class ProcurementFeatures(Features):
    """Features of each producer (estimates of its quality, cost, capacity) and of the market.

    | of each producer | meaning |
    |---|---|
    | `estimate` | 2 p - 1 with p = (good units + 1) / (units + 2), from the agent's own data |
    | `doubt` | 1 / sqrt(units + 1), from the agent's own data |
    | `cost` | 2 cost / largest cost - 1 |
    | `capacity` | 2 capacity / largest capacity - 1 |
    | `heard_estimate` | as `estimate`, from received data, corrected for noise; only where agents receive messages |
    | `heard_doubt` | as `doubt`, from received data |

    | once for all producers | meaning |
    |---|---|
    | `threshold` | 2 alpha - 1, where alpha is the quality threshold |
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("threshold", "time_left")

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the features' names, the number of producers and the largest cost and capacity, from the spaces."""
        seen = spec.observation.spaces
        each = seen["cost"].shape or (0,)
        super().__init__(spec, dict.fromkeys(count_names("delivered", "good"), each))
        self.items = each[0]
        self._most_cost, self._most_units = (max(highest(seen[name]), 1e-9) for name in ("cost", "capacity"))
        of_messages = ("heard_estimate", "heard_doubt") if self._inbox.exists else ()
        self.each = ("estimate", "doubt", "cost", "capacity", *of_messages)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_good"], observation["total_delivered"])
        each[..., 2] = 2.0 * observation["cost"] / self._most_cost - 1.0
        each[..., 3] = 2.0 * observation["capacity"] / self._most_units - 1.0
        if self._inbox.exists:
            each[..., 4], each[..., 5] = judged(*self._inbox.totals.values())
        shared[..., 0] = 2.0 * observation["quality_threshold"][..., 0] - 1.0


def picture(scene: Arrays) -> Picture:
    """Returns the portion of its capacity that each agent buys of each producer, and qualities, true and seen.

    Args:
        scene: The replica's observation, info and true ``quality``, arrays that lead with the agents' axis.
    """
    capacity, bought = scene["capacity"], scene["total_delivered"].sum(axis=0)
    portion = np.where(capacity > 0, scene["delivered"] / np.maximum(capacity, 1), np.nan)
    seen = np.where(bought > 0, scene["total_good"].sum(axis=0) / np.maximum(bought, 1), np.nan)
    threshold = scene["quality_threshold"][0, 0]
    values = {"true quality": scene["quality"][0], "seen by all agents": seen}
    mark = f"quality below the threshold {threshold:g}"
    picture = Picture(portion, "share of capacity bought", "producer", values)
    return picture._replace(level=threshold, marked=scene["violation"], mark=mark)
