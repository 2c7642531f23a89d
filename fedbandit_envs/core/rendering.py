"""Matplotlib figures without a window, converted to RGB arrays, for rendering."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from fedbandit_envs.basics.arrays import Array


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


def heatmap_above_bars(
    cells: Array, labels: Sequence[str], colorbar: str, share_columns: bool = False, **limits: float
) -> tuple[Any, Any, Any]:
    """Returns a figure with a heatmap, which has a row for each agent, and empty axes below it.

    Args:
        cells: The heatmap's numbers, ``(agents, columns)``.
        labels: Label of each agent's row.
        colorbar: Label of the color bar.
        share_columns: Whether the axes below have the same horizontal axis as the heatmap.
        **limits: ``vmin`` and ``vmax`` of the colors.

    Returns:
        The figure, the heatmap's axes and the axes below.
    """
    figure = blank_figure()
    above, below = figure.subplots(2, 1, sharex=share_columns, height_ratios=(max(len(cells), 4), 8))
    image = above.imshow(cells, cmap="viridis", aspect="auto", interpolation="nearest", **limits)
    figure.colorbar(image, ax=above, label=colorbar)
    above.set_yticks(range(len(cells)), labels)
    return figure, above, below
