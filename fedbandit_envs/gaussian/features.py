"""Features of Gaussian arms for neural networks; see :class:`fedbandit_envs.core.policy_spec.Features`."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import Features, InboxTotals, PolicySpec, time_left


class GaussianFeatures(Features):
    """Features of each arm: the average of its rewards and how uncertain it is.

    | of each arm | meaning |
    |---|---|
    | `estimate` | m / (1 + abs(m)), where m is the average of the agent's own rewards, 0 before the first |
    | `doubt` | 1 / sqrt(pulls + 1), from the agent's own data |
    | `heard_estimate` | as `estimate`, from received data; only where agents receive messages |
    | `heard_doubt` | as `doubt`, from received data; noise can make received pulls negative, which count as 0 |

    | once for all arms | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("time_left",)

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the names of the features and the number of arms, from the spaces of the environment."""
        arms = spec.observation["total_pulls"].shape or (0,)
        self.items = arms[0]
        self._horizon = spec.horizon
        self._inbox = InboxTotals(spec, {"pulls": arms, "rewards": arms})
        self.each = ("estimate", "doubt", *(("heard_estimate", "heard_doubt") if self._inbox.exists else ()))

    def _start(self, rows: tuple[int, int]) -> None:
        self._inbox.reset(rows)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = _judged(observation["total_pulls"], observation["total_rewards"])
        if self._inbox.exists:
            if observation["inbox_mask"].any():
                self._inbox.add(observation)
            each[..., 2], each[..., 3] = _judged(self._inbox.totals["pulls"], self._inbox.totals["rewards"])
        shared[..., 0] = time_left(observation, self._horizon)


def _judged(pulls: Array, sums: Array) -> tuple[Array, Array]:
    counts = np.maximum(pulls, 0.0)
    mean = sums / np.maximum(counts, 1.0)
    return mean / (1.0 + np.abs(mean)), 1.0 / np.sqrt(counts + 1.0)
