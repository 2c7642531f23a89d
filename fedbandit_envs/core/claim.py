"""Claims of differential privacy, and the notions of neighbouring data under which they hold."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal

from fedbandit_envs.basics.html import html_table

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
        trust: Whom an agent must trust for the guarantee. ``local``: nobody but itself. Others are a ``shuffler``, an
            ``aggregator`` (a secure sum), a ``server``, or ``cryptography``.
        noise: ``none`` without noise; ``repeatable`` if the noise follows from a seed that others may know or find, so
            that the guarantee holds only against those who do not; ``secret`` if it follows from a secret seed.
        observer: Against whom the guarantee holds: ``everybody`` (but the agent itself), or those who see an agent's
            uploads (``wire``), what the ``server`` sees, what a ``fellow`` agent receives and has itself, or what is
            sent to all agents (``public``).
    """

    epsilon: float | None
    delta: float
    adjacency: Adjacency
    composition: Composition
    reason: str = ""
    trust: str = "local"
    noise: str = "none"
    observer: str = "everybody"

    def as_json(self) -> dict[str, Any]:
        """Returns the attributes by name; an infinite epsilon, which JSON does not have, becomes ``"infinity"``.

        An ``observer`` that is everybody is left out.
        """
        written = {**asdict(self), "epsilon": "infinity" if self.epsilon == inf else self.epsilon}
        return {name: value for name, value in written.items() if (name, value) != ("observer", "everybody")}

    def _repr_html_(self) -> str:
        """Returns the HTML table that notebooks show: the attributes, but for an empty reason."""
        return html_table("Claim of privacy", [row for row in asdict(self).items() if row[1] != ""])
