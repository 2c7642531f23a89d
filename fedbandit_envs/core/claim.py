"""Claims of differential privacy, and the notions of neighbouring data under which they hold."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

Adjacency = str
"""The adjacency: the part in which two neighbouring histories of one agent differ, all else being equal.

An environment names the adjacencies under which it can be protected (:class:`.sensitivity.Sensitivity`). It may use its
own names, or these:

* ``one-quantity``: one quantity requested from one producer in one round. Outcomes are coupled, so that a
  larger quantity has the same outcomes and more.
* ``one-round``: the quantities of all producers in one round, with outcomes coupled in the same way.
* ``one-observation``: one observation (of quantity and outcome, or of context and reward), replaced by any other
  possible one.
* ``one-observation-added``: one such observation, which is part of one history and missing in the other.
* ``one-outcome``: one binary outcome, good or defective; quantities are the same.
* ``agent``: all data of the agent in the whole episode, replaced by any other data (:data:`AGENT`).
"""

AGENT: Adjacency = "agent"
"""The adjacency ``agent``: the two histories of the agent may differ in everything that it ever did and observed.

It covers whatever computed the agent's releases and whatever its earlier data led to later, such as other actions. The
times and the number of its releases must be the same in both histories. No statistic bounds by itself how much it
differs between two such histories, so releases must be clipped (:class:`~fedbandit_envs.wrappers.Privatizer` with
``clip=C``): two vectors of Euclidean norm C at most differ by at most 2 C in each release.
"""

Composition = Literal["basic", "zcdp", "exact", "parallel"]
"""How the privacy of single releases is composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.accountant`."""


@dataclass(frozen=True)
class Claim:
    """An (epsilon, delta) privacy guarantee, for that agent of all replicas that has the largest privacy loss.

    Attributes:
        epsilon: The epsilon of the guarantee; infinite without protection, None where nothing can be said.
        delta: The delta at which epsilon holds.
        adjacency: The neighbouring histories that an observer cannot distinguish.
        composition: How the releases were composed.
        reason: Why epsilon is None or infinite, or was not computed as requested; empty otherwise.
        trust: Whom an agent must trust for the guarantee. ``local``: nobody but itself. A mechanism that needs a silo,
            a shuffler, a server or cryptography uses another word.
        noise: ``none`` without noise; ``repeatable`` if the noise follows from a seed that others may know or find, so
            that the guarantee holds only against those who do not; ``secret`` if it follows from a secret seed.
    """

    epsilon: float | None
    delta: float
    adjacency: Adjacency
    composition: Composition
    reason: str = ""
    trust: str = "local"
    noise: str = "none"

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name; an infinite epsilon, which JSON does not have, becomes ``"infinity"``."""
        return {**asdict(self), "epsilon": "infinity" if self.epsilon == inf else self.epsilon}
