"""The means of Gaussian arms, one round for all rows (compiled), and how much one pull changes the released sums."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from fedbandit_envs.arms.ratings import RatedItems, mean_ratings
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import chosen_sizes, require_array, require_choice, require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.core.privacy import Adjacency, Change, History, Neighbours, Sensitivity, pairs_of
from fedbandit_envs.randomness.draws import normal_pair, threefry, u32
from fedbandit_envs.randomness.streams import Purpose, stream

Law = Literal["exact", "concentrated", "approximate"]


def concentrated(common: npt.ArrayLike, num_agents: int) -> Array:
    """Returns means of M agents that average to common means, and of which one agent has most (Shi and Shen 2021).

    If c is the common mean of an arm, one agent has the mean (M - (M - 1)/M) c, and every other agent has c/M. That one
    agent is agent 0 for the first arm, 1 for the second, ..., M - 1, then M - 1 again, ..., 1, 0, 0, 1 and so on. So
    the best arm of an agent need not be the best one on average.

    Args:
        common: The common means, ``(arms,)``.
        num_agents: Number of agents, M.

    Returns:
        The means, float64 ``(num_agents, arms)``.
    """
    array = np.asarray(common, np.float64)
    factors = np.full((num_agents, array.size), 1 / num_agents)
    place = np.arange(array.size) % (2 * num_agents)
    whose = np.minimum(place, 2 * num_agents - 1 - place)
    factors[whose, np.arange(array.size)] = num_agents - (num_agents - 1) / num_agents
    return factors * array


class GaussianMeans:
    """The distribution of the means of all agents, and of the global means.

    Attributes:
        shape: Number of agents and number of arms.
        largest: The largest absolute value of a mean that is given, or that an agent's follows from.
    """

    def __init__(
        self, means: Any | None, num_agents: int | None, num_arms: int | None, law: Law, spread: float
    ) -> None:
        """Sets the distribution; see :class:`~fedbandit_envs.gaussian.env.GaussianEnv` for the arguments.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        self._law = require_choice("law", law, get_args(Law))
        self._spread = require_number("spread", spread, 0, np.inf, open_above=True)
        if spread > 0 and law != "approximate":
            raise ValueError(f"spread is {spread!r}; 0 is required with law={law!r}")
        agents, shape = 10, ()
        if isinstance(means, str | Mapping):
            users = (agents if num_agents is None else num_agents) if law == "exact" else None
            read = partial(mean_ratings, num_arms=num_arms, num_agents=users)
            means = make("means", means, {"ratings": read}, RatedItems).means
        self._given: Array | None = None
        if means is not None:
            self._given = require_array("means", means, {1: "(arms,)", 2: "(agents, arms)"})
            shape = self._given.shape[-1:]
            if self._given.ndim == 2:
                agents = len(self._given)
                if law != "exact":
                    raise ValueError(
                        f"means has shape {self._given.shape}; (arms,) is required with law={law!r}, from which each "
                        "agent's means follow"
                    )
        asked = {"num_agents": num_agents, "num_arms": num_arms}
        self.shape = chosen_sizes(asked, shape, {"num_agents": agents, "num_arms": 10}, "means has")
        own = np.ones(self.shape[1]) if self._given is None else self._given
        own = concentrated(own, self.shape[0]) if law == "concentrated" else own
        self.largest = float(np.abs(own).max())

    def draw(self, seeds: Sequence[int]) -> tuple[Array, Array]:
        """Draws an instance for each seed.

        Under one seed, an agent's means do not depend on the number of agents.

        Args:
            seeds: The seeds of the instances.

        Returns:
            Every agent's means, float64 ``(replicas, agents, arms)``, and the global means ``(replicas, 1, arms)``:
            those of the law if agents' means are drawn, else the average over agents.
        """
        own, common = (np.stack(arrays) for arrays in zip(*map(self._draw_one, seeds), strict=True))
        return own, common if self._law == "approximate" else own.mean(axis=1, keepdims=True)

    def _draw_one(self, seed: int) -> tuple[Array, Array]:
        given = self._given
        if given is None:
            drawn = self.shape if self._law == "exact" else self.shape[1]
            given = stream(seed, Purpose.PARAMETER).random(drawn)
        if given.ndim == 2:
            return given[np.arange(self.shape[0]) % len(given)], given[:1]
        if self._law == "concentrated":
            return concentrated(given, self.shape[0]), given[np.newaxis]
        own = np.tile(given, (self.shape[0], 1))
        if self._spread:
            own += stream(seed, Purpose.PARAMETER, 1).normal(0.0, self._spread, self.shape)
        return own, given[np.newaxis]


