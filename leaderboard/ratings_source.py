"""Arms by the words of a command line: a packaged data set, or a file of one's own."""

from pathlib import Path
from typing import get_args

from fedbandit_envs.arms.means import DataName
from fedbandit_envs.arms.ratings import jester_means, keep_largest, movielens_means, packaged_means
from fedbandit_envs.arrays import Array

_MOVIELENS_FIELDS = 4


def arm_means(source: str, arms: int) -> Array:
    """Returns the largest means of a source, in their order there, ``(arms,)``.

    Args:
        source: ``"movielens"`` or ``"jester"`` for those that come with the package, else a file: MovieLens' ``u.data``
            (four fields a line, separated by tabs) or Jester's matrix as text.
        arms: How many, K.

    Raises:
        OSError: The file cannot be read.
        TypeError: ``arms`` is no integer.
        ValueError: There are not as many arms, or the file is malformed.
    """
    if source in get_args(DataName):
        return keep_largest(packaged_means(source), arms)
    path = Path(source)
    with path.open(encoding="utf-8", errors="replace") as file:
        fields = file.readline(1 << 16).count("\t") + 1
    read = movielens_means if fields == _MOVIELENS_FIELDS else jester_means
    return keep_largest(read(path).means, arms)
