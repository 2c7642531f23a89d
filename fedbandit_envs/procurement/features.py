"""Features of procurement for neural networks; see :class:`fedbandit_envs.core.policy_spec.Features`."""

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import Features, InboxCounts, PolicySpec, highest, laplace, time_left


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
        self.items = (seen["cost"].shape or (0,))[0]
        self._most_cost, self._most_units = (max(highest(seen[name]), 1e-9) for name in ("cost", "capacity"))
        self._horizon = spec.horizon
        self._inbox = InboxCounts(spec, "delivered", "good")
        of_messages = ("heard_estimate", "heard_doubt") if self._inbox.exists else ()
        self.each = ("estimate", "doubt", "cost", "capacity", *of_messages)

    def _start(self, rows: tuple[int, int]) -> None:
        self._inbox.reset(rows)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_good"], observation["total_delivered"])
        each[..., 2] = 2.0 * observation["cost"] / self._most_cost - 1.0
        each[..., 3] = 2.0 * observation["capacity"] / self._most_units - 1.0
        if self._inbox.exists:
            each[..., 4], each[..., 5] = self._inbox.estimate(observation)
        shared[..., 0] = 2.0 * observation["quality_threshold"][..., 0] - 1.0
        shared[..., 1] = time_left(observation, self._horizon)
