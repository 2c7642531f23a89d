"""Server policies that average uploads, or solve one regression on the data of all agents."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.baselines.linear.served import told
from fedbandit_envs.baselines.logistic.kernels import PoolFeatures, maximise
from fedbandit_envs.baselines.policy import UnfitError, require_fixed, require_uploads
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.buffers import zeros
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import COVARIANCE, variance_of


class AverageServer:
    """Answers the mean of the agents' latest uploads, over all agents that have uploaded (federated averaging).

    With models as messages (:class:`~fedbandit_envs.wrappers.Messages`) this is the server of federated averaging
    (McMahan et al. 2017) with equal weights. With statistics it is the mean of their latest growth. Where uploads
    announce the variance of independent noise, the answer announces that of the mean.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(arms_v0.parallel_env(num_agents=4), schedule="every_round", policy="average")
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.array([[0, 0, 0, 1]]))
        >>> step.observation["server_pulls"][0, 0, :2].tolist()
        [0.75, 0.25]
    """

    def downloads(self, spec: PolicySpec) -> dict[str, spaces.Box]:
        """Returns a space for each array that agents release, of the same shape, float64."""
        return {
            name: spaces.Box(-np.inf, np.inf, space.shape, np.float64) for name, space in spec.release.items()
        }

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all uploads."""
        rows = len(seeds), spec.agents
        self._last = zeros(spec.release, rows, np.float64)
        self._seen = np.zeros(rows, np.bool_)

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Returns the means by name, ``(replicas, ...)``; 0 where nobody has uploaded yet."""
        self._seen |= mask
        number = np.maximum(self._seen.sum(axis=1), 1)
        means = {}
        for name, last in self._last.items():
            last[mask] = uploads[name][mask]
            # The variance of a mean of independent noises is the sum of their variances over the number squared.
            divisor = number**2 if name == COVARIANCE or name.endswith(variance_of("")) else number
            means[name] = last.sum(axis=1) / divisor.reshape(-1, *(1,) * (last.ndim - 2))
        return means


class RidgeServer:
    """Answers the ridge estimate from all uploads, and the inverse of its regularised Gram matrix.

    Agents upload sums of [x; y][x; y]^T over contexts x and rewards y, which contain G = sum x x^T and b = sum y x. The
    server answers ``theta`` = V^-1 b and ``inverse`` = V^-1 with V = ridge I + G, so that no agent has to factorise a
    matrix. Noise in uploads can give G negative eigenvalues, which are replaced by 0.

    Example:
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="every_round", policy={"name": "ridge", "ridge": 0.5})
        >>> {name: space.shape for name, space in env.single_observation_space.items() if "server" in name}
        {'server_inverse': (2, 2), 'server_mask': (1,), 'server_theta': (2,)}
    """

    def __init__(self, ridge: float = 1.0) -> None:
        """Sets the multiple of I that is added to the Gram matrix.

        Args:
            ridge: The multiple, > 0.

        Raises:
            TypeError: ``ridge`` is no number.
            ValueError: ``ridge`` is not positive.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def downloads(self, spec: PolicySpec) -> dict[str, spaces.Box]:
        """Returns the spaces of ``theta``, ``(dim,)``, and of ``inverse``, ``(dim, dim)``.

        Raises:
            UnfitError: Agents do not release exactly one square matrix.
        """
        dim = self._matrix(spec)[1] - 1
        return {
            "theta": spaces.Box(-np.inf, np.inf, (dim,), np.float64),
            "inverse": spaces.Box(-np.inf, np.inf, (dim, dim), np.float64),
        }

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all uploads."""
        self._name, side = self._matrix(spec)
        self._total = np.zeros((len(seeds), side, side))

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Returns ``theta``, ``(replicas, dim)``, and ``inverse``, ``(replicas, dim, dim)``."""
        self._total += uploads[self._name].sum(axis=1)
        values, vectors = np.linalg.eigh(self._total[:, :-1, :-1])
        scaled = vectors / (np.maximum(values, 0.0) + self._ridge)[:, np.newaxis]
        inverse = scaled @ vectors.swapaxes(1, 2)
        return {"theta": (inverse @ self._total[:, :-1, -1:])[..., 0], "inverse": inverse}

    @staticmethod
    def _matrix(spec: PolicySpec) -> tuple[str, int]:
        """Returns the name of the square matrix that agents release, and its number of rows."""
        announced = {variance_of(name) for name in spec.release}
        shapes = {name: space.shape or () for name, space in spec.release.items() if name not in announced}
        square = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == shape[1] > 1]
        if len(square) != 1:
            raise UnfitError(f"policy is 'ridge', and agents release {shapes}; one square matrix is required")
        return square[0], shapes[square[0]][0]


class DisjointServer:
    """Answers the ridge estimate ``theta`` = V_a^-1 sum y x and ``inverse`` = V_a^-1 for each arm a.

    Here V_a = ridge I + sum x x^T over all pulls of arm a, with contexts x and rewards y. Agents tell the server every
    observation (:class:`~fedbandit_envs.baselines.linear.served.TellingReporter`); so
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


class GLMServer:
    """Answers V^-1 and V w: w maximises the likelihood with a ridge penalty, and V = ridge I + sum x x^T of all data.

    Agents tell the server every observation (:class:`~fedbandit_envs.baselines.linear.served.TellingReporter`). No
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
