"""What pages are made of besides their text: head, style and plotly.js, shipped once for all, and numbers inside."""

import json
from importlib.resources import files
from string import Template


def text(name: str) -> str:
    """Returns what is in a file of this folder."""
    return (files(__name__.rpartition(".")[0]) / name).read_text(encoding="utf-8")


def head(title: str, style: str = "") -> str:
    """Returns how a page begins: what it may load, which is nothing, and the colours and sizes that pages share.

    Args:
        title: Its title, as HTML.
        style: Rules of its own.
    """
    return Template(text("head.html")).substitute(title=title, style=f"{text('page.css')}\n{style}")


def plotly() -> str:
    """Returns plotly.js, without the parts that no page draws by."""
    return text("plotly-basic.min.js")


def embedded(data: object) -> str:
    """Returns JSON for a script element, which no text within can end early."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
