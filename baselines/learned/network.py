"""A small neural network that computes one number for each item (producer or arm), without a deep-learning library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines.learned.layers import HIDDEN, checked_layers, read_layers
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import allocating_kernel

LAYERS = ("own", "pooled", "shared", "first_bias", "middle", "middle_bias", "last", "last_bias")
"""Names of a network's arrays of weights and biases, in the order of ``_forward``'s arguments.

Matrices have the shape (inputs, outputs).
"""


@allocating_kernel
def _forward(
    each, once, own, pooled, shared, first_bias, middle, middle_bias, last, last_bias, output
):  # fmt: skip
    """Writes the network's output for every item of every row; a row is an agent of a replica.

    Args:
        each: Features of the items, ``(rows, items, inputs)``.
        once: Features of the row as a whole, ``(rows, shared inputs)``.
        own: Weights of the first layer for an item's own features, ``(inputs, hidden)``.
        pooled: Weights of the first layer for the means of features over all items, same shape.
        shared: Weights of the first layer for the features of the row, ``(shared inputs, hidden)``.
        first_bias: Biases of the first layer, ``(hidden,)``.
        middle: Weights of the second layer, ``(hidden, hidden)``.
        middle_bias: Biases of the second layer, ``(hidden,)``.
        last: Weights of the output, ``(hidden,)``.
        last_bias: Bias of the output, ``(1,)``.
        output: Receives the outputs, ``(rows, items)``.
    """
    rows, items, inputs = each.shape
    hidden = last.shape[0]
    common, first, second = np.empty(hidden), np.empty(hidden), np.empty(hidden)
    for r in range(rows):
        for h in range(hidden):
            common[h] = first_bias[h]
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
            for h in range(hidden):
                first[h], second[h] = common[h], middle_bias[h]
            for k in range(inputs):
                for h in range(hidden):
                    first[h] += each[r, i, k] * own[k, h]
            for g in range(hidden):
                if first[g] > 0.0:
                    for h in range(hidden):
                        second[h] += first[g] * middle[g, h]
            value = last_bias[0]
            for h in range(hidden):
                value += max(second[h], 0.0) * last[h]
            output[r, i] = value


class ItemNetwork:
    """A network that computes one number for each item, an arm or a producer, from features of all items.

    Two hidden layers of rectified linear units are applied to each item's features, the means of the features over all
    items, and features that belong to the agent and not to an item. The output is equivariant: a permutation of the
    items permutes it (Zaheer et al., Deep Sets, NeurIPS 2017).

    Attributes:
        each: Names of the features of an item, see :class:`~fedbandit_envs.core.policy_spec.Features`.
        once: Names of the features that belong to the agent as a whole.

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
        """Makes a network from its weights.

        Args:
            each: Names of the features of an item.
            once: Names of the features that belong to the agent as a whole.
            layers: Arrays of weights and biases, by the names in :data:`LAYERS`.

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
            ValueError: The file does not hold a network.
        """
        layers = read_layers(path)
        each, once = (tuple(map(str, layers.pop(key, ()))) for key in ("each_names", "once_names"))
        return cls(each, once, layers)

    def save(self, path: str | Path) -> None:
        """Writes the network to a ``.npz`` file of float32 arrays, which :meth:`load` reads."""
        arrays: dict[str, Any] = {"each_names": np.array(self.each), "once_names": np.array(self.once)}
        arrays |= {name: layer.astype(np.float32) for name, layer in zip(LAYERS, self._layers, strict=True)}
        np.savez(path, **arrays)

    def __call__(self, each: Array, once: Array) -> Array:
        """Returns one number for each item; an agent's numbers depend on the features of that agent alone.

        Args:
            each: Features of the items, float32 ``(..., items, len(self.each))``.
            once: Features that belong to the agents as a whole, float32 ``(..., len(self.once))``.

        Returns:
            The network's outputs, float64 ``(..., items)``.
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
