"""Read-only access of a child process to the compiled Numba kernels of this package."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from numba.core.caching import _CacheLocator


def lend(packages: Iterable[str], folder: str) -> None:
    """Links Numba's cached kernels of some packages into a folder that serves the child as its cache.

    The child compiles other kernels itself, in every episode anew.

    Args:
        packages: Folders of packages.
        folder: The child's ``NUMBA_CACHE_DIR``.
    """
    own = caches()
    # A set: in an installed package, folders of the upper floors lie within that of the lowest.
    for place in sorted({place for package in packages for place in _module_folders(package)}):
        name = _CacheLocator.get_suitable_cache_subpath(str(Path(place, "any.py")))
        cached = Path(own[0], name) if own else Path(place, "__pycache__")
        into = Path(folder, name)
        into.mkdir()
        for file in [*cached.glob("*.nbi"), *cached.glob("*.nbc")]:
            (into / file.name).symlink_to(file.resolve())


def _module_folders(package: str) -> Iterator[str]:
    """Yields the folders of a package that have modules."""
    for place, _, names in os.walk(package):
        if Path(place).name != "__pycache__" and any(name.endswith(".py") for name in names):
            yield place


def caches() -> list[str]:
    """Returns the folder outside of packages in which kernels are cached, if there is one."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    return [own] if own else []
