"""Means of arms by the name of a packaged data set or of a file, for command lines."""

from pathlib import Path
from typing import get_args

from fedbandit_envs.arms.means import DataName
from fedbandit_envs.arms.ratings import jester_means, keep_largest, movielens_means, packaged_means
from fedbandit_envs.basics.arrays import Array

_MOVIELENS_FIELDS = 4


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
    path = Path(source)
    with path.open(encoding="utf-8", errors="replace") as file:
        fields = file.readline(1 << 16).count("\t") + 1
    read = movielens_means if fields == _MOVIELENS_FIELDS else jester_means
    return keep_largest(read(path).means, arms)
