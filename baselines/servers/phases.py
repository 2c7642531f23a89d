"""The server policy of Fed-PE, which plans with an optimal design which arms each agent explores in a phase.

R. Huang, W. Wu, J. Yang, C. Shen: Federated Linear Contextual Bandits, NeurIPS 2021.
"""

from itertools import count
from math import log, sqrt

import numpy as np

from fedbandit_envs.baselines.servers.design import optimal_design, pseudo_inverse
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag, require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.wrappers.transport.server_policy import Ask


class PhasedServer:
    """Eliminates arms of agents in phases that double, for fixed features and a parameter theta_a for each arm a.

    At the start each agent i pulls each of its K arms once. Phase p = 1, 2, ... has 2^p + K rounds, between:

    1. Each agent uploads its sums of rewards y, times x_ia / ||x_ia||^2 for its features x_ia of arm a. The server
       divides them by the numbers of pulls of the phase, which it knows: u_ia. The first upload tells it the directions
       e_ia = u_ia / ||u_ia||, up to their signs, which do not matter.
    2. The server estimates theta_a = V_a^+ sum_i f_ia u_ia with V_a = sum_i f_ia e_ia e_ia^T, where f_ia are the pulls
       that it planned, and sends theta_a and V_a^+ to all agents. Data of earlier phases are not used.
    3. Each agent drops arms by confidence bounds and reports which arms are left and which is the best one
       (:class:`~fedbandit_envs.baselines.fixed.reporter.PhasedReporter`).
    4. The server divides 2^p pulls of each agent among its arms by an optimal design
       (:func:`~fedbandit_envs.baselines.servers.design.optimal_design`), rounded up: f_ia. In what is left of the
       phase's rounds an agent pulls its best arm; these rewards count, too.

    The squared radius is alpha = min(2 ln(2 M K H / delta), 2 ln(K H / delta) + d ln k + d) times the variance of
    rewards, for M agents and H phases. Here k is the smallest of 1, 1.1, 1.2, ... with k d >= 2 ln(K H / delta) + d ln
    k + d.

    With ``enhanced`` bounds come from all phases together: with n = 2^(p - 1) for phase p, the estimates of a phase
    have the weight n, N is the sum of n, and the radius sqrt(S ln(a S)) / N with S = d K / M + sum n^2 x^T V_a^+ x /
    l^2, where l is the smallest norm of features (in all forms the variance of <x, theta_a> is bounded by x^T V_a^+ x /
    l^2) and a = M (M K / delta)^2 / (K d). With ``collaborative`` the server
    is told the norms of features, and observations count in V_a = sum_i f_ia x_ia x_ia^T by their features' length.

    Its agents' messages are written by a reporter; ``BASELINES["Fed-PE"].wrap`` puts both around an environment.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["Fed-PE"].wrap(make_federation("FedFixed-v0"))
        >>> env.reset_batch([0]).observation["server_pulls"].shape
        (1, 100, 1, 10)
    """

    def __init__(
        self,
        failure: float = 0.1,
        enhanced: bool = False,
        collaborative: bool = False,
        radius_scale: float = 1.0,
        phases: int | None = None,
    ) -> None:
        """Sets the server's constants.

        Args:
            failure: delta, the probability that confidence bounds fail, in (0, 1).
            enhanced: Whether bounds come from all phases.
            collaborative: Whether the server weighs observations by the norms of features.
            radius_scale: Number by which the radius is multiplied.
            phases: H in the radius; None for the number of phases that begin within the episode.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._failure = require_number("failure", failure, 0, 1, open_below=True, open_above=True)
        self._enhanced = require_flag("enhanced", enhanced)
        self._collaborative = require_flag("collaborative", collaborative)
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)
        self._phases = None if phases is None else require_integer("phases", phases, 1)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of a plan: pulls of arms, rounds of the phase, and the arm to rest on."""
        arms = (spec.release["rewards"].shape or (0,))[0]
        return {
            "pulls": {"shape": [1, arms], "dtype": "int64"},
            "rounds": {"shape": [], "dtype": "int64"},
            "rest": {"shape": [], "dtype": "int64"},
        }

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Starts with one pull of each arm; see :meth:`.ServerPolicy.reset`."""
        arms, dim = spec.release["rewards"].shape or (0, 0)
        rows = len(seeds), spec.agents
        self._variance = (self._scale * float(spec.public["reward_sd"])) ** 2
        self._squared = self._theory(spec.agents, arms, dim, spec.horizon)
        self._base = dim * arms / spec.agents
        self._logarithm = log(spec.agents * (spec.agents * arms / self._failure) ** 2 / (arms * dim))
        self._phase, self._weight = 0, 0.0
        self._asked = False
        self._pulls = np.ones((*rows, arms), np.int64)
        self._left = np.ones((*rows, arms), np.bool_)
        self._best = np.zeros(rows, np.int64)
        self._rounds = arms
        self._sums = np.zeros((*rows, arms, dim))
        self._directions = np.zeros((*rows, arms, dim))
        self._estimate = np.zeros((rows[0], arms, dim))
        self._spread = np.zeros((rows[0], arms, dim, dim))
        return self._plan()

    def _theory(self, agents: int, arms: int, dim: int, horizon: int) -> float:
        """Returns the squared radius in units of the variance of rewards and of ||x||^2_{V^+} / l^2."""
        phases = self._phases
        if phases is None:
            phases = next(p for p in count(1) if 2 ** (p + 1) - 2 + (p + 1) * arms >= horizon)
        own = 2 * log(arms * phases / self._failure)
        k = next(k for k in (1 + i / 10 for i in count()) if k * dim >= own + dim * log(k) + dim)
        return min(2 * log(2 * agents * arms * phases / self._failure), own + dim * log(k) + dim)

    def answer(self, uploads: Arrays, mask: Array) -> Arrays | Ask:
        """Estimates, asks which arms are left, and plans the next phase; see :meth:`.ServerPolicy.answer`."""
        if not self._asked:
            self._asked = True
            return Ask(self._question(uploads), mask)
        self._asked = False
        self._phase += 1
        self._left = uploads["left"] > 0.5
        self._best = uploads["best"].astype(np.int64)
        for directions, left, pulls in zip(self._directions, self._left, self._pulls, strict=True):
            pulls[...] = np.ceil(optimal_design(directions, left) * 2**self._phase - 1e-9)
        self._rounds = 2**self._phase + self._left.shape[-1]
        return self._plan()

    def _question(self, uploads: Arrays) -> Arrays:
        """Estimates parameters from the last phase, and returns what agents need to drop arms."""
        rested = self._rounds - self._pulls.sum(axis=-1, keepdims=True)
        pulled = self._pulls + rested * (np.arange(self._left.shape[-1]) == self._best[..., np.newaxis])
        means = (uploads["rewards"] - self._sums) / np.maximum(pulled, 1)[..., np.newaxis]
        self._sums = uploads["rewards"].copy()
        if self._phase == 0:
            self._directions = means / np.linalg.norm(means, axis=-1, keepdims=True)
        lengths = uploads["lengths"] if self._collaborative else np.ones(pulled.shape)
        weights = self._pulls * lengths**2
        inverse = pseudo_inverse(
            np.einsum("ria,riad,riae->rade", weights, self._directions, self._directions)
        )
        estimate = np.einsum("rade,riae->rad", inverse, weights[..., np.newaxis] * means)
        shortest = uploads["shortest"].min(axis=1)
        # With the norms of features known, variances are those of observations, and need no bound.
        unit = np.ones_like(shortest) if self._collaborative else shortest
        scaled = inverse / (unit**2)[:, np.newaxis, np.newaxis, np.newaxis]
        weight, kept = (2.0 ** (self._phase - 1), 1.0) if self._enhanced else (1.0, 0.0)
        self._weight = kept * self._weight + weight
        self._estimate = kept * self._estimate + weight * estimate
        self._spread = kept * self._spread + weight**2 * scaled
        question = {
            "estimate": self._estimate / self._weight,
            "spread": self._spread / self._weight**2,
            "radius": np.tile(self._radius(), (len(shortest), 1)),
        }
        return {"left": self._left, **{name: array[:, np.newaxis] for name, array in question.items()}}

    def _radius(self) -> list[float]:
        """Returns base, constant and slope of the squared radius (base + s) (constant + slope ln(base + s)).

        Here s is x^T (spread) x for an agent's features x.
        """
        if not self._enhanced:
            return [0.0, self._variance * self._squared, 0.0]
        # In units of s, which is divided by the square of the sum of weights.
        square = self._weight**2
        return [self._base / square, self._variance * (self._logarithm + log(square)), self._variance]

    def _plan(self) -> Arrays:
        rounds = np.full(self._best.shape, self._rounds)
        return {"pulls": self._pulls[:, :, np.newaxis].copy(), "rounds": rounds, "rest": self._best.copy()}
