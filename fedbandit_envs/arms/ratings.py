"""Means of arms from ratings: those that come with the package, or from your own copy of MovieLens or Jester.

An arm is a film or a joke, and its mean the share of users who rated it high. The SAMBA paper divides by the ratings
that the item has received (``definition="received"``); the files behind its plots, and the means that come with this
package, divide by all users who rated anything (``"all_users"``).
"""

from collections.abc import Callable
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number

Definition = Literal["received", "all_users"]

DataName = Literal["movielens", "jester"]
"""Names of the data sets of means that come with the package."""

_NOT_RATED = 99.0
_MOVIELENS_FIELDS = 4


class _MalformedError(ValueError):
    """A line of a ratings file is malformed; the message gives its content and the required form."""


class RatedItems(NamedTuple):
    """Items as arms.

    Attributes:
        items: Their numbers in the ratings, ascending, int64 ``(arms,)``.
        means: Share of users who rated them high, float64 ``(arms,)``.
    """

    items: Array
    means: Array


def packaged_means(name: str) -> Array:
    """Returns the means of one of SAMBA's data sets, ``"movielens"`` or ``"jester"``, float64 ``(100,)``."""
    text = files("fedbandit_envs.arms").joinpath(f"{name}.csv").read_text("utf-8")
    return np.array([float(line.split(",")[1]) for line in text.splitlines()[1:]])


def keep_largest(means: Array, num_arms: int) -> Array:
    """Returns the largest means in the order that they had, the first ones where means are the same.

    Args:
        means: float64 ``(arms,)``.
        num_arms: How many are kept.

    Raises:
        TypeError: ``num_arms`` is no integer.
        ValueError: There are not as many.
    """
    require_integer("num_arms", num_arms, 1)
    if num_arms > len(means):
        raise ValueError(f"num_arms is {num_arms}; at most {len(means)}, as many as there are, is required")
    return means[np.sort(np.argsort(-means, kind="stable")[:num_arms])]


def movielens_means(
    path: str | PathLike[str], definition: Definition = "received", threshold: float = 4.0
) -> RatedItems:
    """Reads MovieLens-100k's ``u.data``: user, film, rating from 1 to 5 and time a line, separated by tabs.

    Args:
        path: The file.
        definition: The users of which a mean is a share; see the module.
        threshold: The smallest rating that counts as high.

    Raises:
        OSError: The file cannot be read.
        TypeError: ``threshold`` is no number.
        ValueError: A parameter is out of its range, the file has no ratings, or a line is malformed; the error names
            file and line.
    """
    require_choice("definition", definition, get_args(Definition))
    require_number("threshold", threshold, 1, 5)
    rated: dict[tuple[int, int], int] = {}

    def read(line: str) -> None:
        fields = line.split("\t")
        if len(fields) != _MOVIELENS_FIELDS:
            raise _MalformedError(
                f"has {len(fields)} fields; user, film, rating and time, separated by tabs, are"
            )
        user, film, rating, _ = (int(field) for field in fields)
        if user < 1 or film < 1 or not 1 <= rating <= 5:
            raise _MalformedError(
                "has user, film or rating out of range; integers >= 1, and a rating up to 5, are"
            )
        if (user, film) in rated:
            raise _MalformedError(f"rates film {film} a second time for user {user}; one rating is")
        rated[user, film] = rating

    _read_lines(Path(path), read)
    users, films = np.array([*rated]).T
    items, places = np.unique(films, return_inverse=True)
    high = np.bincount(places, np.array([*rated.values()]) >= threshold)
    return RatedItems(
        items, high / (np.bincount(places) if definition == "received" else np.unique(users).size)
    )


def jester_means(
    path: str | PathLike[str], definition: Definition = "received", threshold: float = 4.5
) -> RatedItems:
    """Reads a matrix of Jester's, saved as text: a line a user, separated by commas, semicolons or tabs.

    A line has the number of jokes that the user rated, then a rating from -10 to 10 a joke, 99 where there is none.
    Jokes that nobody rated are no arms.

    Args:
        path: The file.
        definition: The users of which a mean is a share; see the module.
        threshold: The smallest rating that counts as high.

    Raises:
        OSError: The file cannot be read.
        TypeError: ``threshold`` is no number.
        ValueError: A parameter is out of its range, the file has no ratings, or a line is malformed; the error names
            file and line.
    """
    require_choice("definition", definition, get_args(Definition))
    require_number("threshold", threshold, -10, 10)
    users: list[Array] = []

    def read(line: str) -> None:
        fields = line.replace(";", ",").replace("\t", ",").split(",")
        number, *ratings = (float(field) for field in fields)
        if users and len(ratings) != users[0].size:
            raise _MalformedError(f"has {len(ratings)} ratings; {users[0].size}, as the lines before, are")
        row = np.array(ratings)
        rated = row != _NOT_RATED
        if not (np.abs(row[rated]) <= 10).all():
            raise _MalformedError("has a rating out of range; numbers in [-10, 10], or 99 for none, are")
        if rated.sum() != number:
            raise _MalformedError(
                f"has {rated.sum()} ratings and says that it has {number:g}; the same number is"
            )
        users.append(row)

    _read_lines(Path(path), read)
    matrix = np.array(users)
    rated = matrix != _NOT_RATED
    received = rated.sum(axis=0)
    jokes = np.flatnonzero(received)
    if not jokes.size:
        raise ValueError(f"{path} has no ratings; one at least is required")
    high = (rated & (matrix >= threshold)).sum(axis=0)[jokes]
    return RatedItems(jokes + 1, high / (received[jokes] if definition == "received" else len(users)))


def arm_means(source: str, arms: int) -> Array:
    """Returns the largest means of a source, in the order of the source, float64 ``(arms,)``.

    Args:
        source: ``"movielens"`` or ``"jester"`` for those that come with the package, else a file: MovieLens' ``u.data``
            (four fields a line, separated by tabs) or Jester's matrix as text.
        arms: Number of arms, K.

    Raises:
        OSError: The file cannot be read.
        TypeError: ``arms`` is no integer.
        ValueError: The source has fewer arms, or the file is malformed.
    """
    if source in get_args(DataName):
        return keep_largest(packaged_means(source), arms)
    with open(source, encoding="utf-8", errors="replace") as file:
        fields = file.readline(1 << 16).count("\t") + 1
    read = movielens_means if fields == _MOVIELENS_FIELDS else jester_means
    return keep_largest(read(source).means, arms)


def _read_lines(path: Path, read: Callable[[str], None]) -> None:
    """Reads a file line by line; an error names the malformed line."""
    number = 0
    # Ratings are ASCII; other bytes become something that is not a number.
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\r\n")
            try:
                read(line)
            except _MalformedError as error:
                raise ValueError(f"{path}, line {number} {error} required") from None
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number} is {line!r} ({error}); numbers are required"
                ) from None
    if number == 0:
        raise ValueError(f"{path} is empty; a line a rating, or a user, is required")
