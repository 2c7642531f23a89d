"""Labelled tables, the data of :class:`~fedbandit_envs.linear.labelled.LabelledContexts`: rows of numbers and a class.

A table is the user's own (arrays, a pandas ``DataFrame`` or a file) or comes inside an installed package.
"""

import hashlib
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_valid
from fedbandit_envs.basics.tables import Table, data_library, heads

# A package's module, what loads the table there, and the first digits of the table's SHA-256.
_PACKAGED = {
    "digits": ("sklearn.datasets", "load_digits", "f6d9e39f37dc45d3"),
    "wine": ("sklearn.datasets", "load_wine", "3a28849ef2366c4b"),
    "breast_cancer": ("sklearn.datasets", "load_breast_cancer", "25e2eb7b7a8745b1"),
    "segments": ("river.datasets", "ImageSegments", "1f37b21dad2e0921"),
    "shuttle": ("river.datasets", "Shuttle", "2993782d44e631e0"),
    "banana": ("river.datasets", "Bananas", "53ef883d208eb17c"),
}
_CLASSES = "classes (text, whole numbers or truth values)"


class LabelledTable(NamedTuple):
    """A labelled table.

    Attributes:
        features: Finite numbers, float64 ``(rows, columns)``.
        labels: The class of each row, integers ``(rows,)``, from 0.
        classes: The name of each class, in the order of their numbers: sorted.
    """

    features: Array
    labels: Array
    classes: list[Any]


def read_labelled(data: Any, labels: Any = None) -> LabelledTable:
    """Returns a labelled table from arrays, a frame, a file, or an installed package.

    Args:
        data: The name of a table inside a package of the extra ``data``: scikit-learn's ``"digits"``, ``"wine"`` or
            ``"breast_cancer"``, river's ``"segments"``, ``"shuttle"`` or ``"banana"``. Or the path of a CSV or Parquet
            file, or a pandas ``DataFrame``, all of whose columns but ``labels`` are features (see
            :class:`~fedbandit_envs.basics.tables.Table`); or an array or nested lists ``(rows, columns)``.
        labels: The name of the column of classes in a file or a frame, or one class for each row of an array; None for
            a table of a package. Classes are text, whole numbers or truth values.

    Raises:
        ImportError: The package that has the table, or pandas for a file, is missing.
        OSError: The file cannot be read.
        TypeError: ``data`` is none of these.
        ValueError: The table is empty or has one class; a cell is no finite number, or a label is missing or no class.
            The error names file, line and column.

    Example:
        >>> table = read_labelled([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], ["no", "yes", "no"])
        >>> table.labels.tolist(), table.classes
        ([0, 1, 0], ['no', 'yes'])
    """
    if isinstance(data, str) and data in _PACKAGED:
        if labels is not None:
            raise ValueError(f"labels is {labels!r}; None is required with data={data!r}, which has its own")
        return _packaged(data)
    if hasattr(data, "columns"):
        return _of_columns(data, labels)
    if isinstance(data, str | PathLike):
        if not isinstance(labels, str):
            raise ValueError(
                f"labels is {labels!r}; the name of a column of the file {str(data)!r} is required (tables of packages "
                f"are {', '.join(_PACKAGED)})"
            )
        path = Path(data).resolve()
        return _of_file(path, labels, path.stat().st_mtime_ns)
    try:
        features = np.array(data, np.float64)
        if not features.ndim:
            raise TypeError("a scalar")
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"data is of type {type(data).__name__} ({error}); the name of a table, one of {sorted(_PACKAGED)}, the "
            "path of a file, a pandas.DataFrame, or numbers (rows, columns) are required"
        ) from None
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"data has shape {features.shape}; (rows, columns), both >= 1, is required")
    require_valid("data", features, np.isfinite(features), "finite numbers")
    if np.shape(labels) != features.shape[:1]:
        raise ValueError(
            f"labels has shape {np.shape(labels)}; a class for each of the {len(features)} rows is required"
        )
    given = np.array(labels, object)
    require_valid("labels", given, np.array([_is_class(label) for label in given]), _CLASSES)
    if len({isinstance(label, str) for label in given}) > 1:
        raise ValueError("labels has text and numbers; classes of one type are required")
    classes, numbers = np.unique(np.array(given.tolist()), return_inverse=True)
    return _with_classes(features, numbers, classes.tolist())


# An environment and its copies read the same file. The time of its last change is in the key.
@lru_cache(maxsize=1)
def _of_file(path: Path, labels: str, changed: int) -> LabelledTable:
    return _of_columns(path, labels)


def _of_columns(data: Any, labels: Any) -> LabelledTable:
    """Returns the table of a file or frame; ``labels`` is the name of a column."""
    there = heads(data)
    if there.count(labels) != 1:
        raise ValueError(f"labels is {labels!r}; the name of one column, among {there[:20]}, is required")
    columns = [name for name in there if name != labels]
    if not columns or len({*columns}) < len(columns):
        raise ValueError(f"data has the columns {there[:20]}; features of different names are required")
    table = Table(data, [labels], columns)
    numbers, classes = table.labels(labels)
    table.require(labels, np.array([_is_class(name) for name in classes])[numbers], _CLASSES)
    return _with_classes(table.numbers(columns, "finite numbers (categories as numbers)"), numbers, classes)


def _with_classes(features: Array, labels: Array, classes: list[Any]) -> LabelledTable:
    if len(classes) < 2:
        raise ValueError(f"labels has the only class {classes[0]!r}; at least 2 are required")
    return LabelledTable(features, labels.astype(np.int64), classes)


def _is_class(label: Any) -> bool:
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return whole or isinstance(label, str | int | np.integer | np.bool_)


@lru_cache(maxsize=len(_PACKAGED))
def _packaged(name: str) -> LabelledTable:
    """Returns a table of an installed package."""
    module, loader, digest = _PACKAGED[name]
    load = getattr(data_library(module), loader, None)
    if load is None:
        raise ImportError(
            f"data is {name!r}, which a later version of {module} has than the one that is installed"
        )
    if module == "sklearn.datasets":
        features, labels = load(return_X_y=True)
    else:
        rows, labels = zip(*load(), strict=True)
        # Files of libsvm leave out zeros.
        columns = sorted({column for row in rows for column in row})
        features = [[row.get(column, 0.0) for column in columns] for row in rows]
    table = read_labelled(features, np.array(labels))
    found = hashlib.sha256(table.features.tobytes() + table.labels.tobytes()).hexdigest()[: len(digest)]
    if found != digest:
        raise ValueError(f"data is {name!r}, whose digest is {found} in {module}; {digest} is required")
    return table
