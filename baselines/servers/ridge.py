"""The server policy that solves the ridge regression on all that agents have uploaded."""

import numpy as np
from gymnasium import spaces

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import variance_of


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
