"""Privacy events, which describe releases, and compositions: the privacy of all releases of an agent.

Every composition is a function of four arguments: the distinct privacy events; how often each agent had each of them
(``counts``, shape ``(events, replicas, agents)``); the adjacency; and delta. It returns the epsilon of each agent,
``(replicas, agents)``: infinite where there is no privacy, and NaN where the composition cannot tell.

References:
    * C. Dwork, A. Roth: The Algorithmic Foundations of Differential Privacy, 2014, Theorem 3.16.
    * F. McSherry: Privacy Integrated Queries. SIGMOD 2009, Theorem 4.
    * M. Bun, T. Steinke: Concentrated Differential Privacy. TCC 2016, Lemma 1.7.
    * I. Mironov: Renyi Differential Privacy. CSF 2017, Propositions 1 and 3.
    * J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022, Corollary 2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from math import ceil, isfinite, isinf, sqrt
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import AGENT, Adjacency, Change, Composition
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon, zcdp_epsilon

# Privacy losses are rounded up to multiples of an interval. This is its default; it is narrower where losses are small.
_INTERVAL = 1e-4
_FEWEST_INTERVALS = 20_000
# Composition with more intervals needs too much time and memory; beyond this number the intervals get wider instead.
_MOST_INTERVALS = 500_000
# Mechanisms with a larger loss are not composed numerically: their epsilons are added, which is hardly less exact,
# since e^-40 is below 1e-17.
_LARGEST_LOSS = 40.0
# The orders of the Renyi divergence that are tried. They are so close to each other that epsilon by the best of them is
# at most 0.2 % larger than by the best of all real orders.
_ORDERS = np.unique(np.concatenate([1 + np.geomspace(1e-4, 1e6, 200), np.arange(2, 65)]))

Kind = str
"""Name of a kind of mechanism. No kind is ever removed from :data:`PROVEN`, and what a kind means never changes."""

PROVEN: tuple[Kind, ...] = ("gaussian", "laplace", "randomised_response")
"""Kinds of events whose privacy follows from their loss in every composition. Events of other kinds give a curve."""

UNPROTECTED = Change(1, np.inf)
"""The change in a release under an adjacency that the mechanism does not protect: infinite."""


@dataclass(frozen=True)
class Event:
    """A privacy event: describes one release of one agent, or several releases that are one joint mechanism.

    Mechanisms whose kind is not in :data:`PROVEN` use a subclass of this class that defines their privacy curve (the
    privacy for every delta): it overrides :meth:`loss_distribution` or :meth:`dp_event` for ``exact`` and ``parallel``
    composition, and :meth:`rho` or :meth:`rdp` for ``zcdp``. Without one of these only ``basic`` composition gives an
    epsilon. Events are hashed and compared by their fields. So the curve must depend on the fields alone, and fields
    that a subclass adds need defaults.

    **What a curve must cover**: the worst two releases of neighbouring histories, in both directions. A
    :class:`~fedbandit_envs.core.sensitivity.Change` states how much the two releases differ: in at most ``values``
    numbers, in each of them by at most its scale (to which the noise is proportional), and in all of them together by
    at most ``norm``, a Euclidean norm in units of the scales. The curve must hold for any choice of the numbers that
    differ, and of their differences. The curves of kinds in :data:`PROVEN` are known and their methods are not called.

    Example:
        >>> class DiscreteLaplace(Event):
        ...     relation = "ADD_OR_REMOVE_ONE"
        ...     def dp_event(self, change):
        ...         from dp_accounting.dp_event import DiscreteLaplaceDpEvent, SelfComposedDpEvent
        ...         return SelfComposedDpEvent(DiscreteLaplaceDpEvent(self.loss, 1), change.values)
        >>> event = DiscreteLaplace("discrete_laplace", 0.1, 0.1, 0.0, (("one-observation", Change(2, 1.5)),))

    Attributes:
        relation: Name of the ``dp_accounting.NeighboringRelation`` under which :meth:`dp_event` is composed. Under
            ``"REPLACE_ONE"`` dp-accounting doubles the sensitivity of Gaussian noise and does not support Laplace
            noise. If :meth:`dp_event` already uses the whole change as the sensitivity, ``"ADD_OR_REMOVE_ONE"`` is
            right.
        kind: Name of the kind of mechanism.
        loss: Privacy loss if one number of the release changes by its scale. For ``gaussian`` it is mu, the inverse of
            the noise multiplier; for ``laplace`` and ``randomised_response`` it is epsilon. For other kinds a rough
            mu or epsilon suffices: it only sets the precision of exact composition. Infinite without noise.
        epsilon: The epsilon guaranteed if neighbours differ in one number of the release; basic composition adds it up.
        delta: The delta guaranteed if neighbours differ in one number of the release.
        changes: For each adjacency that is protected, how much neighbours can differ in the release.
        releases: Number of the agent's releases that the event describes. If there are several, later ones depend on
            data that earlier ones have also shown.
    """

    kind: Kind
    loss: float
    epsilon: float
    delta: float
    changes: tuple[tuple[Adjacency, Change], ...]
    releases: int = 1
    relation: ClassVar[str] = "REPLACE_ONE"

    def change(self, adjacency: Adjacency) -> Change:
        """Returns by how much neighbours under an adjacency differ in the release; infinite if it is not protected."""
        return dict(self.changes).get(adjacency, UNPROTECTED)

    def rescaled(self, ratio: float) -> "Event":
        """Returns the event of the same Gaussian release whose noise has ``1/ratio`` times the variance.

        The norms of changes become sqrt(ratio) times as large, in units of the standard deviation. Gaussian noise is
        then as private as ``ratio`` such releases together, so that as many more numbers count as changed.
        """
        return replace(
            self,
            changes=tuple(
                (name, Change(max(1, ceil(change.values * ratio - 1e-9)), change.norm * sqrt(ratio)))
                for name, change in self.changes
            ),
        )

    @property
    def adds_up(self) -> bool:
        """Whether the sum of several agents' noises is noise of the same kind, so that agents can share one noise."""
        return self.kind == "gaussian"

    def mu(self, adjacency: Adjacency) -> float:
        """Returns the mu of Gaussian differential privacy for neighbours under an adjacency.

        It is infinite if the adjacency is not protected.
        """
        return self.loss * self.change(adjacency).norm

    def loss_distribution(self, change: Change, interval: float) -> Any:
        """Returns the event's privacy loss distribution; by default None, and :meth:`dp_event` is used instead.

        Args:
            change: By how much neighbours differ in the release; see the class.
            interval: Width of the grid: losses are rounded to multiples of it.

        Returns:
            A pessimistic ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``, or None.
        """
        return None

    def dp_event(self, change: Change) -> Any:
        """Returns a ``dp_accounting.DpEvent`` with the event's privacy for neighbours who differ by ``change``.

        It is composed under :attr:`relation`. By default None: the event is not known to dp-accounting.
        """
        return None

    def rho(self, change: Change) -> float:
        """Returns rho of zero-concentrated DP (zCDP) for neighbours who differ by ``change``; NaN if it is unknown.

        For Gaussian noise rho is mu^2/2. For Laplace noise and randomised response it is epsilon^2/2 for each number
        that differs (Bun and Steinke, Propositions 1.6 and 1.4). For other kinds it is NaN unless a subclass overrides
        this method.
        """
        if self.kind == "gaussian":
            return float(np.square(self.loss * change.norm) / 2)
        return float(change.values * (np.square(self.loss) / 2)) if self.kind in PROVEN else np.nan

    def rdp(self, change: Change, orders: Array) -> Array:
        """Returns upper bounds on the Renyi divergence between the releases of neighbours who differ by ``change``.

        By default the bound at each order is the order times :meth:`rho`.

        Args:
            change: By how much neighbours differ in the release; see the class.
            orders: The orders of the divergence, numbers > 1, float64 ``(orders,)``. Some of them are integers, for
                mechanisms whose divergence is known at integer orders only.

        Returns:
            For each order a bound on the divergence in nats, float64 ``(orders,)``; infinity for an order at which no
            bound is known.
        """
        return orders * self.rho(change)

    def promised(self, adjacency: Adjacency) -> tuple[float, float]:
        """Returns the guaranteed (epsilon, delta) for neighbours under an adjacency, by basic composition.

        The guarantees for one number are added up over the numbers of the release in which the neighbours differ.
        """
        values = self.change(adjacency).values
        return np.inf if self.exposes(adjacency) else values * self.epsilon, values * self.delta

    def exposes(self, adjacency: Adjacency) -> bool:
        """Returns whether the event lets an observer distinguish neighbours under ``adjacency`` with certainty."""
        return isinf(self.loss) or isinf(self.change(adjacency).norm)


