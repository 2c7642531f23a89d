"""Regret curves as pictures: PNG by matplotlib, interactive offline HTML by plotly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.simulation import Simulation
from fedbandit_envs.leaderboard.statistics import mean_and_half_width

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_ROUND, _REGRET = "round", "cumulative regret per agent"


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
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        mean, half = mean_and_half_width(curve.regret.mean(axis=2))
        axes.plot(curve.rounds, mean, color=colour, label=name, linewidth=1.8)
        axes.fill_between(curve.rounds, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=_ROUND, ylabel=_REGRET, title=title)
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
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        mean, half = mean_and_half_width(curve.regret.mean(axis=2))
        figure.add_scatter(
            x=curve.rounds, y=mean, error_y={"array": half, "thickness": 1}, name=name, line={"color": colour}
        )
    figure.update_xaxes(type="log", title=_ROUND)
    figure.update_yaxes(type="log", title=_REGRET)
    figure.update_layout(title=title, template="plotly_white")
    figure.write_html(path, include_plotlyjs=True)


def panels_png(
    panels: Mapping[str, Mapping[str, tuple[Any, Any, Any]]], axes: Mapping[str, str], title: str, path: Path
) -> None:
    """Writes curves with error bars, a panel a group.

    Args:
        panels: For each panel's title its curves by name: x, y and the error bars' lengths, one array or a pair.
        axes: ``x`` and ``y`` labels, ``xscale`` and ``yscale``.
        title: Title of the picture.
        path: Where to write; the folder must exist.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6 * len(panels), 4.6), dpi=120, layout="constrained")
    figure.suptitle(title)
    for place, (name, curves) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for colour, (label, (x, y, error)) in zip(_COLOURS, curves.items(), strict=False):
            place.errorbar(
                x, y, error, color=colour, label=label, linewidth=1.6, elinewidth=0.8, capsize=2, fmt=".-"
            )
        place.set(
            xscale=axes["xscale"],
            yscale=axes["yscale"],
            xlabel=axes["x"],
            ylabel=axes["y"],
            title=f"{name} law",
        )
        place.grid(alpha=0.3)
        place.legend(fontsize="small")
    figure.savefig(path)
