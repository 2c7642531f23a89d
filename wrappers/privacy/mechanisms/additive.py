"""The interface of mechanisms, and those with independent noise: Gaussian, Laplace and randomised response."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import compress
from math import ceil, prod, sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays, spread
from fedbandit_envs.basics.checks import (
    require_choice,
    require_epsilon,
    require_integer,
    require_number,
    require_size,
)
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.ledger import flatten
from fedbandit_envs.core.privacy import (
    AGENT,
    COVARIANCE,
    Adjacency,
    Change,
    Changes,
    Pair,
    Sensitivity,
    variance_of,
    with_variances,
)
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.transport.schedule import Schedule, make_schedule

Generators = Sequence[np.random.Generator]
"""Random generators, one for each agent of each replica; that of agent j in replica r has index ``r * agents + j``."""


class Mechanism(ABC):
    """A mechanism: randomises the releases of agents and returns the privacy events that the accountant records.

    A privatizer calls :meth:`prepare` once, :meth:`start` at each reset, and then for each release :meth:`randomise`
    and :meth:`events` with the same ``sends`` and ``index``. The noise that ``randomise`` adds must be at least as
    large as the events of ``events`` claim. To add independent noise to every release, derive from
    :class:`.AdditiveMechanism`.

    Attributes:
        adjacency: The neighbouring histories for which epsilon is met; None for the first that the environment names.
            A privatizer replaces None by the adjacency of its budget.
        total_delta: The delta of all releases of an agent together, at which claims are made, by exact composition,
            unless the budget says otherwise; None for a mechanism without one.
        max_releases: The most releases of an agent in an episode; None for no limit. Known from :meth:`start` on.
        correlated: Whether noise and events are those of all releases of an agent together: noises may be correlated,
            and the event of one release cannot be told from the others'.
        takes_clip: Whether the mechanism can randomise clipped releases, in which single numbers may differ by twice
            their scale (:meth:`.Sensitivity.clipped`), and its events state what they guarantee then.
    """

    adjacency: Adjacency | None = None
    total_delta: float | None = None
    max_releases: int | None = None
    correlated: ClassVar[bool] = False
    takes_clip: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, env: FederatedEnv) -> None:
        """Prepares the mechanism for an environment, before the environment's first reset.

        Args:
            env: The environment whose releases get the noise.

        Raises:
            ValueError: The mechanism does not fit the environment.
        """

    def _protected(self, changes: Changes) -> Adjacency:
        """Returns the adjacency for which epsilon is met.

        Raises:
            ValueError: The environment does not name it.
        """
        return require_choice("adjacency", self.adjacency or next(iter(changes)), changes)

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of an agent's releases with noise, given the space of its releases without noise."""
        return with_variances(released)

    @abstractmethod
    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode in which no agent has released anything yet.

        Args:
            sensitivity: The sensitivity of the environment's releases.
            horizon: Number of rounds of the episode.
            generators: The agents' random generators, see :data:`Generators`. Noise of an agent must come from its own
                generator.

        Raises:
            ValueError: The mechanism cannot randomise a statistic of these names and sensitivities.
        """

    def start_share(
        self, sensitivity: Sensitivity, horizon: int, generators: Generators, honest: int
    ) -> None:
        """Starts an episode in which agents add shares of one noise; by default, noise of ``1/honest`` the variance.

        Events stay those of the whole noise, which ``honest`` shares make up; see :meth:`start`.
        """
        share = {name: array / np.sqrt(honest) for name, array in sensitivity.scale.items()}
        self.start(sensitivity._replace(scale=share), horizon, generators)

    def observe(self, observation: Arrays) -> None:  # noqa: B027 - most mechanisms need no single rounds
        """Takes in what agents have observed after a round, ``(replicas, agents, ...)``; not to be changed or kept."""

    @abstractmethod
    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a release with noise: arrays of the same names and shapes, and for each of them its variance.

        Variances (:func:`.core.privacy.variance_of`) must depend only on data that are released without noise.

        Args:
            statistic: The environment's release, arrays ``(replicas, agents, ...)`` by name.
            sends: Which agents release, bool ``(replicas, agents)``; results of others are not used.
            index: How often each agent has released before, int ``(replicas, agents)``, and so which share of the
                budget this release spends.
        """

    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the privacy events of a release, for the accountant to count.

        By default all releases of an agent are one mechanism (:meth:`joint_event`): the count of the event of an
        agent's first z - 1 releases falls by 1 when that of the first z releases rises by 1.

        Returns:
            For each event, by how much its count changes for each agent, bool or integer ``(replicas, agents)``.
        """
        changed: dict[Event, Array] = {}
        for done in sorted(set(index[sends].tolist())):
            now = (sends & (index == done)).astype(np.int64)
            for z, times in ((done, -now), (done + 1, now)):
                if z > 0:
                    event = self.joint_event(z)
                    changed[event] = changed.get(event, 0) + times
        return changed

    def joint_event(self, z: int) -> Event:
        """Returns the event of an agent's first z releases; for mechanisms that do not override :meth:`events`."""
        raise NotImplementedError


