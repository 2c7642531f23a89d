"""Privacy events, which describe releases, and the accountant, which counts them and composes them into an epsilon.

There are four compositions. Each gives an upper bound on the privacy loss of all releases together:

* ``basic``: the epsilons and deltas that are guaranteed for single numbers add up (Dwork and Roth 2014, Theorem 3.16).
* ``zcdp``: the parameters rho of zero-concentrated differential privacy add up (Bun and Steinke, TCC 2016, Lemma 1.7);
  their sum is converted to epsilon.
* ``exact``: Gaussian releases together are exactly mu-GDP with mu^2 = sum (sensitivity/sigma)^2 (Dong, Roth and Su,
  JRSS B 2022). Other mechanisms and mixtures are composed numerically by privacy loss distributions.
* ``parallel``: a window is the time between two releases of an agent. Windows have disjoint data, and neighbouring
  histories differ in one window only, so the largest exact epsilon of a single release holds for all releases together
  (McSherry, SIGMOD 2009, Theorem 4).

With a :class:`~fedbandit_envs.core.ledger.ReleaseLedger` the accountant considers all data that have left the
environment, and not only the releases that were recorded. An agent with an unrecorded release, anywhere in the stack,
has an infinite epsilon. Where the ledger has a reason why nothing can be claimed, there is no epsilon.

Neighbouring histories differ in what the adjacency names and in nothing else. So only the adjacency ``agent``, for
clipped releases, covers actions of an agent that would have changed in later rounds because of the difference.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from math import ceil, isfinite, isinf, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.core.privacy import AGENT, Adjacency, Change, Claim, Composition
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    composed_epsilon,
    gaussian_epsilon,
    zcdp_epsilon,
)

PROVEN: tuple[str, ...] = ("gaussian", "laplace", "randomised_response")
"""Kinds of events whose privacy follows from their loss in every composition; events of other kinds give a curve. No
kind is ever removed, and what a kind means never changes."""


_UNPROTECTED = Change(1, np.inf)


@dataclass(frozen=True)
class Event:
    """A privacy event: describes one release of one agent, or several releases that are one joint mechanism.

    Mechanisms whose kind is not in :data:`PROVEN` use a subclass that defines their privacy curve (the privacy at every
    delta): it overrides :meth:`loss_distribution` for ``exact`` and ``parallel`` composition, and :meth:`rho` for
    ``zcdp``. Without one of these only ``basic`` composition gives an epsilon. Events are compared by their fields, on
    which alone the curve must depend. Fields of a subclass need defaults.

    **What a curve must cover**: the worst two releases of neighbouring histories, in both directions. A
    :class:`~fedbandit_envs.core.privacy.Change` states how much the two releases differ: in at most ``values``
    numbers, in each of them by at most its scale (to which the noise is proportional), and in all of them together by
    at most ``norm``, a Euclidean norm in units of the scales. The curve must hold for any choice of the numbers that
    differ, and of their differences. The curves of kinds in :data:`PROVEN` are known and their methods are not called.

    Example:
        >>> class DiscreteLaplace(Event):
        ...     def loss_distribution(self, change, interval):
        ...         from dp_accounting.pld import privacy_loss_distribution as pld
        ...         one = pld.from_discrete_laplace_mechanism(self.loss, 1, value_discretization_interval=interval)
        ...         return one.self_compose(change.values)
        >>> event = DiscreteLaplace("discrete_laplace", 0.1, 0.1, 0.0, (("one-observation", Change(2, 1.5)),))

    Attributes:
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

    kind: str
    loss: float
    epsilon: float
    delta: float
    changes: tuple[tuple[Adjacency, Change], ...]
    releases: int = 1

    def change(self, adjacency: Adjacency) -> Change:
        """Returns by how much neighbours under an adjacency differ in the release; infinite if it is not protected."""
        return self._change_of.get(adjacency, _UNPROTECTED)

    @cached_property
    def _change_of(self) -> dict[Adjacency, Change]:
        return dict(self.changes)

    def rescaled(self, ratio: float) -> "Event":
        """Returns the event of the same Gaussian release whose noise has ``1/ratio`` times the variance.

        Gaussian noise is then as private as ``ratio`` such releases together, so that as many more numbers count as
        changed.
        """
        changes = tuple(
            (name, Change(max(1, ceil(change.values * ratio - 1e-9)), change.norm * sqrt(ratio)))
            for name, change in self.changes
        )
        return replace(self, changes=changes)

    @property
    def adds_up(self) -> bool:
        """Whether the sum of several agents' noises is noise of the same kind, so that agents can share one noise."""
        return self.kind == "gaussian"

    def mu(self, adjacency: Adjacency) -> float:
        """Returns the mu of Gaussian differential privacy under an adjacency, infinite if that is not protected."""
        return self.loss * self.change(adjacency).norm

    def loss_distribution(self, change: Change, interval: float) -> Any:
        """Returns the privacy loss distribution for neighbours who differ by ``change``.

        It is a pessimistic ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``, whose losses are
        rounded to multiples of ``interval``. By default None: it is not known.
        """
        return None

    def rho(self, change: Change) -> float:
        """Returns rho of zero-concentrated DP (zCDP) for neighbours who differ by ``change``; NaN if it is unknown.

        For Laplace noise and randomised response it is epsilon^2/2 for each number that differs (Bun and Steinke,
        Propositions 1.6 and 1.4).
        """
        if self.kind == "gaussian":
            return float(np.square(self.loss * change.norm) / 2)
        return float(change.values * (np.square(self.loss) / 2)) if self.kind in PROVEN else np.nan

    def promised(self, adjacency: Adjacency) -> tuple[float, float]:
        """Returns the guarantee: (epsilon, delta) of one number, times how many numbers differ in neighbours."""
        values = self.change(adjacency).values
        return np.inf if self.exposes(adjacency) else values * self.epsilon, values * self.delta

    def exposes(self, adjacency: Adjacency) -> bool:
        """Returns whether the event lets an observer distinguish neighbours under ``adjacency`` with certainty."""
        return isinf(self.loss) or isinf(self.change(adjacency).norm)


