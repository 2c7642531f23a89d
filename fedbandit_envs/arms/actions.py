"""How arms are chosen and seen: oracles of superarms, action formats, features for neural networks, pictures."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_valid
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.actions import Estimates, OwnActions
from fedbandit_envs.core.policy_spec import ActionFormat, Features, PolicySpec, count_names, judged, laplace
from fedbandit_envs.core.rendering import Picture

Oracle = Callable[[Array, int], Array]
"""A function that returns the arms of the best superarm of each row, integers ``(..., slots)``.

Its arguments are the values of arms, float64 ``(..., arms)`` (true means or bounds on them; infinity for unknown arms,
minus infinity for arms that cannot be pulled), and ``slots``, the number of arms in a superarm.
"""


def largest(values: Array, slots: int) -> Array:
    """Returns the arms with the largest values (of equal ones the first), integers ``(..., slots)``."""
    if slots == 1:
        return values.argmax(axis=-1)[..., np.newaxis]
    return np.argsort(-values, axis=-1, kind="stable")[..., :slots]


def make_oracle(oracle: str) -> Oracle:
    """Returns the oracle with the name ``"largest"``, or from its entry point.

    Raises:
        ValueError: ``oracle`` is neither ``"largest"`` nor an entry point ``"module:attribute"``.
    """
    if ":" not in str(oracle):
        require_choice("oracle", oracle, ("largest", "module:attribute"))
        return largest
    return resolve(oracle)


class ArmNumbers(OwnActions):
    """The number of an arm, or the numbers of a superarm's arms: the environment's own actions."""

    def __init__(self, num_arms: int, slots: int) -> None:
        """Sets the space ``Discrete(num_arms)``, with several slots ``MultiDiscrete([num_arms] * slots)``."""
        several = spaces.MultiDiscrete(np.full(slots, num_arms, np.int64), dtype=np.int64)
        super().__init__(spaces.Discrete(num_arms) if slots == 1 else several)
        self._slots = slots

    def allowed(self, observation: Mapping[str, Array]) -> Array:
        """Returns which arms may be chosen, bool ``(replicas, agents, slots * arms)``: in each slot those awake.

        If all arms of an agent sleep, all may be chosen, since any choice then pulls nothing.
        """
        if "awake" not in observation:
            some = observation["total_pulls"]
            return np.ones((*some.shape[:2], self._slots * some.shape[2]), np.bool_)
        awake = observation["awake"]
        return np.tile(awake | ~awake.any(axis=2, keepdims=True), self._slots)


def arms_by_means(slots: int, choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the arms with the largest estimates among those that are awake; of equal estimates the first arm's.

    Args:
        slots: How many arms an agent pulls in a round.
        choice: Estimates of the arms' means, ``(replicas, agents, arms)``.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is NaN.
    """
    require_valid("action: values", choice, ~np.isnan(choice), "numbers")
    values = np.asarray(choice, np.float64)
    if "awake" in observation:
        values = np.where(observation["awake"], values, -np.inf)
    arms = largest(values, slots)
    return arms[..., 0] if slots == 1 else arms


def arm_formats(arms: int, slots: int) -> Mapping[str, ActionFormat]:
    """Returns the action formats of problems with arms, by name.

    Args:
        arms: Number of arms.
        slots: Number of arms that an agent pulls in a round.
    """
    values = Estimates(arms, partial(arms_by_means, slots), low=0.0)
    return {"arm": ArmNumbers(arms, slots), "values": values}


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

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the names of the features and the number of arms, from the spaces of the environment."""
        seen = spec.observation.spaces
        each = seen["total_pulls"].shape or (0,)
        super().__init__(spec, dict.fromkeys(count_names("pulls", "successes"), each))
        self.items = each[0]
        of_messages = ("heard_estimate", "heard_doubt") if self._inbox.exists else ()
        self._sleeping = "awake" in seen
        self.each = ("estimate", "doubt", *of_messages, *(("awake",) if self._sleeping else ()))

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = laplace(observation["total_successes"], observation["total_pulls"])
        if self._inbox.exists:
            each[..., 2], each[..., 3] = judged(*self._inbox.totals.values())
        if self._sleeping:
            each[..., -1] = 2.0 * observation["awake"] - 1.0


def picture(scene: Arrays) -> Picture:
    """Returns each agent's share of pulls by arm, and the arms' means, true and seen.

    Args:
        scene: The replica's observation, info and true ``mean``, arrays that lead with the agents' axis.
    """
    pulls = scene["total_pulls"]
    share, together = pulls / np.maximum(pulls.sum(axis=1, keepdims=True), 1), pulls.sum(axis=0)
    seen = np.where(together > 0, scene["total_successes"].sum(axis=0) / np.maximum(together, 1), np.nan)
    values = {"true mean": scene["mean"].mean(axis=0), "seen by all agents": seen}
    return Picture(share, "share of pulls", "arm", values)
