"""Features of the procurement problem; see :class:`fedbandit_envs.core.features.Features`."""

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.features import Features, highest, laplace, time_left
from fedbandit_envs.core.inbox_totals import InboxCounts
from fedbandit_envs.core.policy_spec import PolicySpec


class ProcurementFeatures(Features):
    """Features of each producer (estimates of its quality, cost, capacity) and of the market.

    | of each producer | meaning |
    |---|---|
    | `estimate` | 2 p - 1, p = (good units + 1) / (units + 2) of own data |
    | `doubt` | 1 / sqrt(units + 1) |
    | `cost` | 2 cost / largest cost - 1 |
    | `capacity` | 2 capacity / largest capacity - 1 |
    | `heard_estimate` | as `estimate`, of received data, with allowance for noise; where agents receive messages |
    | `heard_doubt` | as `doubt`, of the received data |

    | once | meaning |
    |---|---|
    | `threshold` | 2 alpha - 1 |
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("threshold", "time_left")

    def __init__(self, spec: PolicySpec) -> None:
        """Reads bounds from the spaces; see :class:`~fedbandit_envs.core.features.Features`."""
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
