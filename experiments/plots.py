"""Curves as pictures by matplotlib: regret of runs, and columns of tables."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import product
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.experiments.measures import mean_with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_DASHES = ("solid", "dashed", "dotted")
_MOST_INSIDE = 4
_LEGEND_COLUMNS = 2  # columns of a legend below the panels, for each panel in a row
_MOST_BESIDE = 3
_MOST_TICKS = 9
Style = tuple[str, str]
"""The style of a curve: its colour, and matplotlib's name of its dashes."""
Curve = tuple[Any, Any, Any]
"""The points of a curve: x, y and the lengths of the error bars, one array or a pair (below and above), or None."""


def curve_of(points: Mapping[Any, tuple[Any, Any, Any]]) -> Curve:
    """Returns a curve through means, with their intervals as error bars.

    Args:
        points: Mean, lower end and upper end of the interval, by x.
    """
    y, low, high = np.transpose(list(points.values()))
    return list(points), y, (y - low, high - y)


def _styles(names: Collection[str], beside: Mapping[str, str] = {}) -> dict[str, Style]:
    """Returns a different style (colour and dashes) for each curve of a picture, by the curve's name.

    Args:
        names: Names of the curves.
        beside: Curves that shall be dotted in the colour of another curve: maps the name of the dotted curve to the
            other curve's name.

    Raises:
        ValueError: There are more curves than styles.
    """
    own = [name for name in names if name not in beside]
    dashes = _DASHES[:1] if beside else _DASHES
    most = len(dashes) * len(_COLOURS)
    if len(own) > most:
        raise ValueError(f"names has {len(own)} curves; at most {most} can be told apart")
    every = ((colour, dash) for dash, colour in product(dashes, _COLOURS))
    found = dict(zip(own, every, strict=False))
    return found | {name: (found[other][0], "dotted") for name, other in beside.items()}


def _plain(text: Any) -> Any:
    """Returns a text so that matplotlib takes no part of it for a formula; numbers stay as they are."""
    return text.replace("$", r"\$") if isinstance(text, str) else text