Compose = Callable[["Accountant", Adjacency, float], Array]
"""A composition: a function of an accountant, the adjacency and delta. It returns the epsilon of each agent, float64
``(replicas, agents)``: infinite where there is no privacy, and NaN where the composition cannot tell."""


def basic(accounts: "Accountant", adjacency: Adjacency, delta: float) -> Array:
    """Returns the sum of epsilons (:data:`Compose`); NaN where delta is less than the sum of the events' deltas."""
    epsilon = accounts.total("epsilon", adjacency)
    # The tolerance allows for a caller whose delta is the same sum in another order, with other rounding errors.
    covered = accounts.total("delta", adjacency) <= delta * (1 + 1e-12)
    return np.where(covered | np.isinf(epsilon), epsilon, np.nan)


def zcdp(accounts: "Accountant", adjacency: Adjacency, delta: float) -> Array:
    """Returns the epsilon at delta that follows from the sum of the zCDP parameters rho; see :data:`Compose`."""
    total = accounts.total("rho", adjacency)
    if delta == 0:
        # Also where rho is unknown, NaN.
        return np.where(total == 0, 0.0, total + np.inf)
    return np.asarray(zcdp_epsilon(delta, total))


def exact(accounts: "Accountant", adjacency: Adjacency, delta: float) -> Array:
    """Returns the exact epsilon at delta: of Gaussian releases in closed form, of others numerically.

    Where ``zcdp`` gives less than what is found numerically, that is returned. Epsilon is NaN for agents with an event
    that has no privacy loss distribution. See :data:`Compose`.
    """
    events = accounts.events
    if all(event.kind == "gaussian" for event in events):
        mus = np.sqrt(accounts.total("square of mu", adjacency))
        return np.array([_of_mu(delta, mu) for mu in mus.ravel().tolist()]).reshape(mus.shape)
    counts = accounts.counts
    used, place = np.unique(counts.reshape(len(events), -1), axis=1, return_inverse=True)
    epsilon = np.array(
        [_composed(tuple(zip(events, times.tolist(), strict=True)), adjacency, delta) for times in used.T]
    )
    epsilon = epsilon[place.ravel()].reshape(counts.shape[1:])
    bound = zcdp(accounts, adjacency, delta)
    return np.where(bound < epsilon, bound, epsilon)


