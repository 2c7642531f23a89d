"""Compositions: the privacy of all releases of an agent, from that of single ones.

Every composition is a function of the distinct events, of how often each agent had them (``counts``, shape
``(events, replicas, agents)``), of the adjacency and of delta; it returns an epsilon an agent, infinite where
there is no privacy and NaN where the composition has no answer.

References:
    * C. Dwork, A. Roth: The Algorithmic Foundations of Differential Privacy, 2014, Theorem 3.16.
    * F. McSherry: Privacy Integrated Queries. SIGMOD 2009, Theorem 4.
    * M. Bun, T. Steinke: Concentrated Differential Privacy. TCC 2016, Lemma 1.7.
    * J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022, Corollary 2.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.claim import Adjacency, Composition
from fedbandit_envs.wrappers.privacy.accounting import loss_distributions
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon, zcdp_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Event, Kind

Compose = Callable[[Sequence[Event], Array, Adjacency, float], Array]
"""Takes the distinct events, how often each agent had them, the adjacency and delta; returns an epsilon an agent."""


def promised_delta(events: Sequence[Event], counts: Array, adjacency: Adjacency) -> Array:
    """Returns the delta of all releases of each agent by basic composition: the sum over events and changed values."""
    return _total(counts, (event.promised(adjacency)[1] for event in events))


def basic(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Sums the events' epsilons; NaN where delta is less than the sum of their deltas; see :data:`Compose`."""
    epsilon = _total(counts, (event.promised(adjacency)[0] for event in events))
    # Sums of equal terms, in another order, differ by rounding.
    covered = promised_delta(events, counts, adjacency) <= delta * (1 + 1e-12)
    return np.where(covered | np.isinf(epsilon), epsilon, np.nan)


def zcdp(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Sums the events' zCDP parameters rho and converts the sum to epsilon at delta; see :data:`Compose`."""
    total = _total(counts, (event.rho(adjacency) for event in events))
    return np.where(total > 0, np.inf, 0.0) if delta == 0 else np.asarray(zcdp_epsilon(delta, total))


def exact(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Composes Gaussian releases in closed form, others numerically; see :data:`Compose`."""
    if all(event.kind == "gaussian" for event in events):
        square = _total(counts, (event.mu(adjacency) ** 2 for event in events))
        spent = np.sqrt(square).ravel().tolist()
        # Agents often have spent the same.
        known = {mu: _of_mu(delta, mu) for mu in set(spent)}
        return np.array([known[mu] for mu in spent]).reshape(square.shape)
    used, place = np.unique(counts.reshape(len(events), -1), axis=1, return_inverse=True)
    epsilon = np.array(
        [_composed(tuple(zip(events, times.tolist(), strict=True)), adjacency, delta) for times in used.T]
    )
    return epsilon[place.ravel()].reshape(counts.shape[1:])


def parallel(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Takes the largest exact guarantee of one release; no answer where data was released twice; see :data:`Compose`.

    A continual release shows what was released before again, once there are several. Without dp-accounting the values
    of one release that are not Gaussian are composed by adding their epsilons.
    """
    single = np.array([_composed(((event, 1),), adjacency, delta) for event in events])
    single[np.array([event.releases > 1 for event in events]) & np.isfinite(single)] = np.nan
    return np.where(counts > 0, single[:, np.newaxis, np.newaxis], 0.0).max(axis=0, initial=0.0)


PROVEN: tuple[Kind, ...] = ("gaussian", "laplace", "randomised_response")
"""Kinds of events that every composition knows. ``basic`` knows all kinds: it adds promises up, whatever keeps them."""

COMPOSITIONS: Mapping[Composition, Compose] = {
    "basic": basic,
    "zcdp": zcdp,
    "exact": exact,
    "parallel": parallel,
}


def _total(counts: Array, amounts: Iterable[float]) -> Array:
    """Adds amounts up as often as their events happened; what never happened adds nothing."""
    total = np.zeros(counts.shape[1:])
    # One after the other, so that a replica's sum is rounded alike alone and in a batch.
    for amount, times in zip(amounts, counts, strict=True):
        if isfinite(amount):
            total += amount * times
        else:
            total[times > 0] = np.inf
    return total


# What has been asked before a release is asked again after it.
@lru_cache(maxsize=4096)
def _of_mu(delta: float, mu: float) -> float:
    return float(gaussian_epsilon(delta, mu))


@lru_cache(maxsize=1024)
def _composed(releases: tuple[tuple[Event, int], ...], adjacency: Adjacency, delta: float) -> float:
    """Returns the epsilon of the releases of one agent, given as pairs of an event and how often it happened."""
    happened = [(event, times) for event, times in releases if times]
    if any(event.exposes(adjacency) for event, _ in happened):
        return np.inf
    mu = np.sqrt(sum(n * e.mu(adjacency) ** 2 for e, n in happened if e.kind == "gaussian"))
    others = tuple(
        (e.kind, e.loss, n * e.change(adjacency).values) for e, n in happened if e.kind != "gaussian"
    )
    gaussian = _of_mu(delta, float(mu))
    # Pure losses add up, and a better composition must not give a larger epsilon.
    added = gaussian + float(sum(loss * times for _, loss, times in others))
    if not others or delta == 0 or not loss_distributions.available():
        return added
    return min(added, loss_distributions.composed_epsilon(delta, float(mu), others))
