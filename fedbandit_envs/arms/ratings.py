"""Means of arms from ratings: packaged ones, or those of your own table.

An arm is a rated item, such as a film or a joke, and its mean is the share of users who rated it high. The SAMBA paper
divides by the number of ratings that the item has received (``definition="received"``); the files behind its plots, and
the means that come with this package, divide by the number of all users who rated anything (``"all_users"``).

Outcomes are drawn from these means. So a claim of privacy is about the pulls and outcomes of a run, as with any other
means. It is not about the people whose ratings are in a file: the means are computed from their ratings without noise.
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import LARGEST, require_choice, require_integer, require_number
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.basics.tables import Table

Definition = Literal["received", "all_users"]

DataName = Literal["movielens", "jester"]
"""Names of the data sets of means that come with the package."""


_OWN = {"name": "ratings", "table": "ratings.csv", "scale": [1, 5], "threshold": 4}


class RatedItems(NamedTuple):
    """Rated items, such as films or jokes, as arms, with their means.

    Attributes:
        items: The items' numbers or names in the ratings file, ascending, ``(arms,)``.
        means: The share of users who rated each item high, float64 ``(arms,)``; ``(agents, arms)`` where each agent has
            its own users.
        agents: Names of the agents in the ratings file, ascending; empty where all agents have the same means.
        filled: Number of means that are filled in, because the agent has not rated the item.
    """

    items: Array
    means: Array
    agents: Sequence[Any] = ()
    filled: int = 0


def packaged_means(name: str) -> Array:
    """Returns the means of one of SAMBA's data sets, ``"movielens"`` or ``"jester"``, float64 ``(100,)``."""
    text = files("fedbandit_envs.arms").joinpath(f"{name}.csv").read_text("utf-8")
    return np.array([float(line.split(",")[1]) for line in text.splitlines()[1:]])


def _places_of_largest(name: str, number: int, values: Array) -> Array:
    """Returns the places of the largest values, ascending, of equal ones the first; their ``number`` is a parameter."""
    require_integer(name, number, 1, len(values))
    return np.sort(np.argsort(-values, kind="stable")[:number])


def table_means(
    table: Any,
    scale: Sequence[float],
    threshold: float,
    user: Any = "user",
    item: Any = "item",
    rating: Any = "rating",
    agent: Any = None,
    definition: Definition = "received",
    min_ratings: int = 0,
) -> RatedItems:
    """Reads a table with one rating a row and returns the rated items with their means.

    A CSV file of 10 million rows (268 MB, 4 columns, 26,000 items, 143,000 users) took 20 seconds and 0.9 GB of memory
    beside the program's own.

    Args:
        table: The path of a CSV file with a header row, or of a Parquet file (``.parquet``), or a
            ``pandas.DataFrame``.
        scale: The smallest and the largest rating that there can be.
        threshold: The smallest rating that counts as high.
        user: Name of the column of users.
        item: Name of the column of rated items, which become arms.
        rating: Name of the column of ratings.
        agent: Name of a column, such as a group of users or a region: each of its values is an agent, with the means
            of its own rows. None gives all agents the same means.
        definition: By which number of users is divided: ``"received"``, those who rated the item, or ``"all_users"``,
            those who rated anything; with ``agent``, in the agent's own rows.
        min_ratings: Items with fewer ratings (of any agent) are left out.

    Raises:
        ImportError: pandas or pyarrow is missing.
        OSError: The file cannot be read.
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range; a column is not in the table; an entry is missing or out of the
            scale; a user rates an item twice; no item is left; or, by ``"received"``, an agent has no rating of an
            item. The error names file, row and column.

    Example:
        >>> import pandas
        >>> from fedbandit_envs.arms.ratings import table_means
        >>> rows = [("ann", "tea", 5), ("bob", "tea", 2), ("ann", "rum", 1), ("cem", "rum", 4)]
        >>> ratings = pandas.DataFrame(rows, columns=["user", "item", "rating"])
        >>> table_means(ratings, scale=(1, 5), threshold=5)
        RatedItems(items=array(['rum', 'tea']...), means=array([0. , 0.5]), agents=(), filled=0)
    """
    require_choice("definition", definition, get_args(Definition))
    require_integer("min_ratings", min_ratings, 0)
    labels = [] if agent is None else [agent]
    data, ratings, (users, people), (items, names) = _read_table(table, scale, user, item, rating, labels)
    require_number("threshold", threshold, *scale)
    agents, groups = (np.zeros(data.rows, np.int32), [None]) if agent is None else data.labels(agent)
    shape = len(groups), len(names)
    cells = agents.astype(np.int64) * shape[1] + items
    received = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    number_high = np.bincount(cells[ratings >= threshold], minlength=shape[0] * shape[1]).reshape(shape)
    kept = (received >= min_ratings).all(axis=0)
    if not kept.any():
        raise ValueError(
            f"min_ratings is {min_ratings}; {data.name} has no item with as many, one at least is required"
        )
    if definition == "all_users":
        members = np.unique(agents.astype(np.int64) * len(people) + users) // len(people)
        received = np.broadcast_to(np.bincount(members)[:, np.newaxis], shape)
    elif not received[:, kept].all():
        # Without a column of agents every item has a rating.
        raise ValueError(
            f"{data.name} has some {agent} without a rating of some {item}; one at least is required (min_ratings=1 "
            "leaves such items out; definition='all_users' gives them the mean 0)"
        )
    means = (number_high / np.maximum(received, 1))[:, kept]
    return RatedItems(
        np.array(names)[kept], means[0] if agent is None else means, () if agent is None else groups
    )


