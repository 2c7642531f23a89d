"""Privacy events: releases as the accountant counts them, a few numbers each."""

from dataclasses import dataclass

import numpy as np

from fedbandit_envs.core.claim import Adjacency
from fedbandit_envs.core.sensitivity import Change

Kind = str
"""Name of a kind of mechanism. Compositions know some kinds (:data:`.composition.PROVEN`) and have no answer for
others; what a kind means never changes."""

UNPROTECTED = Change(1, np.inf)


@dataclass(frozen=True)
class Event:
    """One release of one agent, or several that are one mechanism.

    Attributes:
        kind: The mechanism.
        loss: Privacy loss of a change by one scale: mu, the inverse of the noise multiplier, for ``gaussian`` noise;
            epsilon of one value for ``laplace`` and ``randomised_response``; infinite without noise.
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

    def change(self, adjacency: Adjacency) -> Change:
        """Returns by how much such neighbours differ in the release."""
        return dict(self.changes).get(adjacency, UNPROTECTED)

    def mu(self, adjacency: Adjacency) -> float:
        """Returns the privacy loss of such neighbours: mu of Gaussian noise, infinite without protection."""
        return self.loss * self.change(adjacency).norm

    def rho(self, adjacency: Adjacency) -> float:
        """Returns the zCDP parameter of the event, for its kinds of mechanism that are known to the compositions.

        That is mu^2/2 for Gaussian noise, and epsilon^2/2 for each value of any epsilon-private release (Bun and
        Steinke, Propositions 1.6 and 1.4).
        """
        if self.kind == "gaussian" or self.exposes(adjacency):
            return float(np.square(self.mu(adjacency)) / 2)
        return float(self.change(adjacency).values * (np.square(self.loss) / 2))

    def promised(self, adjacency: Adjacency) -> tuple[float, float]:
        """Returns the promised epsilon and delta, added up over the values in which such neighbours differ."""
        values = self.change(adjacency).values
        return np.inf if self.exposes(adjacency) else values * self.epsilon, values * self.delta

    def exposes(self, adjacency: Adjacency) -> bool:
        """Returns whether the event lets an observer distinguish neighbours under ``adjacency`` with certainty."""
        return bool(np.isinf(self.mu(adjacency)))
