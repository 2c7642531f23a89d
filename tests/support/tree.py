"""The checkout: its folders from the lowest to the highest, its files, and the names under which they are installed."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = runpy.run_path(str(ROOT / "benchmarks/count_lines.py"))["FLOORS"]
FILES = sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def installed_name(path: Path) -> str:
    """The dotted name under which a file of the tree is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts if parts[0] == "fedbandit_envs" else ("fedbandit_envs", *parts))
    return name.removesuffix(".__init__")


def short(path: Path) -> str:
    """A file's name for parameters of tests."""
    return str(path.relative_to(ROOT))