def _draw(
    panel: "Axes", curves: Mapping[str, Curve], looks: Mapping[str, Style], **axes: str
) -> dict[str, Any]:
    """Draws curves with error bars, labels the axes, and returns the drawn curves by name.

    Numbers on logarithmic axes are written as 0.6 and 40,000 instead of 6 x 10^-1 and 4 x 10^4; axes that go below
    0.001 or up to a million and more keep powers of ten. A logarithmic horizontal axis has its ticks at the points of
    the curves, if these are few.
    """
    from matplotlib.ticker import LogFormatterSciNotation

    class WrittenOut(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            text: str = super().__call__(x, pos)
            axis: Any = self.axis
            least, most = sorted(axis.get_view_interval())
            return f"{x:,.6g}" if text and least >= 1e-3 and most < 1e6 else text

    drawn: dict[str, Any] = {}
    reaching = False
    for name, (x, y, error) in curves.items():
        colour, dashes = looks[name]
        if error is not None and axes["yscale"] == "log":
            below, above = np.broadcast_to(error, (2, len(y)))
            reaching |= bool((below >= y).any())
            error = np.where(below >= y, 0.9 * np.asarray(y), below), above
        drawn[name] = panel.errorbar(
            [_plain(at) for at in x], y, error, color=colour, linestyle=dashes, label=_plain(name),
            linewidth=1.6, elinewidth=0.8, capsize=2, marker=".",
        )  # fmt: skip
    if reaching:
        axes["ylabel"] += "; intervals that reach 0 are cut"
    # A scale is linear already; to set it again would take texts on the axis for numbers.
    panel.set(**{name: _plain(text) for name, text in axes.items() if text != "linear"})
    for axis in (panel.xaxis, panel.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(WrittenOut())
            axis.set_minor_formatter(WrittenOut(minor_thresholds=(2, 0.5)))
    points = sorted({float(at) for x, _, _ in curves.values() for at in x}) if axes["xscale"] == "log" else []
    if 0 < len(points) <= _MOST_TICKS:
        panel.set_xticks(points, [f"{at:.3g}" for at in points])
        panel.set_xticks([], minor=True)
    panel.grid(alpha=0.3)
    return drawn


def plot(
    frame: "DataFrame",
    x: str,
    y: str,
    by: Sequence[str] | str = (),
    where: Mapping[str, Any] = {},
    log_x: bool = False,
    log_y: bool = False,
) -> "Figure":
    """Plots the mean of one column against another one, with 95 % intervals over seeds, and returns the figure.

    Rows without a finite ``x`` become a horizontal line, such as a policy without noise where ``x`` is epsilon. Rows
    without a value of ``y`` are left out. The figure shows only the last round of each run, unless ``x``, ``by`` or
    ``where`` names ``round``, and means over agents, unless one of them names ``agent``. It warns if runs or seeds are
    missing, as in a table that was cut.

    Args:
        frame: A ``pandas.DataFrame`` with a row for each seed, such as :func:`~.sweep.sweep` and
            :meth:`.RunResult.to_frame` return.
        x: Column of the horizontal axis; its values are numbers or texts.
        y: Column of the vertical axis, numbers.
        by: Column or columns whose values tell curves apart.
        where: Columns, each with the one value that rows must have; other rows are left out.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is logarithmic.

    Raises:
        ValueError: A column is unknown or has no numbers, ``y`` is infinite, ``x`` has no finite value, a logarithmic
            axis has values <= 0, no rows are left, there are more than 21 curves, two would have the same name, or
            rows of one seed differ in a further column, over which they would be averaged.
        ImportError: matplotlib is missing, which comes with the ``[report]`` extra.

    Example:
        >>> import pandas
        >>> frame = pandas.DataFrame({"agents": [2, 2, 2, 9, 9, 9], "seed": [0, 1, 2] * 2, "regret": range(6)})
        >>> figure = plot(frame, x="agents", y="regret")
        >>> figure.axes[0].get_xlabel()
        'agents'
    """
    by = [by] if isinstance(by, str) else list(by)
    for name in (x, y, *by, *where, "seed"):
        require_choice("column", name, list(frame.columns))
    for name, value in where.items():
        require_choice(name, value, frame[name].unique().tolist())
        frame = frame[frame[name] == value]
    run = list(frame.columns[: frame.columns.get_loc("seed") + 1])
    if {"round", "rounds"} <= {*frame.columns} and "round" not in where:
        last = frame["round"] == frame["rounds"]
        if cut := len(frame.drop_duplicates(run)) - len(frame[last].drop_duplicates(run)):
            warn(f"{cut} runs have no row of their last round: the table may have been cut", stacklevel=2)
        frame = frame if "round" in (x, *by) else frame[last]
    frame = frame[frame[y].notna()]
    if frame.empty or frame[y].dtype.kind not in "iuf":
        raise ValueError(f"{y} is {'empty' if frame.empty else 'no number'}; a column of numbers is required")
    if np.isinf(frame[y]).any():
        raise ValueError(f"{y} has infinite values; finite ones are required, which where can select")
    frame = frame.assign(**{x: frame[x].replace(np.inf, np.nan)})
    if frame[x].isna().all():
        raise ValueError(f"{x} has no finite value; one at least is required")
    for name, logarithmic in ((x, log_x), (y, log_y)):
        if logarithmic and not (frame[name].dtype.kind in "iuf" and frame[name].dropna().min() > 0):
            raise ValueError(f"{name} has values that are not > 0; a logarithmic axis requires them")
    if "agent" in frame and "agent" not in (x, *by, *where):
        keys = dict.fromkeys([*run, *({"round"} & {*frame.columns}), x, *by])
        frame = frame.groupby(list(keys), dropna=False, sort=False, as_index=False)[y].mean()
    drawn_as_one = frame[frame.duplicated([x, *by, "seed"], keep=False)]
    if not drawn_as_one.empty:
        others = [name for name in (*run, "agent", "round") if name in frame and name not in (x, *by, "seed")]
        differing = [name for name in others if drawn_as_one[name].nunique(dropna=False) > 1]
        raise ValueError(
            f"rows of one seed differ in {', '.join(differing) or 'no setting'}; name it in by, to have curves of its "
            "own, or in where, with one of its values"
        )
    numbers = frame[x].dtype.kind in "iuf"
    every = list(frame.groupby(x, sort=numbers).groups)
    counts = frame.groupby(list(dict.fromkeys([*by, x])), dropna=False, sort=False)[y].count()
    if counts.min() < counts.max():
        few = f"{', '.join(counts.index.names)} = {counts.idxmin()} has {counts.min()} seeds"
        warn(f"{few}, others up to {counts.max()}: the table may have been cut", stacklevel=2)
    curves: dict[str, Curve] = {}
    for key, rows in frame.groupby(by, dropna=False, sort=False) if by else [((y,), frame)]:
        means = {
            at: mean_with_interval(own.to_numpy(float))
            for at, own in rows.groupby(x, sort=numbers, dropna=False)[y]
        }
        name = ", ".join(
            "none" if one != one else f"{one:.15g}" if isinstance(one, float) else str(one) for one in key
        )
        # Rows without x are drawn at every x.
        level = [means.pop(at) for at in [*means] if at != at]
        drawn = {name: means} if means else {}
        if level:
            drawn[f"{name}, without {x}" if means else name] = dict.fromkeys(every, level[0])
        if drawn.keys() & curves.keys():
            raise ValueError(f"two curves would be named {name!r}; different values of by are required")
        curves |= {own: curve_of(points) for own, points in drawn.items()}
    axes = {"x": x, "y": f"{y}: mean and 95 % interval over seeds"}
    scales = {"xscale": "log" if log_x else "linear", "yscale": "log" if log_y else "linear"}
    selected = ", ".join(f"{name} = {value}" for name, value in where.items())
    return figure_of({selected: curves}, axes | scales, f"{y} by {', '.join(by)}" if by else y)


def figure_of(
    panels: Mapping[str, Mapping[str, Curve]],
    axes: Mapping[str, str],
    title: str,
    apart: Mapping[str, Mapping[str, str]] = {},
    given: Mapping[str, Style] = {},
    beside: Mapping[str, str] = {},
    text_scale: float = 1.0,
) -> "Figure":
    """Returns a picture of several panels, each with curves and their error bars.

    Curves with the same name have the same style in all panels. A row has up to three panels. A logarithmic horizontal
    axis has its ticks at the points of the curves, if these are few.

    Args:
        panels: For each panel's title its curves by name.
        axes: Labels of the axes (``x`` and ``y``) and their scales (``xscale`` and ``yscale``, logarithmic by default).
        title: Title of the picture.
        apart: Entries that replace those of ``axes`` in single panels, by the panel's title.
        given: Styles of some of the curves, by name; the others get a style from :func:`_styles`.
        beside: Curves that shall be dotted in the colour of another curve: maps the name of the dotted curve to the
            other curve's name.
        text_scale: Factor by which texts and lines are larger, compared with panels of the same number of pixels.

    Raises:
        ValueError: The panels together have more than 21 different names of curves.
        ImportError: matplotlib is missing, which comes with the ``[report]`` extra.
    """
    from matplotlib.figure import Figure

    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    looks = {**_styles([name for name in names if name not in given], beside), **given}
    rows = -(-len(panels) // _MOST_BESIDE)
    columns = -(-len(panels) // rows)
    crowded = len(looks) > _MOST_INSIDE
    legend_columns = max(1, round(_LEGEND_COLUMNS * columns / text_scale))
    below = -(-len(looks) // legend_columns) * 0.22 + 0.3 if crowded else 0.0
    size = 5.6 * columns / text_scale, 4.6 * rows / text_scale + below
    figure = Figure(figsize=size, dpi=120 * text_scale, layout="constrained")
    figure.suptitle(_plain(title))
    places = figure.subplots(rows, columns, squeeze=False).flat
    shown: dict[str, Any] = {}
    for (name, curves), place in zip(panels.items(), places, strict=False):
        own = {"xscale": "log", "yscale": "log", **axes, **apart.get(name, {})}
        shown |= _draw(place, curves, looks, xlabel=own.pop("x"), ylabel=own.pop("y"), title=name, **own)
        if curves and not crowded:
            place.legend(fontsize="small")
    for empty in places:
        empty.set_visible(False)
    if crowded:
        # A legend of so many curves would hide the curves if it were inside of the panels.
        style: dict[str, Any] = {"ncols": legend_columns, "fontsize": "small", "handlelength": 3}
        figure.legend(handles=list(shown.values()), loc="outside lower center", **style)
    # Notebooks show it also where ``%matplotlib inline`` has not been said.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: "Figure") -> bytes:
    out = BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