@kernel
def play_round(
    active, arm, key, round_, means, deviation, bound, worths, best, pulls, sums, reward, regret, clipped
):
    """Plays one round; see :class:`~fedbandit_envs.gaussian.env.GaussianEnv` for the quantities.

    Args:
        active: Whether each agent acts, bool ``(replicas, agents)``; others pull nothing, and their outputs are 0.
        arm: The arms to pull, ``(replicas, agents)``.
        key: Each row's key of the random draws, see :class:`~fedbandit_envs.randomness.draws.Draws`.
        round_: Each row's round, as counted by the draws.
        means: Each agent's own means, ``(replicas, agents, arms)``.
        deviation: Standard deviation of a reward.
        bound: Largest absolute value of a reward; infinity clips nothing.
        worths: The worths of arms, by which regret is measured, ``(replicas, agents, arms)``.
        best: Each agent's largest worth, ``(replicas, agents)``.
        pulls: Numbers of pulls of each arm, to which this round's are added, ``(replicas, agents, arms)``.
        sums: Sums of rewards of each arm, to which this round's are added, same shape.
        reward: Output: the rewards, ``(replicas, agents)``.
        regret: Output: regret, same shape.
        clipped: Output: whether the reward was clipped, same shape.
    """
    for r in range(arm.shape[0]):
        for j in range(arm.shape[1]):
            reward[r, j], regret[r, j], clipped[r, j] = 0.0, 0.0, False
            if not active[r, j]:
                continue
            k = arm[r, j]
            # The draw depends on arm and round only, so that all policies get the same reward of the same arm in the
            # same round.
            x, y = threefry(key[r, j, 0], key[r, j, 1], round_[r, j], u32(k))
            normal, _ = normal_pair(x, y)
            drawn = means[r, j, k] + deviation * normal
            given = min(max(drawn, -bound), bound)
            pulls[r, j, k] += 1
            sums[r, j, k] += given
            reward[r, j], regret[r, j], clipped[r, j] = given, best[r, j] - worths[r, j, k], given != drawn


def sensitivity(pulls: Array, bound: float) -> Sensitivity:
    """Returns the sensitivity of the released ``pulls``, in units of 1, and ``rewards``, in units of 2 ``bound``.

    If one observation is replaced, either a pull and its reward move from one arm to another, or the reward of the same
    arm changes by 2 bounds at most. If only the outcome is replaced, the latter. Without a bound the unit is infinite,
    so that a privatizer refuses to add noise unless releases are clipped.

    Args:
        pulls: An array with the shape of the released ones, ``(replicas, agents, arms)``.
        bound: Largest absolute value of a reward.
    """
    scale = {"pulls": np.ones(pulls.shape), "rewards": np.full(pulls.shape, 2 * bound)}
    # Under one-observation two pulls differ by 1 and two rewards by half a unit.
    return Sensitivity(scale, {"one-observation": Change(4, sqrt(2.5)), "one-outcome": Change(1, 1.0)})


def worst_neighbours(adjacency: Adjacency) -> list[Neighbours]:
    """Returns the neighbouring histories that differ most; none if the environment does not name the adjacency.

    They differ in one pull, of rewards in [-1, 1] without randomness: of one arm with the least or the largest reward
    or, under ``one-observation``, also of two arms with the largest reward. In windows that do not differ, a third arm
    is pulled, whose reward is 0.
    """
    idle = np.array(2)

    def history(arm: int, mean: float) -> History:
        settings = {"means": [mean, mean, 0.0], "reward_sd": 0.0, "reward_bound": 1.0}
        return History(settings, np.array(arm))

    outcome = (history(0, -1.0), history(0, 1.0))
    pairs = {"one-observation": [(history(0, 1.0), history(1, 1.0)), outcome], "one-outcome": [outcome]}
    return pairs_of(pairs, adjacency, idle)