Compose = Callable[[Sequence[Event], Array, Adjacency, float], Array]
"""A composition: takes the distinct events, how often each agent had them, the adjacency and delta; returns epsilons.

The result has the shape ``(replicas, agents)``.
"""


def promised_delta(events: Sequence[Event], counts: Array, adjacency: Adjacency) -> Array:
    """Returns each agent's sum of the deltas of all its releases (basic composition), ``(replicas, agents)``."""
    return _total(counts, (event.promised(adjacency)[1] for event in events))


def basic(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the sum of the events' epsilons; NaN where delta is less than the sum of their deltas.

    Arguments and result are those of :data:`Compose`.
    """
    epsilon = _total(counts, (event.promised(adjacency)[0] for event in events))
    # The tolerance allows for a caller whose delta is the same sum in another order, with other rounding errors.
    covered = promised_delta(events, counts, adjacency) <= delta * (1 + 1e-12)
    return np.where(covered | np.isinf(epsilon), epsilon, np.nan)


def zcdp(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the epsilon at delta that follows from the sum of the events' zCDP parameters rho.

    For agents that have an event without a rho, Renyi divergences are summed instead, and the order that gives the
    smallest epsilon is taken. Arguments and result are those of :data:`Compose`.
    """
    changes = [event.change(adjacency) for event in events]
    exposed = [event.exposes(adjacency) for event in events]
    rhos = [
        np.inf if bare else event.rho(change)
        for event, change, bare in zip(events, changes, exposed, strict=True)
    ]
    total = _total(counts, rhos)
    epsilon = np.where(total > 0, np.inf, 0.0) if delta == 0 else np.asarray(zcdp_epsilon(delta, total))
    if not np.isnan(total).any():
        return epsilon
    curves = [
        np.full(_ORDERS.shape, np.inf) if bare else event.rdp(change, _ORDERS)
        for event, change, bare in zip(events, changes, exposed, strict=True)
    ]
    divergence = np.stack([_total(counts, amounts) for amounts in np.transpose(curves)], axis=-1)
    with np.errstate(divide="ignore"):
        best = (divergence - np.log(delta) / (_ORDERS - 1)).min(axis=-1)
    return np.where(np.isnan(total), best, epsilon)


def exact(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the exact epsilon at delta: of Gaussian releases in closed form, of others numerically.

    It is NaN for agents with an event that has no privacy loss distribution. Arguments and result are those of
    :data:`Compose`.
    """
    if all(event.kind == "gaussian" for event in events):
        square = _total(counts, (event.mu(adjacency) ** 2 for event in events))
        spent = np.sqrt(square).ravel().tolist()
        # Each distinct mu is converted once, since many agents have the same one.
        known = {mu: _of_mu(delta, mu) for mu in set(spent)}
        return np.array([known[mu] for mu in spent]).reshape(square.shape)
    used, place = np.unique(counts.reshape(len(events), -1), axis=1, return_inverse=True)
    epsilon = np.array(
        [_composed(tuple(zip(events, times.tolist(), strict=True)), adjacency, delta) for times in used.T]
    )
    return epsilon[place.ravel()].reshape(counts.shape[1:])


def parallel(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the largest exact epsilon of a single release, for releases of disjoint data (parallel composition).

    It is NaN for agents whose data were released twice, as in continual release, where each release after the first
    depends on earlier data again; and under the adjacency ``agent``, where all windows differ, after a second release.
    Arguments and result are those of :data:`Compose`.
    """
    single = np.array([_composed(((event, 1),), adjacency, delta) for event in events])
    single[np.array([event.releases > 1 for event in events]) & np.isfinite(single)] = np.nan
    each = np.where(counts > 0, single[:, np.newaxis, np.newaxis], 0.0)
    epsilon = np.where(np.isinf(each).any(axis=0), np.inf, each.max(axis=0, initial=0.0))
    again = counts.sum(axis=0) > 1
    return np.where(again & np.isfinite(epsilon), np.nan, epsilon) if adjacency == AGENT else epsilon


COMPOSITIONS: Mapping[Composition, Compose] = {
    "basic": basic,
    "zcdp": zcdp,
    "exact": exact,
    "parallel": parallel,
}


def _total(counts: Array, amounts: Iterable[float]) -> Array:
    """Returns each agent's sum of its events' amounts, ``(replicas, agents)``.

    Args:
        counts: How often each agent had each event, ``(events, replicas, agents)``.
        amounts: The amount of each event, such as its epsilon; infinite or NaN amounts of events that an agent did not
            have are left out.
    """
    total = np.zeros(counts.shape[1:])
    # The events are added in a fixed order, so that rounding is the same for a replica alone and in a batch.
    for amount, times in zip(amounts, counts, strict=True):
        if isfinite(amount):
            total += amount * times
        else:
            # NaN is an unknown amount. It does not replace infinity: an agent that has released data without noise has
            # no privacy, whatever else is unknown.
            total[(times > 0) & ~np.isinf(total)] = amount
    return total


# Cached, since the same epsilon is needed before a release (is there enough budget?) and after it.
@lru_cache(maxsize=4096)
def _of_mu(delta: float, mu: float) -> float:
    return float(gaussian_epsilon(delta, mu))


@lru_cache(maxsize=1024)
def _composed(releases: tuple[tuple[Event, int], ...], adjacency: Adjacency, delta: float) -> float:
    """Returns the epsilon of the releases of one agent, given as pairs of an event and how often it happened."""
    happened = [(event, times) for event, times in releases if times]
    if any(event.exposes(adjacency) for event, _ in happened):
        return np.inf
    mu = np.sqrt(sum(n * e.mu(adjacency) ** 2 for e, n in happened if e.kind == "gaussian"))
    others = tuple(
        (e.kind, e.loss, n * e.change(adjacency).values)
        for e, n in happened
        if e.kind in PROVEN and e.kind != "gaussian"
    )
    curved = tuple((e, e.change(adjacency), n) for e, n in happened if e.kind not in PROVEN)
    gaussian = _of_mu(delta, float(mu))
    # The sum of epsilons is always valid, and the smaller of two valid epsilons is returned below: rounding could
    # otherwise make the numerical composition worse than the sum.
    added = gaussian + float(sum(loss * times for _, loss, times in others))
    if not curved and (not others or delta == 0):
        return added
    epsilon = _composed_epsilon(delta, float(mu), others, curved)
    if curved and delta == 0:
        # Numerical composition cuts off tails of a privacy loss distribution, so that it has no finite epsilon at
        # delta 0. The events' guaranteed epsilons are added instead.
        pure = sum(n * change.values * e.epsilon if e.delta == 0 else np.inf for e, change, n in curved)
        return epsilon if np.isnan(epsilon) else added + pure
    return epsilon if curved else min(added, epsilon)


def _composed_epsilon(
    delta: float,
    mu: float,
    others: tuple[tuple[Kind, float, int], ...],
    curved: tuple[tuple[Event, Change, int], ...],
) -> float:
    """Returns the epsilon at delta of all given releases together, composed numerically.

    Rounding increases the epsilon by at most one interval of losses for each release; see this module's constants.

    Args:
        delta: The delta at which epsilon is computed, in (0, 1); 0 is allowed if ``curved`` is not empty.
        mu: The mu of all Gaussian releases together; 0 for none.
        others: For each Laplace or randomised response release: its kind (``laplace`` or ``randomised_response``), its
            epsilon for one number, and how many such numbers there are.
        curved: Events of other kinds, each with the change between neighbours and the number of such events.

    Returns:
        The epsilon; NaN if an event in ``curved`` has no privacy loss distribution, infinity if one of them is not
        private.

    Raises:
        ValueError: A privacy loss distribution is optimistic, or has another interval than requested.
    """
    large = sum(loss * count for _, loss, count in others if loss > _LARGEST_LOSS)
    small = [(kind, loss, count) for kind, loss, count in others if loss <= _LARGEST_LOSS]
    # The privacy loss of a Gaussian release has mean mu^2/2 and standard deviation mu. Events with curves of their own
    # are assumed to have roughly such a loss, too. `reach` is the width of the range of losses that matters.
    square = sum(count * (event.loss * change.norm) ** 2 for event, change, count in curved)
    reach = 2 * (mu**2 / 2 + 12 * mu + sum(loss * count for _, loss, count in small))
    reach += square + 24 * sqrt(square)
    # The `loss` of an event with a curve of its own may be a wrong guess, so that intervals narrower than the default
    # could be far too narrow.
    finest = _INTERVAL if curved else min(_INTERVAL, reach / _FEWEST_INTERVALS)
    interval = max(reach / _MOST_INTERVALS, finest)
    parts = list(_distributions(mu, small, interval))
    for event, change, count in curved:
        curve = _curve(event, change, interval)
        if isinstance(curve, float):
            return curve
        parts.append(curve if count == 1 else curve.self_compose(count))
    if not parts:
        return float(large)
    whole = reduce(lambda left, right: left.compose(right), parts)
    return float(large + whole.get_epsilon_for_delta(delta))


# Cached, since after each release all earlier ones are composed again.
@lru_cache(maxsize=32)
def _curve(event: Event, change: Change, interval: float) -> Any:
    """Returns an event's privacy loss distribution, from its ``loss_distribution`` or else from its ``dp_event``.

    Returns NaN if the event has neither, and infinity if its ``dp_event`` is not private.

    Raises:
        ValueError: The distribution is optimistic, or has another interval than requested.
    """
    # Imported where it is used, since that takes a second.
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.pld import privacy_loss_distribution as pld

    curve = event.loss_distribution(change, interval)
    if curve is None:
        accountant = PLDAccountant(NeighboringRelation[event.relation], interval)
        dp_event = event.dp_event(change)
        if dp_event is None or not accountant.supports(dp_event):
            return np.nan
        # The accountant stores that an event is not private apart from the distribution, so its epsilon is looked at.
        accountant.compose(dp_event)
        return np.inf if accountant.get_epsilon(0.5) == np.inf else accountant._pld
    try:
        curve.compose(pld.identity(interval))
    except ValueError as error:
        raise ValueError(
            f"the privacy loss distribution of {event!r} at the interval {interval!r} is not what is asked for, a "
            f"pessimistic one of this interval: {error}"
        ) from error
    return curve


def _distributions(mu: float, others: list[tuple[Kind, float, int]], interval: float) -> Iterator[Any]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    if mu > 0:
        yield pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval)
    for kind, loss, count in others:
        if kind == "laplace":
            one = pld.from_laplace_mechanism(1 / loss, value_discretization_interval=interval)
        else:
            # In dp-accounting, the answer is replaced by a fair coin toss with this probability p, so it is flipped
            # with probability p/2. Here the probability of a flip is 1/(1 + e^loss) = expit(-loss).
            one = pld.from_randomized_response(
                2 * float(expit(-loss)), 2, value_discretization_interval=interval
            )
        yield one.self_compose(count)
