"""What a figure of the page shows, as data: the page draws it, and says it in words and in a table."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite, log10
from typing import Any, Literal

from fedbandit_envs.federation import Array

Form = Literal["line", "band", "level", "points", "front"]


def short(number: float) -> float | None:
    """Returns four digits of a number, more than any picture shows; None where there is none."""
    return float(f"{number:.4g}") if isfinite(number) else None


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        title: What is on it, with its unit.
        log: Whether it is logarithmic.
        ticks: Places that have a name of their own, beyond the scale: value on the axis and text.
    """

    title: str
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Curve:
    """What one entry has in a figure.

    Attributes:
        name: In the legend.
        x: Where; for a level, from where to where.
        y: How much.
        low: Lower ends of intervals; None where there are none.
        high: Upper ends, likewise.
        form: ``line`` (points with error bars), ``band`` (a line in a band), ``level`` (a horizontal line), ``points``
            or ``front`` (steps).
        shown: Whether it is drawn before somebody asks for it.
        texts: Names of the points, where they are not all the curve's.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    form: Form = "line"
    shown: bool = True
    texts: Sequence[str] | None = None


def curve(
    name: str,
    x: Iterable[float],
    y: Array,
    ends: tuple[Array, Array] | None = None,
    form: Form = "line",
    shown: bool = True,
) -> Curve:
    """Makes a curve of arrays ``(points,)``, rounded."""
    low, high = ([short(end) for end in side] for side in ends) if ends else (None, None)
    places = [float(f"{place:.6g}") for place in x]
    return Curve(name, places, [short(value) for value in y], low, high, form, shown)


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        id: Of its element.
        title: Its caption's first words.
        caption: What it shows and how to read it.
        words: What can be seen in it, for who does not see.
        x: Horizontal axis.
        y: Vertical axis.
        curves: What is in it.
    """

    id: str
    title: str
    caption: str
    words: str
    x: Axis
    y: Axis
    curves: list[Curve] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Returns what drawing needs; caption and words are in the page itself."""
        data = {name: asdict(self)[name] for name in ("id", "x", "y", "curves")}
        data["curves"] = [
            {key: value for key, value in c.items() if value is not None} for c in data["curves"]
        ]
        return {"title": self.title, **data}


@dataclass(frozen=True)
class Margins:
    """Puts zero and infinity beside what a logarithmic axis can show.

    Attributes:
        values: All that is to be placed.
    """

    values: Sequence[float]

    def __post_init__(self) -> None:
        """Finds the ends of the scale."""
        finite = [value for value in self.values if 0 < value < inf] or [1.0]
        low, high = min(finite), max(finite)
        gap = 10 ** max(0.25, 0.12 * log10(high / low))
        object.__setattr__(self, "_ends", (low / gap, high * gap))

    def place(self, value: float) -> float:
        """Returns where a value lies on the axis."""
        below, above = self._ends  # type: ignore[attr-defined]
        return below if value == 0 else above if value == inf else value

    def ticks(self, zero: str, infinite: str) -> tuple[tuple[float, str], ...]:
        """Returns names for zero and infinity, where they occur."""
        named = ((0.0, zero), (inf, infinite))
        return tuple((self.place(value), text) for value, text in named if value in self.values)
