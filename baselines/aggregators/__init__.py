"""Aggregators: rules that combine the arrays which an agent has received from others.

Agents send statistics that are meant to be added up. An aggregator computes the array that is used as their sum:

| name | arguments | array that is used as the sum |
|---|---|---|
| `sum` | | the sum |
| `precision` | `reward_variance` | statistics of as many exact observations as are as informative as the messages |
| `trimmed_mean` | `share` | the mean without the `share` of senders at either end, times their number |
| `median_of_means` | `groups` | the median of the means of groups of senders, times the number of senders |
| `trimmed_senders` | `share` | the mean without the `share` of senders furthest from the median, times their number |

All five work on named arrays of any shape (:class:`~fedbandit_envs.baselines.aggregators.InboxSpec`): counts
of pulls and successes, Gram matrices and moments, or the sums of a user-defined problem. `precision` must also know how
many exact observations are as informative as a noisy array; messages announce the variance of their noise.
:mod:`~fedbandit_envs.baselines.aggregators.precision` defines that number for counts, and
:mod:`~fedbandit_envs.baselines.aggregators.precision` for sums of [x; y][x; y]^T.

The last three are robust: they look at the total that each sender has sent so far, and estimate the sum well where all
senders have the same distribution. They cannot be moved beyond the numbers that some honest senders sent while
dishonest senders are no more than the senders dropped (at one end), or fewer than half of the groups. `precision` is
not robust: it believes a sender that announces less noise than it has added.

`trimmed_mean` (Yin, Chen, Ramchandran and Bartlett, ICML 2018) and `median_of_means` (Nemirovsky and Yudin, 1983) treat
each number by itself, so that different numbers come from different senders. In a regression the moments and the Gram
matrix then come from different data, which biases the estimate. `trimmed_senders` keeps or drops whole senders by their
distance from the coordinate-wise median (as Krum does by pairwise distances; Blanchard, El Mhamdi, Guerraoui and
Stainer, NeurIPS 2017), so that the moments and Gram matrices that it keeps come from the same data.

Where the transport also delivers an agent's own messages to it (an echo), these are added in full and never dropped.

Policies take an aggregator as an object or as its JSON-able specification: a name, ``"sum"``, or a mapping of the name
and the arguments, ``{"name": "trimmed_mean", "share": 0.25}``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.baselines.aggregators.aggregator import (
    Aggregator,
    InboxSpec,
    MedianOfMeans,
    Sum,
    TrimmedMean,
    TrimmedSenders,
)
from fedbandit_envs.baselines.aggregators.precision import Precision
from fedbandit_envs.basics.entry_points import make

__all__ = ["AGGREGATORS", "AggregatorSpec", "InboxSpec", "Sum", "make_aggregator"]

AggregatorSpec = Aggregator | str | Mapping[str, Any]
"""The specification of an aggregator: the object, its name, or a mapping of ``name`` and its arguments."""

AGGREGATORS: dict[str, Callable[..., Aggregator]] = {
    "sum": Sum,
    "precision": Precision,
    "trimmed_mean": TrimmedMean,
    "median_of_means": MedianOfMeans,
    "trimmed_senders": TrimmedSenders,
}
"""The class of every aggregator, by the name that a specification gives it."""


def make_aggregator(spec: AggregatorSpec) -> Aggregator:
    """Returns the aggregator that a specification describes; an aggregator object is returned as it is.

    Args:
        spec: An aggregator, a name of :data:`AGGREGATORS`, or a mapping of ``name`` and the aggregator's arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments that the aggregator does not take.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    return make("pool", spec, AGGREGATORS, Aggregator)