# Number of different shares of epsilon that `decreasing` computes. For later releases z, the term epsilon/2^(z+1) is
# lost in rounding, so their shares are equal.
_DISTINCT = 64

Size = float | Sequence[float]
PlannedReleases = int | Schedule | str | Mapping[str, Any] | None
Releases = PlannedReleases | list[float] | tuple[float, ...]
"""Planned releases of an agent: their number; a schedule fixed in advance, whose rounds are counted; the proportions of
what each of them spends of epsilon, such as ``[1, 2, 4]``; or None where there is no plan."""


def checked_plan(releases: PlannedReleases) -> int | Schedule:
    """Returns the planned number of releases, or the schedule that they follow: by default one in each round.

    Raises:
        TypeError: ``releases`` is a number but no integer, or neither a number nor a schedule.
        ValueError: The number is not positive, or the schedule is not fixed in advance.
    """
    if isinstance(releases, int | float | np.number):
        return require_integer("releases", releases, 1)
    schedule = make_schedule("every_round" if releases is None else releases)
    if not schedule.fixed_in_advance:
        raise ValueError(
            f"releases is {releases!r}, which leaves it to the agents; a schedule fixed in advance, or the most "
            "releases of an agent, is required"
        )
    return schedule


def decreasing(epsilon: float, horizon: int) -> Array:
    """Returns the epsilon that release z = 1, 2, ... may spend: epsilon/(2 log2 T) + epsilon/2^(z+1), float64.

    This is P-FCB, section 5.2, for a horizon of T rounds. The paper prints "log"; only with base 2 do log2 T releases,
    as many as a schedule with doubling gaps makes, spend epsilon together. Later releases get as much as the last one.

    Raises:
        ValueError: The horizon is below 2.
    """
    if horizon < 2:
        raise ValueError(
            f"max_cycles is {horizon}; at least 2 is required to share epsilon out, or state releases"
        )
    z = np.arange(1, _DISTINCT + 1)
    return epsilon / (2 * np.log2(horizon)) + epsilon / 2.0 ** (z + 1)


def require_one_of(**sizes: Size | None) -> tuple[str, Size]:
    """Returns the name and the value of the only parameter that is given; together they determine the size of noise.

    Raises:
        ValueError: None or several are.
    """
    given = [(name, size) for name, size in sizes.items() if size is not None]
    if len(given) != 1:
        listed = ", ".join(f"{name} is {size!r}" for name, size in sizes.items())
        raise ValueError(f"{listed}; exactly one of them is required")
    return given[0]


