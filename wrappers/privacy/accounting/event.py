"""A release as the accountant sees it: a few scalars, since all noise is proportional to scale."""

from dataclasses import dataclass

import numpy as np

from fedbandit_envs.claim import Adjacency
from fedbandit_envs.sensitivity import Change

Kind = str
"""What a mechanism is. Compositions say which kinds they know (:mod:`.composition`) and refuse to answer for others;
what a kind means never changes."""

UNPROTECTED = Change(1, np.inf)


@dataclass(frozen=True)
class Event:
    """One release of one agent, or several that are one mechanism.

    Attributes:
        kind: The mechanism.
        loss: Of a change by one scale: mu for ``gaussian`` noise, epsilon of one value for ``laplace`` and
            ``randomised_response``; infinite without noise.
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
        """Returns what changes between such neighbours."""
        return dict(self.changes).get(adjacency, UNPROTECTED)

    def exposes(self, adjacency: Adjacency) -> bool:
        """Says whether neighbours can be told apart with certainty."""
        return bool(np.isinf(self.loss * self.change(adjacency).norm))
