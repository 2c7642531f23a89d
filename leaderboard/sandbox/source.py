"""The place of a submitted policy's code: a file, or an entry point of an installed package."""

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
    """The place of the class or function that makes a policy.

    Attributes:
        module: Name of the module, or path of the file, that contains it.
        attribute: Its name in there; None for the only policy class of a file.
        is_file: Whether ``module`` is the path of a file.
    """

    module: str
    attribute: str | None
    is_file: bool

    @classmethod
    def parse(cls, load: str) -> "Source":
        """Returns the place that a text such as ``"policy.py:Class"`` names.

        Args:
            load: ``"policy.py"``, ``"policy.py:Class"`` or ``"package.module:Class"``.

        Raises:
            ValueError: The text has none of these forms.
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
        """Returns a list with the file or folder of the package that an entry point is in; empty for a file.

        The package is found without importing it, since importing would run its code outside of the sandbox.

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
        """Puts the code into a child process's folder, and returns its place there.

        A file is copied; a package is linked.

        Args:
            folder: The folder in which the child process runs.
        """
        if self.is_file:
            # A copy of this one file: a link to its folder would let the child read the other files in there.
            shutil.copy(self.module, Path(folder, f"{_FILE_MODULE}.py"))
            return replace(self, module=_FILE_MODULE)
        for root in self.roots():
            Path(folder, Path(root).name).symlink_to(root)
        return self

    def resolve(self) -> Any:
        """Imports and returns the class or function that makes the policy.

        Raises:
            Exception: The submitted code raises it while it is imported.
            ImportError: The module does not exist.
            TypeError: The file does not have exactly one policy class, or the attribute cannot be called.
        """
        # The folder with the submitted code is appended to the path, not put first, so that it cannot replace installed
        # modules; an installed package is imported from where it is installed.
        sys.path.append(os.getcwd())
        module = importlib.import_module(self.module)
        make = _only_class(module) if self.attribute is None else getattr(module, self.attribute)
        if not callable(make):
            raise TypeError(f"{self.attribute} is {type(make).__name__}; what makes a policy is required")
        return make


def _only_class(module: Any) -> Any:
    """Returns a module's policy class: its only public class that is not abstract and has ``reset`` and ``act``.

    Raises:
        TypeError: The module has no such class, or several.
    """
    own = [
        one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__
    ]
    public = [one for one in own if not one.__name__.startswith("_") and not inspect.isabstract(one)]
    found = [one for one in public if all(callable(getattr(one, name, None)) for name in ("reset", "act"))]
    if len(found) != 1:
        names = ", ".join(one.__name__ for one in found) or "none"
        raise TypeError(f"one class with reset and act is required in the file; it has {names}")
    return found[0]