class AdditiveMechanism(Mechanism):
    """Adds independent noise to every number in a release; its size follows from the release's share of epsilon.

    If a release spends the share e, the noise in a number of sensitivity s is ``s * noise_multiplier(e)`` times
    a random number from :meth:`draw`. A subclass defines :meth:`noise_multiplier` and the privacy :meth:`event` to
    account for. If its random number is not standard normal, it also overrides :meth:`draw` and :meth:`unit_variance`.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        releases: Releases = None,
        epsilon_per_release: float | Sequence[float] | None = None,
    ) -> None:
        """Takes the epsilon of all releases of an agent together, or that of each release; exactly one is given.

        Args:
            epsilon: Epsilon of all planned releases together under :attr:`~Mechanism.adjacency`, > 0; infinity for no
                noise.
            releases: See :data:`Releases`; after them no more are possible. ``epsilon`` needs a plan.
            epsilon_per_release: Epsilon of every release, if neighbours differ in one of its numbers, > 0; or a
                sequence with that of each release. A number without ``releases`` is P-FCB's: each release spends a part
                of it (:func:`decreasing`), and there may be any number of them.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or there is no plan for ``epsilon``.
        """
        name, size = require_one_of(epsilon=epsilon, epsilon_per_release=epsilon_per_release)
        self.epsilon, self.epsilon_per_release = epsilon, epsilon_per_release
        if isinstance(releases, list | tuple) and epsilon is not None:
            name, size, releases = "releases", releases, None
            require_epsilon(epsilon)
        self._plan: int | Schedule | None = None
        if isinstance(size, list | tuple):
            self._plan = require_integer(f"len({name})", len(size), 1)
            self._parts = np.array([require_size(f"{name}[{i}]", one) for i, one in enumerate(size)])
        else:
            require_epsilon(size, name)
            # The epsilon of each release, or proportions of them, the last of which is repeated.
            self._parts = np.array([size], np.float64)
            if releases is None and epsilon is not None and epsilon < np.inf:
                raise ValueError(
                    f"releases is None, a plan without an end, for all of which epsilon cannot be {epsilon!r}; a "
                    "number of releases, the channel's schedule, or epsilon_per_release in place of epsilon is required"
                )
        if releases is not None:
            if self._plan is not None or isinstance(releases, list | tuple):
                raise ValueError(
                    f"epsilon_per_release is {epsilon_per_release!r} and releases {releases!r}; a number and a plan "
                    "without proportions, or a sequence and None, is required"
                )
            self._plan = checked_plan(releases)
        if epsilon == np.inf:
            self._parts = np.array([np.inf])
        self._decreases = epsilon is None and self._plan is None

    @abstractmethod
    def noise_multiplier(self, share: float) -> float:
        """Returns the size of the noise in units of sensitivity, for a release that spends ``share`` of epsilon."""

    @abstractmethod
    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event that the accountant records for one release.

        Args:
            share: The share of epsilon that the release spends, if neighbours differ in one of its numbers.
            noise_multiplier: Size of the release's noise in units of sensitivity, see :meth:`noise_multiplier`.
            changes: How much neighbours can differ in one release, by adjacency.
        """

    def unit_variance(self, share: float) -> float:
        """Returns the variance of one number that :meth:`draw` draws, for a release that spends ``share``."""
        return 1.0

    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Fills ``out``, float64 ``(values,)``, with independent noise of size 1, by default standard normal.

        The generator is that of the agent that releases, for a release that spends ``share`` of epsilon.
        """
        generator.standard_normal(out=out)

    def prepare(self, env: FederatedEnv) -> None:
        """Computes shares and noise multipliers; those of a finite ``epsilon`` need sensitivities, at the reset."""
        self._share_out(env.max_cycles)

    def _share_out(self, horizon: int, changes: Changes | None = None) -> None:
        """Sets ``_shares``, the epsilon that each release spends; releases beyond its end spend the last entry."""
        plan = self._plan
        self.max_releases = plan.count(horizon) if isinstance(plan, Schedule) else plan
        self._shares = decreasing(float(self._parts[0]), horizon) if self._decreases else self._parts
        if self.epsilon in (None, np.inf):
            self._multipliers = self._sizes(self._shares)
        elif changes is not None:
            times = np.ones(len(self._parts))
            times[-1] = max(self.max_releases or 0, 1) - len(times) + 1
            self._shares, self._multipliers = self._calibrated(self.epsilon or 0.0, changes, times)

    def _calibrated(self, epsilon: float, changes: Changes, times: Array) -> tuple[Array, Array]:
        """Returns the shares and the noise multipliers with which all planned releases together cost epsilon.

        Args:
            epsilon: The epsilon of all of them.
            changes: How much neighbours can differ in one release, by adjacency.
            times: How often each entry of ``_parts`` is spent.
        """
        protected = self._protected(changes)
        unit = self.event(1.0, self.noise_multiplier(1.0), changes).promised(protected)[0]
        if np.isinf(unit):
            raise ValueError(
                f"adjacency is {protected!r}; one that {type(self).__name__} protects is required"
            )
        # Slightly less, so that rounding cannot make the claimed epsilon exceed the given one.
        shares = epsilon * (1 - 1e-12) / unit * (self._parts / (times @ self._parts))
        return shares, self._sizes(shares)

    def _sizes(self, shares: Array) -> Array:
        return np.array([self.noise_multiplier(share) for share in shares.tolist()])

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode: divides epsilon into a share for each release; see :meth:`Mechanism.start`.

        Raises:
            ValueError: The environment does not name the adjacency, or the mechanism does not protect it.
        """
        changes = self._changes(sensitivity)
        self._share_out(horizon, changes)
        steps = zip(self._shares.tolist(), self._multipliers.tolist(), strict=True)
        self._events = [self.event(*step, changes) for step in steps]
        self._unit_variances = np.array([self.unit_variance(share) for share in self._shares.tolist()])
        self._scale = flatten(sensitivity.scale)
        self._generators = generators
        self._noise = np.zeros_like(self._scale)

    def _changes(self, sensitivity: Sensitivity) -> Changes:
        return sensitivity.changes

    def _share(self, index: Array) -> Array:
        """Returns the position in ``_shares`` of each agent's next release, given how often it has released before."""
        return np.minimum(index, len(self._shares) - 1)

    def sizes(self, index: Array) -> tuple[Array, Array]:
        """Returns the scale of each number of a release, and the size of its noise in that unit.

        Args:
            index: How often each agent has released before, int ``(replicas, agents)``.

        Returns:
            Two arrays ``(replicas, agents, values)``, in the order of :func:`.flatten`.
        """
        each = self._multipliers[self._share(index)][..., np.newaxis]
        return self._scale, np.broadcast_to(each, self._scale.shape)

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns a release with noise, and the variances of the noise; see :meth:`Mechanism.randomise`."""
        share = self._share(index)
        senders, spent = sends.ravel().tolist(), self._shares[share].ravel().tolist()
        noise = self._noise.reshape(len(self._generators), -1)
        for generator, each, out in compress(zip(self._generators, spent, noise, strict=True), senders):
            self.draw(generator, each, out)
        deviations = self._multipliers[share][..., np.newaxis] * self._scale
        values = deviations * self._noise
        values += flatten(statistic)
        deviations *= deviations
        deviations *= self._unit_variances[share][..., np.newaxis]
        return unflatten(values, deviations, statistic)

    def events(self, sends: Array, index: Array) -> dict[Event, Array]:
        """Returns the privacy events of a release, and which agents each applies to; see :meth:`Mechanism.events`."""
        share = self._share(index)
        by_event: dict[Event, Array] = {}
        for i in sorted(set(share[sends].tolist())):
            # Different shares may have equal events. The agents of equal events are collected under one event.
            event = self._events[i]
            by_event[event] = by_event.get(event, False) | (sends & (share == i))
        return by_event


def _counted(sensitivity: Sensitivity, needed_by: str) -> Pair:
    """Returns the numbers of outcomes and of good outcomes, where the environment releases nothing else."""
    pair, scale = sensitivity.pair, sensitivity.scale
    if (
        pair is None
        or scale.keys() != {pair.total, pair.good}
        or not np.array_equal(scale[pair.total], scale[pair.good])
    ):
        raise ValueError(
            f"the environment releases {sorted(scale)}; numbers of binary outcomes and of good ones among them, on one "
            f"scale and nothing else, are required by {needed_by}"
        )
    return pair


Calibration = Literal["classic", "analytic"]
NoisyPair = Literal["as_given", "good_and_defective"]


class Gaussian(AdditiveMechanism):
    """Adds N(0, (sensitivity * noise multiplier)^2) to every number in a release.

    The noise multiplier of an agent's z-th release is calibrated to the part of epsilon that this release spends,
    called epsilon^z; or it is given, and then the same for all releases. With the defaults this is P-FCB's mechanism
    for the procurement problem: the numbers of delivered and of good units both get noise of standard deviation
    k sqrt(2 ln(1.25/delta))/epsilon^z, where k is the capacity (Solanki et al. 2022, equations 10 and 11). If one
    quantity changes, both numbers change by up to k. So the joint sensitivity of a message is sqrt(2) k, and it spends
    epsilon^z and delta twice.

    With ``pair="good_and_defective"``, for statistics that count binary outcomes, the numbers of good and of defective
    outcomes get the noise instead, with the same variance for each, and their sum is released as the total. In
    procurement a larger quantity has the same outcomes and more. So both numbers can only grow, by k together: the
    joint sensitivity is k, and a message spends epsilon^z and delta once. The total then has twice the variance. With
    sqrt(2) times the epsilon it has the same variance and privacy as by default, and the number of good outcomes has
    half the variance. The environment defines how neighbours differ
    (:class:`~fedbandit_envs.core.privacy.Pair`). Releases then also contain ``noise_covariance``, for each entry
    the covariance of the noise in the total and in the number of good outcomes.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Privatizer
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.additive import Gaussian
        >>> env = Privatizer(parallel_env(), Gaussian(noise_multiplier=5.0, releases=100))
    """

    takes_clip = True

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.01,
        calibration: Calibration | None = None,
        releases: Releases = None,
        pair: NoisyPair = "as_given",
        noise_multiplier: float | None = None,
        epsilon_per_release: float | Sequence[float] | None = None,
    ) -> None:
        """Takes a noise multiplier, or an epsilon to calibrate it to; :class:`.GaussianPrivatizer` has the arguments.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, or not exactly one of ``epsilon``, ``epsilon_per_release`` and
                ``noise_multiplier`` is given.
        """
        require_number("delta", delta, 0, 1, open_below=True, open_above=True)
        require_choice("calibration", calibration, (None, "classic", "analytic"))
        require_choice("pair", pair, ("as_given", "good_and_defective"))
        require_one_of(
            epsilon=epsilon, epsilon_per_release=epsilon_per_release, noise_multiplier=noise_multiplier
        )
        if epsilon is not None and calibration == "classic":
            raise ValueError(
                f"calibration is 'classic', a formula for one release, and epsilon {epsilon!r} that of all; None, or "
                "epsilon_per_release in place of epsilon, is required"
            )
        self._asked_delta = self._delta = delta
        self._pair, self._given = pair, noise_multiplier
        self._classic = epsilon_per_release is not None and calibration != "analytic"
        super().__init__(epsilon, releases, epsilon_per_release if noise_multiplier is None else 1.0)
        if epsilon is not None:
            self.total_delta = delta
        if noise_multiplier is not None:
            if noise_multiplier != 0:
                require_size("noise_multiplier", noise_multiplier)
            # The epsilon of a release with this noise at delta, if neighbours differ in one of its numbers. It is 0 if
            # the noise is so large that delta suffices alone; shares of epsilon must be positive.
            each = float(gaussian_epsilon(delta, 1 / noise_multiplier)) if noise_multiplier else np.inf
            self.epsilon_per_release, self._decreases = None, False
            self._parts = np.array([max(each, 1e-300)])

    def prepare(self, env: FederatedEnv) -> None:
        """Computes the shares of epsilon and their noise; see :meth:`Mechanism.prepare`.

        Warns:
            UserWarning: The classic formula gives a release more than ``delta``, as it may where epsilon is 1 or more;
                the warning names the true delta, which claims use.
        """
        super().prepare(env)
        most = float(self._shares.max())
        if self._classic and 1 <= most < np.inf:
            true = float(gaussian_delta(most, 1 / classic_noise_multiplier(most, self._delta)))
            if true > self._delta:
                warnings.warn(
                    f"calibration is 'classic', which is proven for epsilon < 1; at the largest share of a release, "
                    f"{most:.4g}, its noise gives delta {true:.3g} where {self._delta:g} was asked for, and claims say "
                    "so; 'analytic', or epsilon in place of epsilon_per_release, meets what was asked for",
                    UserWarning,
                    # The warning points at the line that constructs the privatizer.
                    stacklevel=4,
                )

    def _calibrated(self, epsilon: float, changes: Changes, times: Array) -> tuple[Array, Array]:
        change = changes[self._protected(changes)]
        # Slightly more noise than needed, so that rounding cannot make the claimed epsilon exceed the given one.
        size = change.norm * sqrt(times @ self._parts**2) * (1 + 1e-11)
        multipliers = size * analytic_noise_multiplier(epsilon, self._asked_delta) / self._parts
        # Basic composition adds up to the delta of all releases.
        self._delta = self._asked_delta / (times.sum() * change.values)
        return np.asarray(gaussian_epsilon(self._delta, 1 / multipliers)), multipliers

    def noise_multiplier(self, share: float) -> float:
        """Returns the standard deviation of the noise in units of sensitivity, calibrated to ``share`` at delta."""
        if self._given is not None:
            return self._given
        calibrated = classic_noise_multiplier if self._classic else analytic_noise_multiplier
        return calibrated(share, self._delta)

    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event of a release; see :meth:`AdditiveMechanism.event`.

        If the classic formula gives too little noise for the given delta, the event has the true, larger delta.
        """
        loss = 1 / noise_multiplier if noise_multiplier else np.inf
        # Without noise epsilon is infinite, and a delta > 0 would add nothing to such a guarantee.
        delta = self._delta if np.isfinite(loss) else 0.0
        if self._classic and 1 <= share < np.inf:
            delta = max(delta, float(gaussian_delta(share, loss)))
        return Event("gaussian", loss, share, delta, tuple(changes.items()))

    def release_space(self, released: spaces.Dict) -> spaces.Dict:
        """Returns the space of noisy releases, for ``"good_and_defective"`` with ``noise_covariance``."""
        space = super().release_space(released)
        if self._pair == "as_given":
            return space
        # The names of the two arrays that count trials and successes are known only after the first reset. All released
        # arrays have the same shape here, so any of them gives the shape of the covariance.
        shape = next(iter(released.values())).shape or ()
        return spaces.Dict({**space.spaces, COVARIANCE: spaces.Box(0, np.inf, shape, np.float64)})

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; refuses ``good_and_defective`` for a statistic that does not count binary outcomes.

        Raises:
            ValueError: ``pair`` is ``"good_and_defective"``, and the environment releases other arrays than the counts
                of outcomes and of good outcomes, or these have different sensitivities.
        """
        if self._pair == "good_and_defective":
            self._outcomes = _counted(sensitivity, "pair 'good_and_defective'")
        super().start(sensitivity, horizon, generators)

    def _changes(self, sensitivity: Sensitivity) -> Changes:
        changes = sensitivity.changes if self._pair == "as_given" else self._outcomes.changes
        if AGENT not in changes:
            return changes
        # Clipped releases may differ in all entries and in each by twice its scale. A Gaussian release that differs by
        # a norm of k scales is as private as k^2 releases that differ by one, so basic composition counts k^2.
        norms = ((adjacency, change.norm) for adjacency, change in changes.items())
        return {adjacency: Change(max(1, ceil(norm**2 - 1e-9)), norm) for adjacency, norm in norms}

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Returns the statistic with noise; with ``pair="good_and_defective"`` these two counts get the noise.

        The release then holds their noisy sum (the total) and the noisy good count. See :meth:`Mechanism.randomise`.
        """
        if self._pair == "as_given":
            return super().randomise(statistic, sends, index)
        total, good = self._outcomes.total, self._outcomes.good
        outcomes = {good: statistic[good], "defective": statistic[total] - statistic[good]}
        noisy = super().randomise(outcomes, sends, index)
        each = noisy[variance_of(good)]
        return {
            total: noisy[good] + noisy["defective"],
            good: noisy[good],
            variance_of(total): 2 * each,
            variance_of(good): each,
            COVARIANCE: each,
        }


