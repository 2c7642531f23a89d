"""Compositions: the privacy of all releases of an agent, from that of single ones.

Every composition is a function of the distinct events, of how often each agent had them (``counts``, shape
``(events, replicas, agents)``), of the adjacency and of delta; it returns an epsilon an agent, infinite where
there is no privacy and NaN where the composition has no answer.

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
from fedbandit_envs.core.claim import Adjacency, Composition
from fedbandit_envs.wrappers.privacy.accounting import loss_distributions
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon, zcdp_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import PROVEN, Event

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
    """Sums the events' zCDP parameters rho and converts the sum to epsilon at delta; see :data:`Compose`.

    For agents with an event that gives no rho, but Renyi divergences, these are summed and converted by the best order.
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
    """Composes Gaussian releases in closed form, others numerically, NaN without a curve; see :data:`Compose`."""
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
            # NaN stands for an amount that is not known; whoever has released without noise has no privacy anyway.
            total[(times > 0) & ~np.isinf(total)] = amount
    return total


# Neighbouring orders are so close that the best of them gives 0.2 % more than the best of all.
_ORDERS = np.unique(np.concatenate([1 + np.geomspace(1e-4, 1e6, 200), np.arange(2, 65)]))


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
        (e.kind, e.loss, n * e.change(adjacency).values)
        for e, n in happened
        if e.kind in PROVEN and e.kind != "gaussian"
    )
    curved = tuple((e, e.change(adjacency), n) for e, n in happened if e.kind not in PROVEN)
    gaussian = _of_mu(delta, float(mu))
    # Pure losses add up, and a better composition must not give a larger epsilon.
    added = gaussian + float(sum(loss * times for _, loss, times in others))
    if curved and not loss_distributions.available():
        return np.nan
    if not curved and (not others or delta == 0 or not loss_distributions.available()):
        return added
    epsilon = loss_distributions.composed_epsilon(delta, float(mu), others, curved)
    if curved and delta == 0:
        # Tails are cut off from a curve that is composed, so that none is pure: what is promised stands in.
        pure = sum(n * change.values * e.epsilon if e.delta == 0 else np.inf for e, change, n in curved)
        return epsilon if np.isnan(epsilon) else added + pure
    return epsilon if curved else min(added, epsilon)
