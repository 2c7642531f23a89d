"""Asynchronous federated LinUCB: agents that come and go, and upload once they have learnt enough.

Both protocols need a :class:`~fedbandit_envs.wrappers.transport.server.Server`, and both decide by raw data when to
upload.
"""

from math import log, log1p, sqrt
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.linear.pooling import keep, rebuild
from fedbandit_envs.baselines.linear.triggers import has_grown
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.pool import Sum
from fedbandit_envs.checks import require_number
from fedbandit_envs.features import highest
from fedbandit_envs.spaces import Spaces


def _require_server(spaces: Spaces, echo: bool) -> None:
    """Refuses to play behind anything else than a server that agents ask."""
    seen = spaces.observation.spaces
    inbox = seen.get("inbox_mask")
    fits = inbox is not None and inbox.shape == (1,) and ("sent" in seen) == echo
    if not (fits and isinstance(spaces.action, gym_spaces.Dict)):
        raise UnfitError(
            f"a Server with schedule='on_request' and echo={echo} is required around the environment; its observations "
            f"are {sorted(seen)} and its actions {spaces.action}"
        )


class FedLinUCB(LinUCB):
    """LinUCB on what the server has, asynchronously (He, Wang, Min, Gu 2022, Algorithm 1).

    An agent pulls the arm that maximises <x, Sigma_m^-1 b_m> + beta ||x||_{Sigma_m^-1}, where (Sigma_m, b_m) is what it
    has downloaded last, lambda I and 0 at first; own data counts once it has been to the server and back. It uploads
    what it has gathered since its last upload, and downloads, in the round in which det(Sigma_m + Sigma_loc) exceeds
    (1 + alpha) det(Sigma_m). Needs a server with ``echo=True``.
    """

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        ridge: float = 1.0,
        noise_sd: float = 0.3,
        parameter_bound: float = 1.0,
        failure: float = 0.01,
        beta_scale: float = 1.0,
    ) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Of the trigger, > 0; None for the theory's 1/M^2 with M agents.
            beta: The radius; None for the theory's sqrt(lambda) S + (sqrt(1 + M alpha) + M sqrt(2 alpha)) (R sqrt(d
                ln((1 + T L^2/(min(alpha, 1) lambda))/delta)) + sqrt(lambda) S).
            ridge: lambda > 0, counted once.
            noise_sd: R, sub-Gaussian constant of rewards.
            parameter_bound: S, the most that ||theta*|| can be.
            failure: delta, in (0, 1].
            beta_scale: Multiplies the radius.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(ridge, noise_sd, parameter_bound, failure, beta_scale, beta)
        if alpha is not None:
            require_number("alpha", alpha, 0, np.inf, open_below=True)
        self._alpha = alpha
        self._beta = beta

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets own data and what was downloaded; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that agents can ask, or it does not echo.
        """
        _require_server(spaces, echo=True)
        super().reset(spaces, seeds)
        contexts = spaces.observation["contexts"]
        dim = (contexts.shape or (0, 0))[1]
        self._growth = spaces.agents**-2 if self._alpha is None else float(self._alpha)
        if self._beta is None:
            theory = self._theory(spaces.agents, dim, spaces.horizon, highest(contexts))
            self._constant = self._beta_scale * theory
        square = (*seeds.shape, 1, dim + 1, dim + 1)
        # The server adds up what agents upload, so that there is one sender and nothing to choose from.
        self._told = Sum().begin(seeds.shape, 1, (dim + 1) ** 2)
        self._local = np.zeros(square)
        self._uploaded = np.zeros(square)
        self._send = np.zeros(seeds.shape, np.bool_)
        self._no_shift = np.full(seeds.shape, self._ridge)

    @property
    def _downloaded(self) -> Array:
        return self._told.total.reshape(self._local.shape)

    def _theory(self, agents: int, dim: int, horizon: int, longest: float) -> float:
        """Returns the radius of He et al. 2022, Theorem 5.1."""
        alpha, bias = self._growth, sqrt(self._ridge) * self._parameter_bound
        inside = (1 + horizon * longest**2 / (min(alpha, 1.0) * self._ridge)) / self._failure
        spread = sqrt(1 + agents * alpha) + agents * sqrt(2 * alpha)
        return bias + spread * (self._noise_sd * sqrt(dim * log(inside)) + bias)

    def act(self, observation: Arrays) -> Any:
        """Takes in own data and downloads, then chooses; see :meth:`Policy.act`.

        Returns:
            A mapping of ``action``, arms int64 ``(replicas, agents)``, and ``send``.
        """
        keep(observation["round"], observation["pulled_context"], observation["last_reward"], self._local)
        # What was asked for in the last round held that round's observation as well.
        self._uploaded[self._send] = self._local[self._send]
        mask = observation["inbox_mask"]
        if mask.any():
            self._download(observation, mask)
        arm = self._choose(observation, self._failure)
        self._wants(observation, arm)
        return {"action": arm, "send": self._send}

    def _download(self, observation: Arrays, mask: Array) -> None:
        self._told.add(mask[..., np.newaxis], observation["inbox_statistic"].reshape(*mask.shape, -1))
        back = observation["sent"][..., 0]
        self._local[back] -= self._uploaded[back]
        self._uploaded[back] = 0.0
        rebuild(mask[..., 0], self._nothing(), self._downloaded, self._no_shift, *self._ridges)

    def _nothing(self) -> Array:
        return np.zeros_like(self._downloaded)

    def _wants(self, observation: Arrays, arm: Array) -> None:
        """Decides who asks to upload, into ``_send``."""
        has_grown(
            observation.get("active", self._everyone), observation["contexts"], arm, self._downloaded[:, :, 0],
            self._local[:, :, 0], self._ridge, log1p(self._growth), self._send,
        )  # fmt: skip


class AsyncLinUCB(FedUCB):
    """LinUCB on all that the agent has, asynchronously (Li and Wang 2022, Async-LinUCB).

    Own data counts at once, that of others from when the server sends it. The agent uploads where det(V_m) exceeds
    gamma_U det(V_m - dV_m), dV_m being own data since its last upload. Needs a server with ``echo=False``, whose
    ``answers`` by determinant are gamma_D.
    """

    def __init__(
        self,
        growth: float = 6.0,
        beta: float | None = None,
        ridge: float = 1.0,
        noise_sd: float = 0.3,
        parameter_bound: float = 1.0,
        failure: float = 0.01,
        beta_scale: float = 1.0,
    ) -> None:
        """Sets the policy's constants; see :class:`FedLinUCB` for those not named here.

        Args:
            growth: gamma_U, >= 1.
            beta: A constant radius; None for that of :class:`LinUCB`.
            ridge: See there.
            noise_sd: See there.
            parameter_bound: See there.
            failure: See there.
            beta_scale: See there.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(
            ridge=ridge, noise_sd=noise_sd, parameter_bound=parameter_bound, failure=failure,
            beta_scale=beta_scale, alpha=beta,
        )  # fmt: skip
        require_number("growth", growth, 1, np.inf)
        self._log_growth = log(growth)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets own data and what was downloaded; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that agents can ask, or it echoes.
        """
        _require_server(spaces, echo=False)
        super().reset(spaces, seeds)
        self._fresh = np.zeros_like(self._own)

    def act(self, observation: Arrays) -> Any:
        """Takes in own data and downloads, then acts; see :meth:`FedUCB.act`."""
        keep(observation["round"], observation["pulled_context"], observation["last_reward"], self._fresh)
        self._fresh[self._send] = 0.0
        return super().act(observation)

    def _wants(self, observation: Arrays, arm: Array) -> None:
        assert self._told is not None
        base = (self._own - self._fresh + self._told.statistic)[:, :, 0]
        has_grown(
            observation.get("active", self._everyone), observation["contexts"], arm, base,
            self._fresh[:, :, 0], self._ridge, self._log_growth, self._send,
        )  # fmt: skip
