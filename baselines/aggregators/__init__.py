"""Aggregators: what stands for the sum of the arrays that an agent has received.

Agents send statistics that are meant to be added up. An aggregator decides what is used in the place of that sum:

| name | arguments | what stands for the sum |
|---|---|---|
| `sum` | | the sum |
| `precision` | `reward_variance` | as many exact observations as messages are worth by the noise that they announce |
| `trimmed_mean` | `share` | the mean without the `share` of senders at either end, times their number |
| `median_of_means` | `groups` | the median of the means of groups of senders, times the number of senders |
| `trimmed_senders` | `share` | the mean without the `share` of senders furthest from the median, times their number |

All five work on named arrays of any shape (:class:`~fedbandit_envs.baselines.aggregators.InboxSpec`): counts
of pulls and successes, Gram matrices and moments, or the sums of a user-defined problem. `precision` must also know how
many exact observations a noisy array is worth: :mod:`~fedbandit_envs.baselines.aggregators.counts` defines it for
counts, :mod:`~fedbandit_envs.baselines.aggregators.grams` for sums of [x; y][x; y]^T.

The last three are robust: they look at the total that each sender has sent so far, and estimate the sum well where all
senders have the same distribution. Dishonest senders who are no more than what is dropped (at one end), or fewer than
half of the groups, cannot move the result beyond what some honest senders sent. `precision` is not robust: a sender
that announces less noise than it has added is believed.

`trimmed_mean` (Yin, Chen, Ramchandran and Bartlett, ICML 2018) and `median_of_means` (Nemirovsky and Yudin, 1983) treat
each number by itself, so that different numbers come from different senders; the moments of a regression then stand
beside another Gram matrix than their own, which biases it. `trimmed_senders` keeps or drops whole senders by their
distance from the coordinate-wise median (as Krum does by pairwise distances; Blanchard, El Mhamdi, Guerraoui and
Stainer, NeurIPS 2017), so that all that it keeps belongs together.

Where a transport echoes, an agent's own messages are added in full and never dropped.

Policies take an aggregator as an object or as its JSON-able specification: a name, ``"sum"``, or a mapping of the name
and the arguments, ``{"name": "trimmed_mean", "share": 0.25}``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec, Sum
from fedbandit_envs.baselines.aggregators.precision import Precision
from fedbandit_envs.baselines.aggregators.robust import MedianOfMeans, TrimmedMean, TrimmedSenders
from fedbandit_envs.basics.config import make

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "AggregatorSpec",
    "InboxSpec",
    "MedianOfMeans",
    "Precision",
    "Sum",
    "TrimmedMean",
    "TrimmedSenders",
    "make_aggregator",
]

AggregatorSpec = Aggregator | str | Mapping[str, Any]
"""An aggregator, its name, or a mapping of its name and its arguments."""

AGGREGATORS: dict[str, Callable[..., Aggregator]] = {
    "sum": Sum,
    "precision": Precision,
    "trimmed_mean": TrimmedMean,
    "median_of_means": MedianOfMeans,
    "trimmed_senders": TrimmedSenders,
}
"""Every aggregator by the name in its specification."""


def make_aggregator(spec: AggregatorSpec) -> Aggregator:
    """Returns the aggregator of a specification; an aggregator is returned as it is.

    Args:
        spec: An aggregator, a name of :data:`AGGREGATORS`, or a mapping of ``name`` and the aggregator's arguments.

    Raises:
        TypeError: The specification is none of these, or has arguments that the aggregator does not take.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    return make("pool", spec, AGGREGATORS, Aggregator)
