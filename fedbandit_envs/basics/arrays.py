"""Types for annotations, arrays that are filled anew every round, and read-only views of them for callers.

Docstrings give shapes and units.
"""

from collections.abc import Callable, Collection, Mapping
from operator import is_
from os import PathLike, fspath
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

Cut = TypeVar("Cut")


def zeros(space: Mapping[str, spaces.Space], rows: tuple[int, ...], dtype: Any = None) -> Arrays:
    """Returns arrays of zeros by name, with leading axes ``rows`` and then the axes of the spaces.

    Args:
        space: Spaces by name, such as a ``Dict`` space.
        rows: The leading axes, such as ``(replicas, agents)``.
        dtype: Dtype of all arrays; None for the dtypes of the spaces.
    """
    return {name: np.zeros((*rows, *(part.shape or ())), dtype or part.dtype) for name, part in space.items()}


def everyone(*rows: int) -> Array:
    """Returns an array that marks all agents as active: True everywhere, read-only, of the shape ``rows``.

    Observations mark active agents by such arrays. Like them it is read-only, since Numba would compile each kernel a
    second time for an array that can be written to.
    """
    return Buffers({"active": np.ones(rows, np.bool_)}).views["active"]


class Buffers:
    """Named arrays, and a read-only view of each. A view shows every later write to its array.

    Each object makes its views once. A copied or unpickled object makes new ones, since a copied view would not share
    memory with the copied array.

    Attributes:
        arrays: The arrays by name. The owner writes to them in place.
        views: The read-only views by name. Callers that return them copy the dict.
    """

    def __init__(self, arrays: Arrays, agents: int = 0, shared: Collection[str] = ()) -> None:
        """Makes views of ``arrays``.

        Args:
            arrays: The arrays by name.
            agents: Number of agents that see the arrays named in ``shared``.
            shared: Names of arrays ``(replicas, ...)`` that all agents share; their views are ``(replicas, agents,
                ...)``, and take no memory.
        """
        self.arrays, self._shared = arrays, (agents, shared)
        self.views: Arrays = {}
        for name, array in arrays.items():
            view = array.view()
            if name in shared:
                view = np.broadcast_to(array[:, np.newaxis], (len(array), agents, *array.shape[1:]))
            view.flags.writeable = False
            self.views[name] = view

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return Buffers, (self.arrays, *self._shared)


def spread(each: Array, array: Array) -> Array:
    """Returns ``each`` with further axes, so that it broadcasts with ``array``, which has the same first axes."""
    return each.reshape(each.shape + (1,) * (array.ndim - each.ndim))


def stored(messages: Array) -> Array:
    """Returns inboxes without repeated entries, ``(replicas, agents or 1, senders, numbers)``.

    Args:
        messages: Inboxes ``(replicas, agents, senders, ...)``. If they are a view of :class:`Buffers` that all agents
            share, the agents' axis of the result has length 1.
    """
    once = messages[:, :1] if messages.strides[1] == 0 else messages
    return once.reshape(*once.shape[:3], -1)


class Parts(Generic[Cut]):
    """A cache of views of parts of arrays (such as one agent's), for callers that get the same arrays in every round.

    The views are made at the first call, and again when other arrays are passed. Copies and unpickled objects start
    without views, since a copied view would not follow the copied array.
    """

    def __init__(self, cut: Callable[[Mapping[str, Array]], Cut]) -> None:
        """Takes the function that makes the views.

        Args:
            cut: Maps arrays by name to views of their parts, in dicts or lists that are not written to.
        """
        self._cut = cut
        self._names: tuple[str, ...] | None = None
        self._arrays: tuple[Array, ...] = ()

    def of(self, arrays: Mapping[str, Array]) -> Cut:
        """Returns the views of the parts; the same objects as long as the arrays and their names are the same."""
        if tuple(arrays) != self._names or not all(map(is_, arrays.values(), self._arrays)):
            self._names, self._arrays = tuple(arrays), tuple(arrays.values())
            self._parts = self._cut(arrays)
        return self._parts

    def __reduce__(self) -> tuple[type, tuple[Callable[[Mapping[str, Array]], Cut]]]:
        return Parts, (self._cut,)


def plain(value: Any) -> Any:
    """Returns a setting with Python's numbers, lists and texts in place of NumPy's numbers and arrays, and of paths."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value
