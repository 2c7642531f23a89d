"""A release as the accountant sees it: a few scalars, since all noise is proportional to scale."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedbandit_envs.claim import Adjacency
from fedbandit_envs.sensitivity import Change

Kind = Literal["gaussian", "laplace", "randomised_response"]


UNPROTECTED = Change(1, np.inf)


@dataclass(frozen=True)
class Event:
    """One release of one agent, or several that are one mechanism.

    Attributes:
        kind: The mechanism.
        loss: Of a change by one scale: mu for Gaussian noise, epsilon of one value for the other two; infinite
            without noise.
        epsilon: Promised for one value.
        delta: Promised for one value.
        changes: What changes, by adjacency, and how many values' promises that needs; an adjacency that is
            missing is not protected at all.
        repeats: Whether it shows data that an earlier release of the same agent has shown.
    """

    kind: Kind
    loss: float
    epsilon: float
    delta: float
    changes: tuple[tuple[Adjacency, Change], ...]
    repeats: bool = False

    def change(self, adjacency: Adjacency) -> Change:
        """Returns what changes between such neighbours."""
        return dict(self.changes).get(adjacency, UNPROTECTED)

    def exposes(self, adjacency: Adjacency) -> bool:
        """Says whether neighbours can be told apart with certainty."""
        return bool(np.isinf(self.loss * self.change(adjacency).norm))
