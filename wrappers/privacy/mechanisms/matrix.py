"""Continual release by matrix mechanisms: sums over all that an agent has released have little noise, however many."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.noise_variance import with_variances
from fedbandit_envs.core.sensitivity import Change, Sensitivity
from fedbandit_envs.randomness.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.budget import Budget, GivenBudget
from fedbandit_envs.wrappers.privacy.flat import flatten, unflatten
from fedbandit_envs.wrappers.privacy.mechanisms.blt import BltNoise
from fedbandit_envs.wrappers.privacy.mechanisms.mechanism import Generators, Mechanism
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import PrefixNoise
from fedbandit_envs.wrappers.privacy.mechanisms.sqrt_toeplitz import SqrtToeplitzNoise
from fedbandit_envs.wrappers.privacy.mechanisms.tree import HonakerNoise, TreeNoise
from fedbandit_envs.wrappers.privacy.privatizer import OnExhausted, Privatizer
from fedbandit_envs.wrappers.transport.schedule import Schedule, make_schedule

MatrixName = Literal["sqrt_toeplitz", "blt", "tree", "honaker"]
PlannedReleases = int | Schedule | str | Mapping[str, Any] | None

NOISES: dict[MatrixName, type[PrefixNoise]] = {
    "sqrt_toeplitz": SqrtToeplitzNoise,
    "blt": BltNoise,
    "tree": TreeNoise,
    "honaker": HonakerNoise,
}
"""The noise of prefix sums by each factorisation, given the planned number of releases."""

# With more releases "sqrt_toeplitz" needs much time and memory; the noise of "blt" is at most 1.0004 times as large.
_FEW = 64


@dataclass
class MatrixMechanism(Mechanism):
    """Adds correlated noise to the releases of an agent, such that their sums have little, as in continual release.

    All releases of an agent are one mechanism, (epsilon, delta) private under ``adjacency`` as long as there are no
    more than planned. Agents release independently, each in its own time.

    The noise multiplier is the standard deviation s of one draw, in units of sensitivity. Symmetric statistics get
    symmetric noise, that of a matrix of such draws averaged with its transpose: N = (Nhat + Nhat^T)/sqrt(2), where
    entries of Nhat have sigma_N = s/sqrt(2), so the diagonal has the standard deviation s and the rest sigma_N. A
    symmetric change of Frobenius norm F then has mu = F/s in one draw, and F/s times the largest column norm of the
    factorisation in all.

    The variance in releases is by how much that of the noise on the sums has grown, half as much off the diagonal of a
    symmetric statistic as on it. Its space is bounded by the largest variance that a sum may come to have: for the
    horizon and a draw of the environment before the first reset, and from each reset on for that episode.

    Example:
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
        >>> from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
        >>> env = Privatizer(parallel_env(), MatrixMechanism(1.0, 1e-5, "honaker", releases=50))

    Attributes:
        epsilon: Of all releases of an agent together, as all that follows in :class:`.ContinualPrivatizer`.
        delta: Likewise.
        matrix: The factorisation, there called ``mechanism``.
        sigma: Likewise.
        releases: Likewise.
        adjacency: Likewise.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range.
    """

    epsilon: float
    delta: float
    matrix: MatrixName | None = None
    sigma: Literal["exact", "printed"] = "exact"
    releases: PlannedReleases = None
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        """Refuses bad values."""
        require_number("delta", self.delta, 0, 1, open_below=True, open_above=True)
        if not self.epsilon > 0:
            raise ValueError(f"epsilon is {self.epsilon!r}; a number > 0 (infinity for no noise) is required")
        require_choice("mechanism", self.matrix, (None, *NOISES))
        require_choice("sigma", self.sigma, ("exact", "printed"))
        if self.sigma == "printed" and not (self.matrix and issubclass(NOISES[self.matrix], TreeNoise)):
            raise ValueError(
                f"sigma is 'printed', FedUCB's formula in the depth of a tree, and mechanism is {self.matrix!r}; one "
                "that has a tree, or sigma 'exact', is required"
            )
        self._planned = _checked_plan(self.releases)

    def prepare(self, env: FederatedEnv) -> None:
        """Calibrates to a draw of the environment; see :meth:`Mechanism.prepare`."""
        # The space of releases is needed before the first reset. A copy leaves the environment as it came.
        trial = deepcopy(env)
        trial.reset_batch([0])
        self._calibrate(trial.sensitivity(), env.max_cycles)

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; see :meth:`Mechanism.start`."""
        self._calibrate(sensitivity, horizon)
        self._drawn, share = _layout(sensitivity)
        self._draws = int(self._drawn.max()) + 1
        self._generators = generators
        self._deviation = self._noise_multiplier * flatten(sensitivity.scale) * share
        self._variance = self._deviation**2
        self._noise.start(len(generators), self._draws)

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space with variances, within the bounds that noise has since it was last calibrated."""
        return with_variances(released, -self._worst_variance, self._worst_variance)

    def _calibrate(self, sensitivity: Sensitivity, horizon: int) -> None:
        """Sets the planned releases, their noise and its multiplier, and how neighbours differ in all of them."""
        protected = next(iter(sensitivity.changes)) if self.adjacency is None else self.adjacency
        require_choice("adjacency", protected, sensitivity.changes)
        for name, array in sensitivity.scale.items():
            # Both halves have one draw: at two scales it would cancel out of their difference.
            if sensitivity.symmetric and not np.array_equal(array, array.swapaxes(-1, -2)):
                raise ValueError(f"sensitivity of {name!r} is not symmetric; as the statistic is, it must be")
        plan = self._planned
        self.max_releases = plan if isinstance(plan, int) else int(plan.count(horizon))
        # Where nothing is planned nothing will be released, but noise needs a size.
        planned = max(self.max_releases, 1)
        self._noise = NOISES[self.matrix or ("sqrt_toeplitz" if planned <= _FEW else "blt")](planned)
        norm = sensitivity.changes[protected].norm
        # Sensitivity of all planned releases together, for noise whose draws have a standard deviation of 1.
        shown = norm * sqrt(self._noise.column_square(planned))
        if self.sigma == "exact":
            # A hair more than needed: rounding must not claim more than was promised.
            self._noise_multiplier = shown * analytic_noise_multiplier(self.epsilon, self.delta) * (1 + 1e-11)
        else:
            # Dubey and Pentland (NeurIPS 2020), Algorithm 2.
            depth = 1 + (planned - 1).bit_length()
            sigma = 4 * sqrt(depth) * log(2 / self.delta) / self.epsilon
            self._noise_multiplier = sqrt(2) * sigma if sensitivity.symmetric else sigma
            mu = shown / self._noise_multiplier if self._noise_multiplier else 0.0
            given = gaussian_delta(self.epsilon, mu)
            if given > self.delta:
                raise ValueError(
                    f"sigma is 'printed', whose noise gives delta {given:.3g} at epsilon {self.epsilon:g} under "
                    f"{protected}, where {self.delta:g} was asked for; 'exact' is required"
                )
        self._changes = tuple(
            # A Gaussian mechanism at k times the mu is the composition of k^2 of them.
            (adjacency, Change(max(1, ceil((change.norm / norm) ** 2 - 1e-9)), change.norm))
            for adjacency, change in sensitivity.changes.items()
        )
        largest = max(float(array.max()) for array in sensitivity.scale.values())
        self._worst_variance = self._noise.worst_variance * (self._noise_multiplier * largest) ** 2

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Adds the increments of the noise of sums; see :meth:`Mechanism.randomise`."""
        values = flatten(statistic)
        grown = np.zeros((*sends.shape, 1))
        for done in sorted(set(index[sends].tolist())):
            now = sends & (index == done)
            grown[now] = self._noise.variance(done + 1) - self._noise.variance(done)
            if self._noise_multiplier > 0:
                rows = np.flatnonzero(now)
                _add(values, rows, self._deviation, self._advance(rows, done + 1), self._drawn)
        return unflatten(values, grown * self._variance, statistic)

    def _advance(self, rows: Array, z: int) -> Array:
        """Makes the noise of agents' z-th release, ``(agents that release, draws of one)``, in units of a draw."""
        drawn = np.empty((len(rows), self._noise.draws(z), self._draws))
        # From each agent's own stream: the draws of its z-th release do not depend on other agents' releases.
        for out, row in zip(drawn, rows.tolist(), strict=True):
            self._generators[row].standard_normal(out=out)
        return self._noise.advance(rows, z, drawn.swapaxes(0, 1))

    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the event of all releases so far, which replaces the one before; see :meth:`Mechanism.events`."""
        changed: dict[Event, Array] = {}
        for done in sorted(set(index[sends].tolist())):
            now = (sends & (index == done)).astype(np.int64)
            for z, times in ((done, -now), (done + 1, now)):
                if z > 0:
                    event = self._event(z)
                    changed[event] = changed.get(event, 0) + times
        return changed

    def _event(self, z: int) -> Event:
        """Returns the event of an agent's first z releases, which are one Gaussian mechanism."""
        if self._noise_multiplier == 0:
            return Event("gaussian", np.inf, np.inf, 0.0, self._changes, releases=z)
        loss = sqrt(self._noise.column_square(z)) / self._noise_multiplier
        return Event("gaussian", loss, self.epsilon, self.delta, self._changes, releases=z)


