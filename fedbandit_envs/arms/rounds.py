"""The means of arms, one round for all rows (compiled), and how much one pull changes the released counts."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, Literal

import numpy as np

from fedbandit_envs.arms.ratings import DataName, arm_means
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import (
    chosen_sizes,
    require_array,
    require_choice,
    require_flag,
    require_number,
)
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Pair, Sensitivity, pairs_of
from fedbandit_envs.randomness.draws import fill_bits, padded, threefry, u32
from fedbandit_envs.randomness.streams import Purpose, stream

Aim = Literal["own", "federation"] | float
"""``"own"`` or 1: an agent's own means; ``"federation"`` or 0: the global means; in between: alpha own + (1 - alpha)
global, for alpha in [0, 1] (Shi, Shen and Yang 2021)."""


def weight_of_own(regret: Any) -> float:
    """Returns alpha, the weight of an agent's own means in what its arms are worth.

    Args:
        regret: An :data:`Aim`.

    Raises:
        TypeError: ``regret`` is neither a string nor a number.
        ValueError: It is no aim.
    """
    if isinstance(regret, str):
        return {"own": 1.0, "federation": 0.0}[require_choice("regret", regret, ("own", "federation"))]
    return require_number("regret", regret, 0, 1)


class Means:
    """The distribution of the arms' means: means common to all agents, from which each agent's own means may differ.

    Under one seed, an agent's means do not depend on the number of agents. The mean of an arm does not depend on the
    number of arms, unless the largest means of a data set are taken.

    Attributes:
        shape: Number of agents and number of arms.
    """

    def __init__(
        self,
        means: DataName | Any | None,
        num_agents: int | None,
        num_arms: int | None,
        spread: float,
        permuted: bool,
    ) -> None:
        """Sets the distribution.

        Args:
            means: None draws means from U[0, 1]; the name of a data set takes its ``num_arms`` largest means, and so
                does a table of ratings, ``{"name": "ratings", ...}`` with the arguments of
                :func:`~fedbandit_envs.arms.ratings.table_means`; or the means themselves, ``(arms,)`` or ``(agents,
                arms)``, arrays or nested lists.
            num_agents: Number of agents; None for 10, or for the number of agents in given means.
            num_arms: Number of arms; None for 10, or for the number of arms in given means or in the data set.
            spread: Each agent's means differ from the common ones by U[-spread, spread], clipped to [0, 1].
            permuted: Whether each instance has the arms in a random order of its own, the same for all agents.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        self._spread = require_number("spread", spread, 0, 1)
        self._permuted = require_flag("permuted", permuted)
        self._given: Array | None = None
        if isinstance(means, str | Mapping):
            self._given = arm_means(means, num_arms)
        elif means is not None:
            self._given = require_array("means", means, {1: "(arms,)", 2: "(agents, arms)"}, 0, 1)
        shape = () if self._given is None else self._given.shape
        if len(shape) == 2 and spread > 0:
            raise ValueError(f"spread is {spread!r}; 0 is required where each agent's means are given")
        asked = {"num_agents": num_agents, "num_arms": num_arms}
        self.shape = chosen_sizes(asked, shape, {"num_agents": 10, "num_arms": 10}, "means has")

    def draw(self, seeds: Sequence[int]) -> Array:
        """Returns every agent's means, float64 ``(replicas, agents, arms)``."""
        return np.stack([self._draw_one(seed) for seed in seeds])

    def _draw_one(self, seed: int) -> Array:
        common = self._given
        if common is None:
            common = stream(seed, Purpose.PARAMETER).random(self.shape[1])
        if self._permuted:
            common = common[..., stream(seed, Purpose.PARAMETER, 2).permutation(self.shape[1])]
        means = np.broadcast_to(common, self.shape)
        if self._spread == 0.0:
            return means
        apart = stream(seed, Purpose.PARAMETER, 1).uniform(-self._spread, self._spread, self.shape)
        return np.clip(means + apart, 0.0, 1.0)


@inner_kernel
def _in_order(chosen, arms):
    """Writes the sorted ``chosen`` arms to ``arms``, so that sums over a superarm do not depend on their order."""
    for s in range(chosen.shape[0]):
        place = s
        while place > 0 and arms[place - 1] > chosen[s]:
            arms[place] = arms[place - 1]
            place -= 1
        arms[place] = chosen[s]


@allocating_kernel
def wake(active, key, round_, cutoff, awake):
    """Draws which arms are awake in a round, for active agents; those of others stay as they are.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        cutoff: An arm is awake if its random 32-bit word is below this number.
        awake: Output: which arms are awake, bool ``(replicas, agents, arms)``.
    """
    arms = awake.shape[2]
    bits = np.empty(padded(arms), np.uint32)
    for r in range(awake.shape[0]):
        for j in range(awake.shape[1]):
            if active[r, j]:
                fill_bits(key[r, j, 0], key[r, j, 1], round_[r, j], bits)
                for k in range(arms):
                    awake[r, j, k] = bits[k] < cutoff


