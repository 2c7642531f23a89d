"""What pages are made of besides their text: style and plotly.js, shipped once for all of them, and numbers inside."""

import json
from importlib.resources import files


def text(name: str) -> str:
    """Returns what is in a file of this folder."""
    return (files(__name__.rpartition(".")[0]) / name).read_text(encoding="utf-8")


def style() -> str:
    """Returns the colours and sizes that pages share."""
    return text("page.css")


def plotly() -> str:
    """Returns plotly.js, without the parts that no page draws by."""
    return text("plotly-basic.min.js")


def embedded(data: object) -> str:
    """Returns JSON for a script element, which no text within can end early."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
