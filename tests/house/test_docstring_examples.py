"""Examples of docstrings run and print what they say; every class that users construct has one."""

import doctest
import re
from importlib import import_module
from inspect import getmro, isabstract
from pathlib import Path

import pytest
from tree import FILES, installed_name, short
from wide_intervals import wide_intervals as wide_intervals

from fedbandit_envs import REGISTRY, leaderboard, wrappers
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.wrappers import WRAPPERS

# The view for SB3 imports networks for seconds; ordinary runs check what its example says in its own tests.
WITH_EXAMPLES = [
    pytest.param(path, marks=pytest.mark.ci if path.stem == "sb3" else ())
    for path in FILES
    if ">>> " in path.read_text()
]
VIEWS = ("gymnasium_env:FederationEnv", "gymnasium_env:FederationVectorEnv", "parallel:ParallelView")


@pytest.mark.usefixtures("wide_intervals")
@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=short)
def test_examples_print_what_they_say(path):
    try:
        module = import_module(installed_name(path))
    except ModuleNotFoundError as error:
        # A library of an extra may lack; a module of this package may not.
        if (error.name or "fedbandit_envs").startswith("fedbandit_envs"):
            raise
        pytest.skip(f"{error.name} is not installed")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, out=said.append)
    assert runner.tries > 0, "the text has examples that are in no docstring"
    assert runner.failures == 0, "".join(said)


def classes_in(package):
    """The public classes that are defined in the modules of a package."""
    folder = getattr(package, "__path__", None)
    for path in sorted(Path(folder[0]).glob("*.py")) if folder else [Path("__init__.py")]:
        module = import_module(package.__name__ + ("" if path.stem == "__init__" else f".{path.stem}"))
        for name, thing in vars(module).items():
            if isinstance(thing, type) and thing.__module__ == module.__name__ and not name.startswith("_"):
                yield thing


PACKAGES = (
    "fedbandit_envs.wrappers.privacy.mechanisms",
    "fedbandit_envs.baselines.aggregators",
    "fedbandit_envs.baselines.servers",
)


def is_protocol(kind):
    return getattr(kind, "_is_protocol", False)


def constructed():
    """The classes that users construct, or get as results."""
    yield from {resolve(entry.federation) for entry in REGISTRY.values()}
    yield from (resolve(f"fedbandit_envs.views.{view}") for view in VIEWS)
    yield from WRAPPERS.values()
    for baseline in BASELINES.values():
        yield type(baseline.make_policy())
    for package in PACKAGES:
        yield from classes_in(import_module(package))
    for module in (wrappers, leaderboard):
        public = (getattr(module, name) for name in getattr(module, "__all__", ()))
        yield from (thing for thing in public if isinstance(thing, type))


def test_what_users_construct_has_an_example():
    for kind in set(constructed()):
        if isabstract(kind) or is_protocol(kind) or Exception in getmro(kind):
            continue
        if not kind.__module__.startswith("fedbandit_envs."):
            continue
        said = vars(kind).get("__doc__") or ""
        assert re.search(r"Example[s]?:?\n(.|\n)*>>> ", said), (
            f"{kind.__module__}.{kind.__qualname__} has no Example"
        )
