"""The accountant: counts releases as they happen, and composes them into epsilon when asked.

It keeps how often each agent has had each distinct event, so memory does not grow with the number of
releases. Where several releases are one mechanism (continual release), the event of the first z of them takes the
place of that of the first z - 1.

Compositions, each of them an upper bound on what was spent:

* ``basic``: the epsilons and deltas promised for single values add up.
* ``zcdp``: concentrated privacy adds up and is converted at the delta asked for.
* ``exact``: Gaussian releases are together exactly mu-GDP with mu^2 = sum (sensitivity/sigma)^2. Other
  mechanisms, and mixtures, go through numerical privacy loss distributions, also those that events of new kinds
  give, if dp-accounting is installed (the extra ``privacy``); if it is not, ``basic`` stands in, and the claim names
  it as the reason.
* ``parallel``: windows, what was released since the last release, are disjoint, and what differs between
  neighbours lies in one of them; so the largest exact guarantee of one release is that of all. It has no
  answer once data has been released twice.

A mechanism of a new kind gets an answer where its event gives what the composition needs (:class:`.Event`): a privacy
loss distribution for ``exact`` and ``parallel``, a rho or an RDP function for ``zcdp``. ``basic`` adds up what is
promised, whatever keeps the promise.

With a :class:`~fedbandit_envs.core.ledger.ReleaseLedger` the accountant answers for all that has left the environment
and not only for what was recorded: who has released something that was not recorded, anywhere in the stack, has no
privacy; and there is no answer where the ledger has a reason why nothing can be claimed.

No adjacency covers an agent whose later raw choices change with what was altered: neighbours differ in what
the adjacency names and in nothing else.
"""

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.claim import Adjacency, Claim, Composition
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.wrappers.privacy.accounting import loss_distributions
from fedbandit_envs.wrappers.privacy.accounting.composition import COMPOSITIONS, promised_delta
from fedbandit_envs.wrappers.privacy.accounting.event import PROVEN, Event


