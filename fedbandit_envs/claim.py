"""What can be claimed about privacy, and under which notion of neighbouring data."""

from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal

Adjacency = Literal["one-quantity", "one-round", "one-observation", "one-observation-added", "one-outcome"]
"""What differs between two neighbouring histories of one agent, all else being equal.

* ``one-quantity``: one quantity asked of one producer in one round; its outcomes are coupled, so that a
  larger quantity has the same outcomes and more.
* ``one-round``: the quantities of all producers in one round, coupled likewise.
* ``one-observation``: one pair (of quantity and outcome, or of context and reward), replaced by any other pair that
  could have been.
* ``one-observation-added``: one such pair, there or not there.
* ``one-outcome``: one binary outcome, good or defective; quantities are the same.
"""

Composition = Literal["basic", "zcdp", "exact", "parallel"]
"""How single releases make the whole; see :mod:`fedbandit_envs.wrappers.privacy.accounting.accountant`."""


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta) guarantee, for the agent of all replicas that has spent most.

    Attributes:
        epsilon: The guarantee; infinite where there is none, None where the composition gives no answer.
        delta: The delta at which it holds.
        adjacency: The neighbouring histories that it speaks of.
        composition: How it was derived.
        reason: Why epsilon is None, infinite or otherwise not what was asked for; empty if it is.
    """

    epsilon: float | None
    delta: float
    adjacency: Adjacency
    composition: Composition
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name; JSON knows no infinity, which promises nothing and becomes null."""
        finite = self.epsilon is not None and isfinite(self.epsilon)
        return {**asdict(self), "epsilon": self.epsilon if finite else None}