def parallel(accounts: "Accountant", adjacency: Adjacency, delta: float) -> Array:
    """Returns the largest exact epsilon of a single release, for releases of disjoint data; see :data:`Compose`.

    It is NaN for agents whose data were released twice, as in continual release, where each release after the first
    depends on earlier data again; and under the adjacency ``agent``, where all windows differ, after a second release.
    """
    events, counts = accounts.events, accounts.counts
    single = np.array([_composed(((event, 1),), adjacency, delta) for event in events])
    single[np.array([event.releases > 1 for event in events]) & np.isfinite(single)] = np.nan
    each = np.where(counts > 0, single[:, np.newaxis, np.newaxis], 0.0)
    epsilon = np.where(np.isinf(each).any(axis=0), np.inf, each.max(axis=0, initial=0.0))
    again = counts.sum(axis=0) > 1
    return np.where(again & np.isfinite(epsilon), np.nan, epsilon) if adjacency == AGENT else epsilon


COMPOSITIONS: dict[str, Compose] = {"basic": basic, "zcdp": zcdp, "exact": exact, "parallel": parallel}
"""The compositions by name."""


def alone(event: Event) -> "Accountant":
    """Returns the accountant of one agent that has had an event once."""
    return Accountant(1, 1).after({event: np.ones((1, 1), np.int64)})


_AMOUNTS: dict[str, Callable[[Event, Adjacency], float]] = {
    "epsilon": lambda event, under: event.promised(under)[0],
    "delta": lambda event, under: event.promised(under)[1],
    "rho": lambda event, under: np.inf if event.exposes(under) else event.rho(event.change(under)),
    "square of mu": lambda event, under: event.mu(under) ** 2,
    "releases": lambda event, under: event.releases,
}
"""What an event adds to an agent's total under an adjacency, by name."""


# Cached, since the same epsilon is needed before a release (is there enough budget?) and after it.
@lru_cache(maxsize=4096)
def _of_mu(delta: float, mu: float) -> float:
    return float(gaussian_epsilon(delta, mu))


@lru_cache(maxsize=1024)
def _composed(releases: tuple[tuple[Event, int], ...], adjacency: Adjacency, delta: float) -> float:
    """Returns the exact epsilon of one agent's releases, pairs of an event and how often it happened."""
    happened = [(event, times) for event, times in releases if times]
    if any(event.exposes(adjacency) for event, _ in happened):
        return np.inf
    mu = np.sqrt(sum(n * e.mu(adjacency) ** 2 for e, n in happened if e.kind == "gaussian"))
    pure = [
        (e.kind, e.loss, n * e.change(adjacency).values)
        for e, n in happened
        if e.kind in PROVEN and e.kind != "gaussian"
    ]
    curved = [(e, e.change(adjacency), n) for e, n in happened if e.kind not in PROVEN]
    # The sum of epsilons is always valid, and the smaller of two valid epsilons is returned below: rounding could
    # otherwise make the numerical composition worse than the sum.
    added = _of_mu(delta, float(mu)) + float(sum(loss * times for _, loss, times in pure))
    if not curved and (not pure or delta == 0):
        return added
    curves = [(partial(_curve, e, change), e.loss * change.norm, n) for e, change, n in curved]
    epsilon = composed_epsilon(delta, float(mu), pure, curves)
    if not curved:
        return min(added, epsilon)
    if delta == 0 and not np.isnan(epsilon):
        # Numerical composition cuts off tails of a privacy loss distribution, so that it has no finite epsilon at
        # delta 0. The events' guaranteed epsilons are added instead.
        return added + sum(
            n * change.values * e.epsilon if e.delta == 0 else np.inf for e, change, n in curved
        )
    return epsilon