class Accountant:
    """Counts the releases of every agent in every replica."""

    def __init__(
        self,
        replicas: int,
        agents: int,
        ledger: ReleaseLedger | None = None,
        height: int = 0,
        adjacencies: Sequence[Adjacency] = (),
        noise: str = "none",
    ) -> None:
        """Starts with nothing released.

        Args:
            replicas: Number of replicas.
            agents: Number of agents in each.
            ledger: Counts what really leaves, in the episode that it is in now; None for an accountant that knows only
                what is recorded.
            height: Of the layer that adds the noise: what leaves below it has none.
            adjacencies: Those that the environment names; others are refused. Without a ledger all are allowed.
            noise: See :class:`~fedbandit_envs.core.claim.Claim`.
        """
        self._shape = (replicas, agents)
        self._counts: dict[Event, Array] = {}
        self._ledger = ledger
        self._episode = None if ledger is None else ledger.episode
        self._height = height
        self._adjacencies = adjacencies
        self._noise = noise

    @property
    def events(self) -> list[Event]:
        """The distinct events that count."""
        return list(self._counts)

    @property
    def counts(self) -> Array:
        """How often each of :attr:`events` happened, int64 ``(events, replicas, agents)``, a copy."""
        return np.array(list(self._counts.values()), np.int64).reshape(-1, *self._shape)

    def record(self, event: Event, times: Array) -> None:
        """Counts a release.

        Args:
            event: What was released.
            times: By how much its count changes, bool or integer ``(replicas, agents)``: True or 1 for who
                released it, -1 for whose release of it has become part of another event.

        Raises:
            ValueError: ``times`` has the wrong shape, or takes back what has not been released.
        """
        if times.shape != self._shape:
            raise ValueError(f"times has shape {times.shape}; (replicas, agents) = {self._shape} is required")
        counts = self._counts.get(event, 0) + times.astype(np.int64)
        if np.count_nonzero(counts < 0):
            replica, agent = (int(i) for i in np.argwhere(counts < 0)[0])
            raise ValueError(
                f"times takes back {-times[replica, agent]} of agent {agent} in replica {replica}; "
                f"{counts[replica, agent] - times[replica, agent]} at most is required"
            )
        if np.count_nonzero(counts):
            self._counts[event] = counts
        else:
            self._counts.pop(event, None)

    def after(self, releases: Mapping[Event, Array]) -> "Accountant":
        """Returns the accountant that there will be once these releases happen; this one stays as it is.

        Args:
            releases: For each event by how much its count changes, see :meth:`record`.
        """
        future = copy(self)
        future._counts = dict(self._counts)
        for event, times in releases.items():
            future.record(event, times)
        return future

    def epsilon(
        self,
        delta: float | None = None,
        *,
        composition: Composition = "basic",
        adjacency: Adjacency | None = None,
    ) -> Claim:
        """Claims what has been spent, for the agent that has spent most.

        Args:
            delta: In [0, 1). None stands for the deltas that the events promise, added up (with ``parallel``
                the largest of one release), for the agent where that is most.
            composition: See the module.
            adjacency: See :data:`fedbandit_envs.core.claim.Adjacency`; None for the first that the environment names,
                without one the first that an event names.

        Returns:
            The claim. Its epsilon is None, with the reason, where the composition has no answer: ``basic``
            below the promised deltas' sum (their noise may well give a smaller delta: ask ``exact``),
            ``parallel`` where data was released twice, and delta None where the promised deltas reach 1.

        Raises:
            ValueError: A name is unknown, or delta is out of its range.
        """
        adjacency = self._first_adjacency() if adjacency is None else adjacency
        rows, delta, composition, reason = self._compose(delta, composition, adjacency)
        epsilon = None
        if np.isinf(rows).any() or not np.isnan(rows).any():
            epsilon = float(np.nanmax(rows, initial=0.0))
        return Claim(epsilon, delta, adjacency, composition, reason, noise=self._noise)

    def epsilon_by_agent(
        self,
        delta: float | None = None,
        *,
        composition: Composition = "basic",
        adjacency: Adjacency | None = None,
    ) -> Array:
        """Returns the privacy cost of each agent; arguments and errors are those of :meth:`epsilon`.

        Delta None stands for each agent's own promised deltas: what one has spent does not depend on others.

        Returns:
            float64 ``(replicas, agents)``, infinite where there is no answer.
        """
        adjacency = self._first_adjacency() if adjacency is None else adjacency
        if delta is not None:
            rows = self._compose(delta, composition, adjacency)[0]
        else:
            promised = self._promised_deltas(composition, adjacency)
            rows = np.full(self._shape, np.nan)
            for each in np.unique(promised[promised < 1]).tolist():
                own = promised == each
                rows[own] = self._compose(each, composition, adjacency)[0][own]
        return np.where(np.isnan(rows), np.inf, rows)

    def _first_adjacency(self) -> Adjacency:
        """Returns the first adjacency of the environment, or of the events; empty if none is named."""
        named = (adjacency for event in self.events for adjacency, _ in event.changes)
        return self._adjacencies[0] if self._adjacencies else next(named, "")

    def _compose(
        self, delta: float | None, composition: Composition, adjacency: Adjacency
    ) -> tuple[Array, float, Composition, str]:
        """Returns epsilon by agent (NaN for no answer), the delta and the composition used, and a reason."""
        require_choice("composition", composition, COMPOSITIONS)
        if self._ledger is not None:
            require_choice("adjacency", adjacency, self._adjacencies)
        if delta is not None and not 0 <= delta < 1:
            raise ValueError(f"delta is {delta!r}; None or a number in [0, 1) is required")
        if self._ledger is None:
            return self._booked(delta, composition, adjacency)
        if self._ledger.unclaimable_reason:
            rows, delta, reason = np.full(self._shape, np.nan), delta or 0.0, self._ledger.unclaimable_reason
        else:
            rows, delta, composition, reason = self._booked(delta, composition, adjacency)
        exposed, why = self._exposed(self._ledger)
        if why:
            rows, reason = np.where(exposed, np.inf, rows), why
        return rows, delta, composition, reason

    def _exposed(self, ledger: ReleaseLedger) -> tuple[Array, str]:
        """Returns whether each agent has unrecorded releases, ``(replicas, agents)``, and why (empty if none has)."""
        if ledger.episode != self._episode:
            return (
                np.ones(self._shape, np.bool_),
                "the environment was reset without its privatizer: these books are of another episode",
            )
        below, unbooked = ledger.left(self._height)
        for event, times in self._counts.items():
            unbooked -= event.releases * times
        exposed = (below > 0) | (unbooked > 0)
        if not np.count_nonzero(exposed):
            return exposed, ""
        if below.any():
            return exposed, "data has left without passing the privatizer"
        return exposed, "more has been released than is in the books"

    def _booked(
        self, delta: float | None, composition: Composition, adjacency: Adjacency
    ) -> tuple[Array, float, Composition, str]:
        """Composes what is in the books."""
        if not self._counts:
            return np.zeros(self._shape), delta or 0.0, composition, "nothing has been released"
        counts, reason = self.counts, ""
        if delta is None:
            delta = float(self._promised_deltas(composition, adjacency).max(initial=0.0))
        if delta >= 1:
            reason = f"the promised deltas add up to {delta:.3g}, which promises nothing; state a delta"
            return np.where(counts.any(axis=0), np.nan, 0.0), delta, composition, reason
        new = [event.kind for event in self.events if event.kind not in PROVEN]
        numerical = any(e.kind != "gaussian" and not e.exposes(adjacency) for e in self.events) and delta > 0
        if composition == "exact" and (numerical or new) and not loss_distributions.available():
            composition, reason = "basic", "dp-accounting is not installed: basic composition"
        rows = COMPOSITIONS[composition](self.events, counts, adjacency, delta)
        if np.isinf(rows).any():
            exposed = (_exposure(event, adjacency) for event in self.events if event.exposes(adjacency))
            gaussian = delta == 0 and any(event.kind == "gaussian" for event in self.events)
            which = new[0] if new and not gaussian else "Gaussian noise"
            reason = next(exposed, f"{which} gives no finite epsilon at delta {delta:.3g}")
        elif np.isnan(rows).any() and composition == "basic":
            needed = float(promised_delta(self.events, counts, adjacency).max(initial=0.0))
            reason = f"basic composition needs a delta of at least {needed:.3g}, the promised deltas' sum"
            if needed >= 1:
                reason = (
                    f"the promised deltas add up to {needed:.3g}, and from 1 on promise nothing at any delta"
                )
        elif np.isnan(rows).any():
            reason = self._unanswered(composition, adjacency, delta)
        return rows, delta, composition, reason

    def _unanswered(self, composition: Composition, adjacency: Adjacency, delta: float) -> str:
        """Returns why a composition other than ``basic`` has no answer: the first event without one has none alone."""
        alone = np.ones((1, 1, 1), np.int64)
        compose = COMPOSITIONS[composition]
        event = next(e for e in self.events if np.isnan(compose([e], alone, adjacency, delta)).any())
        if composition == "parallel" and event.releases > 1:
            return "data was released twice: windows are not disjoint"
        if composition != "zcdp" and not loss_distributions.available():
            return f"dp-accounting is not installed: {composition} composition needs it for {event.kind!r}"
        needed = "rho and no RDP function" if composition == "zcdp" else "privacy loss distribution"
        return f"{composition} composition does not know the mechanism {event.kind!r}: its event gives no {needed}"

    def _promised_deltas(self, composition: Composition, adjacency: Adjacency) -> Array:
        """Returns the deltas that the events promise, by agent: added up, or the largest of one release."""
        if composition == "parallel":
            single = np.array([event.promised(adjacency)[1] for event in self.events])
            return (single[:, np.newaxis, np.newaxis] * (self.counts > 0)).max(axis=0, initial=0.0)
        return promised_delta(self.events, self.counts, adjacency)


def _exposure(event: Event, adjacency: Adjacency) -> str:
    """Returns the reason why an event exposes neighbours."""
    if np.isinf(event.loss):
        return "released without noise"
    return f"{event.kind.replace('_', ' ')} does not protect {adjacency}"
