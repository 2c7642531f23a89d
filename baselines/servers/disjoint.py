"""The server policy that solves a ridge regression for each arm on all that agents have told it."""

import numpy as np

from fedbandit_envs.baselines.linear.telling import told
from fedbandit_envs.baselines.policy import require_fixed, require_uploads
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec


class DisjointServer:
    """Answers the ridge estimate ``theta`` = V_a^-1 sum y x and ``inverse`` = V_a^-1 for each arm a.

    Here V_a = ridge I + sum x x^T over all pulls of arm a, with contexts x and rewards y. Agents tell the server every
    observation (:class:`~fedbandit_envs.baselines.linear.telling.TellingReporter`); so
    that contexts must be fixed: numbers in the pool are arms. No message may be lost.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["OFUL-disjoint-shared"].wrap(make_federation("FedFixed-v0"))
        >>> env.reset_batch([0]).observation["server_theta"].shape
        (1, 100, 10, 3)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(self, ridge: float = 1.0) -> None:
        """Sets the multiple of I in V_a, > 0.

        Raises:
            TypeError: ``ridge`` is no number.
            ValueError: ``ridge`` is not positive.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of ``theta``, ``(arms, dim)``, and of ``inverse``, ``(arms, dim, dim)``.

        Raises:
            UnfitError: Agents do not tell their observations, or arms do not stay the same.
        """
        require_uploads(spec, "context", "index", "reward")
        require_fixed(spec)
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        shapes = {"theta": [arms, dim], "inverse": [arms, dim, dim]}
        return {name: {"shape": shape, "dtype": "float64"} for name, shape in shapes.items()}

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Forgets all observations; see :meth:`.ServerPolicy.reset`."""
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        self._gram = np.zeros((len(seeds), arms, dim, dim)) + self._ridge * np.eye(dim)
        self._moment = np.zeros((len(seeds), arms, dim))
        return self._solved()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes observations in and solves the regressions; see :meth:`.ServerPolicy.answer`."""
        replica, x, arm, y = told(uploads, mask, self._gram.shape[1])
        np.add.at(self._gram, (replica, arm), x[:, :, np.newaxis] * x[:, np.newaxis])
        np.add.at(self._moment, (replica, arm), y[:, np.newaxis] * x)
        return self._solved()

    def _solved(self) -> Arrays:
        inverse = np.linalg.inv(self._gram)
        return {"theta": np.einsum("rade,rae->rad", inverse, self._moment), "inverse": inverse}
