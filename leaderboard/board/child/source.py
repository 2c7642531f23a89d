"""Where a submitted policy's code is: in a file, or behind an entry point."""

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
    """Code that makes a policy.

    Attributes:
        module: Name of the module; of a file, the file.
        attribute: What makes the policy; None for the one policy class of a file.
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
            FileNotFoundError: There is no such file.
        """
        place, colon, attribute = load.rpartition(":")
        if not colon:
            place, attribute = load, ""
        if place.endswith(".py"):
            path = Path(place)
            if not path.is_file():
                raise FileNotFoundError(f"load is {load!r}; there is no file {place}")
            if colon and not attribute.isidentifier():
                raise ValueError(f"load is {load!r}; 'policy.py:Class' is required")
            return cls(str(path.resolve()), attribute or None, True)
        if not attribute.isidentifier() or not all(part.isidentifier() for part in place.split(".")):
            raise ValueError(
                f"load is {load!r}; 'policy.py', 'policy.py:Class' or 'module:Class' is required"
            )
        return cls(place, attribute, False)

    def roots(self) -> list[str]:
        """Returns where the code of an entry point is, a file or a folder if any, found without running any of it.

        Raises:
            ModuleNotFoundError: There is no such module.
        """
        if self.is_file:
            return []
        top = self.module.partition(".")[0]
        spec = importlib.util.find_spec(top)
        if spec is None:
            raise ModuleNotFoundError(f"there is no module {top!r}", name=top)
        places = spec.submodule_search_locations or (
            [spec.origin] if spec.has_location and spec.origin else []
        )
        return [os.path.realpath(place) for place in places][:1]

    def lent(self, folder: str) -> "Source":
        """Puts the code where a child finds it: in the child's folder, a file as a copy, a package as a link."""
        if self.is_file:
            # Nothing else of the folder in which it lies is shown to the child.
            return replace(self, module=str(shutil.copy(self.module, Path(folder, "entry.py"))))
        for root in self.roots():
            Path(folder, Path(root).name).symlink_to(root)
        return self

    def resolve(self) -> Any:
        """Imports what makes the policy.

        Raises:
            Exception: Whatever its code raises.
            ImportError: There is no such thing.
            TypeError: It is not one policy class, or cannot be called.
        """
        if self.is_file:
            spec = importlib.util.spec_from_file_location(_FILE_MODULE, self.module)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[_FILE_MODULE] = module
            spec.loader.exec_module(module)
        else:
            # Behind all others: where the package is installed, that is what is imported.
            sys.path.append(os.getcwd())
            module = importlib.import_module(self.module)
        make = self._only_class(module) if self.attribute is None else getattr(module, self.attribute)
        if not callable(make):
            raise TypeError(f"{self.attribute} is {type(make).__name__}; what makes a policy is required")
        return make

    @staticmethod
    def _only_class(module: Any) -> Any:
        found = [
            one
            for one in vars(module).values()
            if isinstance(one, type)
            and one.__module__ == module.__name__
            and not one.__name__.startswith("_")
            and not inspect.isabstract(one)
            and all(callable(getattr(one, method, None)) for method in ("reset", "act"))
        ]
        if len(found) != 1:
            names = ", ".join(one.__name__ for one in found) or "none"
            raise TypeError(f"one class with reset and act is required in the file; it has {names}")
        return found[0]
