"""Compositions: the privacy of all releases of an agent, computed from the privacy of the single releases.

Every composition is a function of four arguments: the distinct privacy events; how often each agent had each of them
(``counts``, shape ``(events, replicas, agents)``); the adjacency; and delta. It returns the epsilon of each agent,
``(replicas, agents)``: infinite where there is no privacy, and NaN where the composition cannot tell.

References:
    * C. Dwork, A. Roth: The Algorithmic Foundations of Differential Privacy, 2014, Theorem 3.16.
    * F. McSherry: Privacy Integrated Queries. SIGMOD 2009, Theorem 4.
    * M. Bun, T. Steinke: Concentrated Differential Privacy. TCC 2016, Lemma 1.7.
    * I. Mironov: Renyi Differential Privacy. CSF 2017, Propositions 1 and 3.
    * J. Dong, A. Roth, W. Su: Gaussian Differential Privacy. JRSS B 2022, Corollary 2.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import AGENT, Adjacency, Composition
from fedbandit_envs.wrappers.privacy.accounting import loss_distributions
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon, zcdp_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import PROVEN, Event

Compose = Callable[[Sequence[Event], Array, Adjacency, float], Array]
"""A composition: takes the distinct events, how often each agent had them, the adjacency and delta; returns epsilons.

The result has the shape ``(replicas, agents)``.
"""


def promised_delta(events: Sequence[Event], counts: Array, adjacency: Adjacency) -> Array:
    """Returns each agent's sum of the deltas of all its releases (basic composition), ``(replicas, agents)``."""
    return _total(counts, (event.promised(adjacency)[1] for event in events))


