"""The data of a figure of the page: its curves and axes, and its description in a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from math import inf, isfinite, log10
from typing import Any, Literal

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.board.scores import Estimate

Form = Literal["line", "band", "level", "points", "front"]


def short(number: float, digits: int = 4) -> float | None:
    """Returns a number rounded to some digits, which are more than any figure shows; None if it is not finite."""
    if not isfinite(number):
        return None
    rounded = float(f"{number:.{digits}g}")
    # JSON writes integers without ".0".
    return int(rounded) if rounded.is_integer() else rounded


@dataclass(frozen=True)
class Axis:
    """One axis of a figure.

    Attributes:
        title: Quantity and unit.
        log: Whether it is logarithmic.
        ticks: Additional labelled positions beyond the scale: position on the axis, and label.
    """

    title: str
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Curve:
    """One curve of a figure, made by :func:`curve`.

    Attributes:
        name: Label in the legend.
        x: Abscissas of the points; of a level, of its two ends.
        y: Ordinates.
        low: Lower ends of the intervals; None where there are none.
        high: Upper ends, likewise.
        form: ``line`` (points with error bars), ``band`` (a line in a band), ``level`` (a horizontal line), ``points``
            or ``front`` (steps).
        shown: Whether it is drawn at first, or only on request.
        texts: Labels of the points, where they differ from ``name``.
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
    texts: Sequence[str] | None = None,
) -> Curve:
    """Makes a curve of estimates, rounded; it has no intervals if one of the points has none.

    Args:
        name: Label in the legend.
        x: Abscissas, ``(points,)``.
        y: Estimates, each part ``(points,)``.
        form: See :class:`Curve`.
        shown: See :class:`Curve`.
        texts: See :class:`Curve`.
    """
    value, low, high = (
        [short(number, digits) for number in part] for part, digits in zip(y, (4, 3, 3), strict=True)
    )
    known = None not in low
    return Curve(
        name=name,
        x=[float(f"{place:.6g}") for place in x],
        y=value,
        low=low if known else None,
        high=high if known else None,
        form=form,
        shown=shown,
        texts=texts,
    )


def without_interval(values: Array) -> Estimate:
    """Returns estimates without intervals."""
    nothing = np.full(np.shape(values), np.nan)
    return Estimate(np.asarray(values), nothing, nothing)


@dataclass(frozen=True)
class FigureData:
    """A figure of the page.

    Attributes:
        id: Id of its HTML element.
        title: Heading.
        caption: What is drawn, and how to read it.
        words: What can be seen in it, for readers who do not see it.
        x: Horizontal axis.
        y: Vertical axis.
        curves: The curves.
    """

    id: str
    title: str
    caption: str
    words: str
    x: Axis
    y: Axis
    curves: list[Curve] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Returns all that ``page.js`` needs to draw it; caption and words are in the page itself.

        To keep the page small, a curve's ``x`` is an index into ``places``, since most curves have the same abscissas,
        and attributes with their default values are left out.
        """
        places: list[Sequence[float]] = []
        curves = []
        for one in self.curves:
            if one.x not in places:
                places.append(one.x)
            said = {name: value for name, value in asdict(one).items() if value != _DEFAULTS.get(name)}
            curves.append({**said, "x": places.index(one.x)})
        axes = {"x": asdict(self.x), "y": asdict(self.y)}
        return {"id": self.id, "title": self.title, **axes, "places": places, "curves": curves}


class Margins:
    """Positions for zero and infinity beside the range of a logarithmic axis."""

    def __init__(self, values: Sequence[float]) -> None:
        """Computes the positions.

        Args:
            values: All values that are to be drawn; zero and infinity may be among them.
        """
        self._values = values
        finite = [value for value in values if 0 < value < inf] or [1.0]
        low, high = min(finite), max(finite)
        gap = 10 ** max(0.25, 0.12 * log10(high / low))
        self._ends = {0.0: low / gap, inf: high * gap}

    def place(self, value: float) -> float:
        """Returns the position of a value on the axis."""
        return self._ends.get(value, value)

    def ticks(self, zero: str, infinite: str) -> tuple[tuple[float, str], ...]:
        """Returns labelled positions of zero and infinity, where they occur."""
        labels = {0.0: zero, inf: infinite}
        return tuple((self._ends[end], labels[end]) for end in labels if end in self._values)
