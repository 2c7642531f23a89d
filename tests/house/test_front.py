"""What a host of repositories, a package index and a citing author read agrees with the project's own settings."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere():
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{PROJECT['version']}}}" in (ROOT / "docs/citing.md").read_text()


def test_continuous_integration_runs_what_ordinary_runs_leave_to_it():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert settings["addopts"].endswith("-m 'not slow and not ci'")
    script = (ROOT / ".ci/run").read_text()
    assert re.findall(r'-m "ci and not slow" (.*)', script) == ["tests/docs", "--ignore=tests/docs"]
    # The plug-in changes what is registered.
    assert "main=(tests documentation rest_of_the_tests plugin)" in script


def test_what_continuous_integration_calls_is_there():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: the extra 'docs' has it")
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert len(steps) == len(workflow["jobs"])
    for step in steps:
        assert (ROOT / step.split()[1]).exists(), step
    pythons = workflow["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert f">={pythons[0]}" == PROJECT["requires-python"]
    table = (ROOT / "docs/versions.md").read_text()
    assert all(python in table for python in pythons)
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert all(hook["entry"].replace(" ", '" ') in (ROOT / ".ci/run").read_text() for hook in hooks)
    site = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    assert (ROOT / site["sphinx"]["configuration"]).exists()
    (extras,) = re.findall(r"\[(.*)\]", site["build"]["jobs"]["install"][0])
    assert {*extras.split(",")} <= PROJECT["optional-dependencies"].keys()
