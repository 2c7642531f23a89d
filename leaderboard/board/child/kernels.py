"""Lends the compiled kernels of this package to a child, which can read them and write to none."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from numba.core.caching import _CacheLocator


def lend(packages: Iterable[str], folder: str) -> None:
    """Links what Numba has cached of some packages into a folder that is a cache of its own.

    What is not there is compiled by the child, in every episode anew.

    Args:
        packages: Folders of packages.
        folder: The child's ``NUMBA_CACHE_DIR``.
    """
    own = caches()
    # Once each: installed, the upper floors lie within the lowest.
    for place in sorted({place for package in packages for place in _modules(package)}):
        called = _CacheLocator.get_suitable_cache_subpath(str(Path(place, "any.py")))
        cached = Path(own[0], called) if own else Path(place, "__pycache__")
        into = Path(folder, called)
        into.mkdir()
        for file in [*cached.glob("*.nbi"), *cached.glob("*.nbc")]:
            (into / file.name).symlink_to(file.resolve())


def _modules(package: str) -> Iterator[str]:
    """Yields the folders of a package that have modules."""
    for place, _, names in os.walk(package):
        if Path(place).name != "__pycache__" and any(name.endswith(".py") for name in names):
            yield place


def caches() -> list[str]:
    """Returns folders, outside of packages, in which kernels lie."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    return [own] if own else []
