"""Features of the procurement problem; see :mod:`fedbandit_envs.features`."""

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.features import HeardCounts, highest, laplace, time_left
from fedbandit_envs.spaces import Features, Spaces


class ProcurementFeatures(Features):
    """What an agent knows of each producer, and of its market.

    | of each producer | meaning |
    |---|---|
    | `estimate` | 2 p - 1, p = (good units + 1) / (units + 2) of own data |
    | `doubt` | 1 / sqrt(units + 1) |
    | `cost` | 2 cost / largest cost - 1 |
    | `capacity` | 2 capacity / largest capacity - 1 |
    | `heard_estimate` | as `estimate`, of what heard data is worth in spite of noise; where agents hear of each other |
    | `heard_doubt` | as `doubt`, likewise |

    | once | meaning |
    |---|---|
    | `threshold` | 2 alpha - 1 |
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("threshold", "time_left")

    def __init__(self, spaces: Spaces) -> None:
        """Reads bounds from the spaces; see :class:`~fedbandit_envs.spaces.Features`."""
        seen = spaces.observation.spaces
        self.items = (seen["cost"].shape or (0,))[0]
        self._most_cost, self._most_units = (max(highest(seen[name]), 1e-9) for name in ("cost", "capacity"))
        self._horizon = spaces.horizon
        self._heard = HeardCounts(spaces, "delivered", "good")
        told = ("heard_estimate", "heard_doubt") if self._heard.some else ()
        self.each = ("estimate", "doubt", "cost", "capacity", *told)

    def _begin(self, rows: tuple[int, int]) -> None:
        self._heard.reset(rows)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_good"], observation["total_delivered"])
        each[..., 2] = 2.0 * observation["cost"] / self._most_cost - 1.0
        each[..., 3] = 2.0 * observation["capacity"] / self._most_units - 1.0
        if self._heard.some:
            each[..., 4], each[..., 5] = self._heard.hear(observation)
        shared[..., 0] = 2.0 * observation["quality_threshold"][..., 0] - 1.0
        shared[..., 1] = time_left(observation, self._horizon)
