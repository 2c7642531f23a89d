"""What a release reveals: neighbouring histories, sensitivity, the announced variance of noise, and privacy claims.

A noisy release contains for each array ``name`` another array ``{name}_noise_variance`` of the same shape. Its entries
are the growth, with this release, of the variance of the noise in the sum of all of the agent's releases so far. They
do not depend on data, except on data that are released without noise. If releases have independent noise, the growth is
the variance of the noise in this release and never negative. If the noise of an agent's releases is correlated
(continual release), the variance of a sum may shrink: the space of the array then has a negative lower bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.html import html_table

Adjacency = str
"""The adjacency: the part in which two neighbouring histories of one agent differ, all else being equal.

An environment names the adjacencies under which it can be protected (:class:`.Sensitivity`). It may use its
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
"""How the privacy of single releases is composed; see :mod:`fedbandit_envs.wrappers.privacy.accounting.event`."""


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


class Change(NamedTuple):
    """Bounds on how much one release differs between neighbouring histories, in units of each number's scale.

    Attributes:
        values: The largest number of entries of the release that differ, each by at most its scale; where entries may
            differ by more, a number that is at least the sum of the differences and of their squares, in that unit.
        norm: The largest Euclidean norm of the difference, on which the privacy of Gaussian noise depends.

    In a clipped release (:meth:`Sensitivity.clipped`) single entries may differ by twice their scale. The sum of all
    absolute differences is at most sqrt(values) norm.
    """

    values: int
    norm: float


Changes = Mapping[Adjacency, Change]
"""Bounds on how much one release differs between neighbours, by adjacency; others cannot be protected."""


class Pair(NamedTuple):
    """The two arrays of a statistic that counts binary outcomes: the numbers of all outcomes and of good outcomes.

    Attributes:
        total: Name of the array that counts all outcomes.
        good: Name of the array, of the same shape, that counts the good outcomes among them.
        changes: By how much a release differs between neighbours, by adjacency, if the numbers of good and of defective
            outcomes are released instead of ``total`` and ``good``; in units of the scale of
            ``good``; ``values`` bounds the sum of the differences.
    """

    total: str
    good: str
    changes: Changes


class Sensitivity(NamedTuple):
    """The sensitivity of a release: the largest differences between neighbouring histories of an agent.

    Attributes:
        scale: The largest difference in each released number, float64, with the names and shapes of the arrays of
            :meth:`FederatedEnv.release`; mechanisms add noise in proportion to it.
        changes: By how much the release after the altered part differs between neighbours, by adjacency. An adjacency
            that is missing cannot be protected. Authored messages have none, and infinite scales, unless clipped.
        symmetric: Whether the last two axes of every array, and of every difference, are symmetric matrices.
        pair: The two arrays that count outcomes and good outcomes; None for statistics of another kind.
    """

    scale: dict[str, Array]
    changes: Changes
    symmetric: bool = False
    pair: Pair | None = None

    def clipped(self, clip: float) -> "Sensitivity":
        """Returns the sensitivity of the same release after it was scaled down to a Euclidean norm of at most ``clip``.

        The norm is that of all numbers of a release together. Every number has the scale ``clip``, whatever the data.
        Neighbours under the adjacency ``agent`` differ by a norm of 2 in this unit. Under the other adjacencies they
        differ by no more than before, since clipping never increases a distance, and by 2 at most. They may differ in
        all entries, since all are multiplied by the same factor. So the release is not a :class:`Pair` of counts any
        more.

        Args:
            clip: The largest norm of a release, > 0.
        """
        entries = sum(array[0, 0].size for array in self.scale.values())
        largest = max(float(array.max()) for array in self.scale.values())
        changes = {
            adjacency: Change(entries, min(change.norm * largest / clip, 2.0))
            for adjacency, change in self.changes.items()
        }
        return Sensitivity(
            {name: np.full(array.shape, float(clip)) for name, array in self.scale.items()},
            {**changes, AGENT: Change(entries, 2.0)},
            self.symmetric,
        )


class History(NamedTuple):
    """A round of one agent's history: the settings of the environment in which it is played, and the agent's action.

    Attributes:
        settings: Arguments of the environment, except for the numbers of agents and of rounds.
        action: The agent's action, an element of the action space.
    """

    settings: Mapping[str, Any]
    action: Array


class Neighbours(NamedTuple):
    """Two neighbouring histories of one agent, which differ in some of their rounds.

    In each round in which they differ, the agent experiences ``before`` in the first history and ``after`` in the
    second one. In all other rounds it plays the action ``idle`` in both. The agent releases after each round.

    Attributes:
        before: Environment settings and action of the first history in the rounds in which the histories differ.
        after: Environment settings and action of the second history in these rounds.
        idle: The agent's action in all other rounds, the same in both histories.
    """

    before: History
    after: History
    idle: Array


def pairs_of(
    pairs: Mapping[Adjacency, Iterable[tuple[History, History]]], adjacency: Adjacency, idle: Array
) -> list[Neighbours]:
    """Returns the pairs of neighbouring histories under an adjacency, as :class:`Neighbours`.

    Args:
        pairs: The two histories of each pair, by adjacency.
        adjacency: The adjacency; the list is empty if it is missing from ``pairs``.
        idle: The agent's action in rounds in which the histories do not differ.
    """
    return [Neighbours(before, after, idle) for before, after in pairs.get(adjacency, ())]


COVARIANCE = "noise_covariance"
"""Name of the array in a release with the covariance of the noise in two other arrays, entry by entry, if not 0."""


@cache
def variance_of(name: str) -> str:
    """Returns the name of the array that holds the variance of the noise in the array ``name``."""
    return f"{name}_noise_variance"


def with_variances(released: spaces.Dict, low: float = 0.0, high: float = np.inf) -> spaces.Dict:
    """Returns the space of releases that carry the variance of their noise.

    Args:
        released: Space of the releases without variances.
        low: Lower bound of the growth of a variance; below 0 if the noise of releases is correlated.
        high: Upper bound of the growth of a variance.
    """
    variances: dict[str, spaces.Space] = {
        variance_of(name): spaces.Box(low, high, space.shape or (), np.float64)
        for name, space in released.items()
    }
    return spaces.Dict({**released.spaces, **variances})


def independent(released: spaces.Dict) -> bool:
    """Returns whether releases of this space have independent noise: no variance in it can shrink."""
    return all(
        float(space.low.min()) >= 0
        for name, space in released.items()
        if name.endswith(variance_of("")) and isinstance(space, spaces.Box)
    )
