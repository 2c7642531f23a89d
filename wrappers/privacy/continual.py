"""Continual release: the sums over all that an agent has released have little noise, however often it releases."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from math import ceil, log, sqrt
from typing import Any, Literal

import numpy as np

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_choice, require_integer, require_number
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.compiled import kernel
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.sensitivity import Change, Sensitivity
from fedbandit_envs.streams import Entropy
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier, gaussian_delta
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.announcement import with_variances
from fedbandit_envs.wrappers.privacy.budget import Budget
from fedbandit_envs.wrappers.privacy.flat import flatten, unflatten
from fedbandit_envs.wrappers.privacy.noise.blt import BltNoise
from fedbandit_envs.wrappers.privacy.noise.dyadic import DyadicNoise
from fedbandit_envs.wrappers.privacy.noise.honaker import HonakerNoise
from fedbandit_envs.wrappers.privacy.noise.prefix_noise import PrefixNoise
from fedbandit_envs.wrappers.privacy.noise.sqrt_toeplitz import SqrtToeplitzNoise
from fedbandit_envs.wrappers.privacy.noise.tree import TreeNoise
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.schedule import Schedule, make_schedule

MechanismName = Literal["sqrt_toeplitz", "blt", "tree", "honaker"]

NOISES: dict[MechanismName, type[PrefixNoise]] = {
    "sqrt_toeplitz": SqrtToeplitzNoise,
    "blt": BltNoise,
    "tree": TreeNoise,
    "honaker": HonakerNoise,
}
"""The mechanisms of continual release, given the planned number of releases."""

_FEW = 64


def least_noise(releases: int) -> MechanismName:
    """Names the mechanism for a planned number of releases where none is asked for.

    That is the square root itself for 64 at most, and beyond, where its time and memory tell, the buffers that make as
    little noise to within 1.0004.
    """
    return "sqrt_toeplitz" if releases <= _FEW else "blt"


class ContinualPrivatizer(Privatizer):
    """Releases increments that add up to the true sums plus the noise of a mechanism of continual release.

    All releases of an agent are one mechanism, (epsilon, delta) private under ``adjacency`` as long as there are no
    more than planned. Agents release independently, each in its own time.

    A draw of the noise has a standard deviation of s scales. Symmetric statistics get symmetric noise, that of a
    matrix of such draws averaged with its transpose: N = (Nhat + Nhat^T)/sqrt(2), where entries of Nhat have
    sigma_N = s/sqrt(2), so the diagonal has the standard deviation s and the rest sigma_N. A symmetric change of
    Frobenius norm F then has mu = F/s in one draw, and F/s times the largest column norm of the mechanism in all.

    What releases say of their noise is by how much its variance on the sums has changed, half as much off the diagonal
    of a symmetric statistic as on it. The bound of its space in ``single_release_space`` is the largest variance that a
    sum may come to have; it stands for the horizon and a draw of the environment at construction, and from each reset
    on for that episode.
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
        mechanism: MechanismName | None = None,
        sigma: Literal["exact", "printed"] = "exact",
        releases: int | Schedule | str | Mapping[str, Any] | None = None,
        adjacency: Adjacency | None = None,
        budget: Budget | Mapping[str, Any] | None = None,
        on_exhausted: Literal["raise", "silence"] = "raise",
        noise_seed: Entropy | None = None,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, not yet privatized.
            epsilon: Of all releases of an agent together; infinity adds no noise.
            delta: Of all releases of an agent together.
            mechanism: ``"sqrt_toeplitz"``, the least noise, whose memory and time grow with the releases; ``"blt"``,
                as little to a thousandth, in constant memory and time; or ``"tree"`` or ``"honaker"``. None for
                what :func:`least_noise` names: the square root for a few releases, ``"blt"`` for many.
            sigma: ``"exact"``, the least noise that will do, or ``"printed"``, FedUCB's for trees: sigma_N =
                4 sqrt(m) ln(2/delta)/epsilon scales, where m = 1 + ceil(log2 n), the tree's depth for n releases.
            releases: Planned number of releases of an agent, after which the budget is exhausted; or the schedule,
                fixed in advance, whose rounds count; None for as many as there are rounds.
            adjacency: The neighbouring histories that are protected; None for the first that the environment names.
            budget: How spending is measured and limited, a :class:`Budget` or its arguments. By default exactly, at
                ``delta`` and under ``adjacency``, without a limit.
            on_exhausted: Whether a release that would exceed the budget is an error or does not happen silently
                (:meth:`permit` then says so in advance).
            noise_seed: Entropy of its own for the noise, a non-negative integer of any size or several; None lets it
                follow from the episode's seed. See :class:`~fedbandit_envs.wrappers.privacy.privatizer.Privatizer`.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A parameter is out of its range, ``env`` is already privatized or cannot protect
                ``adjacency``, or the printed noise would not keep the promise.
        """
        require_number("delta", delta, 0, 1, open_below=True, open_above=True)
        if budget is None:
            budget = Budget(delta=delta, composition="exact", adjacency=adjacency)
        super().__init__(env, epsilon, Budget.of(budget), on_exhausted, noise_seed)
        require_choice("mechanism", mechanism, (None, *NOISES))
        require_choice("sigma", sigma, ("exact", "printed"))
        if sigma == "printed" and not (mechanism and issubclass(NOISES[mechanism], DyadicNoise)):
            raise ValueError(
                f"sigma is 'printed', FedUCB's formula in the depth of a tree, and mechanism is {mechanism!r}; one "
                "that has a tree, or sigma 'exact', is required"
            )
        self._epsilon = float(epsilon)
        self._delta = float(delta)
        self._mechanism = mechanism
        self._sigma = sigma
        self._planned = _checked_plan(releases)
        self._adjacency = adjacency
        # What is released has its space before the first reset, which makes known how large noise is. A copy leaves
        # the environment as it came.
        trial = deepcopy(env)
        trial.reset_batch([0])
        self._calibrate(trial.sensitivity())

    def _prepare(self, sensitivity: Sensitivity) -> None:
        self._calibrate(sensitivity)
        scale = flatten(sensitivity.scale)
        self._drawn, share = _layout(sensitivity)
        self._draws = int(self._drawn.max()) + 1
        self._streams = [generator for replica in self._generators for generator in replica]
        self._deviation = self._multiplier * scale * share
        self._variance = self._deviation**2
        self._noise.start(len(self._streams), self._draws)

    def _calibrate(self, sensitivity: Sensitivity) -> None:
        """Finds the standard deviation of a draw, in scales, and what the releases betray."""
        protected = next(iter(sensitivity.changes)) if self._adjacency is None else self._adjacency
        require_choice("adjacency", protected, sensitivity.changes)
        for name, array in sensitivity.scale.items():
            # Both halves have one draw: at two scales it would cancel out of their difference.
            if sensitivity.symmetric and not np.array_equal(array, array.swapaxes(-1, -2)):
                raise ValueError(f"sensitivity of {name!r} is not symmetric; as the statistic is, it must be")
        self._releases = self._count()
        # Where nothing is planned nothing will be released, but noise needs a size.
        planned = max(self._releases, 1)
        self._noise = NOISES[self._mechanism or least_noise(planned)](planned)
        norm = sensitivity.changes[protected].norm
        betrayed = norm * sqrt(self._noise.column_square(self._noise.releases))
        if self._sigma == "exact":
            # A hair more than needed: rounding must not claim more than was promised.
            self._multiplier = betrayed * analytic_noise_multiplier(self._epsilon, self._delta) * (1 + 1e-11)
        else:
            self._multiplier = self._printed(sensitivity.symmetric)
            given = gaussian_delta(self._epsilon, betrayed / self._multiplier) if self._multiplier else 0.0
            if given > self._delta:
                raise ValueError(
                    f"sigma is 'printed', whose noise gives delta {given:.3g} at epsilon {self._epsilon:g} under "
                    f"{protected}, where {self._delta:g} was asked for; 'exact' is required"
                )
        self._changes = tuple(
            # A Gaussian mechanism at k times the mu is the composition of k^2 of them.
            (adjacency, Change(max(1, ceil((change.norm / norm) ** 2 - 1e-9)), change.norm))
            for adjacency, change in sensitivity.changes.items()
        )
        largest = max(float(array.max()) for array in sensitivity.scale.values())
        worst = self._noise.worst_variance * (self._multiplier * largest) ** 2
        self.single_release_space = with_variances(self.env.single_release_space, -worst, worst)

    def _count(self) -> int:
        """Returns the planned number of releases for the present horizon."""
        if self._planned is None:
            return self.env.max_cycles
        if isinstance(self._planned, int):
            return self._planned
        return int(self._planned(self.env.max_cycles))

    def _printed(self, symmetric: bool) -> float:
        """Returns the standard deviation of a draw, in scales, by Dubey and Pentland (NeurIPS 2020), Algorithm 2."""
        depth = 1 + (self._noise.releases - 1).bit_length()
        sigma = 4 * sqrt(depth) * log(2 / self._delta) / self._epsilon
        return sqrt(2) * sigma if symmetric else sigma

    def _randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        values = flatten(statistic)
        if self._multiplier > 0:
            for done in _distinct(index[sends]):
                rows = np.flatnonzero(sends & (index == done))
                _add(values, rows, self._deviation, self._advance(rows, done + 1), self._drawn)
        return unflatten(values, statistic)

    def _announce(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        grown = np.zeros((*sends.shape, 1))
        for done in _distinct(index[sends]):
            now = sends & (index == done)
            grown[now] = self._noise.variance(done + 1) - self._noise.variance(done)
        variances = unflatten(grown * self._variance, statistic)
        return {variance_of(name): array for name, array in variances.items()}

    def _advance(self, rows: Array, z: int) -> Array:
        """Makes the noise of agents' z-th release, ``(agents that release, draws of one)``, in units of a draw."""
        drawn = np.empty((len(rows), self._noise.draws(z), self._draws))
        # From each agent's own stream: its z-th release has the same draws whoever else releases and when.
        for out, row in zip(drawn, rows.tolist(), strict=True):
            self._streams[row].standard_normal(out=out)
        return self._noise.advance(rows, z, drawn.swapaxes(0, 1))

    def _plan(self, sends: Array, index: Array) -> dict[Event, Array]:
        plan: dict[Event, Array] = {}
        for done in _distinct(index[sends]):
            now = (sends & (index == done)).astype(np.int64)
            for z, times in ((done, -now), (done + 1, now)):
                if z > 0:
                    event = self._event(z)
                    plan[event] = plan.get(event, 0) + times
        return plan

    def _event(self, z: int) -> Event:
        """Describes an agent's first z releases."""
        if self._multiplier == 0:
            return Event("gaussian", np.inf, np.inf, 0.0, self._changes, releases=z)
        loss = sqrt(self._noise.column_square(z)) / self._multiplier
        return Event("gaussian", loss, self._epsilon, self._delta, self._changes, releases=z)


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


def _distinct(counts: Array) -> list[int]:
    """Returns the different ones of a few numbers, in rising order: less work than ``np.unique``, for each release."""
    return sorted(set(counts.tolist()))


def _checked_plan(releases: Any) -> int | Callable[[int], int] | None:
    """Returns what says how many releases are planned: a number, a function of the horizon, or None."""
    if releases is None:
        return None
    if isinstance(releases, int | float | np.number):
        require_integer("releases", releases, 1)
        return int(releases)
    schedule = make_schedule(releases)
    if not schedule.fixed_in_advance:
        raise ValueError(
            f"releases is {releases!r}, which leaves it to the agents; a schedule fixed in advance, the most "
            "releases of an agent, or None (as many as rounds) is required"
        )
    count: Callable[[int], int] | None = getattr(schedule, "count", None)
    if count is None:
        raise TypeError(f"releases is {releases!r}, which has no count(horizon); one that has it is required")
    return count


def _layout(sensitivity: Sensitivity) -> tuple[Array, Array]:
    """Says which draw each value gets, and which share of it.

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
