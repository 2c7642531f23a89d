"""Contexts from your own copy of a learning-to-rank data set, such as MSLR-WEB10K: documents that answer queries.

A file has a line for each document: the document's relevance to a query, ``qid:`` and the query's number, and features
``1:2.0 2:0 ...``, all of them in order; what follows a ``#`` is a comment. The documents of a query stand together.
"""

from functools import lru_cache
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_choice

FeatureSet = Literal["anchor_and_url", "body_title_and_document", "all"]

_STREAMS = 25
_COLUMNS = {
    "anchor_and_url": [5 * i + j for i in range(_STREAMS) for j in (2, 4)] + [*range(126, 132)],
    "body_title_and_document": [5 * i + j for i in range(_STREAMS) for j in (1, 3, 5)] + [132, 133],
}


class Queries(NamedTuple):
    """Documents as arms, and a parameter by which their expected rewards are linear in their contexts.

    Attributes:
        contexts: Contexts of all documents, of norm 1, float64 ``(documents, dim)``.
        first: The number of each query's first document, and last the number of documents, int64 ``(queries + 1,)``.
        parameter: theta*, of norm 1, float64 ``(dim,)``.
    """

    contexts: Array
    first: Array
    parameter: Array


def read_queries(path: str | PathLike[str], features: FeatureSet = "all") -> Queries:
    """Reads a file of documents, such as ``Fold1/train.txt`` of MSLR-WEB10K.

    A context is (1, f_1 / s_1, f_2 / s_2, ...) divided by its norm, where s_i is the largest absolute value of feature
    f_i in the file (a feature that is always 0 stays 0). theta* is the least-squares fit of the documents' relevances
    to their contexts, divided by its norm. The expected reward of a document is the product of its context and theta*,
    so that it is exactly linear in what agents see. In Figure 2.c of Zhou and Chowdhury (ICLR 2024) it is not: the
    authors' program fits a lasso to the features as they are in the file and takes its predictions for expected
    rewards, but shows agents the features divided by their norm. In that figure rewards have no noise, either.

    Args:
        path: The file.
        features: ``"all"``, or, of the 136 features of MSLR-WEB10K, one of the two sets in the authors' program, which
            leave out three: ``"anchor_and_url"`` (56 features) or ``"body_title_and_document"`` (77).

    Returns:
        Contexts of all documents, the first document of each query, and theta*.

    Raises:
        OSError: The file cannot be read.
        ValueError: ``features`` is unknown or not in the file, a line is malformed, or the file is empty; the error
            names file and line.
    """
    require_choice("features", features, get_args(FeatureSet))
    path = Path(path).resolve()
    return _read(path, features, path.stat().st_mtime_ns)


# An environment and its copies read the same file. The time of its last change is in the key.
@lru_cache(maxsize=1)
def _read(path: Path, features: FeatureSet, changed: int) -> Queries:
    numbers: list[str] = []
    rows: list[list[float]] = []
    # Data sets are ASCII. Other bytes are replaced by a character that is no number, so that the line is an error.
    with path.open(encoding="utf-8", errors="replace") as file:
        for place, line in enumerate(file, 1):
            fields = line.partition("#")[0].split()
            try:
                relevance, query, *valued = fields
                name, _, number = query.partition(":")
                indices, values = zip(*(field.split(":") for field in valued), strict=True)
                rows.append([float(relevance), *map(float, values)])
                in_order = [*map(int, indices)] == [*range(1, len(rows[0]))]
            except ValueError:
                name, in_order = "", False
            if name != "qid" or not in_order or not np.isfinite(rows[-1]).all():
                raise ValueError(
                    f"{path}, line {place} is {line[:80].rstrip()!r}; a relevance, qid:<query> and all features in "
                    "order, as in '2 qid:7 1:0.5 2:3', are required"
                )
            numbers.append(number)
    if not rows:
        raise ValueError(f"{path} is empty; a line for each document is required")
    table = np.array(rows)
    columns = _COLUMNS.get(features, [*range(1, table.shape[1])])
    if columns[-1] >= table.shape[1]:
        raise ValueError(
            f"features is {features!r}, which needs {columns[-1]} features; {path} has {table.shape[1] - 1}"
        )
    chosen = table[:, columns]
    chosen /= np.maximum(np.abs(chosen).max(axis=0), np.finfo(float).tiny)
    contexts = np.concatenate([np.ones((len(chosen), 1)), chosen], axis=1)
    contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
    parameter = np.linalg.lstsq(contexts, table[:, 0], rcond=None)[0]
    length = np.linalg.norm(parameter)
    if length == 0.0:
        raise ValueError(
            f"{path} has relevance 0 in every line; documents of several relevances are required"
        )
    sizes = [len([*group]) for _, group in groupby(numbers)]
    return Queries(contexts, np.cumsum([0, *sizes]), parameter / length)
