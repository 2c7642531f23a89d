"""Regret curves as pictures: PNG by matplotlib, interactive offline HTML by plotly."""

from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.runs.result import RunResult, report_library
from fedbandit_envs.leaderboard.runs.statistics import mean_and_half_width

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot"}  # matplotlib's names and plotly's
_MOST_INSIDE = 4
_MOST_ALONE = 7  # most curves in a panel with the legend inside, if panels have no curve in common
_LEGEND_COLUMNS = 2  # columns of a legend below the panels, for each panel in a row
_MOST_BESIDE = 3
_MOST_TICKS = 9
Style = tuple[str, str]
"""The style of a curve: its colour, and matplotlib's name of its dashes."""

_ROUND, _REGRET = "round", "cumulative regret per agent"


def styles(names: Collection[str], beside: Mapping[str, str] = {}) -> dict[str, Style]:
    """Returns a different style (colour and dashes) for each curve of a picture, by the curve's name.

    Args:
        names: Names of the curves.
        beside: Curves that shall be dotted in the colour of another curve: maps the name of the dotted curve to the
            other curve's name.

    Raises:
        ValueError: There are more curves than styles.
    """
    own = [name for name in names if name not in beside]
    dashes = ["solid"] if beside else list(_DASHES)
    most = len(dashes) * len(_COLOURS)
    if len(own) > most:
        raise ValueError(f"names has {len(own)} curves; at most {most} can be told apart")
    every = ((colour, dash) for dash, colour in product(dashes, _COLOURS))
    found = dict(zip(own, every, strict=False))
    return found | {name: (found[other][0], "dotted") for name, other in beside.items()}


