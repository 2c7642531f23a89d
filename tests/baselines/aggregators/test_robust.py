"""Pools against plain numpy, and what liars cost policies that have one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import every_pair

from fedbandit_envs.baselines.aggregators import InboxSpec, MedianOfMeans, Sum, TrimmedMean, TrimmedSenders
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.procurement import PFCB
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.procurement_v0 import parallel_env as procurement
from fedbandit_envs.testing import check_policy
from fedbandit_envs.wrappers import Byzantine, Channel, ContinualPrivatizer, Interleaved
from fedbandit_envs.wrappers.participation import Participation


def trimmed(values, share):
    """The mean of what is left of values, ``(senders,)``, times their number."""
    cut = int(np.floor(share * len(values) + 1e-9))
    return len(values) * np.sort(values)[cut : len(values) - cut].mean() if len(values) else 0.0


def median_of_means(senders, values, groups):
    if not len(values):
        return 0.0
    means = [values[senders % groups == g].mean() for g in range(groups) if (senders % groups == g).any()]
    return len(values) * np.median(means)


def nearest(held, heard, share):
    """Of ``(senders, numbers)``, those senders kept that are nearest to the median; whole messages only."""
    told = np.flatnonzero(heard[:, 0])
    if not told.size:
        return np.zeros(held.shape[1])
    distance = np.square(held[told] - np.median(held[told], axis=0)).mean(axis=1)
    kept = told[np.argsort(distance, kind="stable")][: told.size - int(share * told.size + 1e-9)]
    return told.size * held[kept].mean(axis=0)


def reference(pool, held, heard):
    """What stands for the sum of one row's ``(senders, numbers)``."""
    if isinstance(pool, TrimmedSenders):
        return nearest(held, heard, pool.share)
    total = np.zeros(held.shape[1])
    for i in range(held.shape[1]):
        told = np.flatnonzero(heard[:, i])
        if isinstance(pool, TrimmedMean):
            total[i] = trimmed(held[told, i], pool.share)
        else:
            total[i] = median_of_means(told, held[told, i], pool.groups)
    return total


ROBUST = st.one_of(
    st.builds(TrimmedMean, st.sampled_from([0, 0.1, 0.25, 0.29, 0.4, 0.49])),
    st.builds(MedianOfMeans, st.integers(1, 9)),
    st.builds(TrimmedSenders, st.sampled_from([0, 0.1, 0.25, 0.4, 0.49])),
)


@settings(max_examples=80)
@given(
    pool=ROBUST,
    senders=st.integers(1, 8),
    seed=st.integers(0, 2**32),
    ties=st.booleans(),
    whole=st.booleans(),
    waves=st.integers(1, 4),
)
def test_pools_are_what_numpy_says(pool, senders, seed, ties, whole, waves):
    """All that a sender has told so far counts, once it was heard; ties, partial hearing, own messages."""
    whole = whole or isinstance(pool, TrimmedSenders)
    luck = np.random.default_rng(seed)
    shape = (2, 3, senders, 4)
    pooled = pool.start(InboxSpec(shape[:2], senders, {"sums": (2, 2)}))
    held, heard = np.zeros(shape), np.zeros(shape, bool)
    own = np.zeros(shape[:3], bool)
    own[:, 0, 0] = luck.random() < 0.5
    for _ in range(waves):
        arrived = luck.random((*shape[:3], 1 if whole else 4)) < 0.6
        told = luck.integers(-2, 3, shape).astype(float) if ties else luck.standard_normal(shape) * 100
        weight = float(luck.choice([1.0, 10.0]))
        mask = arrived.any(axis=-1)
        inbox = {"inbox_mask": mask, "inbox_sums": told.reshape(*shape[:3], 2, 2), "inbox_own": own & mask}
        for array in inbox.values():
            array.setflags(write=False)
        pooled.add(inbox, None if whole else arrived, weight=weight)
        held += weight * np.where(arrived, told, 0.0)
        heard |= arrived
    mine = own & heard.any(axis=-1)
    for row in np.ndindex(shape[:2]):
        others = ~mine[row]
        rest = reference(pool, held[row] * others[:, np.newaxis], heard[row] & others[:, np.newaxis])
        expected = rest + held[row][mine[row]].sum(axis=0)
        np.testing.assert_allclose(pooled.totals["sums"][row].ravel(), expected, atol=1e-9)


def halves(messages):
    """The sum over a power of two of senders, first axis, as that of the sums of its halves."""
    middle = len(messages) // 2
    return halves(messages[:middle]) + halves(messages[middle:]) if middle else messages[0]


@pytest.mark.parametrize("senders", [1, 2, 5, 8, 21, 300])
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("stored_once", [False, True])
def test_the_sum_is_that_of_halves_to_the_last_bit(senders, share, stored_once):
    """Agent j does not receive what sender j says, be it infinite, nor some of the others."""
    luck = np.random.default_rng(0)
    agents = min(senders, 6)
    pooled, total = Sum().start(InboxSpec((2, agents), senders, {"sums": (4,)})), np.zeros((2, agents, 4))
    for _ in range(6):
        arrived = luck.random((2, agents, senders)) < share
        arrived &= np.eye(agents, senders) == 0
        told = luck.standard_normal((2, 1 if stored_once else agents, senders, 4))
        told[0, :, 0] = np.inf
        shown = np.broadcast_to(told, (2, agents, senders, 4))
        pooled.add({"inbox_mask": arrived, "inbox_sums": shown})
        size = 1 << (senders - 1).bit_length()
        leaves = np.zeros((size, 2, agents, 4))
        leaves[:senders] = np.moveaxis(np.where(arrived[..., np.newaxis], shown, 0.0), 2, 0)
        total += halves(leaves)
    np.testing.assert_array_equal(pooled.totals["sums"], total)
    assert np.isfinite(total[:, 0]).all()


POOLS = [
    {"name": "trimmed_mean", "share": 0.3},
    {"name": "median_of_means", "groups": 3},
    {"name": "trimmed_senders", "share": 0.3},
]
WHEN = {"name": "fixed_gap", "gap": 3}


@pytest.mark.parametrize(("pool", "echo"), every_pair(POOLS, [False, True]))
def test_policies_with_pools_keep_to_their_rows(pool, echo, monkeypatch):
    monkeypatch.setattr("fedbandit_envs.testing.policy.HORIZON", 50)

    def federation(make, **kwargs):
        return Participation(make(num_agents=4, **kwargs), {"name": "probability", "probability": 0.7})

    def interleaved():
        inside = Interleaved(federation(linear, num_arms=5, dim=3), 2)
        return Channel(inside, schedule=WHEN, delay=1, echo=echo)

    def private():
        inside = ContinualPrivatizer(federation(linear, num_arms=5, dim=3), epsilon=1.0, delta=0.1)
        return Channel(inside, schedule=WHEN, loss=0.2, echo=echo)

    def purchases():
        return Channel(Byzantine(federation(procurement, num_producers=5)), schedule=WHEN, echo=echo)

    check_policy(lambda: FedUCB(pool=pool), interleaved)
    check_policy(lambda: FedUCB("floor", "euclidean", "min", pool=pool), private)
    check_policy(lambda: PFCB(pool=pool), purchases)
    check_policy(lambda: PFCB(check=False, omega2=1.0, pool=pool), purchases)
