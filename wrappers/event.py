"""A release as the accountant sees it: a few scalars, since all noise is proportional to sensitivity."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fedbandit_envs.claim import Adjacency

Kind = Literal["gaussian", "laplace", "randomised_response"]


class Change(NamedTuple):
    """By how much the values of one release differ between neighbours.

    Attributes:
        values: How often the promise for one value is needed.
        norm: Euclidean length of the change, in sensitivities of one value; what counts for Gaussian noise.
    """

    values: int
    norm: float


UNPROTECTED = Change(1, np.inf)


@dataclass(frozen=True)
class Event:
    """One release of one agent.

    Attributes:
        kind: The mechanism.
        loss: Of one value: mu = sensitivity/sigma for Gaussian noise, epsilon for the other two; infinite
            without noise.
        epsilon: Promised for one value.
        delta: Promised for one value.
        changes: What changes, by adjacency; an adjacency that is missing is not protected at all.
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
