"""LinUCB on batches: the algorithm of Zhou and Chowdhury, which uses noisy sums of all agents' data as if exact.

X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits, ICLR 2024, Algorithm 1. They
call it FedLinUCB; that of He et al. (2022) is :class:`~fedbandit_envs.baselines.linear.feducb.FedLinUCB`.
"""

from functools import partial
from math import floor, log, log2, sqrt
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.regressions import Regularisation
from fedbandit_envs.baselines.policy import require_around
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec

NoiseName = Literal["local", "amplified", "vector_sum"]


def released_constants(
    noise: NoiseName,
    epsilon: float,
    delta: float,
    horizon: int = 10_000,
    gap: int = 25,
    agents: int = 100,
    dim: int = 10,
    failure: float = 0.01,
) -> tuple[float, float]:
    """Returns the constants of the authors' released program; the paper's theorems have larger ones.

    Args:
        noise: ``"local"`` (each agent adds its own noise), ``"amplified"`` (smaller noise, whose privacy is meant to be
            amplified by a shuffler) or ``"vector_sum"`` (binomial noise on the sum over all agents).
        epsilon: Epsilon, > 0, that the program is given; not what its noise guarantees.
        delta: Delta in (0, 1) that the program is given.
        horizon: T, number of rounds.
        gap: B, number of rounds between two synchronisations.
        agents: M, number of agents.
        dim: Dimension d of contexts.
        failure: Probability with which the confidence bounds may fail.

    Returns:
        The standard deviation of the noise in an entry of a tree's node, of one agent; for ``vector_sum``, whose noise
        is binomial, it is a number that enters the ridge only. And lambda, the multiple of I in V.

    Raises:
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range, or ``noise`` is unknown.
    """
    require_choice("noise", noise, get_args(NoiseName))
    require_number("epsilon", epsilon, 0, np.inf, open_below=True)
    require_number("delta", delta, 0, 1, open_below=True, open_above=True)
    require_integer("gap", gap, 1)
    # Of a binary tree over all synchronisations, of which there is at least one.
    levels = floor(log2(max(horizon / gap, 1))) + 1
    if noise == "local":
        deviation = sqrt(levels * (log(1 / delta) + epsilon)) / epsilon
    elif noise == "amplified":
        logs = log(1 / delta) * log(1 + levels / (horizon * delta)) * log(agents * levels / delta)
        deviation = sqrt(levels * logs) / (epsilon * sqrt(agents))
    else:
        deviation = sqrt(levels * log(1 / delta)) * log(levels * dim**2 / delta) / epsilon
    summed = sqrt(levels) * deviation * (1.0 if noise == "vector_sum" else sqrt(agents))
    return deviation, summed * (sqrt(levels + log(1 / failure)) + sqrt(dim))


class BatchedLinUCB(FedUCB):
    r"""LinUCB on all agents' released data and on its own data since the last synchronisation.

    At a synchronisation an agent drops its own data: from then on it uses what it has released of them, with noise. $V$
    is $\lambda I$ plus the sum of all released Gram matrices plus that of own data since, and $b$ the same sum of
    moments. The agent pulls the arm whose context $x$ has the largest
    $\langle x, V^{-1} b \rangle + \beta_t \sqrt{x^\top V^{-1} x}$. For $M$ agents and contexts of dimension $d$

    $$\beta_t = c \left( \sqrt{\lambda} \, S + \sigma \sqrt{d \ln(1 + t M / (d \lambda)) + \ln(1 / \delta)} \right)$$

    with $c$ for ``beta_scale``, $\lambda$ for ``ridge``, $S$ for ``parameter_bound``, $\sigma$ for ``noise_sd`` and
    $\delta$ for ``failure``. Noise enters through the ridge alone, see :func:`released_constants`. Where noise makes
    V indefinite, its inverse is used as it is, and negative squared widths count as 0.

    Example:
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.wrappers import Channel
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Channel(env, schedule={"name": "fixed_gap", "gap": 5}, echo=True)
        >>> policy = BatchedLinUCB(ridge=3.0)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(
        self,
        noise: NoiseName | None = None,
        epsilon: float = 0.2,
        delta: float = 0.1,
        gap: int = 25,
        **linucb: Any,
    ) -> None:
        """Sets the policy's constants; see :class:`LinUCB` for those not named here.

        Args:
            noise: The noise for which the released program would choose its ridge; None for no noise, where it is
                sqrt(M).
            epsilon: Epsilon that the program would be given.
            delta: Delta that the program would be given.
            gap: B, number of rounds between two synchronisations.
            **linucb: Arguments of :class:`LinUCB`. Without ``ridge`` among them, lambda is that of the program;
                without ``parameter_bound``, S is sqrt(d) for contexts of dimension d.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(**linucb)
        self._program = None if noise is None else partial(released_constants, noise, epsilon, delta, gap=gap)
        self._chooses_ridge, self._chooses_bound = "ridge" not in linucb, "parameter_bound" not in linucb
        self._chooses_radius = self._constant < 0
        # Noise has no part in the shift and in the bounds of errors: it enters through the ridge alone.
        self._bias = "none"
        if self._program:
            self._program()

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and received data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents receive no messages, or not their own, or choose when to send.
        """
        seen = spec.observation.spaces
        fits = {"inbox_mask", "sent"} <= seen.keys() and not spec.chooses_sending
        require_around(spec, fits, "a Channel with echo=True and a schedule fixed in advance")
        dim, self._agents = (seen["contexts"].shape or (0, 0))[1], spec.agents
        if self._chooses_ridge:
            self._ridge = sqrt(self._agents)
            if self._program:
                sizes = {"horizon": spec.horizon, "agents": self._agents, "dim": dim}
                _, self._ridge = self._program(failure=self._failure, **sizes)
        if self._chooses_bound:
            self._parameter_bound = sqrt(dim)
        self._joint_ridge = self._ridge
        super().reset(spec, seeds)

    def _pull(self, observation: Arrays) -> Array:
        rounds = int(observation["round"].max()) + 1
        grown = self._dim * log(1 + rounds * self._agents / (self._dim * self._ridge))
        radius = sqrt(self._ridge) * self._parameter_bound
        radius += self._noise_sd * sqrt(grown - log(self._failure))
        if self._chooses_radius:
            self._constant = self._beta_scale * radius
        return self._choose(observation, 0.0)

    def _floor(self, where: Array, made: Regularisation, total: Array) -> None:
        """Takes the inverse of V as it is where V is not positive definite."""
        gram = self._grams(where, total)
        self._ridges.inverse[where] = np.linalg.inv(gram + self._ridge * np.eye(gram.shape[-1]))
