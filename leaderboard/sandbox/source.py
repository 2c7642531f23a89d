"""The place of a submitted policy's code: a file, or an entry point."""

import importlib
import importlib.util
import inspect
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_FILE_MODULE = "submitted_entry"


@dataclass(frozen=True)
class Source:
    """The place of a callable that makes a policy.

    Attributes:
        module: Name of the module, or path of the file.
        attribute: Name of the callable; None for the only policy class of a file.
        is_file: Whether it is a file.
    """

    module: str
    attribute: str | None
    is_file: bool

    @classmethod
    def parse(cls, load: str) -> "Source":
        """Reads ``"policy.py"``, ``"policy.py:Class"`` or ``"package.module:Class"``.

        Raises:
            ValueError: It is none of them.
            FileNotFoundError: The file does not exist.
        """
        place, colon, attribute = load.rpartition(":") if ":" in load else (load, "", "")
        if place.endswith(".py"):
            path = Path(place)
            if not path.is_file():
                raise FileNotFoundError(f"load is {load!r}; there is no file {place}")
            if colon and not attribute.isidentifier():
                raise ValueError(f"load is {load!r}; 'policy.py:Class' is required")
            return cls(str(path.resolve()), attribute or None, True)
        if not all(part.isidentifier() for part in [attribute, *place.split(".")]):
            raise ValueError(
                f"load is {load!r}; 'policy.py', 'policy.py:Class' or 'module:Class' is required"
            )
        return cls(place, attribute, False)

    def roots(self) -> list[str]:
        """Returns the file or folder of an entry point's top module, found without importing it; nothing for a file.

        Raises:
            ModuleNotFoundError: The module does not exist.
        """
        if self.is_file:
            return []
        top = self.module.partition(".")[0]
        spec = importlib.util.find_spec(top)
        if spec is None:
            raise ModuleNotFoundError(f"there is no module {top!r}", name=top)
        file = [spec.origin] if spec.has_location and spec.origin else []
        return [os.path.realpath(place) for place in spec.submodule_search_locations or file][:1]

    def lent(self, folder: str) -> "Source":
        """Puts the code into a child's folder, a file as a copy and a package as a link; returns its place there."""
        if self.is_file:
            # Only this file: the child must not see the others of its folder.
            shutil.copy(self.module, Path(folder, f"{_FILE_MODULE}.py"))
            return replace(self, module=_FILE_MODULE)
        for root in self.roots():
            Path(folder, Path(root).name).symlink_to(root)
        return self

    def resolve(self) -> Any:
        """Imports the callable that makes the policy.

        Raises:
            Exception: Whatever the code raises.
            ImportError: The module does not exist.
            TypeError: The file has not exactly one policy class, or the attribute cannot be called.
        """
        # Last in the path: where the package is installed, that one is imported.
        sys.path.append(os.getcwd())
        module = importlib.import_module(self.module)
        make = _only_class(module) if self.attribute is None else getattr(module, self.attribute)
        if not callable(make):
            raise TypeError(f"{self.attribute} is {type(make).__name__}; what makes a policy is required")
        return make


def _only_class(module: Any) -> Any:
    """Returns the only public concrete class of a module that has ``reset`` and ``act``."""
    own = [
        one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__
    ]
    public = [one for one in own if not one.__name__.startswith("_") and not inspect.isabstract(one)]
    found = [one for one in public if all(callable(getattr(one, name, None)) for name in ("reset", "act"))]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        raise TypeError(f"one class with reset and act is required in the file; it has {names}")
    return found[0]
