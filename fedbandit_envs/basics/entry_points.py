"""Entry points: names of objects in modules or files that are imported only when they are used."""

import hashlib
import re
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_CACHE = "__pycache__"
# Files that Python and Numba write into a folder "__pycache__". Their names have a dot before the suffix, so that no
# statement can import them as modules.
_CACHED = re.compile(r"[^.]+\..+\.(pyc|nbi|nbc)(\.\d+)?")


def resolve(entry_point: str) -> Any:
    """Imports a module and returns one of its attributes, given ``"module:attribute"`` or ``"file.py:attribute"``.

    Raises:
        ValueError: The string is not of that form.
        ModuleNotFoundError: There is no such module or file.
        AttributeError: The module has no such attribute.
    """
    module, colon, attribute = entry_point.rpartition(":")
    if not (module and colon and attribute):
        raise ValueError(f"entry point is {entry_point!r}; 'module:attribute' is required")
    found = file_module(module) if module.endswith(".py") else import_module(module)
    if not hasattr(found, attribute):
        raise AttributeError(f"module {module!r} has no attribute {attribute!r}")
    return getattr(found, attribute)


def file_module(file: str) -> ModuleType:
    """Imports a Python file that need not be on the search path, and returns the module.

    The module's name follows from the file's path and content: a file that was changed is imported anew, and no other
    module has the name.

    Raises:
        ModuleNotFoundError: There is no such file.
        Exception: The file's code raises it.
    """
    path = Path(file).resolve()
    if not path.is_file():
        raise ModuleNotFoundError(f"there is no file {file}")
    source = path.read_bytes()
    name = f"file_{hashlib.sha256(str(path).encode() + source).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        assert spec is not None
        module = sys.modules[name] = module_from_spec(spec)
        try:
            # Bytecode in ``__pycache__`` may be older than the file by less than a second, and is not used.
            exec(compile(source, path, "exec"), vars(module))
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def package_files(module: str) -> dict[str, Path]:
    """Returns all files of the package that a module is in, without importing it.

    These are sources, compiled modules and data, and sourceless bytecode. Only what Python and Numba keep in folders
    ``__pycache__`` is left out, since it follows from the sources.

    Args:
        module: Name of the module. If it is in no package, its own file is the only one.

    Returns:
        The files' paths by their names, which begin with the package's; a package's files are in the order of their
        names. A link to a file counts as the file. Of a package in an archive the archive is the only file.

    Raises:
        ModuleNotFoundError: There is no such package.
        ValueError: A part of the package is a link to a folder, whose files would not be the package's.
    """
    top = module.partition(".")[0]
    spec = find_spec(top)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {top!r}", name=top)
    found: dict[str, Path] = {}
    own = [spec.origin] if spec.has_location and spec.origin else []
    for root in map(Path, spec.submodule_search_locations or own):
        if not root.is_dir():
            file = next(place for place in (root, *root.parents) if place.exists())
            found.setdefault(file.name, file)
            continue
        for file in sorted(root.rglob("*")):
            if file.is_dir() and file.is_symlink():
                raise ValueError(
                    f"package {top} has {file}, a link to a folder; files and folders are required"
                )
            if file.is_file() and not (file.parent.name == _CACHE and _CACHED.fullmatch(file.name)):
                found.setdefault((top / file.relative_to(root)).as_posix(), file)
    return found