def _write_numbers_out(panel: Any) -> None:
    """Writes numbers on logarithmic axes as 0.6 and 40,000 instead of 6 x 10^-1 and 4 x 10^4.

    Axes that go below 0.001 or up to a million and more keep powers of ten.

    Args:
        panel: The ``Axes`` of matplotlib.
    """
    from matplotlib.ticker import LogFormatterSciNotation

    class WrittenOut(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            text: str = super().__call__(x, pos)
            axis: Any = self.axis
            least, most = sorted(axis.get_view_interval())
            return f"{x:,.6g}" if text and least >= 1e-3 and most < 1e6 else text

    for axis in (panel.xaxis, panel.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(WrittenOut())
            axis.set_minor_formatter(WrittenOut(minor_thresholds=(2, 0.5)))


def regret_figure(curves: Mapping[str, RunResult], title: str) -> Any:
    """Returns a ``matplotlib`` figure of mean cumulative regret per agent with its 95 % band over rounds.

    Both axes are logarithmic.

    Args:
        curves: Results of runs, by the name of their curve in the legend.
        title: Title of the picture.

    Raises:
        ImportError: matplotlib is missing, which comes with the ``[report]`` extra.
    """
    figure = report_library("matplotlib.figure").Figure(figsize=(7.5, 4.8), dpi=130, layout="constrained")
    axes = figure.subplots()
    for name, (colour, dashes) in styles(curves).items():
        curve = curves[name]
        mean, half = mean_and_half_width(curve.regret.mean(axis=2))
        axes.plot(curve.rounds, mean, color=colour, linestyle=dashes, label=name, linewidth=1.8)
        axes.fill_between(curve.rounds, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=_ROUND, ylabel=_REGRET, title=title)
    _write_numbers_out(axes)
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def regret_html(curves: Mapping[str, RunResult], title: str, path: Path) -> None:
    """Writes an interactive plot of mean cumulative regret per agent over rounds as an HTML page that needs no network.

    Points have 95 % intervals, and both axes are logarithmic.

    Args:
        curves: Results of runs, by the name of their curve in the legend.
        title: Title of the page.
        path: Where to write; the folder must exist.
    """
    from plotly import graph_objects

    figure = graph_objects.Figure()
    for name, (colour, dashes) in styles(curves).items():
        curve = curves[name]
        mean, half = mean_and_half_width(curve.regret.mean(axis=2))
        figure.add_scatter(
            x=curve.rounds,
            y=mean,
            error_y={"array": half, "thickness": 1},
            name=name,
            line={"color": colour, "dash": _DASHES[dashes]},
        )
    figure.update_xaxes(type="log", title=_ROUND)
    figure.update_yaxes(type="log", title=_REGRET)
    figure.update_layout(title=title, template="plotly_white")
    figure.write_html(path, include_plotlyjs=True)


def panels_png(
    panels: Mapping[str, Mapping[str, tuple[Any, Any, Any]]],
    axes: Mapping[str, str],
    title: str,
    path: Path,
    apart: Mapping[str, Mapping[str, str]] = {},
    given: Mapping[str, Style] = {},
    description: str = "",
    beside: Mapping[str, str] = {},
    text_scale: float = 1.0,
) -> None:
    """Writes a picture of several panels, each with curves and their error bars, as a PNG.

    Curves with the same name have the same style in all panels. A row has up to three panels. A logarithmic horizontal
    axis has its ticks at the points of the curves, if these are few.

    Args:
        panels: For each panel's title its curves by name. A curve is a tuple of x, y and lengths of the error bars,
            which are one array, a pair of arrays (below and above), or None.
        axes: Labels of the axes (``x`` and ``y``) and their scales (``xscale`` and ``yscale``, logarithmic by default).
        title: Title of the picture.
        path: The file to write; its folder must exist.
        apart: Entries that replace those of ``axes`` in single panels, by the panel's title.
        given: Styles of some of the curves, by name; the others get a style from :func:`styles`.
        description: Text that the file's metadata has as ``Description``, such as a digest of the numbers.
        beside: Curves that shall be dotted in the colour of another curve: maps the name of the dotted curve to the
            other curve's name.
        text_scale: Factor by which texts and lines are larger, compared with panels of the same number of pixels.

    Raises:
        ValueError: The panels together have more than 21 different names of curves.
    """
    from matplotlib.figure import Figure

    names = dict.fromkeys(name for curves in panels.values() for name in curves)
    looks = {**styles([name for name in names if name not in given], beside), **given}
    rows = -(-len(panels) // _MOST_BESIDE)
    columns = -(-len(panels) // rows)
    sizes = [len(curves) for curves in panels.values()]
    shared = len(looks) < sum(sizes)
    most = _MOST_INSIDE if shared or len(panels) == 1 else _MOST_ALONE
    crowded = (len(looks) if shared else max(sizes)) > most
    legend_columns = max(1, round(_LEGEND_COLUMNS * columns / text_scale))
    below = -(-len(looks) // legend_columns) * 0.22 + 0.3 if crowded else 0.0
    size = 5.6 * columns / text_scale, 4.6 * rows / text_scale + below
    figure = Figure(figsize=size, dpi=120 * text_scale, layout="constrained")
    figure.suptitle(title)
    places = figure.subplots(rows, columns, squeeze=False).flat
    shown = {}
    for (name, curves), place in zip(panels.items(), places, strict=False):
        for label, (x, y, error) in curves.items():
            colour, dashes = looks[label]
            shown[label] = place.errorbar(
                x, y, error, color=colour, linestyle=dashes, label=label,
                linewidth=1.6, elinewidth=0.8, capsize=2, marker=".",
            )  # fmt: skip
        own = {"xscale": "log", "yscale": "log", **axes, **apart.get(name, {})}
        place.set(xscale=own["xscale"], yscale=own["yscale"], xlabel=own["x"], ylabel=own["y"], title=name)
        _write_numbers_out(place)
        points = sorted({float(at) for x, _, _ in curves.values() for at in x})
        if own["xscale"] == "log" and 0 < len(points) <= _MOST_TICKS:
            place.set_xticks(points, [f"{at:.3g}" for at in points])
            place.set_xticks([], minor=True)
        place.grid(alpha=0.3)
        if curves and not crowded:
            place.legend(fontsize="small")
    for empty in places:
        empty.set_visible(False)
    if crowded:
        # A legend of so many curves would hide the curves if it were inside of the panels.
        figure.legend(
            handles=list(shown.values()),
            loc="outside lower center",
            ncols=legend_columns,
            fontsize="small",
            handlelength=3,
        )
    figure.savefig(path, metadata={"Description": description} if description else None)
