"""The server policy that maximises the likelihood of the logistic model on all that agents have told it."""

import numpy as np

from fedbandit_envs.baselines.linear.telling import told
from fedbandit_envs.baselines.logistic.fit import PoolFeatures, maximise
from fedbandit_envs.baselines.policy import require_uploads
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec


class GLMServer:
    """Answers V^-1 and V w: w maximises the likelihood with a ridge penalty, and V = ridge I + sum x x^T of all data.

    Agents tell the server every observation (:class:`~fedbandit_envs.baselines.linear.telling.TellingReporter`). No
    message may be lost.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["UCB-GLM-shared"].wrap(make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2))
        >>> env.reset_batch([0]).observation["server_moment"].shape
        (1, 3, 2)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(self, ridge: float = 2.0) -> None:
        """Sets the ridge, > 0.

        Raises:
            TypeError: ``ridge`` is no number.
            ValueError: ``ridge`` is not positive.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of ``inverse``, ``(dim, dim)``, and ``moment``, ``(dim,)``.

        Raises:
            UnfitError: Agents do not tell their observations.
        """
        require_uploads(spec, "context", "index", "reward")
        (dim,) = spec.observation["pulled_context"].shape or (0,)
        shapes = {"inverse": [dim, dim], "moment": [dim]}
        return {name: {"shape": shape, "dtype": "float64"} for name, shape in shapes.items()}

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Forgets all observations; see :meth:`.ServerPolicy.reset`."""
        self._pool = PoolFeatures(spec, len(seeds))
        rows, size, dim = self._pool.known.shape
        self._pulls, self._rewards = np.zeros((rows, 1, size), np.int64), np.zeros((rows, 1, size))
        self._gram = np.zeros((rows, dim, dim)) + self._ridge * np.eye(dim)
        self._model = np.zeros((rows, 1, dim))
        return self._solved()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes observations in and maximises the likelihood; see :meth:`.ServerPolicy.answer`."""
        replica, x, index, y = told(uploads, mask, self._pulls.shape[2])
        self._pool.known[replica, index] = x
        np.add.at(self._pulls[:, 0], (replica, index), 1)
        np.add.at(self._rewards[:, 0], (replica, index), y)
        np.add.at(self._gram, replica, x[:, :, np.newaxis] * x[:, np.newaxis])
        maximise(self._pool.known, self._pulls, self._rewards, self._ridge, self._model)
        return self._solved()

    def _solved(self) -> Arrays:
        moment = (self._gram @ self._model[:, 0, :, np.newaxis])[..., 0]
        return {"inverse": np.linalg.inv(self._gram), "moment": moment}
