"""Files of a network's arrays, which may be of any origin: no code in them is executed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedbandit_envs.basics.arrays import Array


def network_file(path: str | Path) -> Path:
    """Returns the path of a network: of a packaged one by its name, else the path itself."""
    packaged = Path(__file__).parent / f"{path}.npz"
    return packaged if packaged.exists() else Path(path)


def require_names(layers: Mapping[str, Array], names: Sequence[str]) -> None:
    """Checks that an array of each name is there.

    Raises:
        ValueError: One is missing.
    """
    missing = [name for name in names if name not in layers]
    if missing:
        raise ValueError(f"layers has {sorted(layers)}; {missing} are required too")


def require_shapes(layers: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Checks that arrays have these shapes and finite numbers.

    Raises:
        ValueError: One has another shape, or numbers that are not finite.
    """
    for name, shape in shapes.items():
        if np.shape(layers[name]) != shape:
            raise ValueError(f"layer {name!r} has shape {np.shape(layers[name])}; {shape} is required")
        if not np.isfinite(layers[name]).all():
            raise ValueError(f"layer {name!r} has numbers that are not finite")