@allocating_kernel
def add_values(chosen, awake, values, total):
    """Computes the value of each agent's superarm: the sum of the values of its arms that are awake.

    Args:
        chosen: The superarms' arms, ``(replicas, agents, slots)``.
        awake: Which arms are awake, bool ``(replicas, agents, arms)``.
        values: Values of all arms, same shape.
        total: Output: the superarms' values, each arm counted once, ``(replicas, agents)``.
    """
    arms = np.empty(chosen.shape[2], np.int64)
    for r in range(chosen.shape[0]):
        for j in range(chosen.shape[1]):
            _in_order(chosen[r, j], arms)
            worth = 0.0
            for s in range(arms.shape[0]):
                if awake[r, j, arms[s]] and (s == 0 or arms[s] != arms[s - 1]):
                    worth += values[r, j, arms[s]]
            total[r, j] = worth


@allocating_kernel
def play_round(
    active, action, key, round_, awake, cutoffs, values, best, pulls, successes, reward, regret, wasted
):
    """Plays one round; see :class:`~fedbandit_envs.arms.env.ArmsEnv` for the quantities.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; others pull nothing, and their outputs are 0.
        action: The arms to pull, ``(replicas, agents, slots)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        awake: Which arms are awake, bool ``(replicas, agents, arms)``.
        cutoffs: A pull succeeds if its random 32-bit word is below the arm's cutoff, int64, same shape.
        values: The means by which regret is measured, same shape.
        best: Value of the best superarm, ``(replicas, agents)``.
        pulls: Numbers of pulls of each arm, to which this round's are added, ``(replicas, agents, arms)``.
        successes: Numbers of successes of each arm, to which this round's are added, same shape.
        reward: Output: the number of successes, ``(replicas, agents)``.
        regret: Output: regret, same shape.
        wasted: Output: the number of slots that pulled nothing, same shape.
    """
    arms = np.empty(action.shape[2], np.int64)
    for r in range(action.shape[0]):
        for j in range(action.shape[1]):
            reward[r, j], regret[r, j], wasted[r, j] = 0.0, 0.0, 0
            if not active[r, j]:
                continue
            _in_order(action[r, j], arms)
            worth, good, idle = 0.0, 0, 0
            for s in range(arms.shape[0]):
                arm = arms[s]
                if not awake[r, j, arm] or (s > 0 and arm == arms[s - 1]):
                    idle += 1
                    continue
                # The random word depends on arm and round only, not on the other arms pulled, so that all policies get
                # the same outcome of the same arm in the same round.
                word, _ = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(arm))
                success = word < cutoffs[r, j, arm]
                pulls[r, j, arm] += 1
                successes[r, j, arm] += success
                good += success
                worth += values[r, j, arm]
            reward[r, j], regret[r, j], wasted[r, j] = good, best[r, j] - worth, idle


def statistic(chosen: Array, outcome: Any, awake: Array) -> Arrays:
    """Returns the statistic of one observation of one agent: numbers of pulls and of successes, by name, ``(arms,)``.

    Args:
        chosen: The arms of the slots, integers ``(slots,)``. What sleeps, or another slot pulls already, is not pulled.
        outcome: Whether the arm of each slot succeeded, 0 or 1 ``(slots,)``, or a single one for one slot.
        awake: Which arms are awake, bool ``(arms,)``.

    Raises:
        ValueError: The outcome has another shape, or a number that is neither 0 nor 1.
    """
    good = require_array("outcome", np.atleast_1d(outcome), {1: "(slots,)"}, 0, 1)
    if good.shape != chosen.shape or (good % 1).any():
        raise ValueError(f"outcome is {outcome!r}; 0 or 1 for each of {len(chosen)} slots is required")
    first = np.unique(chosen, return_index=True)[1]
    first = first[awake[chosen[first]]]
    grown = {name: np.zeros(len(awake), np.int64) for name in ("pulls", "successes")}
    grown["pulls"][chosen[first]] = 1
    grown["successes"][chosen[first]] = good[first]
    return grown


def sensitivity(pulls: Array) -> Sensitivity:
    """Returns the sensitivity of the released counts ``pulls`` and ``successes``, in units of 1.

    If one observation is replaced, another arm may be pulled: a pull, and at most a success, move from one arm to
    another, so one arm has one (good or defective) outcome less, and the other arm one more. If only the outcome is
    replaced, a good outcome becomes defective or the reverse.

    Args:
        pulls: An array with the shape of the released ones, ``(replicas, agents, arms)``.
    """
    one, two, four = Change(1, 1.0), Change(2, sqrt(2)), Change(4, 2.0)
    return Sensitivity(
        {"pulls": np.ones(pulls.shape), "successes": np.ones(pulls.shape)},
        {"one-observation": four, "one-outcome": one},
        pair=Pair("pulls", "successes", {"one-observation": two, "one-outcome": two}),
    )


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most; none if the environment does not name the adjacency.

    They differ in one pull. Under ``one-observation`` two different arms are pulled and both succeed; under
    ``one-outcome`` the same arm fails or succeeds. In windows that do not differ, a third arm is pulled, which fails.
    """
    idle = np.array(2)

    def history(arm: int, good: bool) -> History:
        return History({"means": [float(good), float(good), 0.0]}, np.array(arm))

    pairs = {
        "one-observation": [(history(0, True), history(1, True))],
        "one-outcome": [(history(0, False), history(0, True))],
    }
    return pairs_of(pairs, adjacency, idle)
