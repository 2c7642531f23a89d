"""Privacy events: releases as the accountant counts them, a few numbers each, or with a privacy curve of their own."""

from dataclasses import dataclass
from math import isinf
from typing import Any, ClassVar

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.sensitivity import Change

Kind = str
"""Name of a kind of mechanism. No kind is ever removed from :data:`PROVEN`, and what a kind means never changes."""

PROVEN: tuple[Kind, ...] = ("gaussian", "laplace", "randomised_response")
"""Kinds of events whose privacy follows from their loss in every composition. Events of other kinds give a curve."""

UNPROTECTED = Change(1, np.inf)


@dataclass(frozen=True)
class Event:
    """One release of one agent, or several that are one mechanism.

    A mechanism of a kind of its own books a subclass that gives its privacy curve, by overriding
    :meth:`loss_distribution` or :meth:`dp_event` for ``exact`` and ``parallel`` composition, and :meth:`rho` or
    :meth:`rdp` for ``zcdp``. Without one of these only ``basic`` composition answers. Events are hashed and compared by
    their fields, so a curve follows from these, and a field that a subclass adds has a default.

    **What a curve must cover**: the worst two releases of neighbours, in both directions. By a
    :class:`~fedbandit_envs.core.sensitivity.Change` they differ in at most ``values`` values, in each by at most the
    scale that the noise is in proportion to, and in all by at most ``norm`` in Euclidean norm, in units of the scales.
    Which values these are, and the vector of differences, is the attacker's choice. Curves of kinds in
    :data:`PROVEN` are not asked for.

    Example:
        >>> class DiscreteLaplace(Event):
        ...     relation = "ADD_OR_REMOVE_ONE"
        ...     def dp_event(self, change):
        ...         from dp_accounting.dp_event import DiscreteLaplaceDpEvent, SelfComposedDpEvent
        ...         return SelfComposedDpEvent(DiscreteLaplaceDpEvent(self.loss, 1), change.values)
        >>> event = DiscreteLaplace("discrete_laplace", 0.1, 0.1, 0.0, (("one-observation", Change(2, 1.5)),))

    Attributes:
        relation: Name of the ``dp_accounting.NeighboringRelation`` under which :meth:`dp_event` is composed.
            ``"REPLACE_ONE"`` doubles the sensitivity of Gaussian noise, and does not know Laplace noise. For an event
            that takes all of a change for its sensitivity, ``"ADD_OR_REMOVE_ONE"`` is right.
        kind: The mechanism.
        loss: Privacy loss of a change by one scale: mu, the inverse of the noise multiplier, for ``gaussian`` noise;
            epsilon of one value for ``laplace`` and ``randomised_response``; of other kinds roughly either, by which
            the precision of exact composition is chosen. Infinite without noise.
        epsilon: Promised for one value.
        delta: Promised for one value.
        changes: What changes, by adjacency, and how many values' promises that needs; an adjacency that is
            missing is not protected at all.
        releases: How many releases of the agent it is; with several, later ones show again what earlier ones have
            shown.
    """

    kind: Kind
    loss: float
    epsilon: float
    delta: float
    changes: tuple[tuple[Adjacency, Change], ...]
    releases: int = 1
    relation: ClassVar[str] = "REPLACE_ONE"

    def change(self, adjacency: Adjacency) -> Change:
        """Returns by how much such neighbours differ in the release."""
        return dict(self.changes).get(adjacency, UNPROTECTED)

    def mu(self, adjacency: Adjacency) -> float:
        """Returns the privacy loss of such neighbours: mu of Gaussian noise, infinite without protection."""
        return self.loss * self.change(adjacency).norm

    def loss_distribution(self, change: Change, interval: float) -> Any:
        """Returns the event's privacy loss distribution; here None, for :meth:`dp_event` to answer.

        Args:
            change: By how much neighbours differ in the release; see the class.
            interval: Losses are multiples of this.

        Returns:
            A pessimistic ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``, or None.
        """
        return None

    def dp_event(self, change: Change) -> Any:
        """Returns the event as a ``dp_accounting.DpEvent`` that is as private for neighbours who differ by ``change``.

        It is composed under :attr:`relation`. None, as here, stands for no answer.
        """
        return None

    def rho(self, change: Change) -> float:
        """Returns the zCDP parameter rho for neighbours who differ by ``change``; NaN, for other kinds, if not known.

        That is mu^2/2 for Gaussian noise, and epsilon^2/2 for each value of any epsilon-private release (Bun and
        Steinke, Propositions 1.6 and 1.4).
        """
        if self.kind == "gaussian":
            return float(np.square(self.loss * change.norm) / 2)
        return float(change.values * (np.square(self.loss) / 2)) if self.kind in PROVEN else np.nan

    def rdp(self, change: Change, orders: Array) -> Array:
        """Returns the Renyi divergence of each order for such neighbours; by default order times :meth:`rho`.

        Args:
            change: By how much neighbours differ in the release; see the class.
            orders: Numbers > 1, float64 ``(orders,)``, integers from 2 on among them.

        Returns:
            Bounds on the divergence in nats, float64 ``(orders,)``; infinite where there is none for an order.
        """
        return orders * self.rho(change)

    def promised(self, adjacency: Adjacency) -> tuple[float, float]:
        """Returns the promised epsilon and delta, added up over the values in which such neighbours differ."""
        values = self.change(adjacency).values
        return np.inf if self.exposes(adjacency) else values * self.epsilon, values * self.delta

    def exposes(self, adjacency: Adjacency) -> bool:
        """Returns whether the event lets an observer distinguish neighbours under ``adjacency`` with certainty."""
        return isinf(self.loss) or isinf(self.change(adjacency).norm)
