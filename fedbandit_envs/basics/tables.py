"""Tables of a user's own data: CSV files, Parquet files and pandas' data frames, read by pyarrow and pandas."""

import re
from collections.abc import Collection, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import LARGEST

FINITE = f"finite numbers below {LARGEST:g}"

MOST_BYTES = 2**32
"""The largest size of a file of data."""


def require_file(name: str, path: Any) -> Path:
    """Returns the path of a file if it is a regular file of at most :data:`MOST_BYTES`; a device or pipe is none.

    Args:
        name: Name of the parameter, for the error.
        path: The path.

    Raises:
        OSError: There is no such file.
        ValueError: It is no regular file, or too large.
    """
    status = Path(path).stat()
    if not S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        raise ValueError(
            f"{name} is {str(path)!r}; a regular file of at most {MOST_BYTES:,} bytes is required"
        )
    return Path(path)


class Table:
    """Columns of a table: a CSV file with a line of heads, a Parquet file, or a ``pandas.DataFrame``.

    A file and a data frame with the same entries give the same numbers and labels. Other columns are not kept. In a CSV
    file columns are separated by commas, text is UTF-8, empty lines are skipped, and only the empty entry is a missing
    one; all lines must have as many entries as there are heads.

    Attributes:
        name: The file's path, or ``"table"`` for a data frame, for error messages.
        rows: Number of rows.
        of_numbers: Names of the columns of numbers.

    Example:
        >>> import pandas
        >>> from fedbandit_envs.basics.tables import Table
        >>> table = Table(pandas.DataFrame({"town": ["b", "a"], "size": [2.0, 7.0]}), ["town"], ["size"])
        >>> table.labels("town"), table.numbers(["size"]).ravel()
        ((array([1, 0]...), ['a', 'b']), array([2., 7.]))
    """

    def __init__(self, table: Any, labels: Collection[Any], numbers: Sequence[Any] | None = None) -> None:
        """Reads the columns.

        Args:
            table: The path of a file (Parquet if it ends with ``.parquet``, otherwise CSV), or a data frame.
            labels: Names of the columns that :meth:`labels` will be asked for.
            numbers: Names of the columns that :meth:`numbers` will be asked for; None for all but the labels.

        Raises:
            ImportError: pandas or pyarrow is missing; they come with the ``[data]`` extra.
            OSError: The file cannot be read.
            TypeError: ``table`` is neither a path nor a data frame.
            ValueError: A column is not in the table, or several times; there are no rows; or the file is malformed.
        """
        self._pandas = optional_library("pandas")
        self._labels, self.of_numbers = labels, numbers
        # pyarrow counts the line of heads as row 1 of a CSV file.
        self._first_row = 0
        if isinstance(table, self._pandas.DataFrame):
            self.name = "table"
            self._frame = table[self._columns([*table.columns])]
        elif isinstance(table, str | PathLike):
            self.name = str(require_file("table", table))
            arrow = optional_library("pyarrow")
            read = self._parquet if Path(table).suffix == ".parquet" else self._csv
            try:
                self._frame = read(arrow)
            except (arrow.ArrowInvalid, UnicodeDecodeError) as error:
                hint = "numbers are required, as pandas.get_dummies makes of texts"
                wrong = re.search(r"column #(\d+).* to double", str(error))
                column = f"; of column {self._there[int(wrong[1])]!r} {hint}" if wrong else ""
                raise ValueError(f"{self.name} cannot be read: {error}{column}") from None
        else:
            raise TypeError(f"table is {table!r}; the path of a file or a pandas.DataFrame is required")
        self.rows = len(self._frame)
        if not self.rows:
            raise ValueError(f"{self.name} has no rows; at least one is required")

    def _parquet(self, arrow: Any) -> Any:
        file = optional_library("pyarrow.parquet").ParquetFile(self.name)
        return file.read(self._columns(file.schema_arrow.names)).to_pandas()

    def _csv(self, arrow: Any) -> Any:
        csv = optional_library("pyarrow.csv")
        self._first_row = 2
        # A row must fit into a block. With threads, errors would not name the row.
        reading = csv.ReadOptions(use_threads=False, block_size=2**24)
        parsing = csv.ParseOptions(newlines_in_values=True)
        columns = self._columns(csv.open_csv(self.name, reading, parsing).schema.names)
        kinds = dict.fromkeys(columns, arrow.float64())
        kinds |= dict.fromkeys(self._labels, arrow.dictionary(arrow.int32(), arrow.string()))
        options = csv.ConvertOptions(
            include_columns=columns, column_types=kinds, null_values=[""], strings_can_be_null=True
        )
        return csv.read_csv(self.name, reading, parsing, options).to_pandas()

    def _columns(self, there: Sequence[Any]) -> list[Any]:
        """Returns the names of the columns to read, and raises an error unless each is in the table once."""
        self._there = there
        if self.of_numbers is None:
            self.of_numbers = [name for name in there if name not in self._labels]
        columns = [*dict.fromkeys([*self._labels, *self.of_numbers])]
        for column in columns:
            if there.count(column) != 1:
                raise ValueError(
                    f"{self.name} has no column {column!r}, or several; one of its columns, {there}, is required"
                )
        return columns

    def place(self, row: int) -> str:
        """Returns where a row is, for error messages: file or table, and the number of the row.

        In a CSV file the line of heads is row 1, and empty lines are not counted; in other tables the first row is 0.
        """
        return f"{self.name}, row {row + self._first_row}"

    def require(self, column: Any, valid: Array, allowed: str) -> None:
        """Raises an error unless all entries of a column are valid.

        Args:
            column: Name of the column.
            valid: Whether each entry is valid, bool ``(rows,)``.
            allowed: Description of valid entries, for the error.

        Raises:
            ValueError: An entry is not valid; the error names place, column and value of the first one.
        """
        if not valid.all():
            row = int(np.argmin(valid))
            value = self._frame[column].iloc[row]
            shown = "missing" if self._pandas.isna(value) or value == "" else f"{value:g}"
            raise ValueError(f"{self.place(row)}, column {column!r} is {shown}; {allowed} are required")

    def numbers(self, columns: Sequence[Any], allowed: str = FINITE) -> Array:
        """Returns columns of numbers, float64 ``(rows, columns)``.

        A number in single or half precision is the decimal number that it is printed as.

        Args:
            columns: Names of the columns.
            allowed: Description of valid entries, for the error.

        Raises:
            ValueError: A column is not of numbers; or an entry is missing, or as large as :data:`LARGEST`.
        """
        found = np.empty((self.rows, len(columns)))
        for own, column in zip(found.T, columns, strict=True):
            entries = self._frame[column]
            kind, size = entries.dtype.kind, getattr(entries.dtype, "itemsize", 8)
            if kind not in "iuf":
                raise ValueError(
                    f"{self.name}, column {column!r} is of {entries.dtype}; {allowed} are required"
                )
            own[:] = entries.to_numpy(np.float64, na_value=np.nan)
            if kind == "f" and size < 8:
                own[:] = own.astype(f"f{size}").astype(str).astype(np.float64)
            self.require(column, np.abs(own) < LARGEST, allowed)
        return found

    def labels(self, column: Any) -> tuple[Array, list[Any]]:
        """Returns which label each row has in a column, and the labels, those that are numbers in ascending order.

        A label is the text that a CSV file has for it, so that 007 is not 7.

        Args:
            column: Name of the column.

        Returns:
            The place of each row's label in the list, integers ``(rows,)``, and the list: numbers if all labels are
            different numbers, else texts in alphabetical order.

        Raises:
            ValueError: An entry is missing.
        """
        codes, entries = self._pandas.factorize(self._frame[column])
        texts = self._pandas.Series(entries).astype("string").to_numpy(str)
        # As in a CSV file, the empty text is a missing entry.
        self.require(column, (codes >= 0) & (np.append(texts, "") != "")[codes], "labels")
        numbers = self._pandas.Series(self._pandas.to_numeric(texts, errors="coerce"))
        known = numbers if numbers.notna().all() and numbers.is_unique else texts
        names, places = np.unique(known, return_inverse=True)
        return places.astype(np.int32)[codes], names.tolist()


def optional_library(name: str, extra: str = "data") -> Any:
    """Imports and returns a library of an extra.

    Args:
        name: The module's name, such as ``"pandas"``.
        extra: The extra that it comes with.

    Raises:
        ImportError: The library is missing; the error names the extra.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} is missing, which comes with the [{extra}] extra: python -m pip install 'fedbandit-envs[{extra}]'"
        ) from error
