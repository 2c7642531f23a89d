"""The site's pages can be made where only those extras are installed that CONTRIBUTING.md names."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What making the pages does with the package, without the rollouts: it writes the reference, imports all that this
# describes, and makes every environment. Sphinx replaces what `autodoc_mock_imports` names: that may be missing.
MAKES = """
import importlib, runpy, sys
from pathlib import Path

for name in sys.argv[2].split(","):
    sys.modules[name] = None
conf = runpy.run_path(str(Path(sys.argv[1]) / "conf.py"))
from generator import Folder, reference
import fedbandit_envs
import gymnasium

reference.write(Folder(Path(sys.argv[3])), Path(sys.argv[1]))
for name in reference.modules():
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] not in conf["autodoc_mock_imports"]:
            raise
for env_id in fedbandit_envs.REGISTRY.own:
    gymnasium.make(env_id)
"""


def named():
    """Extras with which the site is built, as CONTRIBUTING.md has them."""
    (words,) = re.findall(r"With the extras (.*?):\s`sphinx-build", (ROOT / "CONTRIBUTING.md").read_text())
    return re.findall(r"`(\w+)`", words)


def modules(extras):
    """Modules that extras install; one that is not installed is taken to have its distribution's name."""
    every = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {re.match(r"[\w-]+", one)[0] for extra in extras(every) for one in every[extra]}
    brought = {module: wanted.intersection(by) for module, by in packages_distributions().items()}
    absent = wanted.difference(*brought.values())
    return {module for module, by in brought.items() if by} | {name.replace("-", "_") for name in absent}


@pytest.mark.ci
def test_the_site_needs_no_extras_but_those_that_are_named(tmp_path):
    pytest.importorskip("sklearn", reason="the extra 'data' is not installed")
    there = modules(lambda every: named())
    blocked = modules(lambda every: every) - there
    assert {"stable_baselines3", "marimo", "mabwiser"} <= blocked
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MAKES, str(ROOT / "docs"), ",".join(blocked), str(tmp_path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "views.sb3" in (tmp_path / "reference/fedbandit_envs.views.rst").read_text()


def test_the_hosted_site_is_built_with_the_same():
    assert f'".[{",".join(named())}]"' in (ROOT / ".readthedocs.yaml").read_text()