@kernel
def _add(values: Array, rows: Array, deviation: Array, noise: Array, drawn: Array) -> None:
    """Adds to the values of agents that release the draw that each gets, times its standard deviation.

    Args:
        values: float64 ``(replicas, agents, values)``.
        rows: Which agents release, int64, counted through all replicas.
        deviation: float64 ``(replicas, agents, values)``.
        noise: float64 ``(agents that release, draws of one)``.
        drawn: Which draw each value gets, int64 ``(values,)``.
    """
    for i in range(len(rows)):
        replica, agent = divmod(rows[i], values.shape[1])
        for k in range(len(drawn)):
            values[replica, agent, k] += deviation[replica, agent, k] * noise[i, drawn[k]]


def _checked_plan(releases: PlannedReleases) -> int | Schedule:
    """Returns the planned number of releases, or the schedule that they follow.

    Raises:
        TypeError: A number of releases is no integer, or something else no schedule.
        ValueError: A number is not positive, or a schedule is not fixed in advance.
    """
    if isinstance(releases, int | float | np.number):
        require_integer("releases", releases, 1)
        return int(releases)
    schedule = make_schedule("every_round" if releases is None else releases)
    if not schedule.fixed_in_advance:
        raise ValueError(
            f"releases is {releases!r}, which leaves it to the agents; a schedule fixed in advance, the most "
            "releases of an agent, or None (as many as rounds) is required"
        )
    return schedule


