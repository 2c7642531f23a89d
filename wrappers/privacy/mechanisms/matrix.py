"""Continual release by matrix mechanisms: an agent's releases have correlated noise, so that their sums have little."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import ceil, log, sqrt
from typing import Literal

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_epsilon, require_number, require_size
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.ledger import flatten
from fedbandit_envs.core.privacy import AGENT, Adjacency, Change, Sensitivity, with_variances
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.additive import (
    Generators,
    Mechanism,
    PlannedReleases,
    checked_plan,
    require_one_of,
    unflatten,
)
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import (
    BltNoise,
    PrefixNoise,
    SqrtToeplitzNoise,
    TreeNoise,
)

MatrixName = Literal["sqrt_toeplitz", "blt", "tree", "honaker", "independent"]

NOISES: dict[MatrixName, Callable[[int], PrefixNoise]] = {
    "sqrt_toeplitz": SqrtToeplitzNoise,
    "blt": BltNoise,
    "tree": TreeNoise,
    "honaker": partial(TreeNoise, estimates=True),
    "independent": PrefixNoise,
}
"""What makes the noise of prefix sums, by the name of the factorisation, given the planned number of releases."""

# The largest number of planned releases for which "sqrt_toeplitz" is the default. For more it needs much time and
# memory, and the standard deviation of the noise of "blt" is at most 1.0004 times as large.
_FEW = 64


@dataclass
class MatrixMechanism(Mechanism):
    """Adds correlated noise to the releases of an agent, so that sums of its releases have little (continual release).

    All releases of an agent together are (epsilon, delta) private under ``adjacency``, as long as there are no
    more than planned. Agents release independently of each other, each at its own times.

    The noise multiplier is the standard deviation s of one random draw, in units of sensitivity. Symmetric statistics
    get symmetric noise N = (Nhat + Nhat^T)/sqrt(2), where Nhat has independent entries of standard deviation
    sigma_N = s/sqrt(2): so entries on the diagonal of N have the standard deviation s, and all others sigma_N. A
    symmetric change of Frobenius norm F then has the privacy loss mu = F/s if it affects one draw, and F/s times the
    largest column norm of the factor C (:mod:`.prefix_noise`) over all releases. Under the adjacency ``agent``, where
    F bounds the change of every release, it is F/s times the norm of the sum of all columns.

    The variance that a release contains is the growth of the variance of the noise in the sum of the agent's releases;
    it is half as large off the diagonal of a symmetric statistic as on it. The bounds of its space are plus and minus
    the largest variance that such a sum can have. Before the first reset they are calculated for the environment's
    horizon and one drawn instance, from each reset on for that episode.

    Example:
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Privatizer
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
        >>> env = Privatizer(parallel_env(), MatrixMechanism(1.0, 1e-5, "honaker", releases=50))

    Attributes:
        epsilon: Epsilon of all releases of an agent together; infinity adds no noise; None if
            ``noise_multiplier`` is given.
        delta: Delta of all releases of an agent together.
        matrix: Name of the factorisation; the argument ``mechanism`` of :class:`.ContinualPrivatizer`.
        sigma: ``"exact"`` or ``"printed"`` noise, see :class:`.ContinualPrivatizer`.
        releases: Planned number of releases of an agent, a schedule, or None for one release in each round.
        adjacency: The neighbouring histories that are protected; None for the first that the environment names.
        noise_multiplier: The noise multiplier s, from which epsilon follows; None to calibrate it to ``epsilon``.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range.
    """

    correlated = True
    epsilon: float | None
    delta: float
    matrix: MatrixName | None = None
    sigma: Literal["exact", "printed"] = "exact"
    releases: PlannedReleases = None
    adjacency: Adjacency | None = None
    noise_multiplier: float | None = None
    takes_clip = True

    def __post_init__(self) -> None:
        """Checks the arguments; the errors are those of the class."""
        require_number("delta", self.delta, 0, 1, open_below=True, open_above=True)
        require_choice("sigma", self.sigma, ("exact", "printed"))
        require_one_of(epsilon=self.epsilon, noise_multiplier=self.noise_multiplier)
        if self.epsilon is None:
            require_size("noise_multiplier", self.noise_multiplier)
        else:
            require_epsilon(self.epsilon)
        require_choice("mechanism", self.matrix, (None, *NOISES))
        if self.sigma == "printed" and (self.epsilon is None or self.matrix not in ("tree", "honaker")):
            raise ValueError(
                f"sigma is 'printed', FedUCB's formula in epsilon and the depth of a tree, epsilon is {self.epsilon!r} "
                f"and mechanism {self.matrix!r}; an epsilon and a mechanism that has a tree, or sigma 'exact', are "
                "required"
            )
        self._planned, self.total_delta = checked_plan(self.releases), self.delta

    def prepare(self, env: FederatedEnv) -> None:
        """Calibrates the noise to one drawn instance of the environment; see :meth:`Mechanism.prepare`."""
        # The space of releases is needed before the first reset. A copy is reset here, so that the environment itself
        # does not change.
        trial = deepcopy(env)
        trial.reset_batch([0])
        self._calibrate(trial.sensitivity(), env.max_cycles)

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode: calibrates the noise to its sensitivity and horizon; see :meth:`Mechanism.start`."""
        self._calibrate(sensitivity, horizon)
        self._drawn, self._share = _layout(sensitivity)
        self._draws = int(self._drawn.max()) + 1
        self._generators, self._scale = generators, flatten(sensitivity.scale)
        self._deviation = self._noise_multiplier * self._scale * self._share
        self._variance = self._deviation**2
        self._noise.start(len(generators), self._draws)

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of noisy releases, which contain variances within the bounds of the last calibration."""
        # A release announces by how much the variance of the sum of releases grows. It never shrinks if their noise is
        # independent.
        low = 0.0 if type(self._noise) is PrefixNoise else -self._worst_variance
        return with_variances(released, low, self._worst_variance)

    def _calibrate(self, sensitivity: Sensitivity, horizon: int) -> None:
        """Sets the planned number of releases, the noise and its multiplier, and how neighbours can differ."""
        protected = self._protected(sensitivity.changes)
        for name, array in sensitivity.scale.items():
            # The entries (i, j) and (j, i) share one draw. If their scales differed, an observer could combine the two
            # noisy entries so that the draw cancels.
            if sensitivity.symmetric and not np.array_equal(array, array.swapaxes(-1, -2)):
                raise ValueError(f"sensitivity of {name!r} is not symmetric; as the statistic is, it must be")
        plan = self._planned
        self.max_releases = plan if isinstance(plan, int) else int(plan.count(horizon))
        # With 0 planned releases nothing will be released; the noise still needs a size of at least 1.
        planned = max(self.max_releases, 1)
        correlated: MatrixName = "sqrt_toeplitz" if planned <= _FEW else "blt"
        self._noise = NOISES[self.matrix or ("independent" if protected == AGENT else correlated)](planned)
        # L2 sensitivity of all planned releases together, in units of the scale of the statistic. It would be mu if
        # each draw had a standard deviation of one scale; below, the standard deviation is chosen.
        norm, square = sensitivity.changes[protected].norm, self._square(protected, planned)
        shown = norm * sqrt(square)
        self._epsilon = self.epsilon if self.epsilon is not None else 0.0
        if self.noise_multiplier is not None:
            self._noise_multiplier = float(self.noise_multiplier)
            self._epsilon = float(gaussian_epsilon(self.delta, shown / self._noise_multiplier))
        elif self.sigma == "exact":
            # Slightly more noise than needed, so that rounding cannot make the claimed epsilon exceed the given one.
            self._noise_multiplier = (
                shown * analytic_noise_multiplier(self._epsilon, self.delta) * (1 + 1e-11)
            )
        else:
            # Dubey and Pentland (NeurIPS 2020), Algorithm 2.
            depth = 1 + (planned - 1).bit_length()
            sigma = 4 * sqrt(depth) * log(2 / self.delta) / self._epsilon
            self._noise_multiplier = sqrt(2) * sigma if sensitivity.symmetric else sigma
            mu = shown / self._noise_multiplier if self._noise_multiplier else 0.0
            given = gaussian_delta(self._epsilon, mu)
            if given > self.delta:
                raise ValueError(
                    f"sigma is 'printed', whose noise gives delta {given:.3g} at epsilon {self._epsilon:g} under "
                    f"{protected}, where {self.delta:g} was asked for; 'exact' is required"
                )
        self._changes = tuple(
            # A Gaussian mechanism whose privacy parameter is k mu is as private as k^2 Gaussian mechanisms with mu
            # together. So under an adjacency whose change of all planned releases together has k times the norm of the
            # protected one, basic composition counts epsilon k^2 times.
            (adjacency, Change(max(1, ceil(times - 1e-9)), change.norm))
            for adjacency, change in sensitivity.changes.items()
            for times in ((change.norm / norm) ** 2 * (self._square(adjacency, planned) / square),)
        )
        largest = max(float(array.max()) for array in sensitivity.scale.values())
        self._worst_variance = self._noise.worst_variance * (self._noise_multiplier * largest) ** 2

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a release with noise, and how much it adds to the variance of the noise in the sum of releases.

        See :meth:`Mechanism.randomise`.
        """
        values = flatten(statistic)
        grown = np.zeros((*sends.shape, 1))
        for done in sorted(set(index[sends].tolist())):
            now = sends & (index == done)
            grown[now] = self._noise.variance(done + 1) - self._noise.variance(done)
            if self._noise_multiplier > 0:
                rows = np.flatnonzero(now)
                draws = np.empty((len(rows), self._noise.draws(done + 1), self._draws))
                # Each agent has its own random stream, so that its draws do not depend on other agents' releases.
                for out, row in zip(draws, rows.tolist(), strict=True):
                    self._generators[row].standard_normal(out=out)
                noise = self._noise.advance(rows, done + 1, draws.swapaxes(0, 1))
                _add(values, rows, self._deviation, noise, self._drawn)
        return unflatten(values, grown * self._variance, statistic)

    def sizes(self, index: Array) -> tuple[Array, Array]:
        """Returns the scale of each number, and the size of its draws in that unit; see :meth:`.Gaussian.sizes`."""
        return self._scale, np.broadcast_to(self._noise_multiplier * self._share, self._scale.shape)

    def _square(self, adjacency: Adjacency, z: int) -> float:
        """Returns the squared norm of the joint change of an agent's first z releases, for windows of change 1.

        One window changes, or under the adjacency ``agent`` every window.
        """
        return self._noise.sum_square(z) if adjacency == AGENT else self._noise.column_square(z)

    def joint_event(self, z: int) -> Event:
        """Returns the event of an agent's first z releases, which are one Gaussian mechanism.

        Its loss is that of a change of norm 1 in one window. The norms of its changes are those of one window; under
        the adjacency ``agent``, of the one window whose change would have the loss of the change of all windows.
        """
        if self._noise_multiplier == 0:
            return Event("gaussian", np.inf, np.inf, 0.0, self._changes, releases=z)
        one = self._noise.column_square(z)
        changes = tuple(
            (adjacency, change._replace(norm=change.norm * sqrt(self._square(adjacency, z) / one)))
            for adjacency, change in self._changes
        )
        loss = sqrt(one) / self._noise_multiplier
        return Event("gaussian", loss, self._epsilon, self.delta, changes, releases=z)


