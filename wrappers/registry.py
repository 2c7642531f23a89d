"""Wrappers by name, collected from the modules of this floor: whoever adds a wrapper edits no list."""

from importlib import import_module
from inspect import isabstract
from pkgutil import walk_packages

from fedbandit_envs import wrappers
from fedbandit_envs.wrapper import FederatedWrapper

WRAPPERS: dict[str, type[FederatedWrapper]] = {}
"""Every wrapper of this package that stands by itself, by name: public, and not abstract."""


def _fail(name: str) -> None:
    """Lets errors of imports through, which a walk would swallow."""
    raise


for _found in walk_packages(wrappers.__path__, f"{wrappers.__name__}.", onerror=_fail):
    for _name, _thing in vars(import_module(_found.name)).copy().items():
        # Only where it is defined: other modules import it.
        _own = isinstance(_thing, type) and _thing.__module__ == _found.name and _thing.__name__ == _name
        if (
            not _own
            or not issubclass(_thing, FederatedWrapper)
            or isabstract(_thing)
            or _name.startswith("_")
        ):
            continue
        if _name in WRAPPERS:
            raise ValueError(
                f"{_found.name} has a wrapper {_name!r}, as {WRAPPERS[_name].__module__} has already; another name is "
                "required"
            )
        WRAPPERS[_name] = _thing
