"""Descriptions of the software and the machine that computed a result, for its result file."""

import os
import platform
import re
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedbandit_envs.experiments.store import source_digest

_NAME = "fedbandit-envs"


def package() -> dict[str, Any]:
    """Returns this package's version, commit and digest of its source, and (``lock``) its dependencies' versions."""
    return {"version": version(_NAME), "commit": _commit(), "source_digest": source_digest(), "lock": _lock()}


def machine() -> dict[str, Any]:
    """Returns the machine's operating system, processor, number of processors and version of Python, by name."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }


@cache
def _commit() -> str | None:
    """Returns the Git commit of the checkout that this package runs from; None if it does not run from a checkout.

    The commit ends in ``-dirty`` if files were changed since.
    """
    folder = Path(str(files("fedbandit_envs"))).parent
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None


@cache
def _lock() -> dict[str, str]:
    """Returns the versions of all direct and indirect dependencies, by lower-case name, without optional ones."""
    found: dict[str, str] = {}
    wanted = {_NAME}
    while wanted:
        name = wanted.pop()
        # Requirements may be for other platforms; such packages are not installed here and are left out.
        with suppress(PackageNotFoundError):
            found[name] = version(name)
            needed = (text for text in distribution(name).requires or () if "extra ==" not in text)
            names = {re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0].lower() for text in needed}
            wanted |= names - found.keys()
    del found[_NAME]
    return dict(sorted(found.items()))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    # Several kinds of processors may have one name, such as "AMD EPYC", and round differently.
    parts = re.search(r"^cpu family\s*: (.+)\nmodel\s*: (.+)\nmodel name\s*: (.+)$", text, re.M)
    name = platform.processor() or platform.machine()
    return name if parts is None else "{2}, family {0}, model {1}".format(*parts.groups())
