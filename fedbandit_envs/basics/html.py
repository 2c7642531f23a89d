"""Tables in HTML, by which results, claims, environments and baselines show themselves in notebooks."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def html_table(caption: str, rows: Iterable[Sequence[Any]], heads: Sequence[str] = ()) -> str:
    """Returns a table in HTML, whose texts are escaped.

    Args:
        caption: Title of the table.
        rows: The rows, each a sequence of cells; floats are written with six digits at most.
        heads: Heads of the columns; without them the first cell of each row is its head.
    """

    def line(cells: Sequence[Any], num_heads: int) -> str:
        texts = (escape(f"{one:.6g}" if isinstance(one, float) else str(one)) for one in cells)
        tags = ("th" if place < num_heads else "td" for place in range(len(cells)))
        return "".join(
            f"<{tag} style='text-align: left'>{text}</{tag}>" for tag, text in zip(tags, texts, strict=True)
        )

    lines = [line(heads, len(heads))] if heads else []
    lines += [line(row, 0 if heads else 1) for row in rows]
    body = "".join(f"<tr>{one}</tr>" for one in lines)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
