"""The place of a submitted policy's code: a file, or an entry point of an installed package."""

import importlib
import inspect
import os
import shutil
import sys
from dataclasses import dataclass, replace
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

from fedbandit_envs.basics.entry_points import package_files

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
    def parse(cls, policy: str) -> "Source":
        """Returns the place that a text such as ``"policy.py:Class"`` names.

        Args:
            policy: ``"policy.py"``, ``"policy.py:Class"`` or ``"package.module:Class"``.

        Raises:
            ValueError: The text has none of these forms.
            FileNotFoundError: The file does not exist.
        """
        place, colon, attribute = policy.rpartition(":") if ":" in policy else (policy, "", "")
        if place.endswith(".py"):
            path = Path(place)
            if not path.is_file():
                raise FileNotFoundError(f"policy is {policy!r}; there is no file {place}")
            if colon and not attribute.isidentifier():
                raise ValueError(f"policy is {policy!r}; 'policy.py:Class' is required")
            return cls(str(path.resolve()), attribute or None, True)
        if not all(part.isidentifier() for part in [attribute, *place.split(".")]):
            raise ValueError(
                f"policy is {policy!r}; 'policy.py', 'policy.py:Class' or 'module:Class' is required"
            )
        return cls(place, attribute, False)

    def files(self) -> dict[str, Path]:
        """Returns the files of the code by the names that they get in a child process's folder.

        These are the file, or all files of the package that an entry point is in (:func:`package_files`), which is not
        imported, since importing would run its code outside of the sandbox.

        Raises:
            ModuleNotFoundError: The module does not exist.
            ValueError: The package is in an archive, or a part of it is a link to a folder.
        """
        if self.is_file:
            return {f"{_FILE_MODULE}.py": Path(self.module)}
        files = package_files(self.module)
        for name, file in files.items():
            if "/" not in name and not name.endswith(tuple(all_suffixes())):
                raise ValueError(f"module {self.module} is in {file}; a package of files is required")
        return files

    def lent(self, folder: str) -> "Source":
        """Copies the code into a child process's folder, and returns its place there.

        The child gets the files that the digest of an entry covers and no others, such as bytecode that Python keeps
        beside the sources. This package is not copied, since every child can read it where it is installed.

        Args:
            folder: The folder in which the child process runs.
        """
        top = self.module.partition(".")[0]
        if self.is_file or top != __name__.partition(".")[0]:
            for name, file in self.files().items():
                copy = Path(folder, name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        if Path(folder, top).is_dir():
            # Of a package without this file, other folders in the child's search path could have parts, too.
            Path(folder, top, "__init__.py").touch()
        return replace(self, module=_FILE_MODULE) if self.is_file else self

    def resolve(self) -> Any:
        """Imports and returns the class or function that makes the policy.

        Raises:
            Exception: The submitted code raises it while it is imported.
            ImportError: The module does not exist.
            TypeError: The file does not have exactly one policy class, or the attribute cannot be called.
        """
        # The folder is searched first, since an installed package has more files than were copied. The child has by now
        # imported all modules of this project that it needs, so that the submitted code cannot replace them.
        sys.path.insert(0, os.getcwd())
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
