"""Checks of a network's arrays, read from files that anybody may have written."""

from collections.abc import Mapping, Sequence

import numpy as np

from fedbandit_envs.arrays import Array


def require_names(layers: Mapping[str, Array], names: Sequence[str]) -> None:
    """Requires an array by each of the names.

    Raises:
        ValueError: One is missing.
    """
    missing = [name for name in names if name not in layers]
    if missing:
        raise ValueError(f"layers has {sorted(layers)}; {missing} are required too")


def require_shapes(layers: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Requires arrays of these shapes, of finite numbers.

    Raises:
        ValueError: One has another shape, or numbers that are not finite.
    """
    for name, shape in shapes.items():
        if np.shape(layers[name]) != shape:
            raise ValueError(f"layer {name!r} has shape {np.shape(layers[name])}; {shape} is required")
        if not np.isfinite(layers[name]).all():
            raise ValueError(f"layer {name!r} has numbers that are not finite")
