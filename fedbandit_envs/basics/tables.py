"""Tables of a user's own data: CSV files, Parquet files and pandas' data frames, checked column by column."""

import csv
import warnings
from collections.abc import Collection, Sequence
from importlib import import_module
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array

MUCH_MEMORY = 2**30
"""Number of bytes; before more than that is taken by a table, a warning says how much it will be."""

# Bytes that a row takes in one column while a file is read and checked, measured with `table_means`. Texts that are all
# different take more.
_BYTES = 26
_SAMPLE = 2**20


class Table:
    """Columns of a table, read by pandas: a CSV file with a line of heads, a Parquet file, or a ``pandas.DataFrame``.

    Other columns are not read. In a CSV file columns are separated by commas, text is UTF-8, and empty lines are
    skipped. Before a file is read, a ``UserWarning`` says how much memory that will take, if it is more than
    :data:`MUCH_MEMORY`; the number of rows is estimated from the size of a CSV file, and taken from a Parquet file.

    Attributes:
        name: The file's path, or ``"table"`` for a data frame, for error messages.
        rows: Number of rows.

    Example:
        >>> import pandas
        >>> from fedbandit_envs.basics.tables import Table
        >>> table = Table(pandas.DataFrame({"town": ["b", "a"], "size": [2.0, 7.0]}), ["town"], ["size"])
        >>> table.labels("town"), table.numbers(["size"]).ravel()
        ((array([1, 0]...), ['a', 'b']), array([2., 7.]))
    """

    def __init__(self, table: Any, labels: Collection[Any], numbers: Collection[Any]) -> None:
        """Reads the columns.

        Args:
            table: The path of a file (Parquet if it ends with ``.parquet``, otherwise CSV), or a data frame.
            labels: Names of the columns that :meth:`labels` will be asked for.
            numbers: Names of the columns that :meth:`numbers` will be asked for.

        Raises:
            ImportError: pandas, or pyarrow for a Parquet file, is missing; they come with the ``[data]`` extra.
            OSError: The file cannot be read.
            TypeError: ``table`` is neither a path nor a data frame.
            ValueError: A column is not in the table, there are no rows, or the file is malformed.
        """
        self._pandas = data_library("pandas")
        self._path: Path | None = None
        self.name = "table"
        columns = list(dict.fromkeys([*labels, *numbers]))
        if isinstance(table, self._pandas.DataFrame):
            self._require_columns(columns, table.columns)
            self._frame = table
        elif isinstance(table, str | PathLike):
            self.name = str(table)
            try:
                self._frame = self._read(Path(table), columns, labels)
            except ValueError as error:
                # Errors of pandas and pyarrow do not name the file.
                known = str(error).startswith(self.name)
                raise ValueError(str(error) if known else f"{self.name} cannot be read: {error}") from None
        else:
            raise TypeError(f"table is {table!r}; the path of a file or a pandas.DataFrame is required")
        self.rows = len(self._frame)
        if not self.rows:
            raise ValueError(f"{self.name} has no rows; at least one is required")

    def _read(self, path: Path, columns: Sequence[Any], labels: Collection[Any]) -> Any:
        pandas = self._pandas
        if path.suffix == ".parquet":
            file = data_library("pyarrow.parquet").ParquetFile(path)
            self._require_columns(columns, file.schema_arrow.names)
            warn_of_memory(f"reading {path}", file.metadata.num_rows * len(columns) * _BYTES)
            return pandas.read_parquet(path, columns=columns)
        self._path = path
        with path.open("rb") as start:
            sample = start.read(_SAMPLE)
        rows = path.stat().st_size * sample.count(b"\n") / max(len(sample), 1)
        # Of texts, only the empty one stands for a missing entry.
        settings = {"index_col": False, "keep_default_na": False, "na_values": [""], "compression": None}
        self._require_columns(columns, pandas.read_csv(path, nrows=0, **settings).columns)
        warn_of_memory(f"reading {path}", rows * len(columns) * _BYTES)
        with warnings.catch_warnings():
            # A column of numbers with a text among them, which `numbers` refuses.
            warnings.simplefilter("ignore", pandas.errors.DtypeWarning)
            kinds = dict.fromkeys(labels, "category")
            return pandas.read_csv(path, usecols=columns, dtype=kinds, **settings)

    def _require_columns(self, columns: Sequence[Any], there: Sequence[Any]) -> None:
        for column in columns:
            if [*there].count(column) != 1:
                some = ", ".join(map(repr, [*there][:20])) + (", ..." if len(there) > 20 else "")
                raise ValueError(
                    f"{self.name} has no column {column!r}, or several; one of its columns, {some}, is required"
                )

    def place(self, row: int) -> str:
        """Returns where a row is, for error messages: file and line, or the number of the row, counted from 0."""
        if self._path is None:
            return f"{self.name}, row {row}"
        with self._path.open(encoding="utf-8", errors="replace", newline="") as file:
            reader = csv.reader(file)
            # An entry in quotes may span several lines; pandas skips empty lines.
            lines = (reader.line_num for fields in reader if len(fields) > 1 or "".join(fields).strip())
            return f"{self.name}, line {next(islice(lines, row + 1, None))}"

    def require(self, column: Any, valid: Array, allowed: str) -> None:
        """Raises an error unless all entries of a column are valid.

        Args:
            column: Name of the column.
            valid: Whether each entry is valid, bool ``(rows,)``.
            allowed: Description of valid entries, for the error.

        Raises:
            ValueError: An entry is not valid; the error names place, column and value of the first one.
        """
        if valid.all():
            return
        row = int(np.argmin(valid))
        value = self._frame[column].iloc[row]
        shown = "missing" if self._pandas.isna(value) else repr(getattr(value, "item", lambda: value)())
        raise ValueError(f"{self.place(row)}, column {column!r} is {shown}; {allowed} are required")

    def numbers(self, columns: Sequence[Any], allowed: str = "finite numbers") -> Array:
        """Returns columns of numbers, float64 ``(rows, columns)``.

        Args:
            columns: Names of the columns.
            allowed: Description of valid entries, for the error.

        Raises:
            ValueError: An entry is missing, is no number, or is not finite.
        """
        found = np.empty((self.rows, len(columns)))
        for place, column in enumerate(columns):
            numbers = self._pandas.to_numeric(self._frame[column], errors="coerce")
            found[:, place] = numbers.to_numpy(np.float64, na_value=np.nan)
            self.require(column, np.isfinite(found[:, place]), allowed)
        return found

    def labels(self, column: Any) -> tuple[Array, list[Any]]:
        """Returns which label each row has in a column, and the labels, those that are numbers in ascending order.

        Args:
            column: Name of the column.

        Returns:
            The place of each row's label in the list, integers ``(rows,)``, and the list: numbers if all labels are
            numbers, else texts in alphabetical order.

        Raises:
            ValueError: An entry is missing.
        """
        kinds = self._frame[column].astype("category").cat.remove_unused_categories()
        codes, names = kinds.cat.codes.to_numpy(), kinds.cat.categories
        self.require(column, codes >= 0, "labels")
        numbers = self._pandas.to_numeric(names, errors="coerce")
        numeric = bool(numbers.notna().all()) and numbers.is_unique
        names = np.array(numbers if numeric else [*map(str, names)])
        order = np.argsort(names, kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order))
        return place[codes], names[order].tolist()


