"""Arrays of small networks: read from files of any origin without running code in them, and checked."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fedbandit_envs.basics.arrays import Array

HIDDEN = -1
"""Stands in the shapes of :func:`checked_layers` for the number of hidden units."""


def read_layers(path: str | Path) -> dict[str, Array]:
    """Returns the arrays of a ``.npz`` file by name; pickled objects in it are refused.

    Args:
        path: Path of the file, or the name of a network that comes with the package.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something other than arrays of numbers and text.
    """
    packaged = Path(__file__).parent / f"{path}.npz"
    with np.load(packaged if packaged.exists() else path, allow_pickle=False) as arrays:
        return dict(arrays)


def checked_layers(
    layers: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], stacked: bool = False
) -> list[Array]:
    """Returns a network's arrays as float64, in the order of ``shapes``, after checking shapes and numbers.

    Args:
        layers: Arrays by name, among them ``last``, the weights of the hidden units for the output.
        shapes: Required shapes by name, with :data:`HIDDEN` for the length of ``last``.
        stacked: Whether arrays may have leading axes, the same for all, over several networks.

    Raises:
        ValueError: An array is missing, one has another shape, or numbers that are not finite.
    """
    missing = [name for name in shapes if name not in layers]
    if missing:
        raise ValueError(f"layers has {sorted(layers)}; {missing} are required too")
    *lead, hidden = np.shape(layers["last"])
    for name, sizes in shapes.items():
        shape = (*(lead if stacked else ()), *(hidden if size == HIDDEN else size for size in sizes))
        if np.shape(layers[name]) != shape:
            raise ValueError(f"layer {name!r} has shape {np.shape(layers[name])}; {shape} is required")
        if not np.isfinite(layers[name]).all():
            raise ValueError(f"layer {name!r} has numbers that are not finite")
    return [np.array(layers[name], np.float64) for name in shapes]