def mean_ratings(
    table: Any,
    scale: Sequence[float],
    user: Any = "user",
    item: Any = "item",
    rating: Any = "rating",
    num_arms: int | None = None,
    num_agents: int | None = None,
) -> RatedItems:
    """Reads a table with one rating a row and returns the most rated items with their average ratings.

    Ratings are scaled to [0, 1]: the smallest that there can be is 0, the largest 1. With ``num_agents`` the means are
    the ratings of single users, those who rated most of these items. Where a user has not rated an item, the mean is
    filled in: the average rating of the item plus the average, over the items that the user did rate, of the user's
    rating minus that of the item, clipped to [0, 1]. Averages of items are those over all users in the table.

    Args:
        table: As for :func:`table_means`.
        scale: The smallest and the largest rating that there can be.
        user: Name of the column of users.
        item: Name of the column of rated items, which become arms.
        rating: Name of the column of ratings.
        num_arms: How many items; None for all. Of items with equally many ratings the first are kept.
        num_agents: How many users, each an agent with its own means; None gives the averages over all users.

    Raises:
        ImportError: pandas or pyarrow is missing.
        OSError: The file cannot be read.
        TypeError: A parameter has the wrong type.
        ValueError: A parameter is out of its range, or more than the table has; a column is not in the table; an entry
            is missing or out of the scale; or a user rates an item twice. The error names file, row and column.

    Example:
        >>> import pandas
        >>> from fedbandit_envs.arms.ratings import mean_ratings
        >>> rows = [("ann", "tea", 5), ("bob", "tea", 3), ("ann", "rum", 3), ("cem", "rum", 1)]
        >>> ratings = pandas.DataFrame(rows, columns=["user", "item", "rating"])
        >>> mean_ratings(ratings, scale=(1, 5))
        RatedItems(items=array(['rum', 'tea']...), means=array([0.25, 0.75]), agents=(), filled=0)
        >>> found = mean_ratings(ratings, scale=(1, 5), num_agents=2)
        >>> found.agents, found.means.tolist(), found.filled
        (['ann', 'bob'], [[0.5, 1.0], [0.0, 0.5]], 1)
    """
    low, high = scale
    _, ratings, (users, people), (items, names) = _read_table(table, scale, user, item, rating)
    ratings = (ratings - low) / (high - low)
    received = np.bincount(items)
    means = np.bincount(items, ratings) / received
    number = len(names) if num_arms is None else num_arms
    arms = _places_of_largest("num_arms", number, received)
    if num_agents is None:
        return RatedItems(np.array(names)[arms], means[arms])
    kept = np.isin(items, arms)
    raters, rows = np.unique(users[kept], return_inverse=True)
    given = np.bincount(rows)
    apart = np.bincount(rows, (ratings - means[items])[kept]) / given
    agents = _places_of_largest("num_agents", num_agents, given)
    own = np.clip(means[arms] + apart[agents, np.newaxis], 0.0, 1.0)
    theirs = np.isin(rows, agents)
    places = np.searchsorted(agents, rows[theirs]), np.searchsorted(arms, items[kept][theirs])
    own[places] = ratings[kept][theirs]
    return RatedItems(
        np.array(names)[arms], own, [people[one] for one in raters[agents]], own.size - len(places[0])
    )


def _read_table(
    table: Any, scale: Sequence[float], user: Any, item: Any, rating: Any, labels: Sequence[Any] = ()
) -> tuple[Table, Array, tuple[Array, list[Any]], tuple[Array, list[Any]]]:
    """Returns a table of ratings, its ratings, and its users and items as :meth:`.Table.labels` does, all checked.

    The ``labels`` are names of further columns that the table will be asked for.
    """
    low, high = scale
    require_number("scale[0]", low, -LARGEST, LARGEST)
    require_number("scale[1]", high, low, LARGEST, open_below=True)
    data = Table(table, [user, item, *labels], [rating])
    ratings = data.numbers([rating])[:, 0]
    data.require(rating, (ratings >= low) & (ratings <= high), f"numbers in [{low:g}, {high:g}]")
    users, items = data.labels(user), data.labels(item)
    pairs = users[0].astype(np.int64) * len(items[1]) + items[0]
    first = np.unique(pairs, return_index=True)[1]
    if first.size < pairs.size:
        again = int(np.setdiff1d(np.arange(pairs.size), first)[0])
        raise ValueError(
            f"{data.place(again)}: the user {users[1][users[0][again]]!r} rates {items[1][items[0][again]]!r} a second "
            "time; one rating of an item by a user is required"
        )
    return data, ratings, users, items


def arm_means(source: str | Mapping[str, Any], arms: int | None) -> Array:
    """Returns the largest means of a data set, in the order of its items, float64 ``(arms,)`` or ``(agents, arms)``.

    Where agents have their own means, the arms that are largest on average over agents are kept; of equal ones the
    first.

    Args:
        source: ``"movielens"`` or ``"jester"`` for means that come with the package; or a table, ``{"name": "ratings",
            "table": "ratings.csv", "scale": [1, 5], "threshold": 4}`` with the arguments of :func:`table_means`.
        arms: Number of arms, K; None for all.

    Raises:
        ImportError: pandas is missing.
        OSError: The file cannot be read.
        TypeError: ``arms`` is no integer.
        ValueError: The source is unknown or has fewer arms, or the file is malformed.
    """
    if isinstance(source, Mapping):
        rated: RatedItems = make("ratings", source, {"ratings": table_means}, RatedItems)
        means = rated.means
    else:
        means = packaged_means(require_choice("means", source, (*get_args(DataName), _OWN)))
    if arms is None:
        return means
    return means[..., _places_of_largest("num_arms", arms, np.atleast_2d(means).mean(axis=0))]
