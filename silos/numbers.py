"""The numbers in an object, by their paths: what a policy or mechanism has learned since it was reset.

An object that has been reset in the same way, and is given these numbers, goes on as the first one would. Nothing else
is stored, no code and no pickle.
"""

import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.random import Generator

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import plain
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.wrappers.privacy.accounting.event import Event

_PLAIN = (bool, int, float, str, type(None))
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
_CONSTANT = (type, np.dtype, spaces.Space, PolicySpec, bytes, Event, *_FUNCTIONS)


def numbers_of(thing: Any) -> dict[str, Any]:
    """Returns the plain values (numbers, texts, None, generators' states) and the arrays in an object, by path.

    Raises:
        UnfitError: The object has a part of which it is not known how to keep it.
    """
    kept = {}
    for path, _, _, part in _parts([("", thing)]):
        state = part.bit_generator.state if isinstance(part, Generator) else part
        kept[path] = state if isinstance(state, np.ndarray) else plain(state)
    return kept


def set_numbers(thing: Any, numbers: Mapping[str, Any]) -> None:
    """Writes what :func:`numbers_of` has returned to an object that was reset in the same way.

    Raises:
        KeyError: The object has a place without a number, or a number has no place.
        TypeError: A number in a tuple is another one.
    """
    left = dict(numbers)
    holders = [("", thing)]
    for path, holder, key, part in _parts(holders):
        kept = left.pop(path)
        if isinstance(part, np.ndarray) and isinstance(kept, np.ndarray) and part.shape == kept.shape:
            # In place, since other names may stand for the same array.
            if part.flags.writeable:
                part[...] = kept
        elif isinstance(part, Generator):
            part.bit_generator.state = kept
        elif not isinstance(holder, tuple) or kept != part:
            _items(holder)[key] = type(part)(kept) if isinstance(part, np.generic) else kept
    for path, kept in left.items():
        before, _, key = path.rpartition("/")
        _items(dict(holders)[before])[key] = kept


def _parts(holders: list[tuple[str, Any]]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yields the path of each number or text in an object, what holds it, its key there, and it, each object once.

    Args:
        holders: The object, with an empty path. All that holds something in it is added, with its path.
    """
    seen = {id(holder) for _, holder in holders}
    for path, holder in holders:
        inside = _items(holder)
        for key, part in list(inside.items() if isinstance(inside, dict) else enumerate(inside)):
            there = f"{path}/{key}" if path else str(key)
            if isinstance(part, (*_PLAIN, np.generic)):
                yield there, holder, key, part
            elif id(part) in seen or isinstance(part, _CONSTANT):
                continue
            elif isinstance(part, Generator) or (isinstance(part, np.ndarray) and not part.dtype.hasobject):
                seen.add(id(part))
                yield there, holder, key, part
            elif isinstance(part, list | tuple | dict) or hasattr(part, "__dict__"):
                seen.add(id(part))
                holders.append((there, part))
            else:
                raise UnfitError(
                    f"{type(holders[0][1]).__name__} has {there!r}, a {type(part).__name__}; arrays, numbers, texts, "
                    "and lists, dicts and objects of them, are required of what a silo keeps"
                )


def _items(holder: Any) -> Any:
    """Returns what has the parts of a list, tuple, dict or object by index or name."""
    return holder if isinstance(holder, list | tuple | dict) else vars(holder)
