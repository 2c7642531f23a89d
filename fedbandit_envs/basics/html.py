"""Tables in HTML, by which results, claims, environments and baselines show themselves in notebooks."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(caption: str, rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table in HTML, whose texts are escaped.

    Args:
        caption: Title of the table.
        rows: The rows, each a sequence of cells, of which the first is the row's head; floats are written with six
            digits at most.
    """
    body = ""
    for row in rows:
        head, *others = (escape(f"{one:.6g}" if isinstance(one, float) else str(one)) for one in row)
        cells = [f"<th style='text-align: left'>{head}</th>"]
        cells += [f"<td style='text-align: left'>{text}</td>" for text in others]
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