# Cached, since after each release all earlier ones are composed again.
@lru_cache(maxsize=32)
def _curve(event: Event, change: Change, interval: float) -> Any:
    given = event.loss_distribution(change, interval)
    if given is None:
        return np.nan
    # Imported where it is used, since that takes a second.
    from dp_accounting.pld.privacy_loss_distribution import identity

    # Raises a ValueError if the distribution is optimistic or has another interval.
    given.compose(identity(interval))
    return given


class Accountant:
    """Counts how often every agent of every replica has had each distinct event.

    So memory does not grow with the number of releases. In continual release, all releases of an agent are one joint
    mechanism; there the event of the first z releases replaces the event of the first z - 1.

    Attributes:
        trust: Whom agents must trust for its claims; ``local``, unless the noise is a trusted server's.
        absent: How many releases of each agent are recorded that did not take place, int64 ``(replicas, agents)``. Sums
            with correlated noise have such: their events count all synchronisations, with or without the agent.
    """

    trust: str = "local"

    def __init__(
        self,
        replicas: int,
        agents: int,
        ledger: ReleaseLedger | None = None,
        height: int = 0,
        adjacencies: Sequence[Adjacency] = (),
        noise: str = "none",
        drawn: Iterable[str] = (),
        as_agent: Mapping[Adjacency, str] = {},
    ) -> None:
        """Starts with nothing released.

        Args:
            replicas: Number of replicas.
            agents: Number of agents in each.
            ledger: The release ledger of the environment; None for an accountant of recorded releases only.
            height: Number of wrappers inside of the layer that adds the noise. Data that leave the stack below it have
                no noise.
            adjacencies: Names of the environment's adjacencies; others are errors. Without a ledger all are allowed.
            noise: ``secret``, ``repeatable`` or ``none``; see :class:`~fedbandit_envs.core.privacy.Claim`.
            drawn: Names of the noise that the releases have; the same noise has the same name in all accountants.
            as_agent: Adjacencies of single events for which the epsilon is that under ``agent``, since one event may
                change this release and all later ones, each with the reason.
        """
        self._shape = (replicas, agents)
        self._counts: dict[Event, Array] = {}
        # For each amount and adjacency: the number of events before the last one, their total, and that of all events,
        # which is None after a change. No array is written to after it is stored, so that copies may share it.
        self._totals: dict[tuple[str, Adjacency], tuple[int, Array, Array | None]] = {}
        self._ledger = ledger
        self._episode = None if ledger is None else ledger.episode
        self._height = height
        self._adjacencies = adjacencies
        self._noise = noise
        self.absent = np.zeros(self._shape, np.int64)
        self._drawn = frozenset(drawn)
        self._as_agent = dict(as_agent)
        self._found = (np.zeros(self._shape, np.bool_), "", "")

    @property
    def events(self) -> list[Event]:
        """The distinct privacy events that have happened."""
        return list(self._counts)

    @property
    def counts(self) -> Array:
        """How often each of :attr:`events` happened, int64 ``(events, replicas, agents)``, a copy."""
        return np.array(list(self._counts.values()), np.int64).reshape(-1, *self._shape)

    def record(self, event: Event, times: Array) -> None:
        """Changes the count of an event by ``times``, bool or integer ``(replicas, agents)``.

        True or 1 is for agents that had the event, -1 for agents whose event another one replaces, which includes it.

        Raises:
            TypeError: ``times`` is neither bool nor integer.
            ValueError: ``times`` has the wrong shape, or makes a count negative; or no data are passing the layer of
                noise whose books these are.
        """
        if self._ledger is not None and not self._ledger.passing(self._height):
            raise ValueError("events are booked while data pass the layer of noise, and at no other time")
        self._add(event, times)

    def _add(self, event: Event, times: Array) -> None:
        if times.dtype.kind not in "bui":
            raise TypeError(f"times has dtype {times.dtype}; bool or an integer dtype is required")
        if times.shape != self._shape:
            raise ValueError(f"times has shape {times.shape}; (replicas, agents) = {self._shape} is required")
        counts = self._counts.get(event, 0) + times.astype(np.int64)
        if times.dtype.kind == "i" and np.count_nonzero(counts < 0):
            raise ValueError(f"times takes back more of {event} than has happened; counts >= 0 are required")
        # The totals of the events before the last one stay where only the last one changes, or another one follows.
        last = event == next(reversed(self._counts), event) or event not in self._counts
        if np.count_nonzero(counts):
            self._counts[event] = counts
        else:
            last = self._counts.pop(event, None) is None
        self._totals = {key: (*kept[:2], None) for key, kept in self._totals.items()} if last else {}

    def total(self, amount: str, adjacency: Adjacency) -> Array:
        """Returns each agent's sum of its events' amounts, float64 ``(replicas, agents)``, which is not to be changed.

        It is NaN for agents with an event whose amount is unknown, and infinite for agents with an infinite amount,
        whatever else is unknown: an agent that has released data without noise has no privacy.

        Args:
            amount: Name of the amount: ``epsilon``, ``delta``, ``rho``, ``square of mu`` or ``releases``.
            adjacency: The adjacency under which an event has this amount.
        """
        added, before, total = self._totals.get((amount, adjacency)) or (0, np.zeros(self._shape), None)
        if total is None:
            # Events are added one after the other, so that rounding is the same for a replica alone and in a batch.
            total = before
            for event in islice(self._counts, added, None):
                before, times = total, self._counts[event]
                each = _AMOUNTS[amount](event, adjacency)
                if isfinite(each):
                    total = before + times * each
                else:
                    total = np.where((times > 0) & ~np.isinf(before), each, before)
            self._totals[amount, adjacency] = max(len(self._counts) - 1, 0), before, total
        return total

    def __add__(self, other: "Accountant") -> "Accountant":
        """Returns an accountant of two episodes of the same agents, row by row, with the releases of both up to now.

        Unrecorded releases of an episode, and a reason why nothing can be claimed for it, hold for the sum.

        Raises:
            ValueError: The two have different numbers of replicas or agents or different adjacencies; or both episodes
                drew the same noise, which their difference would not contain.
        """
        if not isinstance(other, Accountant):
            return NotImplemented
        for what, own, others in (
            ("(replicas, agents)", self._shape, other._shape),
            ("trust", self.trust, other.trust),
            ("adjacencies", [*self._adjacencies, *self._as_agent], [*other._adjacencies, *other._as_agent]),
        ):
            if own != others:
                raise ValueError(f"the accountants have {what} {own} and {others}; equal ones are required")
        if twice := self._drawn & other._drawn:
            raise ValueError(
                f"both accountants' releases drew the same noise ({min(twice)}); other noise is required in each "
                "episode"
            )
        total = copy(self)
        total._drawn = self._drawn | other._drawn
        total._noise = self._noise if self._noise == other._noise else "repeatable"
        own_exposed, own_why, own_reason = self.unrecorded()
        exposed, why, reason = other.unrecorded()
        total.close((own_exposed | exposed, own_why or why, own_reason or reason))
        return total.after(other._counts)

    def unrecorded(self) -> tuple[Array, str, str]:
        """Returns what the release ledger knows beyond the recorded releases.

        It is whether each agent has unrecorded releases, bool ``(replicas, agents)``; why; and why nothing can be
        claimed. Both reasons may be empty.
        """
        if self._ledger is None:
            return self._found
        unclaimable = self._ledger.unclaimable_reason
        if self._ledger.episode != self._episode:
            why = "the environment was reset without its privatizer: these books are of another episode"
            return np.ones(self._shape, np.bool_), why, unclaimable
        below, unbooked = self._ledger.left(self._height)
        exposed = (below > 0) | (unbooked + self.absent > self.total("releases", ""))
        why = ""
        if np.count_nonzero(exposed):
            past = "data has left without passing the privatizer"
            why = past if below.any() else "more has been released than is in the books"
        return exposed, why, unclaimable

    def close(self, found: tuple[Array, str, str]) -> None:
        """Ends the episode: from now on ``found``, a result of :meth:`unrecorded`, replaces the ledger."""
        self._found, self._ledger = found, None

    def after(self, releases: Mapping[Event, Array]) -> "Accountant":
        """Returns a copy in which some future releases are recorded as well, given by event as for :meth:`record`."""
        future = copy(self)
        future._counts = dict(self._counts)
        for event, times in releases.items():
            future._add(event, times)
        return future

    def rescaled(self, ratio: Array) -> "Accountant":
        """Returns a copy in which releases have ``1/ratio`` times the variance of noise; see :meth:`Event.rescaled`.

        The ratios are numbers > 0 that broadcast with ``(replicas, agents)``.
        """
        future = copy(self)
        future._counts, future._totals = {}, {}
        ratio = np.broadcast_to(ratio, self._shape)
        for event, times in self._counts.items():
            for each in np.unique(ratio[times > 0]).tolist():
                future._add(event.rescaled(each), times * (ratio == each))
        return future

    def epsilon(
        self,
        delta: float | None = None,
        *,
        composition: Composition = "basic",
        adjacency: Adjacency | None = None,
    ) -> Claim:
        """Returns the privacy claim for all releases so far, for the agent with the largest epsilon.

        Args:
            delta: The delta at which epsilon is computed, in [0, 1). None takes the sum of the deltas of an agent's
                events (with ``parallel`` the largest of them), for the agent for which it is largest.
            composition: How releases are composed: ``basic``, ``zcdp``, ``exact`` or ``parallel``; see this module.
            adjacency: The neighbouring histories, see :data:`fedbandit_envs.core.privacy.Adjacency`. None for the
                environment's first adjacency, or for the first of the events where there is no environment.

        Raises:
            ValueError: A name is unknown, or delta is out of its range.
        """
        adjacency = self._first_adjacency() if adjacency is None else adjacency
        under = self.covering(adjacency)
        rows, delta, reason = self._compose(delta, composition, under)
        infinite, unknown = np.isinf(rows).any(), np.isnan(rows).any()
        if not reason and (infinite or unknown):
            reason = self._infinite(under, delta) if infinite else self._unanswered(composition, under, delta)
        if adjacency in self._as_agent and self._counts:
            covers = f"{self._as_agent[adjacency]}, so this is the epsilon of {AGENT!r}"
            reason = f"{covers}; {reason}" if reason else covers
        epsilon = float(np.nanmax(rows, initial=0.0)) if infinite or not unknown else None
        return Claim(epsilon, delta, adjacency, composition, reason, self.trust, self._noise)

    def epsilon_by_agent(
        self,
        delta: float | None = None,
        *,
        composition: Composition = "basic",
        adjacency: Adjacency | None = None,
    ) -> Array:
        """Returns each agent's epsilon, infinite where the composition gives none, float64 ``(replicas, agents)``.

        Arguments and errors are those of :meth:`epsilon`. If ``delta`` is None, each agent's epsilon is computed at the
        sum of the deltas of its own events, so that it does not depend on other agents.
        """
        adjacency = self.covering(adjacency)
        if delta is not None:
            rows = self._compose(delta, composition, adjacency)[0]
            return np.where(np.isnan(rows), np.inf, rows)
        promised, rows = self._promised_deltas(composition, adjacency), np.full(self._shape, np.inf)
        for each in {delta for delta in promised.ravel().tolist() if delta < 1}:
            found = self._compose(each, composition, adjacency)[0]
            np.copyto(rows, found, where=(promised == each) & ~np.isnan(found))
        return rows

    def covering(self, adjacency: Adjacency | None) -> Adjacency:
        """Returns the adjacency under which epsilon is computed: ``agent`` if one event may change more."""
        adjacency = self._first_adjacency() if adjacency is None else adjacency
        return AGENT if adjacency in self._as_agent else adjacency

    def _first_adjacency(self) -> Adjacency:
        """Returns the first adjacency of the environment, or of the events; empty if none is named."""
        protected = (name for event in self._counts for name, _ in event.changes)
        return next(iter((*self._adjacencies, *protected)), "")

    def _compose(
        self, delta: float | None, composition: Composition, adjacency: Adjacency
    ) -> tuple[Array, float, str]:
        """Returns epsilon by agent (NaN for none), the delta used, and a reason that does not follow from epsilon."""
        if composition not in COMPOSITIONS:
            require_choice("composition", composition, COMPOSITIONS)
        if (self._adjacencies or self._ledger is not None) and adjacency not in (*self._adjacencies, AGENT):
            require_choice("adjacency", adjacency, list(dict.fromkeys((*self._adjacencies, AGENT))))
        if delta is not None and not 0 <= delta < 1:
            raise ValueError(f"delta is {delta!r}; None or a number in [0, 1) is required")
        exposed, why, unclaimable = self.unrecorded()
        if adjacency == AGENT and self._counts and self._adjacencies and AGENT not in self._adjacencies:
            unclaimable = unclaimable or "releases are not clipped: data may change them by any amount"
        reason = unclaimable or "nothing has been released" * (not self._counts)
        if reason:
            rows = np.full(self._shape, np.nan if unclaimable else 0.0)
        else:
            if delta is None:
                delta = float(self._promised_deltas(composition, adjacency).max(initial=0.0))
            if delta < 1:
                rows = COMPOSITIONS[composition](self, adjacency, delta)
            else:
                rows = np.where(self.counts.any(axis=0), np.nan, 0.0)
        if why:
            rows, reason = np.where(exposed, np.inf, rows), why
        return rows, delta or 0.0, reason

    def _infinite(self, adjacency: Adjacency, delta: float) -> str:
        """Returns the reason for an infinite epsilon: an event that protects nothing, or the delta."""
        for event in self.events:
            if event.exposes(adjacency):
                unprotected = f"{event.kind.replace('_', ' ')} does not protect {adjacency}"
                return "released without noise" if np.isinf(event.loss) else unprotected
        kinds = [event.kind for event in self.events]
        gaussian = delta == 0 and "gaussian" in kinds
        kind = next((kind for kind in kinds if kind not in PROVEN and not gaussian), "Gaussian noise")
        return f"{kind} gives no finite epsilon at delta {delta:.3g}"

    def _unanswered(self, composition: Composition, adjacency: Adjacency, delta: float) -> str:
        """Returns why a composition gives no epsilon: because of delta, or of the first event that has none."""
        if delta >= 1:
            return f"no guarantee: the promised deltas add up to {delta:.3g}, which is not below 1"
        if composition == "basic":
            least = float(self._promised_deltas(composition, adjacency).max())
            return f"basic composition needs a delta of at least {least:.3g}, the promised deltas' sum"
        if composition == "parallel" and adjacency == AGENT:
            return "all data of an agent differ, and not one window only"
        compose = COMPOSITIONS[composition]
        event = next(e for e in self.events if np.isnan(compose(alone(e), adjacency, delta)).any())
        if composition == "parallel" and event.releases > 1:
            return "data was released twice: windows are not disjoint"
        needed = "rho" if composition == "zcdp" else "privacy loss distribution"
        return f"{composition} composition does not know the mechanism {event.kind!r}: its event gives no {needed}"

    def _promised_deltas(self, composition: Composition, adjacency: Adjacency) -> Array:
        """Returns each agent's delta, ``(replicas, agents)``: the sum over its events, or their largest (parallel)."""
        if composition == "parallel":
            single = np.array([event.promised(adjacency)[1] for event in self.events])
            return (single[:, np.newaxis, np.newaxis] * (self.counts > 0)).max(axis=0, initial=0.0)
        return self.total("delta", adjacency)
