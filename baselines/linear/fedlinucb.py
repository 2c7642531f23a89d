"""Asynchronous federated LinUCB, two algorithms: each agent uploads its data once it has collected enough of them.

Agents need not act in the same rounds. Both algorithms need a
:class:`~fedbandit_envs.wrappers.transport.server.Server`. In both, the rounds in which an agent uploads depend on its
exact data, so that the times of messages are not private.
"""

from math import log, log1p, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.aggregators import Sum
from fedbandit_envs.baselines.aggregators.precision import GRAM, gram_arrays, gram_inbox
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.linear.regressions import has_grown, keep, rebuild
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec, highest


def _require_server(spec: PolicySpec, echo: bool) -> None:
    """Raises :class:`UnfitError` unless agents can upload to a server whenever they ask to.

    With ``echo`` the server must also send back to an agent what the agent itself has uploaded, else it must not.
    """
    seen = spec.observation.spaces
    inbox = seen.get("inbox_mask")
    fits = inbox is not None and inbox.shape == (1,) and ("sent" in seen) == echo
    if not (fits and spec.chooses_sending):
        raise UnfitError(
            f"a Server with schedule='on_request' and echo={echo} is required around the environment; its observations "
            f"are {sorted(seen)} and its actions {spec.action}"
        )


class FedLinUCB(LinUCB):
    """Asynchronous LinUCB on the server's data alone (He, Wang, Min and Gu 2022, Algorithm 1).

    An agent pulls the arm with the largest <x, Sigma_m^-1 b_m> + beta ||x||_{Sigma_m^-1}, where (Sigma_m, b_m) is its
    last download, at first lambda I and 0. It does not use its own data before they have been to the server and back.
    Let Sigma_loc be the sum of x x^T since its last upload: in the round in which det(Sigma_m + Sigma_loc) exceeds
    (1 + alpha) det(Sigma_m), the agent uploads these data and downloads the server's. It needs a server with
    ``echo=True``.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import FedLinUCB
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="on_request")
        >>> policy = FedLinUCB(alpha=1.0, beta=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)["send"].shape
        (1, 3)
    """

    def __init__(
        self, alpha: float | None = None, beta: float | None = None, noise_sd: float = 0.3, **linucb: Any
    ) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Relative growth of the determinant that triggers an upload, > 0; None for the theory's 1/M^2 with M
                agents.
            beta: The radius; None for the theory's sqrt(lambda) S + (sqrt(1 + M alpha) + M sqrt(2 alpha)) (R sqrt(d
                ln((1 + T L^2/(min(alpha, 1) lambda))/delta)) + sqrt(lambda) S), where ``parameter_bound`` is S,
                ``failure`` delta, T the horizon, and contexts have dimension d and norm at most L.
            noise_sd: R, the sub-Gaussian constant of rewards.
            **linucb: Other arguments of :class:`LinUCB`; ``ridge`` is lambda, which Sigma_m contains once, not once for
                each agent.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        beta = None if beta is None else require_number("beta", beta, 0, np.inf)
        super().__init__(noise_sd=noise_sd, alpha=beta, **linucb)
        self._alpha = None if alpha is None else require_number("alpha", alpha, 0, np.inf, open_below=True)
        self._beta = beta

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and downloaded data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server to which agents can upload when they ask to, or it does not send an agent's
                own data back to it.
        """
        _require_server(spec, echo=True)
        super().reset(spec, seeds)
        contexts = spec.observation["contexts"]
        dim = (contexts.shape or (0, 0))[1]
        self._growth = spec.agents**-2 if self._alpha is None else self._alpha
        if self._beta is None:
            theory = self._theory(spec.agents, dim, spec.horizon, highest(contexts))
            self._constant = self._beta_scale * theory
        square = (*seeds.shape, 1, dim + 1, dim + 1)
        # The server adds up the data that agents upload. So there is a single sender, and robust aggregation, which
        # compares senders, is not possible.
        self._received = Sum().start(gram_inbox(spec, seeds.shape))
        self._downloaded = self._received.totals[GRAM]
        self._local = np.zeros(square)
        self._uploaded = np.zeros(square)
        self._send = np.zeros(seeds.shape, np.bool_)
        self._no_shift = np.full(seeds.shape, self._ridge)

    def _theory(self, agents: int, dim: int, horizon: int, longest: float) -> float:
        """Returns the radius beta of the confidence ellipsoids in He et al. 2022, Theorem 5.1.

        Args:
            agents: Number of agents, M.
            dim: Dimension of contexts, d.
            horizon: Number of rounds, T.
            longest: Upper bound L of the norm of contexts.
        """
        alpha, bias = self._growth, sqrt(self._ridge) * self._parameter_bound
        inside = (1 + horizon * longest**2 / (min(alpha, 1.0) * self._ridge)) / self._failure
        spread = sqrt(1 + agents * alpha) + agents * sqrt(2 * alpha)
        return bias + spread * (self._noise_sd * sqrt(dim * log(inside)) + bias)

    def act(self, observation: Arrays) -> Any:
        """Returns arms and requests to upload, after adding the last round and new downloads to the data.

        See :meth:`Policy.act`.

        Returns:
            A mapping of ``action``, arms int64 ``(replicas, agents)``, and ``send``, bool of the same shape.
        """
        keep(observation["round"], observation["pulled_context"], observation["last_reward"], self._local)
        # An agent that asked to upload in the last round has uploaded that round's observation, too, which was added
        # to its local data just now.
        self._uploaded[self._send] = self._local[self._send]
        mask = observation["inbox_mask"]
        if mask.any():
            self._download(observation, mask)
        arm = self._choose(observation, -np.log(self._failure))
        self._wants(observation, arm)
        return {"action": arm, "send": self._send}

    def _download(self, observation: Arrays, mask: Array) -> None:
        self._received.add(gram_arrays(observation))
        back = observation["sent"][..., 0]
        self._local[back] -= self._uploaded[back]
        self._uploaded[back] = 0.0
        rebuild(
            mask[..., 0], np.zeros_like(self._downloaded), self._downloaded, self._no_shift, *self._ridges
        )

    def _wants(self, observation: Arrays, arm: Array) -> None:
        """Writes into ``_send`` which agents ask to upload, given the arms they are about to pull."""
        has_grown(
            observation.get("active", self._everyone), observation["contexts"], arm, self._downloaded[:, :, 0],
            self._local[:, :, 0], self._ridge, log1p(self._growth), self._send,
        )  # fmt: skip


class AsyncLinUCB(FedUCB):
    """Asynchronous LinUCB on an agent's own and downloaded data (Li and Wang 2022, Async-LinUCB).

    An agent uses its own data at once, and the data of others as soon as the server sends them. It uploads in a round
    in which det(V_m) exceeds gamma_U det(V_m - dV_m), where V_m is the matrix of all its data and dV_m that of its own
    data since its last upload. It needs a server with ``echo=False``, whose ``answers`` are sent by the determinant
    criterion with the paper's gamma_D.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import AsyncLinUCB
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="on_request", echo=False)
        >>> policy = AsyncLinUCB(growth=6.0, beta=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)["send"].shape
        (1, 3)
    """

    def __init__(
        self, growth: float = 6.0, beta: float | None = None, noise_sd: float = 0.3, **feducb: Any
    ) -> None:
        """Sets the policy's constants.

        Args:
            growth: Growth gamma_U >= 1 of the determinant that triggers an upload.
            beta: A constant radius; None for the formula of :class:`LinUCB`.
            noise_sd: R, the sub-Gaussian constant of rewards.
            **feducb: Other arguments of :class:`FedUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        beta = None if beta is None else require_number("beta", beta, 0, np.inf)
        super().__init__(noise_sd=noise_sd, alpha=beta, **feducb)
        require_number("growth", growth, 1, np.inf)
        self._log_growth = log(growth)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and downloaded data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server to which agents can upload when they ask to, or it sends an agent's own data
                back to it.
        """
        _require_server(spec, echo=False)
        super().reset(spec, seeds)
        self._fresh = np.zeros_like(self._own)

    def act(self, observation: Arrays) -> Any:
        """Returns arms and requests to upload, as :meth:`FedUCB.act` does, and keeps track of data not uploaded yet."""
        keep(observation["round"], observation["pulled_context"], observation["last_reward"], self._fresh)
        self._fresh[self._send] = 0.0
        return super().act(observation)

    def _wants(self, observation: Arrays, arm: Array) -> None:
        assert self._received is not None
        base = (self._own - self._fresh + self._received.totals[GRAM])[:, :, 0]
        has_grown(
            observation.get("active", self._everyone), observation["contexts"], arm, base,
            self._fresh[:, :, 0], self._ridge, self._log_growth, self._send,
        )  # fmt: skip