@kernel
def _add(values: Array, rows: Array, deviation: Array, noise: Array, drawn: Array) -> None:
    """Adds noise to the numbers released by some agents: each number gets one draw times its standard deviation.

    Args:
        values: The numbers, which the noise is added to, float64 ``(replicas, agents, values)``.
        rows: Indices ``replica * agents + agent`` of the agents that release, int64.
        deviation: Standard deviation of the noise in each number, float64 ``(replicas, agents, values)``.
        noise: Draws of variance 1, float64 ``(agents that release, draws)``.
        drawn: Index of the draw that each number gets, int64 ``(values,)``.
    """
    for i in range(len(rows)):
        replica, agent = divmod(rows[i], values.shape[1])
        for k in range(len(drawn)):
            values[replica, agent, k] += deviation[replica, agent, k] * noise[i, drawn[k]]


def _layout(sensitivity: Sensitivity) -> tuple[Array, Array]:
    """Returns which random draw each number in a release gets as noise, and the factor of that draw.

    Returns:
        For each number, in the order of :func:`.flatten`, the index of its
        draw, and the factor: 1, or 1/sqrt(2) off the diagonal of a symmetric matrix. Both halves of a symmetric matrix
        get the same draws.
    """
    places: list[Array] = []
    shares: list[Array] = []
    drawn = 0
    for array in sensitivity.scale.values():
        shape = array.shape[2:]
        place = np.arange(drawn, drawn + int(np.prod(shape))).reshape(shape)
        share = np.ones(shape)
        if sensitivity.symmetric:
            place = np.minimum(place, place.swapaxes(-1, -2))
            share[..., ~np.eye(shape[-1], dtype=np.bool_)] = 1 / sqrt(2)
        drawn += place.size
        places.append(place.ravel())
        shares.append(share.ravel())
    _, places_in_use = np.unique(np.concatenate(places), return_inverse=True)
    return places_in_use.ravel(), np.concatenate(shares)
