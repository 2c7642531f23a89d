"""Features of Bernoulli arms; see :mod:`fedbandit_envs.features`."""

from fedbandit_envs.features import Features, Heard, laplace, time_left
from fedbandit_envs.federation import Array, Arrays, Spaces


class ArmsFeatures(Features):
    """What an agent knows of each arm.

    | of each arm | meaning |
    |---|---|
    | `estimate` | 2 p - 1, p = (successes + 1) / (pulls + 2) of own data |
    | `doubt` | 1 / sqrt(pulls + 1) |
    | `heard_estimate` | as `estimate`, of what was heard; where agents hear of each other |
    | `heard_doubt` | as `doubt`, likewise |
    | `awake` | 1 if the arm can be pulled now, else -1; where arms sleep |

    | once | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    shared = ("time_left",)

    def __init__(self, spaces: Spaces) -> None:
        """Reads the number of arms from the spaces; see :class:`~fedbandit_envs.features.Features`."""
        seen = spaces.observation.spaces
        self.items = (seen["total_pulls"].shape or (0,))[0]
        self._horizon = spaces.horizon
        self._heard = Heard(spaces, "pulls"), Heard(spaces, "successes")
        told = ("heard_estimate", "heard_doubt") if self._heard[0].some else ()
        self._sleeping = "awake" in seen
        self.each = ("estimate", "doubt", *told, *(("awake",) if self._sleeping else ()))

    def _begin(self, rows: tuple[int, int]) -> None:
        for heard in self._heard:
            heard.reset(rows)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_successes"], observation["total_pulls"])
        if self._heard[0].some:
            for heard in self._heard:
                heard.take_in(observation)
            pulls, successes = (heard.total for heard in self._heard)
            each[..., 2], each[..., 3] = laplace(successes, pulls)
        if self._sleeping:
            each[..., -1] = 2.0 * observation["awake"] - 1.0
        shared[..., 0] = time_left(observation, self._horizon)