def heads(table: Any) -> list[Any]:
    """Returns the names of all columns of a table.

    Args:
        table: The path of a file, or a data frame, as for :class:`Table`.

    Raises:
        ImportError: pyarrow is missing for a Parquet file.
        OSError: The file cannot be read.
    """
    if not isinstance(table, str | PathLike):
        return [*table.columns]
    if Path(table).suffix == ".parquet":
        return [*data_library("pyarrow.parquet").read_schema(table).names]
    with open(table, encoding="utf-8-sig", errors="replace", newline="") as file:
        return next((fields for fields in csv.reader(file) if "".join(fields).strip()), [])


def warn_of_memory(what: str, size: float) -> None:
    """Warns before more than :data:`MUCH_MEMORY` is taken.

    Args:
        what: What takes the memory, for the message.
        size: Number of bytes.
    """
    if size > MUCH_MEMORY:
        warnings.warn(f"{what} will take about {size / 2**30:.1f} GiB of memory", stacklevel=3)


def data_library(name: str) -> Any:
    """Imports and returns a library of the ``[data]`` extra.

    Args:
        name: The module's name, such as ``"pandas"``.

    Raises:
        ImportError: The library is missing; the error names the extra.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} is missing, which comes with the [data] extra: python -m pip install 'fedbandit-envs[data]'"
        ) from error
