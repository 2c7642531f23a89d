"""Read-only access of a child process to the compiled Numba kernels of this package."""

import os
from collections.abc import Iterable
from pathlib import Path

from numba.core.caching import _CacheLocator


def lend(packages: Iterable[str], folder: str) -> None:
    """Links Numba's cached kernels of some packages into a folder that serves the child as its cache.

    The child compiles other kernels itself, in every episode anew.

    Args:
        packages: Folders of packages.
        folder: The child's ``NUMBA_CACHE_DIR``.
    """
    own = os.environ.get("NUMBA_CACHE_DIR")
    # A set: in an installed package, folders of the upper floors lie within that of the lowest.
    for place in sorted({path.parent for package in packages for path in Path(package).rglob("*.py")}):
        name = _CacheLocator.get_suitable_cache_subpath(str(place / "any.py"))
        cached = Path(own, name) if own else place / "__pycache__"
        into = Path(folder, name)
        into.mkdir()
        for file in [*cached.glob("*.nbi"), *cached.glob("*.nbc")]:
            (into / file.name).symlink_to(file.resolve())