def _layout(sensitivity: Sensitivity) -> tuple[Array, Array]:
    """Returns which draw of the noise each value gets, and which share of it.

    Returns:
        For each value, in the order of :func:`~fedbandit_envs.wrappers.privacy.flat.flatten`, the index of its
        draw and the share: 1, or 1/sqrt(2) off the diagonal of symmetric matrices, whose halves have the same draws.
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


class ContinualPrivatizer(Privatizer):
    """Adds noise to releases such that their sums have little, however many there are; see :class:`.MatrixMechanism`.

    Example:
        >>> from fedbandit_envs.linear_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import ContinualPrivatizer
        >>> env = ContinualPrivatizer(parallel_env(num_agents=2), epsilon=1.0, delta=1e-5, releases=3)
        >>> _ = env.reset(seed=0)
        >>> for _ in range(3):
        ...     _ = env.release([[True, True]])
        >>> round(env.privacy().epsilon, 6)
        1.0
    """

    examples = (
        {"epsilon": 1.0, "delta": 0.1},
        {"epsilon": 1.0, "delta": 0.1, "mechanism": "honaker"},
    )

    def __init__(
        self,
        env: FederatedEnv,
        epsilon: float,
        delta: float,
        mechanism: MatrixName | None = None,
        sigma: Literal["exact", "printed"] = "exact",
        releases: PlannedReleases = None,
        adjacency: Adjacency | None = None,
        budget: GivenBudget = None,
        on_exhausted: OnExhausted = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Of all releases of an agent together; infinity adds no noise.
            delta: Of all releases of an agent together.
            mechanism: ``"sqrt_toeplitz"``, the least noise, whose memory and time grow with the releases; ``"blt"``,
                as little to a thousandth, in constant memory and time; or ``"tree"`` or ``"honaker"``. None for the
                square root where 64 releases or fewer are planned, for ``"blt"`` where there are more.
            sigma: ``"exact"``, the least noise that will do, or ``"printed"``, FedUCB's for trees: sigma_N =
                4 sqrt(m) ln(2/delta)/epsilon scales, where m = 1 + ceil(log2 n), the tree's depth for n releases.
            releases: Planned number of releases of an agent, after which the budget is exhausted; or the schedule,
                fixed in advance, whose rounds count; None for as many as there are rounds.
            adjacency: The neighbouring histories that are protected; None for the first that the environment names.
            budget: See :class:`Privatizer`. By default spending is measured exactly, at ``delta`` and under
                ``adjacency``, without a limit.
            on_exhausted: Likewise.
            noise_seed: Likewise.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, ``env`` is already privatized or cannot protect
                ``adjacency``, or the printed noise would not keep the promise.
        """
        matrix = MatrixMechanism(epsilon, delta, mechanism, sigma, releases, adjacency)
        if budget is None:
            budget = Budget(delta=delta, composition="exact", adjacency=adjacency)
        super().__init__(env, matrix, budget, on_exhausted, noise_seed)
