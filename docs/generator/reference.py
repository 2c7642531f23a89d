"""The reference: every public name of every module, a page a folder."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from generator.folder import Folder
from generator.markup import first_sentence, reference_to, table, toctree

FOLDERS = ("wrappers", "baselines", "samba", "silos", "experiments", "functional", "leaderboard", "papers")
"""Folders that the reference describes beside the environments'. Commands have their `--help`."""


def modules() -> list[str]:
    """Returns the names of all modules of the package, without those of commands."""
    # Folder by folder: an editable install does not list the others among the modules of `fedbandit_envs`.
    folders = ["fedbandit_envs", *(f"fedbandit_envs.{folder}" for folder in FOLDERS)]
    inside = (name for folder in folders for name in _walk(importlib.import_module(folder)))
    return sorted({*folders, *inside})


def _walk(package: ModuleType) -> Iterator[str]:
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name.split(".")[1] in ("__main__", "cli", "lab"):
            continue
        yield found.name
        if found.ispkg:
            yield from _walk(importlib.import_module(found.name))


def write(folder: Folder, docs: Path) -> None:
    """Writes the pages and their index."""
    names = modules()
    # Modules are not imported here: Sphinx does that, with stand-ins for what may be missing.
    packages = [name for name in names if getattr(find_spec(name), "submodule_search_locations", None)]
    for package in packages:
        inside = [name for name in names if name.rpartition(".")[0] == package and name not in packages]
        folder.write(f"reference/{package}.rst", _page(package, inside))
    index = [
        "# Reference",
        "What a package says it has (`__all__`) comes first on its page; modules that it is made of follow.",
        table(
            ["package", "what is in it"],
            [
                [f"[{package}]({package}.rst)", first_sentence(importlib.import_module(package))]
                for package in packages
            ],
        ),
        toctree(f"{package.removeprefix('fedbandit_envs.')} <{package}>" for package in packages),
    ]
    folder.write("reference/index.md", "\n\n".join(index) + "\n")


def _described(module: ModuleType) -> list[tuple[str, Any]]:
    """Returns the public classes and functions that a module has, wherever they are defined."""
    return [
        (name, thing)
        for name, thing in vars(module).items()
        if not name.startswith("_") and (inspect.isclass(thing) or inspect.isfunction(thing))
    ]


def _page(package: str, inside: list[str]) -> str:
    module = importlib.import_module(package)
    own = [name for name, thing in _described(module) if thing.__module__ == package]
    members = f"   :members: {', '.join(own)}" if own else "   :no-members:"
    lines = [package, "=" * len(package), "", f".. automodule:: {package}", members, ""]
    for name, thing in _described(module):
        if name in getattr(module, "__all__", ()) and name not in own:
            role = reference_to(thing).replace("{py:", ":py:").replace("}", ":")
            lines += [f"* {role}: {first_sentence(thing)}"]
    for name in inside:
        title = name.rpartition(".")[2]
        lines += ["", title, "-" * len(title), "", f".. automodule:: {name}"]
    return "\n".join(lines) + "\n"
