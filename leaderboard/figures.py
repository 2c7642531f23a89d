"""Regret curves as pictures: PNG by matplotlib, interactive offline HTML by plotly."""

from collections.abc import Collection, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.leaderboard.simulation import Simulation
from fedbandit_envs.leaderboard.statistics import mean_and_half_width

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot"}  # matplotlib's names and plotly's
BESIDE = ", in the open"
"""Ends the name of a curve that has the colour of the one it stands beside, dotted."""

_MOST_INSIDE = 4
_MOST_ALONE = 7  # inside, of panels that have no curve in common
_LEGEND_COLUMNS = 2  # a panel, of a legend below the panels
_MOST_BESIDE = 3
_MOST_TICKS = 9
_ROUND, _REGRET = "round", "cumulative regret per agent"


class Style(NamedTuple):
    """How a curve looks: its colour, and matplotlib's name of its dashes."""

    colour: str
    dashes: str


def styles(names: Collection[str]) -> dict[str, Style]:
    """Gives each curve of a picture a look of its own.

    Raises:
        ValueError: There are more curves than looks.
    """
    beside = [name for name in names if name.endswith(BESIDE) and name.removesuffix(BESIDE) in names]
    own = [name for name in names if name not in beside]
    dashes = ["solid"] if beside else list(_DASHES)
    most = len(dashes) * len(_COLOURS)
    if len(own) > most:
        raise ValueError(f"names has {len(own)} curves; at most {most} can be told apart")
    every = (Style(colour, dash) for dash, colour in product(dashes, _COLOURS))
    looks = dict(zip(own, islice(every, len(own)), strict=True))
    return {
        name: looks.get(name) or Style(looks[name.removesuffix(BESIDE)].colour, "dotted") for name in names
    }


def write_numbers_out(axis: Any) -> None:
    """Lets a logarithmic axis of matplotlib from 0.001 to a million say 0.6 and 40,000, not 6 x 10^-1 and 4 x 10^4."""
    from matplotlib.ticker import LogFormatterSciNotation

    class WrittenOut(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            text: str = super().__call__(x, pos)
            least, most = sorted(axis.get_view_interval())
            return f"{x:,.6g}" if text and least >= 1e-3 and most < 1e6 else text

    axis.set_major_formatter(WrittenOut())
    axis.set_minor_formatter(WrittenOut(minor_thresholds=(2, 0.5)))


def regret_png(curves: Mapping[str, Simulation], title: str, path: Path) -> None:
    """Writes mean regret with its 95 % band over rounds, both axes logarithmic.

    Args:
        curves: Simulations by the name in the legend.
        title: Title of the picture.
        path: Where to write; the folder must exist.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.8), dpi=130, layout="constrained")
    axes = figure.subplots()
    for name, (colour, dashes) in styles(curves).items():
        curve = curves[name]
        mean, half = mean_and_half_width(curve.regret.mean(axis=2))
        axes.plot(curve.rounds, mean, color=colour, linestyle=dashes, label=name, linewidth=1.8)
        axes.fill_between(curve.rounds, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=_ROUND, ylabel=_REGRET, title=title)
    write_numbers_out(axes.xaxis)
    write_numbers_out(axes.yaxis)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)


def regret_html(curves: Mapping[str, Simulation], title: str, path: Path) -> None:
    """Writes the curves of :func:`regret_png` as one HTML page that needs no network.

    Args:
        curves: Simulations by the name in the legend.
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
) -> None:
    """Writes curves with error bars, a panel a group; a curve's name looks the same in all panels.

    Up to three panels stand side by side, more in two rows or as many as it takes. A logarithmic axis with few points
    has its ticks there.

    Args:
        panels: For each panel's title its curves by name: x, y and the error bars' lengths, one array or a pair.
        axes: ``x`` and ``y`` labels, ``xscale`` and ``yscale``.
        title: Title of the picture.
        path: Where to write; the folder must exist.
        apart: What is different about a panel's axes, by the panel's title.

    Raises:
        ValueError: The panels have more than 21 names of curves between them.
    """
    from matplotlib.figure import Figure

    looks = styles(dict.fromkeys(name for curves in panels.values() for name in curves))
    rows = max(2, -(-len(panels) // _MOST_BESIDE)) if len(panels) > _MOST_BESIDE else 1
    columns = -(-len(panels) // rows)
    sizes = [len(curves) for curves in panels.values()]
    shared = len(looks) < sum(sizes)
    most = _MOST_INSIDE if shared or len(panels) == 1 else _MOST_ALONE
    crowded = (len(looks) if shared else max(sizes)) > most
    below = -(-len(looks) // columns // _LEGEND_COLUMNS) * 0.22 + 0.3 if crowded else 0.0
    figure = Figure(figsize=(5.6 * columns, 4.6 * rows + below), dpi=120, layout="constrained")
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
        own = {**axes, **apart.get(name, {})}
        place.set(xscale=own["xscale"], yscale=own["yscale"], xlabel=own["x"], ylabel=own["y"], title=name)
        for axis, scale in ((place.xaxis, own["xscale"]), (place.yaxis, own["yscale"])):
            if scale == "log":
                write_numbers_out(axis)
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
        # Inside it would hide the curves.
        figure.legend(
            handles=list(shown.values()),
            loc="outside lower center",
            ncols=_LEGEND_COLUMNS * columns,
            fontsize="small",
            handlelength=3,
        )
    figure.savefig(path)
