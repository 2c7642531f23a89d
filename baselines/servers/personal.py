"""The server policy of PF-UCB, in which every agent aims between its own and the global means.

C. Shi, C. Shen, J. Yang: Federated Multi-armed Bandits with Personalization, AISTATS 2021.
"""

from math import log

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag, require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.wrappers.transport.server_policy import Ask


class PersonalServer:
    """Has agents explore for each other and for themselves, in phases of growing length.

    The mixed mean of an arm is alpha (the agent's sample mean) + (1 - alpha) (the average of all agents' sample means).
    At the start all arms remain for all agents. In phase p = 1, 2, ..., with f(p) = growth^p ln(T):

    1. Each agent pulls every arm that remains for somebody ceil((1 - alpha) f(p)) times, then every arm that remains
       for itself ceil(M alpha f(p)) more times. An agent that is done before the others pulls its best arm until they
       are (:class:`~fedbandit_envs.baselines.gaussian.planned.PersonalPulls`); these pulls count, too.
    2. Each agent uploads its sample means, and is asked with their averages which arms remain for it. It answers by the
       radius B = sqrt(c sd^2 ln(T) / (M F(p))), F(p) = f(1) + ... + f(p)
       (:class:`~fedbandit_envs.baselines.gaussian.reporter.PersonalReporter`).
    3. If a single arm remains for an agent, the agent keeps it for good, and its set of remaining arms is empty from
       then on; it explores on for others. When all sets are empty there are no more phases and messages.

    The numbers of pulls make the variance of an agent's mixed mean at most sd^2 / (M F(p)) for every arm that remains
    for it, whatever alpha is. ``enhanced`` multiplies both numbers of pulls, before they are rounded, by (alpha sqrt(d)
    + (1 - alpha) D) / sqrt(d), where d is the gap that the agent has reported for the arm, 1 in the first phase, and D
    the average of sqrt(d) for that arm over all agents.

    The server knows alpha and the standard deviation sd of rewards from the environment. Its agents' messages, of
    which none may be lost, are written by a reporter; ``BASELINES["PF-UCB"].wrap`` puts both around an environment.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["PF-UCB"].wrap(make_federation("FedMixed-v0"))
        >>> env.reset_batch([0]).observation["server_pulls"].shape
        (1, 4, 2, 9)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(
        self,
        c: float = 1.0,
        growth: float = 2.0,
        enhanced: bool = False,
        radius_scale: float = 1.0,
        horizon: int | None = None,
    ) -> None:
        """Sets the server's constants.

        Args:
            c: Constant of the radius.
            growth: Growth of f from a phase to the next, > 1.
            enhanced: Whether pulls depend on the gaps of arms.
            radius_scale: Number by which the radius B is multiplied.
            horizon: T in the radius; None for the number of rounds of the episode.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._c = require_number("c", c, 0, np.inf)
        self._growth = require_number("growth", growth, 1, np.inf, open_below=True)
        self._enhanced = require_flag("enhanced", enhanced)
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._horizon = None if horizon is None else require_integer("horizon", horizon, 1)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of a plan, of the global means, of what remains for an agent, and of its fixed arm."""
        (arms,) = spec.release["means"].shape or (0,)
        return {
            "pulls": {"shape": [2, arms], "dtype": "int64"},
            "rounds": {"shape": [], "dtype": "int64"},
            "mean": {"shape": [arms], "dtype": "float64"},
            "own": {"shape": [arms], "dtype": "bool"},
            "fixed": {"shape": [], "dtype": "int64"},
        }

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with all arms; see :meth:`.ServerPolicy.reset`."""
        rows, (arms,) = (len(seeds), spec.agents), spec.release["means"].shape or (0,)
        self._alpha = float(spec.public["alpha"])
        self._logarithm = log(max(self._horizon or spec.horizon, 2))
        self._variance = self._scale**2 * self._c * spec.public["reward_sd"] ** 2 * self._logarithm / rows[1]
        self._means = np.zeros((*rows, arms))
        self._own = np.ones((*rows, arms), np.bool_)
        self._roots = np.ones((*rows, arms))
        self._fixed = np.full(rows, -1)
        self._average = np.zeros((rows[0], arms))
        self._heard, self._asked = np.zeros(rows, np.bool_), np.zeros(rows[0], np.bool_)
        self._length, self._sum = np.zeros((2, rows[0]))
        self._pulls = np.zeros((*rows, 2, arms), np.int64)
        self._begin(np.ones(rows[0], np.bool_))
        return self._plan()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays | Ask:
        """Averages means, asks what remains, and begins the next phase; see :meth:`.ServerPolicy.answer`."""
        reported = self._asked & mask.any(axis=1)
        self._take_in(uploads, mask & self._asked[:, np.newaxis])
        new = mask & ~self._asked[:, np.newaxis]
        self._asked[...] = False
        self._means[new] = uploads["means"][new]
        self._heard |= new
        complete: Array = np.asarray(self._heard.all(axis=1) & new.any(axis=1))
        self._begin(reported)
        if not complete.any():
            return self._plan()
        self._heard[complete] = False
        self._asked |= complete
        self._average[complete] = self._means[complete].mean(axis=1)
        radius = np.sqrt(self._variance / self._sum)
        question = {"mean": self._average[:, np.newaxis], "arms": self._own, "radius": radius[:, np.newaxis]}
        return Ask(question, np.broadcast_to(complete[:, np.newaxis], mask.shape))

    def _take_in(self, reports: Arrays, mask: Array) -> None:
        """Keeps which arms remain for agents that have reported; one that has a single arm left fixes it."""
        self._own[mask] = reports["arms"][mask] > 0.5
        self._roots[mask] = np.sqrt(reports["gaps"][mask])
        single = mask & (self._own.sum(axis=-1) == 1)
        self._fixed[single] = self._own[single].argmax(axis=-1)
        self._own[single] = False

    def _begin(self, which: Array) -> None:
        """Plans the next phase of some replicas, bool ``(replicas,)``."""
        if not which.any():
            return
        self._length[which] = np.where(self._sum[which] > 0, self._length[which], 1.0) * self._growth
        some = self._length[which] * self._logarithm
        self._sum[which] += some
        own = self._own[which]
        factor = np.ones(own.shape)
        if self._enhanced:
            roots = np.maximum(self._roots[which], 1e-12)
            factor = self._alpha + (1 - self._alpha) * roots.mean(axis=1, keepdims=True) / roots
        each = some[:, np.newaxis, np.newaxis] * factor
        anybody = own.any(axis=1, keepdims=True)
        self._pulls[which] = np.stack(
            [anybody * np.ceil((1 - self._alpha) * each), own * np.ceil(own.shape[1] * self._alpha * each)],
            axis=2,
        ).astype(np.int64)

    def _plan(self) -> Arrays:
        rounds = self._pulls.sum(axis=(2, 3)).max(axis=1)
        return {
            "pulls": self._pulls.copy(),
            "rounds": np.broadcast_to(rounds[:, np.newaxis], self._fixed.shape),
            "mean": self._average.copy(),
            "own": self._own.copy(),
            "fixed": self._fixed.copy(),
        }
