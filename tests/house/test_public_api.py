"""What users may rely on: names that packages export, with their arguments, ids with their settings, and commands.

`python tests/house/test_public_api.py > tests/house/public_api.txt` writes it down anew. A line that changes or goes is
a change that users see: it needs a line in the changelog and, from 1.0 on, a minor version in which the old name warns.
"""

import importlib
import inspect
import json
import re
import sys
from pathlib import Path

import typer

WRITTEN = Path(__file__).with_name("public_api.txt")
PROBLEMS = ("arms_v0", "exposure_v0", "gaussian_v0", "linear_v0", "procurement_v0")
PACKAGES = (
    "",
    "baselines",
    "experiments",
    "functional",
    "leaderboard",
    "samba",
    "silos",
    "testing",
    "views",
    "wrappers",
    *PROBLEMS,
)


def arguments(thing):
    """The names of a callable's arguments, those with a default in brackets; nothing else has any."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown = []
    for one in parameters:
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        optional = not stars and one.default is not one.empty
        shown.append(f"[{one.name}]" if optional else f"{stars}{one.name}")
    return f"({', '.join(shown)})"


def exported():
    for package in PACKAGES:
        module = importlib.import_module(f"fedbandit_envs.{package}".rstrip("."))
        own = [
            name
            for name, thing in vars(module).items()
            if getattr(thing, "__module__", "") == module.__name__
        ]
        if package in PROBLEMS:
            own = ["env", "parallel_env", "raw_env"]
        names = getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]
        for name in sorted(names):
            yield f"{module.__name__}.{name}{arguments(getattr(module, name))}"


def ids():
    from fedbandit_envs import REGISTRY
    from fedbandit_envs.basics.entry_points import resolve

    for federation in dict.fromkeys(entry.federation for entry in REGISTRY.values()):
        yield f"{federation}{arguments(resolve(federation))}"
    for name, entry in REGISTRY.items():
        settings = json.dumps({"kwargs": entry.kwargs, "stack": entry.stack}, sort_keys=True, default=str)
        yield f"{name} {entry.federation} {settings}"


def commands():
    from fedbandit_envs.cli import app

    def walk(command, name):
        names = getattr(command, "list_commands", lambda context: [])(None)
        inside = {name: command.get_command(None, name) for name in names}
        if not inside:
            options = [
                option
                for one in command.params
                for option in one.opts
                if one.name not in ("help", "install_completion")
            ]
            yield " ".join([name, *sorted(options)])
        for word, one in sorted(inside.items()):
            yield from walk(one, f"{name} {word}")

    yield from walk(typer.main.get_command(app), "fedbandit")


def current():
    lines = [*exported(), *ids(), *commands()]
    # Addresses of default values in memory.
    return [re.sub(r" at 0x[0-9a-f]+", "", line) for line in lines]


def test_what_users_rely_on_is_as_it_was_written_down():
    assert current() == WRITTEN.read_text().splitlines(), "see the first lines of this file"


if __name__ == "__main__":
    sys.stdout.write("\n".join(current()) + "\n")
