"""Which code results follow from: a digest of the package's source, and of the data that lies in it."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

_FLOORS = ("", ".wrappers", ".baselines", ".leaderboard")
ROOMS = ("sweep", "reproduction", "board", "lab", "cli")
"""Of the leaderboard; each may import those before it."""

_KINDS = (".py", ".csv", ".json", ".npz")


@cache
def source_digest(module: str | None = None) -> str:
    """Returns the SHA-256 digest of the version and the source, as hexadecimal digits; read once a process.

    Args:
        module: Takes in only what code of this module may import. Of the leaderboard's rooms that is the one in which
            it lies, and those below: so whoever rewrites a report keeps the runs that it reports on. None takes in all.
    """
    digest = hashlib.sha256(version("fedbandit-envs").encode())
    for name, content in sorted(_files().items()):
        if module is None or _may_import(module, name):
            digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()


def _may_import(module: str, name: str) -> bool:
    parts = PurePosixPath(name).parts
    if parts[0] != "leaderboard" or len(parts) == 2:
        return True
    own = module.removeprefix("fedbandit_envs.leaderboard.").split(".")[0]
    return ROOMS.index(parts[1]) <= (ROOMS.index(own) if own in ROOMS else 0)


@cache
def _files() -> Mapping[str, str]:
    """Returns digests of all files, by their names below the package."""
    found = {}
    for floor in _FLOORS:
        # In a checkout the floors lie beside one another, and installed one within the other.
        found_at = find_spec(f"fedbandit_envs{floor}")
        assert found_at is not None
        for path in found_at.submodule_search_locations or ():
            for file in Path(path).rglob("*"):
                if file.suffix in _KINDS and file.is_file():
                    name = PurePosixPath(floor.removeprefix("."), file.relative_to(path).as_posix())
                    found[str(name)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found
