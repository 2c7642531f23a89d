"""A small neural network for items (producers, arms) alike, evaluated without a deep-learning library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines.learned.layers import HIDDEN, checked_layers, read_layers
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel

LAYERS = ("own", "pooled", "shared", "first_bias", "middle", "middle_bias", "last", "last_bias")
"""Names of a network's arrays, in the order in which kernels take them; matrices are (inputs, outputs)."""


@kernel
def _forward(
    each, once, own, pooled, shared, first_bias, middle, middle_bias, last, last_bias, output
):  # fmt: skip
    """Writes the network's output for every item of every row.

    Args:
        each: Features of items, ``(rows, items, inputs)``.
        once: Features of the row, ``(rows, shared inputs)``.
        own: First layer's weights of an item's own features, ``(inputs, hidden)``.
        pooled: Weights of the features' means over items, same shape.
        shared: Weights of the row's features, ``(shared inputs, hidden)``.
        first_bias: ``(hidden,)``.
        middle: ``(hidden, hidden)``.
        middle_bias: ``(hidden,)``.
        last: ``(hidden,)``.
        last_bias: ``(1,)``.
        output: Receives ``(rows, items)``.
    """
    rows, items, inputs = each.shape
    hidden = last.shape[0]
    common, first, second = np.empty(hidden), np.empty(hidden), np.empty(hidden)
    for r in range(rows):
        common[:] = first_bias
        for k in range(inputs):
            mean = 0.0
            for i in range(items):
                mean += each[r, i, k]
            mean /= items
            for h in range(hidden):
                common[h] += mean * pooled[k, h]
        for k in range(once.shape[1]):
            for h in range(hidden):
                common[h] += once[r, k] * shared[k, h]
        for i in range(items):
            first[:] = common
            for k in range(inputs):
                for h in range(hidden):
                    first[h] += each[r, i, k] * own[k, h]
            second[:] = middle_bias
            for g in range(hidden):
                if first[g] > 0.0:
                    for h in range(hidden):
                        second[h] += first[g] * middle[g, h]
            value = last_bias[0]
            for h in range(hidden):
                value += max(second[h], 0.0) * last[h]
            output[r, i] = value


class ItemNetwork:
    """Two hidden layers of rectified linear units, applied to each item's features and to their means over all items.

    The output is equivariant: a permutation of the items permutes it (Zaheer et al., Deep Sets, NeurIPS 2017).

    Attributes:
        each: Names of the features of an item, see :class:`~fedbandit_envs.core.features.Features`.
        once: Names of the features of the row.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.learned import ItemNetwork
        >>> shapes = {"own": (1, 2), "pooled": (1, 2), "shared": (1, 2), "first_bias": (2,), "middle": (2, 2)}
        >>> shapes |= {"middle_bias": (2,), "last": (2,), "last_bias": (1,)}
        >>> network = ItemNetwork(("estimate",), ("left",), {name: np.ones(shape) for name, shape in shapes.items()})
        >>> network(np.zeros((3, 1), np.float32), np.zeros(1, np.float32))
        array([7., 7., 7.])
    """

    def __init__(self, each: tuple[str, ...], once: tuple[str, ...], layers: Mapping[str, Array]) -> None:
        """Makes a network from its arrays.

        Args:
            each: Names of the features of an item.
            once: Names of the features of the row.
            layers: Arrays by the names :data:`LAYERS`.

        Raises:
            ValueError: An array is missing or of a wrong shape, or a number is not finite.
        """
        inputs = {"own": len(each), "pooled": len(each), "shared": len(once), "middle": HIDDEN}
        shapes = {name: (inputs[name], HIDDEN) if name in inputs else (HIDDEN,) for name in LAYERS}
        self.each = each
        self.once = once
        self._layers = checked_layers(layers, {**shapes, "last_bias": (1,)})

    @classmethod
    def load(cls, path: str | Path) -> "ItemNetwork":
        """Reads a network that :meth:`save` wrote; no code in the file is executed.

        Args:
            path: Path of the file, or the name of a network that comes with the package.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: It does not hold a network.
        """
        layers = read_layers(path)
        each, once = (tuple(map(str, layers.pop(key, ()))) for key in ("each_names", "once_names"))
        return cls(each, once, layers)

    def save(self, path: str | Path) -> None:
        """Writes the network as a ``.npz`` file of float32 arrays."""
        arrays: dict[str, Any] = {"each_names": np.array(self.each), "once_names": np.array(self.once)}
        arrays |= {name: layer.astype(np.float32) for name, layer in zip(LAYERS, self._layers, strict=True)}
        np.savez(path, **arrays)

    def __call__(self, each: Array, once: Array) -> Array:
        """Returns one number an item; each row's numbers depend on that row alone.

        Args:
            each: Features of items, float32 ``(..., items, len(self.each))``.
            once: Features of rows, float32 ``(..., len(self.once))``.

        Returns:
            float64 ``(..., items)``.
        """
        output = np.empty(each.shape[:-1])
        items, inputs = each.shape[-2:]
        _forward(
            np.ascontiguousarray(each, np.float64).reshape(-1, items, inputs),
            np.ascontiguousarray(once, np.float64).reshape(-1, once.shape[-1]),
            *self._layers,
            output.reshape(-1, items),
        )
        return output
