"""Digests of the package's source and data files.

Stored results are identified by them, too, so that changed code plays its runs anew.
"""

import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import version
from importlib.util import cache_from_source, find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from fedbandit_envs.basics.entry_points import file_module, package_files
from fedbandit_envs.wrappers import WRAPPERS
from fedbandit_envs.wrappers.privacy.mechanisms import MECHANISMS

_FLOORS = ("", ".wrappers", ".baselines", ".samba", ".experiments", ".leaderboard", ".papers")
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_KINDS = (".py", ".csv", ".json", ".npz")


@cache
def source_digest(module: str | None = None) -> str:
    """Returns the SHA-256 digest of this package's version and source files, in hexadecimal digits.

    The files are read once for each process.

    Args:
        module: Name of a module, to include only files that it may import; stored runs then stay valid if other files
            change. Only the leaderboard's modules and papers may import the leaderboard, and only papers may import
            papers. For a module of another package the digest of that package is included. None includes all files.
    """
    digest = hashlib.sha256(version("fedbandit-envs").encode())
    if module is not None and is_foreign(module):
        digest.update(package_digest(module).encode())
    for name, content in sorted(_files().items()):
        if module is None or _may_import(module, name):
            digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()


def is_foreign(module: str) -> bool:
    """Returns whether a module belongs to another package than this project."""
    return module.partition(".")[0] != "fedbandit_envs"


@cache
def package_digest(module: str) -> str:
    """Returns the SHA-256 digest of all files of the package that a module is in, including data and compiled files.

    Bytecode that Python keeps for a source file counts if it is not what the file compiles to and would run in its
    place; other bytecode follows from the sources and does not count.

    Args:
        module: Name of the module; if it is not in a package, its own file is the only one.

    Raises:
        ModuleNotFoundError: There is no such package.
        ValueError: A part of the package is a link to a folder.
    """
    digest = hashlib.sha256(module.partition(".")[0].encode())
    for name, file in package_files(module).items():
        counted = {name: file}
        if file.suffix == ".py" and _runs_other_code(file):
            cached = Path(cache_from_source(str(file)))
            counted[f"{name} {cached.name}"] = cached
        for of, path in counted.items():
            digest.update(f"{of}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()


class _Reader(SourceFileLoader):
    """Loads the code that an import of a source file would run, and writes no bytecode."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Writes nothing, unlike the loader that Python uses."""


def _runs_other_code(file: Path) -> bool:
    """Returns whether Python, when it imports a source file, would run bytecode that is not of this source."""
    loader = _Reader("any", str(file))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            runs = loader.get_code("any")
        # An import would fail in the same way, so that nothing would run.
        except (SyntaxError, ValueError, TypeError, EOFError, ImportError):
            return False
        try:
            return runs != loader.source_to_code(loader.get_data(str(file)), str(file))
        except (SyntaxError, ValueError):
            return True


def foreign_modules(settings: Any) -> Iterator[str]:
    """Yields the names of modules of other packages that a run's settings refer to.

    Args:
        settings: JSON data; texts in it may be an entry point ``"module:Class"`` or ``"file.py:Class"``, or the name of
            a wrapper or mechanism that another package (a plug-in) has registered.
    """
    match settings:
        case str():
            file, _, attribute = settings.rpartition(":")
            module = file if _ENTRY_POINT.fullmatch(settings) else ""
            if attribute and file.endswith(".py") and Path(file).is_file():
                module = file_module(file).__name__
            for registry in (WRAPPERS, MECHANISMS):
                if not module and registry.package(settings):
                    module = registry[settings].__module__
            if module and is_foreign(module):
                yield module
        case Mapping():
            for value in settings.values():
                yield from foreign_modules(value)
        case Sequence():
            for value in settings:
                yield from foreign_modules(value)


def _may_import(module: str, name: str) -> bool:
    floor, own = PurePosixPath(name).parts[0], module.removeprefix("fedbandit_envs.").split(".")[0]
    upper = ("leaderboard", "papers")
    if floor not in upper:
        return True
    return own in upper and upper.index(floor) <= upper.index(own)


@cache
def _files() -> Mapping[str, str]:
    """Returns the SHA-256 digest of every source and data file of this project, by its path in the package."""
    found = {}
    for floor in _FLOORS:
        # The folders are found by import name, not by path: in a checkout they are side by side, and in an installed
        # package the others are inside of ``fedbandit_envs``.
        found_at = find_spec(f"fedbandit_envs{floor}")
        assert found_at is not None
        for path in found_at.submodule_search_locations or ():
            for file in Path(path).rglob("*"):
                if file.suffix in _KINDS and file.is_file():
                    name = PurePosixPath(floor.removeprefix("."), file.relative_to(path).as_posix())
                    found[str(name)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found
