"""Digests of the package's source and of its data files: part of what results follow from."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

_FLOORS = ("", ".wrappers", ".baselines", ".samba", ".leaderboard", ".papers")
ROOMS = ("runs", "reproduction", "sandbox", "board", "lab", "cli")
"""Folders of the leaderboard; each may import those before it."""

_KINDS = (".py", ".csv", ".json", ".npz")


@cache
def source_digest(module: str | None = None) -> str:
    """Returns the SHA-256 digest of the version and the source, as hexadecimal digits; read once a process.

    Args:
        module: Takes in only files that this module may import, so that rewriting a report keeps the runs that it
            reports on: of :data:`ROOMS` the module's own and those before it, and papers only for a paper's module,
            which may import ``reproduction`` and what is before it. None takes in all files.
    """
    digest = hashlib.sha256(version("fedbandit-envs").encode())
    for name, content in sorted(_files().items()):
        if module is None or _may_import(module, name):
            digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()


def _may_import(module: str, name: str) -> bool:
    floor, *below = PurePosixPath(name).parts
    of_paper = module.startswith("fedbandit_envs.papers.")
    if floor == "papers":
        return of_paper
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
