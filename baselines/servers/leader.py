"""The server policy that names an arm to each agent in every round: its leader, or one that somebody needs."""

from math import log

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec


class LeaderServer:
    """Leader against challenger for agents with mixed aims; the server receives all rewards.

    First every agent pulls every arm once. Then the server estimates what an arm is worth to an agent by alpha (the
    agent's sample mean) + (1 - alpha) (the average of all sample means). The radius of the estimate is radius_scale
    sqrt(c v ln(T)), where v is its variance, which follows from the numbers of pulls and the standard deviation of
    rewards. An agent's leader is the arm with the largest estimate, and its challenger the other arm with the largest
    upper bound. The agent is undecided while the challenger's upper bound is above the leader's lower bound. For each
    undecided agent, from agent 0 on, the arm of its two with the larger radius is pulled by one agent that has no such
    task yet: the one whose pull reduces the variance most. All others pull their leaders.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(make_federation("FedMixed-v0"), "every_round", "every_round", policy="leader")
        >>> env.reset_batch([0]).observation["server_arm"].tolist()
        [[0, 0, 0, 0]]
    """

    needs_single_uploads = True

    def __init__(self, c: float = 1.0, radius_scale: float = 1.0, horizon: int | None = None) -> None:
        """Sets the server's constants.

        Args:
            c: Constant of the radius.
            radius_scale: Number by which the radius is multiplied.
            horizon: T in the radius; None for the number of rounds of the episode.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._c = require_number("c", c, 0, np.inf)
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._horizon = None if horizon is None else require_integer("horizon", horizon, 1)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shape of an answer: the agent's arm."""
        return {"arm": {"shape": [], "dtype": "int64"}}

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts without data, all agents with the first arm; see :meth:`.ServerPolicy.reset`."""
        rows, (arms,) = (len(seeds), spec.agents), spec.release["pulls"].shape or (0,)
        alpha = float(spec.public["alpha"])
        # Row m has the weights of all agents' sample means in agent m's estimate.
        self._weights = alpha * np.eye(rows[1]) + (1 - alpha) / rows[1]
        logarithm = log(max(self._horizon or spec.horizon, 2))
        self._factor = self._scale**2 * self._c * spec.public["reward_sd"] ** 2 * logarithm
        self._counts, self._sums = np.zeros((2, *rows, arms))
        self._arm = np.zeros(rows, np.int64)
        return {"arm": self._arm.copy()}

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes uploads in and chooses everybody's next arm; see :meth:`.ServerPolicy.answer`."""
        self._counts += uploads["pulls"]
        self._sums += uploads["rewards"]
        which = mask.any(axis=1)
        self._arm[which] = self._chosen(self._counts[which], self._sums[which])
        return {"arm": self._arm.copy()}

    def _chosen(self, counts: Array, sums: Array) -> Array:
        """Returns each agent's arm, ``(replicas, agents)``, from counts and sums, ``(replicas, agents, arms)``."""
        never, many = counts == 0, np.maximum(counts, 1.0)
        estimate = self._weights @ (sums / many)
        radius = np.sqrt(self._factor * (self._weights**2 @ (1.0 / many)))
        leader = estimate.argmax(axis=-1)
        upper = estimate + radius
        np.put_along_axis(upper, leader[..., np.newaxis], -np.inf, axis=-1)
        challenger = upper.argmax(axis=-1)

        def at(array: Array, arm: Array) -> Array:
            return np.take_along_axis(array, arm[..., np.newaxis], axis=-1)[..., 0]

        undecided = at(upper, challenger) > at(estimate - radius, leader)
        # Rounding must not decide between radii that are equal, as those of arms that were pulled equally often.
        wider = np.where(at(radius, challenger) > at(radius, leader) * (1 + 1e-9), challenger, leader)
        arm, free = leader.copy(), np.ones(leader.shape, np.bool_)
        replicas = np.arange(len(arm))
        # By how much one more pull of each agent would reduce the variance of an agent's estimate, but for its weight.
        reduction = 1.0 / (many * (many + 1.0))
        for m in range(arm.shape[1]):
            gain = self._weights[m] ** 2 * reduction[replicas, :, wider[:, m]]
            helper = np.where(free, gain, -1.0).argmax(axis=1)
            rows = replicas[undecided[:, m]]
            arm[rows, helper[rows]] = wider[rows, m]
            free[rows, helper[rows]] = False
        return np.where(never.any(axis=-1), never.argmax(axis=-1), arm)
