"""The server policy that explores arms in phases, drops those that are clearly worse, and lets agents join (Fed2-UCB).

C. Shi, C. Shen: Federated Multi-Armed Bandits, AAAI 2021, Algorithms Fed2-UCB and, with all agents from the start and
no spread between them, Fed1-UCB.
"""

from math import log, sqrt

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec


class EliminationServer:
    """Drops arms whose upper confidence bound is below the lower one of another arm, phase by phase.

    In every phase p = 1, 2, ... each of the M(p) agents that have joined so far pulls each remaining arm f times and
    uploads its pulls and sums of rewards of the phase. From all uploads so far the server computes est_k, the average
    of the agents' sample means of arm k, and the radius B = sqrt(c1 sd^2 eta ln(T)) + sqrt(c2 spread^2 ln(T) / M(p)),
    where eta is the sum over agents of 1/n_m, divided by M(p)^2, and n_m the number of pulls of the arm by agent m. It
    drops arms with est_k + B < max_l (est_l - B). Then g(p + 1) more agents join. When one arm is left, all agents that
    have joined pull it to the end, without further messages; nobody joins any more.

    The server knows the standard deviations sd of rewards and ``spread`` of agents' means from the environment. It
    looks for the globally best arm, whatever the environment's aim is.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = gaussian_v0.parallel_env(num_agents=6, num_arms=3, law="approximate", spread=0.02)
        >>> env = Server(env, "announced", "every_round", policy={"name": "elimination", "pulls": 5, "joins": 2})
        >>> env.reset_batch([0]).observation["active"][0, :, 0].tolist()
        [True, True, False, False, False, False]
    """

    needs_single_uploads = True

    def __init__(
        self,
        pulls: int | None = None,
        joins: int | None = None,
        growth: float = 2.0,
        c1: float = 4.0,
        c2: float = 1.0,
        radius_scale: float = 1.0,
        horizon: int | None = None,
    ) -> None:
        """Sets the server's constants.

        Args:
            pulls: f, how often each agent pulls an arm in a phase; None for int(10 ln(T)), as in Fed1-UCB.
            joins: g(1), number of agents in the first phase; None for all agents.
            growth: g(p + 1) / g(p), until all agents have joined.
            c1: Constant of the radius for the noise of rewards; c in Fed1-UCB.
            c2: Constant of the radius for the spread between agents.
            radius_scale: Number by which the radius B is multiplied.
            horizon: T in the radius; None for the number of rounds of the episode.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._pulls = None if pulls is None else require_integer("pulls", pulls, 1)
        self._joins = None if joins is None else require_integer("joins", joins, 1)
        self._growth = require_number("growth", growth, 0, np.inf, open_above=True)
        constants = {"c1": c1, "c2": c2, "radius_scale": radius_scale}
        self._constants = [require_number(name, value, 0, np.inf) for name, value in constants.items()]
        self._horizon = None if horizon is None else require_integer("horizon", horizon, 1)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of a plan: pulls of arms, rounds of the phase, the arm to rest on, and who takes part."""
        (arms,) = spec.release["pulls"].shape or (0,)
        return {
            "pulls": {"shape": [1, arms], "dtype": "int64"},
            "rounds": {"shape": [], "dtype": "int64"},
            "rest": {"shape": [], "dtype": "int64"},
            "active": {"shape": [], "dtype": "bool"},
        }

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with all arms and the first agents; see :meth:`.ServerPolicy.reset`."""
        rows, (arms,) = (len(seeds), spec.agents), spec.release["pulls"].shape or (0,)
        self._each = int(10 * log(self._horizon or spec.horizon)) if self._pulls is None else self._pulls
        self._each = max(self._each, 1)
        first = spec.agents if self._joins is None else min(self._joins, spec.agents)
        self._joining = np.full(rows[0], float(first))
        self._active = np.tile(np.arange(spec.agents) < first, (rows[0], 1))
        self._heard = np.zeros(rows, np.bool_)
        self._left = np.ones((rows[0], arms), np.bool_)
        self._counts, self._sums = np.zeros((2, *rows, arms))
        c1, c2, scale = self._constants
        logarithm = log(max(self._horizon or spec.horizon, 2))
        self._noise = scale * spec.public["reward_sd"] * sqrt(c1 * logarithm)
        self._apart = scale * spec.public["spread"] * sqrt(c2 * logarithm)
        self._best = np.zeros(rows[0], np.int64)
        return self._plan()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes uploads in and, once all agents have uploaded, plans a new phase; see :meth:`.ServerPolicy.answer`."""
        self._counts += uploads["pulls"]
        self._sums += uploads["rewards"]
        self._heard |= mask
        done = mask.any(axis=1) & (self._heard | ~self._active).all(axis=1)
        for r in np.flatnonzero(done).tolist():
            self._judge(r)
        self._heard[done] = False
        return self._plan()

    def _judge(self, r: int) -> None:
        """Drops arms of a replica, and lets agents join if more than one is left."""
        who, left = self._active[r], self._left[r]
        counts = np.maximum(self._counts[r][who][:, left], 1.0)
        estimate = (self._sums[r][who][:, left] / counts).mean(axis=0)
        many = int(who.sum())
        radius = self._noise * np.sqrt((1.0 / counts).sum(axis=0)) / many + self._apart / sqrt(many)
        self._best[r] = np.flatnonzero(left)[estimate.argmax()]
        left[left] = estimate + radius >= (estimate - radius).max()
        if left.sum() > 1:
            self._joining[r] *= self._growth if self._joins is not None else 0.0
            self._active[r, many : many + int(self._joining[r])] = True

    def _plan(self) -> Arrays:
        going_on = self._left.sum(axis=1) > 1
        pulls = np.where(going_on[:, np.newaxis], self._left * self._each, 0)
        return {
            "pulls": pulls[:, np.newaxis],
            "rounds": pulls.sum(axis=1),
            "rest": self._best.copy(),
            "active": self._active.copy(),
        }
