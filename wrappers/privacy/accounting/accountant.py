"""The accountant: counts the releases of an episode and composes them into an epsilon.

It stores how often each agent has had each distinct privacy event, so that memory does not grow with the number of
releases. In continual release, all releases of an agent are one joint mechanism; there the event that describes the
first z releases replaces the event that describes the first z - 1.

There are four compositions. Each gives an upper bound on the privacy loss of all releases together:

* ``basic``: the epsilons and deltas that are guaranteed for single numbers add up.
* ``zcdp``: the parameters rho of zero-concentrated differential privacy add up; their sum is converted to epsilon.
* ``exact``: Gaussian releases together are exactly mu-GDP with mu^2 = sum (sensitivity/sigma)^2. Other mechanisms and
  mixtures are composed numerically by privacy loss distributions.
* ``parallel``: a window is the time between two releases of an agent. Windows have disjoint data, and neighbouring
  histories differ in one window only, so the largest exact epsilon of a single release holds for all releases together.
  This composition gives no epsilon once data have been released twice, and under ``agent`` after a second release.

A mechanism of a new kind gets an epsilon by a composition if its :class:`.Event` defines what that composition needs:
a privacy loss distribution for ``exact`` and ``parallel``, rho or an RDP function for ``zcdp``. ``basic`` needs only
the epsilon and delta of the event.

With a :class:`~fedbandit_envs.core.ledger.ReleaseLedger` the accountant considers all data that have left the
environment, and not only the releases that were recorded. An agent with an unrecorded release, anywhere in the stack,
has an infinite epsilon. Where the ledger has a reason why nothing can be claimed, there is no epsilon.

Neighbouring histories differ in what the adjacency names and in nothing else. So only the adjacency ``agent``, for
clipped releases, covers actions of an agent that would have changed in later rounds because of the difference.

Accountants of several episodes of the same agents add up: ``first + second``.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.core.privacy import AGENT, Adjacency, Claim, Composition
from fedbandit_envs.wrappers.privacy.accounting.event import COMPOSITIONS, PROVEN, Event, promised_delta


class Accountant:
    """Counts the releases of every agent in every replica.

    Attributes:
        trust: Whom agents must trust for its claims; ``local``, unless the noise is a trusted server's.
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
        as_agent: Sequence[Adjacency] = (),
    ) -> None:
        """Starts with nothing released.

        Args:
            replicas: Number of replicas.
            agents: Number of agents in each.
            ledger: The release ledger of the environment, which counts all releases of its current episode; None for an
                accountant that knows recorded releases only.
            height: Position of the layer that adds the noise: the number of wrappers inside of it. Data that leave the
                stack below it have no noise.
            adjacencies: Names of the environment's adjacencies; others are errors. Without a ledger all are allowed.
            noise: Whether noise is ``secret`` or ``repeatable``, or ``none``; see
                :class:`~fedbandit_envs.core.claim.Claim`.
            drawn: Names of the noise that the releases have; the same noise has the same name in all accountants.
            as_agent: Further adjacencies, for which the epsilon is that under ``agent``: those of the environment if
                agents release authored messages, in which one event may change this release and all later ones.
        """
        self._shape = (replicas, agents)
        self._counts: dict[Event, Array] = {}
        self._ledger = ledger
        self._episode = None if ledger is None else ledger.episode
        self._height = height
        self._adjacencies = adjacencies
        self._noise = noise
        self._absent = np.zeros(self._shape, np.int64)
        self._drawn = frozenset(drawn)
        self._as_agent = tuple(as_agent)
        self._found = (np.zeros(self._shape, np.bool_), "", "")

    @property
    def events(self) -> list[Event]:
        """The distinct privacy events that have happened."""
        return list(self._counts)

    @property
    def counts(self) -> Array:
        """How often each of :attr:`events` happened, int64 ``(events, replicas, agents)``, a copy."""
        return np.array(list(self._counts.values()), np.int64).reshape(-1, *self._shape)

    @property
    def unclaimable(self) -> bool:
        """Whether the ledger has a reason why no privacy can be claimed for the episode."""
        return bool(self.unrecorded()[2])

    def record(self, event: Event, times: Array) -> None:
        """Changes the count of a privacy event, for example after a release.

        Args:
            event: The event.
            times: By how much each agent's count of the event changes, bool or integer ``(replicas, agents)``: True or
                1 for agents that had the event, -1 for agents whose event is replaced by another one that includes it.

        Raises:
            TypeError: ``times`` is neither bool nor integer.
            ValueError: ``times`` has the wrong shape, or makes a count negative.
        """
        if times.dtype.kind not in "bui":
            raise TypeError(f"times has dtype {times.dtype}; bool or an integer dtype is required")
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

    def __add__(self, other: "Accountant") -> "Accountant":
        """Returns an accountant of two episodes of the same agents, with the releases of both up to now.

        Rows of both accountants must be the same people. Agents with unrecorded releases in one of the episodes keep
        their infinite epsilon, and a reason why nothing can be claimed for an episode holds for the sum.

        Example:
            >>> from fedbandit_envs.arms_v0 import parallel_env
            >>> from fedbandit_envs.wrappers import GaussianPrivatizer
            >>> env = GaussianPrivatizer(parallel_env(num_agents=2), noise_multiplier=20.0, releases=10, clip=1.0)
            >>> accountants = []
            >>> for seed in range(2):
            ...     _ = env.reset(seed=seed)
            ...     for _ in range(5):
            ...         _ = env.release([[True, True]])
            ...     accountants.append(env.accountant)
            >>> both = accountants[0] + accountants[1]
            >>> round(both.epsilon(1e-3, composition="exact", adjacency="agent").epsilon, 4)
            0.7829

        Args:
            other: The accountant of another episode.

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

        Returns:
            Whether each agent has unrecorded releases, bool ``(replicas, agents)``; why, if one has; and why nothing
            can be claimed. Both reasons may be empty.
        """
        if self._ledger is None:
            return self._found
        return *self._exposed(self._ledger), self._ledger.unclaimable_reason

    def close(self, found: tuple[Array, str, str]) -> None:
        """Ends the episode: from now on ``found``, a result of :meth:`unrecorded`, replaces the ledger."""
        self._found, self._ledger = found, None

    def after(self, releases: Mapping[Event, Array]) -> "Accountant":
        """Returns a copy of this accountant in which some future releases are recorded as well.

        Args:
            releases: For each event of these releases, by how much each agent's count changes; see :meth:`record`.
        """
        future = copy(self)
        future._counts = dict(self._counts)
        for event, times in releases.items():
            future.record(event, times)
        return future

    def skip(self, absent: Array) -> None:
        """Counts releases that did not take place, of agents for which they are recorded nevertheless.

        This is so for sums with correlated noise: their events count all synchronisations, with or without the agent.

        Args:
            absent: Whether each agent's release is recorded but did not take place, bool ``(replicas, agents)``.
        """
        self._absent += absent

    def rescaled(self, ratio: Array) -> "Accountant":
        """Returns a copy in which releases have ``1/ratio`` times the variance of noise; see :meth:`Event.rescaled`.

        Args:
            ratio: For each agent, numbers > 0 that broadcast with ``(replicas, agents)``.
        """
        future = copy(self)
        future._counts = {}
        ratio = np.broadcast_to(ratio, self._shape)
        for event, times in self._counts.items():
            for each in np.unique(ratio[times > 0]).tolist():
                future.record(event.rescaled(each), times * (ratio == each))
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
            adjacency: The neighbouring histories, see :data:`fedbandit_envs.core.claim.Adjacency`. None for the
                environment's first adjacency, or for the first of the events where there is no environment.

        Returns:
            The claim. If the composition gives no epsilon, the claim's epsilon is None and its reason says why:
            ``basic`` at a delta below the sum of the events' deltas (``exact`` may give an epsilon there), ``parallel``
            after data were released twice, and any composition if ``delta`` is None and the sum is 1 or more.

        Raises:
            ValueError: A name is unknown, or delta is out of its range.
        """
        adjacency = self._first_adjacency() if adjacency is None else adjacency
        rows, delta, reason = self._compose(delta, composition, self.covering(adjacency))
        if adjacency in self._as_agent and self._counts:
            covers = f"authored messages: what an event changes in them is unknown, so this is the epsilon of {AGENT!r}"
            reason = f"{covers}; {reason}" if reason else covers
        epsilon = None
        if np.isinf(rows).any() or not np.isnan(rows).any():
            epsilon = float(np.nanmax(rows, initial=0.0))
        return Claim(epsilon, delta, adjacency, composition, reason, self.trust, self._noise)

    def epsilon_by_agent(
        self,
        delta: float | None = None,
        *,
        composition: Composition = "basic",
        adjacency: Adjacency | None = None,
    ) -> Array:
        """Returns each agent's epsilon for its releases so far; arguments and errors are those of :meth:`epsilon`.

        If ``delta`` is None, each agent's epsilon is computed at the sum of the deltas of its own events, so that it
        does not depend on other agents.

        Returns:
            Epsilons, float64 ``(replicas, agents)``; infinite where the composition gives none.
        """
        adjacency = self.covering(adjacency)
        if delta is not None:
            rows = self._compose(delta, composition, adjacency)[0]
        else:
            promised = self._promised_deltas(composition, adjacency)
            rows = np.full(self._shape, np.nan)
            for each in np.unique(promised[promised < 1]).tolist():
                own = promised == each
                rows[own] = self._compose(each, composition, adjacency)[0][own]
        return np.where(np.isnan(rows), np.inf, rows)

    def covering(self, adjacency: Adjacency | None) -> Adjacency:
        """Returns the adjacency under which epsilon is computed: always ``agent`` if policies write the messages."""
        adjacency = self._first_adjacency() if adjacency is None else adjacency
        return AGENT if adjacency in self._as_agent else adjacency

    def _first_adjacency(self) -> Adjacency:
        """Returns the first adjacency of the environment, or of the events; empty if none is named."""
        named = (adjacency for event in self.events for adjacency, _ in event.changes)
        return self._adjacencies[0] if self._adjacencies else next(named, "")

    def _compose(
        self, delta: float | None, composition: Composition, adjacency: Adjacency
    ) -> tuple[Array, float, str]:
        """Composes all releases, with an infinite epsilon for agents that have unrecorded ones.

        Returns epsilon by agent (NaN if the composition gives none), the delta used, and a reason for a
        missing or infinite epsilon.
        """
        if composition not in COMPOSITIONS:
            require_choice("composition", composition, COMPOSITIONS)
        if (self._adjacencies or self._ledger is not None) and adjacency not in (*self._adjacencies, AGENT):
            require_choice("adjacency", adjacency, list(dict.fromkeys((*self._adjacencies, AGENT))))
        if delta is not None and not 0 <= delta < 1:
            raise ValueError(f"delta is {delta!r}; None or a number in [0, 1) is required")
        exposed, why, unclaimable = self.unrecorded()
        if adjacency == AGENT and self._counts and self._adjacencies and AGENT not in self._adjacencies:
            unclaimable = unclaimable or "releases are not clipped: data may change them by any amount"
        if unclaimable:
            rows, delta, reason = np.full(self._shape, np.nan), delta or 0.0, unclaimable
        else:
            rows, delta, reason = self._booked(delta, composition, adjacency)
        if why:
            rows, reason = np.where(exposed, np.inf, rows), why
        return rows, delta, reason

    def _exposed(self, ledger: ReleaseLedger) -> tuple[Array, str]:
        """Returns whether each agent has unrecorded releases, ``(replicas, agents)``, and why (empty if none has)."""
        if ledger.episode != self._episode:
            return (
                np.ones(self._shape, np.bool_),
                "the environment was reset without its privatizer: these books are of another episode",
            )
        below, unbooked = ledger.left(self._height)
        unbooked += self._absent
        for event, times in self._counts.items():
            unbooked -= event.releases * times
        exposed = (below > 0) | (unbooked > 0)
        if not np.count_nonzero(exposed):
            return exposed, ""
        unseen = "data has left without passing the privatizer"
        return exposed, unseen if below.any() else "more has been released than is in the books"

    def _booked(
        self, delta: float | None, composition: Composition, adjacency: Adjacency
    ) -> tuple[Array, float, str]:
        """Composes the recorded releases, without considering unrecorded ones.

        Returns epsilon by agent (NaN if the composition gives none), the delta used, and a reason for a
        missing or infinite epsilon.
        """
        if not self._counts:
            return np.zeros(self._shape), delta or 0.0, "nothing has been released"
        counts, reason = self.counts, ""
        if delta is None:
            delta = float(self._promised_deltas(composition, adjacency).max(initial=0.0))
        if delta >= 1:
            reason = f"no guarantee: the promised deltas add up to {delta:.3g}, which is not below 1"
            return np.where(counts.any(axis=0), np.nan, 0.0), delta, reason
        new = [event.kind for event in self.events if event.kind not in PROVEN]
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
        return rows, delta, reason

    def _unanswered(self, composition: Composition, adjacency: Adjacency, delta: float) -> str:
        """Returns the reason why a composition other than ``basic`` gives no epsilon.

        The reason is that of the first event for which the composition gives no epsilon even if it happens alone.
        """
        if composition == "parallel" and adjacency == AGENT:
            return "all data of an agent differ, and not one window only"
        alone = np.ones((1, 1, 1), np.int64)
        compose = COMPOSITIONS[composition]
        event = next(e for e in self.events if np.isnan(compose([e], alone, adjacency, delta)).any())
        if composition == "parallel" and event.releases > 1:
            return "data was released twice: windows are not disjoint"
        needed = "rho and no RDP function" if composition == "zcdp" else "privacy loss distribution"
        return f"{composition} composition does not know the mechanism {event.kind!r}: its event gives no {needed}"

    def _promised_deltas(self, composition: Composition, adjacency: Adjacency) -> Array:
        """Returns each agent's delta, ``(replicas, agents)``: the sum over its events, or their largest (parallel)."""
        if composition == "parallel":
            single = np.array([event.promised(adjacency)[1] for event in self.events])
            return (single[:, np.newaxis, np.newaxis] * (self.counts > 0)).max(axis=0, initial=0.0)
        return promised_delta(self.events, self.counts, adjacency)


def _exposure(event: Event, adjacency: Adjacency) -> str:
    """Returns the reason why an event lets an observer distinguish neighbouring histories with certainty."""
    if np.isinf(event.loss):
        return "released without noise"
    return f"{event.kind.replace('_', ' ')} does not protect {adjacency}"
