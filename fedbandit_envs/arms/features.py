"""Features of Bernoulli arms for neural networks; see :class:`fedbandit_envs.core.policy_spec.Features`."""

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import Features, InboxCounts, PolicySpec, laplace, time_left


class ArmsFeatures(Features):
    """Features of each arm: estimates of its mean and how uncertain they are.

    | of each arm | meaning |
    |---|---|
    | `estimate` | 2 p - 1 with p = (successes + 1) / (pulls + 2), from the agent's own data |
    | `doubt` | 1 / sqrt(pulls + 1), from the agent's own data |
    | `heard_estimate` | as `estimate`, from received data, corrected for noise; only where agents receive messages |
    | `heard_doubt` | as `doubt`, from received data |
    | `awake` | 1 if the arm can be pulled now, else -1; only where arms sleep |

    | once for all arms | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("time_left",)

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the names of the features and the number of arms, from the spaces of the environment."""
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
