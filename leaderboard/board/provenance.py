"""Where numbers come from: package, dependencies and machine."""

import os
import platform
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.sweep.source import source_digest

_NAME = "fedbandit-envs"


def package() -> dict[str, Any]:
    """Returns the package's version, commit, digest of its source, and versions of what it needs."""
    return {
        "version": version(_NAME),
        "commit": _commit(),
        "source_digest": source_digest(),
        "lock": _lock(),
    }


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
    """Returns the commit of the checkout that the package is in, marked where files were changed; None elsewhere."""
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
    """Returns the versions of all that the package needs, without its extras."""
    found: dict[str, str] = {}
    wanted = [_NAME]
    while wanted:
        try:
            one = distribution(wanted.pop())
        except PackageNotFoundError:
            # Of another platform.
            continue
        for requirement in one.requires or ():
            name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()
            if "extra ==" not in requirement and name not in found:
                wanted.append(name)
                found |= _version(name)
    return dict(sorted(found.items()))


def _version(name: str) -> dict[str, str]:
    try:
        return {name: version(name)}
    except PackageNotFoundError:
        return {}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
