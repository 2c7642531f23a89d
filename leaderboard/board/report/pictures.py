"""What a figure of the page shows, as data: the page draws it, and says it in words and in a table."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from math import inf, isfinite, log10
from typing import Any, Literal

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.board.scores import Estimate

_DIGITS_OF_ENDS = 3

Form = Literal["line", "band", "level", "points", "front"]


def short(number: float, digits: int = 4) -> float | None:
    """Returns four digits of a number, more than any picture shows; None where there is none."""
    if not isfinite(number):
        return None
    rounded = float(f"{number:.{digits}g}")
    # Which is written without a point.
    return int(rounded) if rounded.is_integer() else rounded


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


_DEFAULTS = {one.name: one.default for one in fields(Curve) if one.default is not MISSING}


def curve(
    name: str,
    x: Iterable[float],
    y: Estimate,
    form: Form = "line",
    shown: bool = True,
) -> Curve:
    """Makes a curve of estimates, rounded; it has no intervals where a point has none.

    Args:
        name: What it is called in the legend.
        x: Places of the points.
        y: Estimates, ``(points,)``.
        form: How it is drawn.
        shown: Whether it is there at first, or only once its name is chosen.
    """
    value = [short(number) for number in y.value]
    low, high = ([short(number, _DIGITS_OF_ENDS) for number in part] for part in (y.low, y.high))
    places = [float(f"{place:.6g}") for place in x]
    if None in low:
        return Curve(name, places, value, form=form, shown=shown)
    return Curve(name=name, x=places, y=value, low=low, high=high, form=form, shown=shown)


def alone(values: Array) -> Estimate:
    """Returns estimates without intervals."""
    return Estimate(values, np.full(values.shape, np.nan), np.full(values.shape, np.nan))


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
        """Returns what drawing needs; caption and words are in the page itself.

        Curves say by a number which of ``places`` they have as x: most have the same.
        """
        places: list[Sequence[float]] = []
        curves = []
        for one in self.curves:
            if one.x not in places:
                places.append(one.x)
            # What is as it is by default, the page knows.
            said = {name: value for name, value in asdict(one).items() if value != _DEFAULTS.get(name)}
            curves.append({**said, "x": places.index(one.x)})
        axes = {"x": asdict(self.x), "y": asdict(self.y)}
        return {"id": self.id, "title": self.title, **axes, "places": places, "curves": curves}


class Margins:
    """Puts zero and infinity beside what a logarithmic axis can show."""

    def __init__(self, values: Sequence[float]) -> None:
        """Finds the ends of the scale.

        Args:
            values: All that is to be placed.
        """
        self._values = values
        finite = [value for value in values if 0 < value < inf] or [1.0]
        low, high = min(finite), max(finite)
        gap = 10 ** max(0.25, 0.12 * log10(high / low))
        self._below, self._above = low / gap, high * gap

    def place(self, value: float) -> float:
        """Returns where a value lies on the axis."""
        return self._below if value == 0 else self._above if value == inf else value

    def ticks(self, zero: str, infinite: str) -> tuple[tuple[float, str], ...]:
        """Returns names for zero and infinity, where they occur."""
        named = ((0.0, zero), (inf, infinite))
        return tuple((self.place(value), text) for value, text in named if value in self._values)
