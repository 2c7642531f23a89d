"""Pictures of one round, as text or drawn by matplotlib without a window."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import DependencyNotInstalled

from fedbandit_envs.basics.arrays import Array, Arrays


class Picture(NamedTuple):
    """What a problem shows of one replica's round.

    Attributes:
        cells: A number for each agent and column, ``(agents, columns)``; NaN where there is none.
        meaning: What a cell is.
        columns: What a column is, such as ``"arm"``.
        values: The true value of each item, ``(items,)``, by what it is; then, in the same way, what is known of it,
            NaN where nothing is.
        items: What an item is; empty if items are the columns.
        level: A value that the true ones are compared with; NaN for none.
        marked: Whether each agent is marked by a star, bool ``(agents,)``; None for none. ``mark`` says why.
        mark: What the star says.
    """

    cells: Array
    meaning: str
    columns: str
    values: Arrays
    items: str = ""
    level: float = np.nan
    marked: Array | None = None
    mark: str = ""


Viewer = Callable[[Arrays], Any]
"""A function that renders one replica, from its observation, info and hidden parameters, arrays ``(agents, ...)``."""


def viewers_of(make: Callable[[Arrays], Picture]) -> Mapping[str, Viewer]:
    """Returns functions that render, by render mode, ``"ansi"`` and ``"rgb_array"``.

    Args:
        make: A function that makes a picture of a replica's observation, info and hidden parameters.
    """
    return {
        "ansi": lambda scene: _text(make(scene), scene),
        "rgb_array": lambda scene: _image(make(scene), scene),
    }


def _title(picture: Picture, scene: Arrays) -> str:
    return f"round {int(scene['round'][0, 0])}{picture.mark and f' (* {picture.mark})'}"


def _agents(picture: Picture, scene: Arrays) -> list[tuple[str, str]]:
    """Returns each agent's number, with a star if it is marked, and its regret."""
    regret = scene["regret"]
    marked = np.zeros(len(regret), np.bool_) if picture.marked is None else picture.marked
    return [(f"{j}{' *' if marked[j] else ''}", f"{regret[j]:.3f}") for j in range(len(regret))]


def _text(picture: Picture, scene: Arrays) -> str:
    """Returns a line for each agent, then the true values and what is known of them."""
    agents = [f"agent {name}, regret {regret}" for name, regret in _agents(picture, scene)]
    rows = dict(zip(agents, picture.cells, strict=True))
    rows |= picture.values
    width = max(map(len, rows))
    lines = [f"{_title(picture, scene)}: {picture.meaning}, by {picture.columns}"]
    lines += [f"{name:>{width}}  {' '.join(f'{x:6.3f}' for x in numbers)}" for name, numbers in rows.items()]
    return "\n".join(lines) + "\n"


def _image(picture: Picture, scene: Arrays) -> Array:
    """Returns a heatmap of the cells above bars of the true values, uint8 ``(height, width, 3)``."""
    figure, agents = blank_figure(), len(picture.cells)
    above, below = figure.subplots(2, 1, height_ratios=(max(agents, 4), 8))
    image = above.imshow(picture.cells, cmap="viridis", aspect="auto", interpolation="nearest")
    figure.colorbar(image, ax=above, label=picture.meaning)
    above.set_yticks(range(agents), [f"{name}   {regret}" for name, regret in _agents(picture, scene)])
    above.set(ylabel="agent, last regret", xlabel=picture.columns, title=_title(picture, scene))
    (true, truth), (known, found) = picture.values.items()
    below.bar(range(truth.size), truth, color="lightsteelblue", label=true)
    below.plot(found, "k.", label=known)
    below.axhline(picture.level, color="firebrick")
    below.set(xlabel=picture.items or picture.columns, ylabel="value")
    figure.legend(loc="outside lower center", ncols=2)
    return pixels(figure)


def blank_figure() -> Any:
    """Returns an empty matplotlib figure of 640 by 400 pixels, with no window.

    Raises:
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise DependencyNotInstalled(
            "render_mode='rgb_array' needs matplotlib: pip install 'fedbandit-envs[report]'"
        ) from error
    figure = Figure(figsize=(8.0, 5.0), dpi=80, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def pixels(figure: Any) -> Array:
    """Returns the pixels of a matplotlib figure as an RGB array.

    Returns:
        uint8 ``(height, width, 3)``.
    """
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
