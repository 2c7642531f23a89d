"""Where numbers were computed: package, dependencies and machine."""

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

from fedbandit_envs.leaderboard.runs.source import source_digest

_NAME = "fedbandit-envs"


def package() -> dict[str, Any]:
    """Returns the package's version, commit, digest of its source, and versions of its dependencies."""
    return {"version": version(_NAME), "commit": _commit(), "source_digest": source_digest(), "lock": _lock()}


def machine() -> dict[str, Any]:
    """Returns system, processor, number of processors and version of Python."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }


@cache
def _commit() -> str | None:
    """Returns the commit of the checkout that the package is in, marked if files were changed; None elsewhere."""
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
    """Returns the versions of all dependencies and theirs, without those of extras, by lower-case name."""
    found: dict[str, str] = {}
    wanted = {_NAME}
    while wanted:
        name = wanted.pop()
        # A requirement of another platform is not installed.
        with suppress(PackageNotFoundError):
            found[name] = version(name)
            needed = (text for text in distribution(name).requires or () if "extra ==" not in text)
            names = {re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0].lower() for text in needed}
            wanted |= names - found.keys()
    del found[_NAME]
    return dict(sorted(found.items()))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*:\s*(.+)$", info.read_text(), re.M) if info.exists() else []
    return models[0].strip() if models else platform.processor() or platform.machine()
