"""The house: imports go down only, and the wheel holds every module of the tree."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tree import FILES, FLOORS, ROOT, installed_name


def floor_of(name: str) -> int:
    """0 for the environments, upwards."""
    part = name.split(".")[1] if "." in name else ""
    return FLOORS.index(part) if part in FLOORS else 0


def check(path: Path, own: int) -> None:
    """Holds that a file of floor ``own`` imports nothing from above, and nothing of the package by a string."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # An entry point, such as those that Gymnasium is given, may name what the folder could import.
            if re.fullmatch(r"fedbandit_envs(\.\w+)+:\w*", node.value):
                names = [node.value.partition(":")[0]]
        elif isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            literal = isinstance(first, ast.Constant) and str(first.value).startswith("fedbandit_envs.")
            called = ast.unparse(node.func) if literal else ""
            assert called.split(".")[-1] not in ("resolve", "import_module", "__import__"), (
                f"{path} imports {first.value} by a string"
            )
        for name in names:
            assert name.split(".")[0] not in FLOORS[1:], (
                f"{path} imports {name}: import as fedbandit_envs.{name}"
            )
            if name.split(".")[0] == "fedbandit_envs":
                assert floor_of(name) <= own, f"{path} imports {name} from a floor above"


def test_imports_go_down_only():
    for path in FILES:
        # The package's own modules hold all floors together.
        root = path.parent == ROOT / "fedbandit_envs" and path.stem in ("__init__", "__main__")
        check(path, len(FLOORS) if root else floor_of(installed_name(path)))


@pytest.mark.ci
def test_wheel_holds_every_module(tmp_path):
    # A copy: what an earlier build has left in the checkout would get into the wheel.
    tree = tmp_path / "tree"
    shutil.copytree(
        ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "_build", "*.egg-info", "__pycache__")
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, tree],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        "/".join(installed_name(path).split(".")) + ("/__init__.py" if path.name == "__init__.py" else ".py")
        for path in FILES
    }
    packaged = {name for name in inside if name.endswith(".py")}
    assert packaged == expected
    data = [
        path
        for floor in FLOORS
        for end in ("csv", "npz", "json", "j2")
        for path in (ROOT / floor).rglob(f"*.{end}")
    ]
    assert data
    assert {installed_name(path).replace(".", "/") + path.suffix for path in data} <= inside
