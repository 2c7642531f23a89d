"""The server policy that has all agents pull the same arm in epochs of growing length, without dropping arms."""

from math import log, sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import variance_of


class EpochServer:
    """Chooses the arm that all agents pull in an epoch: the one with the largest upper bound of the global mean.

    The bound is est_k + radius_scale sqrt(2 ln(T) (sd^2 / (M n_k) + v_k / (M n_k)^2)), where each agent has pulled the
    arm n_k times, est_k is the sum of all agents' rewards of the arm divided by M n_k, and v_k the variance of the
    privacy noise in that sum, 0 if uploads say nothing of noise. The epoch lasts max(shortest, floor(n_k / 2)) rounds;
    at its end all agents upload once. Arms that were never pulled come first. Numbers of pulls are those that were
    planned, so that no message may be lost and all agents must act in every round.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = gaussian_v0.parallel_env(num_agents=3, num_arms=4, regret="federation")
        >>> env = Server(env, "announced", "every_round", policy="epochs")
        >>> env.reset_batch([0]).observation["server_pulls"][0, 0, 0].tolist()
        [10, 0, 0, 0]
    """

    needs_every_message = True

    def __init__(self, shortest: int = 10, radius_scale: float = 1.0, horizon: int | None = None) -> None:
        """Sets the server's constants.

        Args:
            shortest: Rounds of the shortest epoch.
            radius_scale: Number by which the confidence radius is multiplied.
            horizon: T in the radius; None for the number of rounds of the episode.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._shortest = require_integer("shortest", shortest, 1)
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._horizon = None if horizon is None else require_integer("horizon", horizon, 1)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of the plan: pulls of each arm, rounds of the epoch, and the arm to rest on."""
        (arms,) = spec.release["pulls"].shape or (0,)
        shapes: dict[str, list[int]] = {"pulls": [1, arms], "rounds": [], "rest": []}
        return {name: {"shape": shape, "dtype": "int64"} for name, shape in shapes.items()}

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with the first arm; see :meth:`.ServerPolicy.reset`."""
        rows, (arms,) = (len(seeds), spec.agents), spec.release["pulls"].shape or (0,)
        self._width = self._scale * sqrt(2 * log(max(self._horizon or spec.horizon, 2)))
        self._reward_variance = float(spec.public["reward_sd"]) ** 2
        self._heard = np.zeros(rows, np.bool_)
        self._pulled, self._sums, self._noise = np.zeros((3, rows[0], arms))
        self._arm, self._rounds = np.zeros((2, rows[0]), np.int64)
        self._begin(np.ones(rows[0], np.bool_))
        return self._plan()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes uploads in and, where all agents have uploaded, begins an epoch; see :meth:`.ServerPolicy.answer`."""
        self._sums += uploads["rewards"].sum(axis=1)
        if (variance := variance_of("rewards")) in uploads:
            self._noise += uploads[variance].sum(axis=1)
        self._heard |= mask
        done: Array = np.asarray(mask.any(axis=1) & self._heard.all(axis=1))
        self._heard[done] = False
        which = np.flatnonzero(done)
        self._pulled[which, self._arm[which]] += self._rounds[which]
        self._begin(done)
        return self._plan()

    def _begin(self, which: Array) -> None:
        """Chooses the arm and the length of the next epoch of some replicas, bool ``(replicas,)``."""
        pulled, number = self._pulled[which], self._heard.shape[1] * np.maximum(self._pulled[which], 1.0)
        variance = self._reward_variance / number + np.maximum(self._noise[which], 0.0) / number**2
        index = np.where(pulled > 0, self._sums[which] / number + self._width * np.sqrt(variance), np.inf)
        arm = index.argmax(axis=1)
        self._arm[which] = arm
        own = np.take_along_axis(pulled, arm[:, np.newaxis], axis=1)[:, 0]
        self._rounds[which] = np.maximum(self._shortest, own // 2)

    def _plan(self) -> Arrays:
        pulls = np.zeros((*self._pulled.shape[:1], 1, self._pulled.shape[1]), np.int64)
        np.put_along_axis(pulls[:, 0], self._arm[:, np.newaxis], self._rounds[:, np.newaxis], axis=1)
        return {"pulls": pulls, "rounds": self._rounds.copy(), "rest": self._arm.copy()}