def basic(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the sum of the events' epsilons; NaN where delta is less than the sum of their deltas.

    Arguments and result are those of :data:`Compose`.
    """
    epsilon = _total(counts, (event.promised(adjacency)[0] for event in events))
    # The tolerance allows for a caller whose delta is the same sum in another order, with other rounding errors.
    covered = promised_delta(events, counts, adjacency) <= delta * (1 + 1e-12)
    return np.where(covered | np.isinf(epsilon), epsilon, np.nan)


def zcdp(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the epsilon at delta that follows from the sum of the events' zCDP parameters rho.

    For agents that have an event without a rho, Renyi divergences are summed instead, and the order that gives the
    smallest epsilon is taken. Arguments and result are those of :data:`Compose`.
    """
    changes = [event.change(adjacency) for event in events]
    exposed = [event.exposes(adjacency) for event in events]
    rhos = [
        np.inf if bare else event.rho(change)
        for event, change, bare in zip(events, changes, exposed, strict=True)
    ]
    total = _total(counts, rhos)
    epsilon = np.where(total > 0, np.inf, 0.0) if delta == 0 else np.asarray(zcdp_epsilon(delta, total))
    if not np.isnan(total).any():
        return epsilon
    curves = [
        np.full(_ORDERS.shape, np.inf) if bare else event.rdp(change, _ORDERS)
        for event, change, bare in zip(events, changes, exposed, strict=True)
    ]
    divergence = np.stack([_total(counts, amounts) for amounts in np.transpose(curves)], axis=-1)
    with np.errstate(divide="ignore"):
        best = (divergence - np.log(delta) / (_ORDERS - 1)).min(axis=-1)
    return np.where(np.isnan(total), best, epsilon)


def exact(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the exact epsilon at delta: of Gaussian releases in closed form, of others numerically.

    It is NaN for agents with an event that has no privacy loss distribution. Arguments and result are those of
    :data:`Compose`.
    """
    if all(event.kind == "gaussian" for event in events):
        square = _total(counts, (event.mu(adjacency) ** 2 for event in events))
        spent = np.sqrt(square).ravel().tolist()
        # Each distinct mu is converted once, since many agents have the same one.
        known = {mu: _of_mu(delta, mu) for mu in set(spent)}
        return np.array([known[mu] for mu in spent]).reshape(square.shape)
    used, place = np.unique(counts.reshape(len(events), -1), axis=1, return_inverse=True)
    epsilon = np.array(
        [_composed(tuple(zip(events, times.tolist(), strict=True)), adjacency, delta) for times in used.T]
    )
    return epsilon[place.ravel()].reshape(counts.shape[1:])


def parallel(events: Sequence[Event], counts: Array, adjacency: Adjacency, delta: float) -> Array:
    """Returns the largest exact epsilon of a single release, for releases of disjoint data (parallel composition).

    It is NaN for agents whose data were released twice, as in continual release, where each release after the first
    depends on earlier data again; and under the adjacency ``agent``, where all windows differ, after a second release.
    If dp-accounting is not installed, the epsilons of the numbers in one non-Gaussian
    release are added. Arguments and result are those of :data:`Compose`.
    """
    single = np.array([_composed(((event, 1),), adjacency, delta) for event in events])
    single[np.array([event.releases > 1 for event in events]) & np.isfinite(single)] = np.nan
    each = np.where(counts > 0, single[:, np.newaxis, np.newaxis], 0.0)
    epsilon = np.where(np.isinf(each).any(axis=0), np.inf, each.max(axis=0, initial=0.0))
    again = counts.sum(axis=0) > 1
    return np.where(again & np.isfinite(epsilon), np.nan, epsilon) if adjacency == AGENT else epsilon


COMPOSITIONS: Mapping[Composition, Compose] = {
    "basic": basic,
    "zcdp": zcdp,
    "exact": exact,
    "parallel": parallel,
}


def _total(counts: Array, amounts: Iterable[float]) -> Array:
    """Returns each agent's sum of its events' amounts, ``(replicas, agents)``.

    Args:
        counts: How often each agent had each event, ``(events, replicas, agents)``.
        amounts: The amount of each event, such as its epsilon; infinite or NaN amounts of events that an agent did not
            have are left out.
    """
    total = np.zeros(counts.shape[1:])
    # The events are added in a fixed order, so that rounding is the same for a replica alone and in a batch.
    for amount, times in zip(amounts, counts, strict=True):
        if isfinite(amount):
            total += amount * times
        else:
            # NaN is an unknown amount. It does not replace infinity: an agent that has released data without noise has
            # no privacy, whatever else is unknown.
            total[(times > 0) & ~np.isinf(total)] = amount
    return total


# The orders of the Renyi divergence that are tried. They are so close to each other that epsilon by the best of them is
# at most 0.2 % larger than by the best of all real orders.
_ORDERS = np.unique(np.concatenate([1 + np.geomspace(1e-4, 1e6, 200), np.arange(2, 65)]))


# Cached, since the same epsilon is needed before a release (is there enough budget?) and after it.
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
        (e.kind, e.loss, n * e.change(adjacency).values)
        for e, n in happened
        if e.kind in PROVEN and e.kind != "gaussian"
    )
    curved = tuple((e, e.change(adjacency), n) for e, n in happened if e.kind not in PROVEN)
    gaussian = _of_mu(delta, float(mu))
    # The sum of epsilons is always valid, and the smaller of two valid epsilons is returned below: rounding could
    # otherwise make the numerical composition worse than the sum.
    added = gaussian + float(sum(loss * times for _, loss, times in others))
    if curved and not loss_distributions.available():
        return np.nan
    if not curved and (not others or delta == 0 or not loss_distributions.available()):
        return added
    epsilon = loss_distributions.composed_epsilon(delta, float(mu), others, curved)
    if curved and delta == 0:
        # Numerical composition cuts off tails of a privacy loss distribution, so that it has no finite epsilon at
        # delta 0. The events' guaranteed epsilons are added instead.
        pure = sum(n * change.values * e.epsilon if e.delta == 0 else np.inf for e, change, n in curved)
        return epsilon if np.isnan(epsilon) else added + pure
    return epsilon if curved else min(added, epsilon)
