"""Privacy events: descriptions of releases from which the accountant composes the privacy of an episode."""

from dataclasses import dataclass, replace
from math import ceil, isinf, sqrt
from typing import Any, ClassVar

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import Adjacency, Change

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
    :class:`~fedbandit_envs.core.privacy.Change` states how much the two releases differ: in at most ``values``
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
