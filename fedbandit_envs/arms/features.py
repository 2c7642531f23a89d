"""Features of Bernoulli arms; see :mod:`fedbandit_envs.features`."""

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.features import HeardCounts, laplace, time_left
from fedbandit_envs.spaces import Features, Spaces


class ArmsFeatures(Features):
    """What an agent knows of each arm.

    | of each arm | meaning |
    |---|---|
    | `estimate` | 2 p - 1, p = (successes + 1) / (pulls + 2) of own data |
    | `doubt` | 1 / sqrt(pulls + 1) |
    | `heard_estimate` | as `estimate`, of what heard data is worth in spite of noise; where agents hear of each other |
    | `heard_doubt` | as `doubt`, likewise |
    | `awake` | 1 if the arm can be pulled now, else -1; where arms sleep |

    | once | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("time_left",)

    def __init__(self, spaces: Spaces) -> None:
        """Reads the number of arms from the spaces; see :class:`~fedbandit_envs.spaces.Features`."""
        seen = spaces.observation.spaces
        self.items = (seen["total_pulls"].shape or (0,))[0]
        self._horizon = spaces.horizon
        self._heard = HeardCounts(spaces, "pulls", "successes")
        told = ("heard_estimate", "heard_doubt") if self._heard.some else ()
        self._sleeping = "awake" in seen
        self.each = ("estimate", "doubt", *told, *(("awake",) if self._sleeping else ()))

    def _begin(self, rows: tuple[int, int]) -> None:
        self._heard.reset(rows)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_successes"], observation["total_pulls"])
        if self._heard.some:
            each[..., 2], each[..., 3] = self._heard.hear(observation)
        if self._sleeping:
            each[..., -1] = 2.0 * observation["awake"] - 1.0
        shared[..., 0] = time_left(observation, self._horizon)
