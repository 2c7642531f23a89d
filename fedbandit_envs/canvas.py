"""Figures that become RGB arrays, for environments that render."""

from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from fedbandit_envs.arrays import Array


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
    """Draws a figure.

    Returns:
        uint8 ``(height, width, 3)``.
    """
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