class Laplace(AdditiveMechanism):
    """Adds Laplace noise of scale sensitivity/epsilon^z to every number in an agent's z-th release.

    Here epsilon^z is the part of epsilon that release z spends. If neighbouring histories differ in one number of the
    release, the release is (epsilon^z, 0) private (Dwork et al. 2006, Proposition 1); if they differ in several
    numbers, the epsilons add up.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Privatizer
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace
        >>> Laplace(epsilon=1.0, releases=4).noise_multiplier(0.25)
        4.0
        >>> env = Privatizer(parallel_env(), Laplace(epsilon=1.0, releases=4))
    """

    takes_clip = True

    def noise_multiplier(self, share: float) -> float:
        """Returns the scale of the noise in units of sensitivity: 1/share, if the release spends epsilon ``share``."""
        return 1 / share

    def unit_variance(self, share: float) -> float:
        """Returns the variance of standard Laplace noise: 2."""
        return 2.0

    def draw(self, generator: np.random.Generator, share: float, out: Array) -> None:
        """Draws standard Laplace noise: the difference of two standard exponentials."""
        generator.standard_exponential(out=out)
        out -= generator.standard_exponential(out.shape)

    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event of a release, with delta 0.

        Clipped releases of n numbers differ by 2 C in Euclidean norm, and so by 2 C sqrt(n) in the sum of the absolute
        differences. Their event is that of one number that differs by as much, which is at most as private. It is the
        same under every adjacency.
        """
        if AGENT in changes:
            share *= sqrt(changes[AGENT].values) * changes[AGENT].norm
            changes = {adjacency: Change(1, 1.0) for adjacency in changes}
        return Event("laplace", share, share, 0.0, tuple(changes.items()))


class RandomizedResponse(AdditiveMechanism):
    """Reports each binary outcome truly with probability e^eps/(1 + e^eps), and flipped otherwise.

    This gives local differential privacy for every single outcome (Warner 1965), since outcomes are flipped before they
    are counted. The released number of good outcomes is the unbiased estimate from the flipped ones, which need not lie
    between 0 and the total.

    The total numbers of outcomes are released without noise. So only the adjacency ``one-outcome`` is protected. A good
    and a defective outcome add the same variance to the estimate, so that its variance depends on the totals only.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Privatizer
        >>> from fedbandit_envs.wrappers.privacy.mechanisms.additive import RandomizedResponse
        >>> env = Privatizer(parallel_env(), RandomizedResponse(epsilon=1.0, releases=4))
    """

    adjacency = "one-outcome"

    def noise_multiplier(self, share: float) -> float:
        """Returns the probability of a flip, 1/(1 + e^share); 0 without noise, if the share is infinite.

        It is not calculated as 1 - e^share/(1 + e^share), which would lose digits.
        """
        return float(1 / (1 + np.exp(min(share, 700.0)))) * np.isfinite(share)

    def unit_variance(self, share: float) -> float:
        """Returns the variance of the estimate for each outcome."""
        flip = self.noise_multiplier(share)
        return flip * (1 - flip) / np.tanh(share / 2) ** 2

    def event(self, share: float, noise_multiplier: float, changes: Changes) -> Event:
        """Returns the privacy event of a release, which protects ``one-outcome`` only."""
        return Event("randomised_response", share, share, 0.0, (("one-outcome", Change(1, 1.0)),))

    def start(self, sensitivity: Sensitivity, horizon: int, generators: Generators) -> None:
        """Starts an episode; refuses statistics other than the numbers of outcomes and of good outcomes.

        Raises:
            ValueError: The environment releases something else.
        """
        self._names = _counted(sensitivity, "randomised response")
        super().start(sensitivity, horizon, generators)

    def randomise(self, statistic: Arrays, sends: Array, index: Array) -> Arrays:
        """Flips outcomes and estimates how many were good; see :meth:`Mechanism.randomise`."""
        # A Byzantine agent may release negative counts, or more good outcomes than outcomes. Such counts are clipped,
        # since only real outcomes can be flipped.
        statistic = {name: array.astype(np.int64) for name, array in statistic.items()}
        total = np.maximum(statistic[self._names.total], 0)
        good = np.clip(statistic[self._names.good], 0, total)
        # The share gets as many axes as the counts have, so that arrays broadcast.
        share = spread(self._share(index), good)
        # 1 - 2 flip = tanh(share/2). The expected number of outcomes reported as good is
        # flip total + (1 - 2 flip) good, which gives the unbiased estimate of good.
        flips, contrasts = self._multipliers[share], np.tanh(self._shares / 2)[share]
        counts, reported = np.stack([good, total - good], axis=2), np.zeros(good.shape)
        for replica, agent in np.argwhere(sends).tolist():
            generator = self._generators[replica * index.shape[1] + agent]
            lost, won = generator.binomial(counts[replica, agent], flips[replica, agent])
            reported[replica, agent] = good[replica, agent] - lost + won
        return {
            self._names.total: total.astype(np.float64),
            self._names.good: (reported - flips * total) / contrasts,
            variance_of(self._names.total): np.zeros(total.shape),
            variance_of(self._names.good): self._unit_variances[share] * total,
        }


def unflatten(values: Array, variances: Array, like: Arrays) -> Arrays:
    """Returns the named arrays of a release, and beside them arrays of noise variances; all are views.

    Args:
        values: The numbers of each agent as :func:`.flatten` returns them, ``(replicas, agents, values)``.
        variances: The variance of the noise in each of them, same shape.
        like: Arrays with the names and shapes of the release, ``(replicas, agents, ...)``.
    """
    arrays: Arrays = {}
    for rename, flat in ((str, values), (variance_of, variances)):
        start = 0
        for name, array in like.items():
            stop = start + prod(array.shape[2:])
            arrays[rename(name)] = flat[..., start:stop].reshape(array.shape)
            start = stop
    return arrays
