"""Claims of differential privacy, and the notions of neighbouring data under which they hold."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

Adjacency = str
"""The adjacency: the part in which two neighbouring histories of one agent differ, all else being equal.

An environment names the adjacencies under which it can be protected (:class:`.sensitivity.Sensitivity`): these, or
names of its own:

* ``one-quantity``: one quantity asked of one producer in one round; its outcomes are coupled, so that a
  larger quantity has the same outcomes and more.
* ``one-round``: the quantities of all producers in one round, coupled likewise.
* ``one-observation``: one pair (of quantity and outcome, or of context and reward), replaced by any other pair that
  could have been.
* ``one-observation-added``: one such pair, there or not there.
* ``one-outcome``: one binary outcome, good or defective; quantities are the same.
"""

Composition = Literal["basic", "zcdp", "exact", "parallel"]
"""How the privacy of single releases is composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.accountant`."""


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta) guarantee, for the agent of all replicas that has spent most.

    Attributes:
        epsilon: The guarantee; infinite where there is none, None where the composition gives no answer.
        delta: The delta at which it holds.
        adjacency: The neighbouring histories that an observer cannot distinguish.
        composition: How the releases were composed.
        reason: Why epsilon is None, infinite or otherwise not what was asked for; empty if it is.
        trust: Whom one must trust for it. ``local``: nobody but the agent itself. A mechanism that needs a silo, a
            shuffler, a server or cryptography says so in words of its own.
        noise: ``none``; ``repeatable`` where the noise follows from a seed that others may know or find, so that the
            guarantee is one against whoever does not; ``secret`` where it follows from entropy of its own.
    """

    epsilon: float | None
    delta: float
    adjacency: Adjacency
    composition: Composition
    reason: str = ""
    trust: str = "local"
    noise: str = "none"

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name; JSON knows no infinity: ``"infinity"`` promises nothing, null is unknown."""
        return {**asdict(self), "epsilon": "infinity" if self.epsilon == inf else self.epsilon}
