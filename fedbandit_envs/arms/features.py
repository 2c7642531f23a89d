"""Features of Bernoulli arms; see :class:`fedbandit_envs.core.features.Features`."""

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.features import Features, laplace, time_left
from fedbandit_envs.core.inbox_totals import InboxCounts
from fedbandit_envs.core.policy_spec import PolicySpec


class ArmsFeatures(Features):
    """Features of each arm: estimates of its mean and how uncertain they are.

    | of each arm | meaning |
    |---|---|
    | `estimate` | 2 p - 1, p = (successes + 1) / (pulls + 2) of own data |
    | `doubt` | 1 / sqrt(pulls + 1) |
    | `heard_estimate` | as `estimate`, of received data, with allowance for noise; where agents receive messages |
    | `heard_doubt` | as `doubt`, of the received data |
    | `awake` | 1 if the arm can be pulled now, else -1; where arms sleep |

    | once | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("time_left",)

    def __init__(self, spec: PolicySpec) -> None:
        """Reads the number of arms from the spaces; see :class:`~fedbandit_envs.core.features.Features`."""
        seen = spec.observation.spaces
        self.items = (seen["total_pulls"].shape or (0,))[0]
        self._horizon = spec.horizon
        self._inbox = InboxCounts(spec, "pulls", "successes")
        of_messages = ("heard_estimate", "heard_doubt") if self._inbox.exists else ()
        self._sleeping = "awake" in seen
        self.each = ("estimate", "doubt", *of_messages, *(("awake",) if self._sleeping else ()))

    def _start(self, rows: tuple[int, int]) -> None:
        self._inbox.reset(rows)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_successes"], observation["total_pulls"])
        if self._inbox.exists:
            each[..., 2], each[..., 3] = self._inbox.estimate(observation)
        if self._sleeping:
            each[..., -1] = 2.0 * observation["awake"] - 1.0
        shared[..., 0] = time_left(observation, self._horizon)
