"""Digests of the package's source and of its data files: part of what results follow from."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from fedbandit_envs.wrappers.privacy.mechanisms.registry import MECHANISMS
from fedbandit_envs.wrappers.registry import WRAPPERS

_FLOORS = ("", ".wrappers", ".baselines", ".samba", ".leaderboard", ".papers")
ROOMS = ("runs", "reproduction", "sandbox", "board", "lab", "cli")
"""Folders of the leaderboard; each may import those before it."""

_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_KINDS = (".py", ".csv", ".json", ".npz")


@cache
def source_digest(module: str | None = None) -> str:
    """Returns the SHA-256 digest of the version and the source, as hexadecimal digits; read once a process.

    Args:
        module: Takes in only files that this module may import, so that rewriting a report keeps the runs that it
            reports on: of :data:`ROOMS` the module's own and those before it, and papers only for a paper's module,
            which may import ``reproduction`` and what is before it. A module of another package is treated like a
            paper, and its package's digest is taken in. None takes in all files of this project.
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
    """Returns the SHA-256 digest of all files of a module's top package, data and compiled ones included.

    Args:
        module: Name of the module; a module that is no package has one file.

    Raises:
        ModuleNotFoundError: There is no such package.
    """
    top = module.partition(".")[0]
    spec = find_spec(top)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {top!r}", name=top)
    digest = hashlib.sha256(top.encode())
    for root in map(Path, spec.submodule_search_locations or [spec.origin or ""]):
        files = (file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
        for file in sorted(file for file in files if "__pycache__" not in file.parts):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(root.parent)}\0{content}\0".encode())
    return digest.hexdigest()


def foreign_modules(settings: Any) -> Iterator[str]:
    """Yields the modules of other packages that JSON settings name, by ``"module:Class"`` or by a plug-in's name."""
    match settings:
        case str():
            module = settings.partition(":")[0] if _ENTRY_POINT.fullmatch(settings) else ""
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
    floor, *below = PurePosixPath(name).parts
    of_paper = module.startswith("fedbandit_envs.papers.") or is_foreign(module)
    if floor == "papers":
        return of_paper and not is_foreign(module)
    if floor != "leaderboard" or len(below) == 1:
        return True
    own = "reproduction" if of_paper else module.removeprefix("fedbandit_envs.leaderboard.").split(".")[0]
    return ROOMS.index(below[0]) <= (ROOMS.index(own) if own in ROOMS else 0)


@cache
def _files() -> Mapping[str, str]:
    """Returns the digest of every source and data file, by its name below the package."""
    found = {}
    for floor in _FLOORS:
        # In a checkout the top folders lie beside one another; installed, the others are inside of ``fedbandit_envs``.
        found_at = find_spec(f"fedbandit_envs{floor}")
        assert found_at is not None
        for path in found_at.submodule_search_locations or ():
            for file in Path(path).rglob("*"):
                if file.suffix in _KINDS and file.is_file():
                    name = PurePosixPath(floor.removeprefix("."), file.relative_to(path).as_posix())
                    found[str(name)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found
