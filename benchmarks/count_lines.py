"""Counts what there is to read: ``python benchmarks/count_lines.py`` prints code lines, definitions and inheritance.

A code line is a line of a Python file of the package that is neither blank nor a comment nor part of a docstring; of a
page template, a line with logic or a value (from ``{%`` to ``%}``, from ``{{`` to ``}}``). Everything that is installed
counts, papers included.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FLOORS = (
    "fedbandit_envs",
    "wrappers",
    "baselines",
    "samba",
    "silos",
    "experiments",
    "functional",
    "leaderboard",
    "papers",
    "lab",
    "cli",
)
_LAYOUT = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip


class Size(NamedTuple):
    """The package in numbers.

    Attributes:
        lines: Code lines by folder.
        functions: Public functions of modules, with their files.
        classes: Public classes of modules by name, with their files.
        private: Number of private functions and classes of modules.
        files: Number of Python files.
        depths: Inheritance below ``FederatedEnv`` by class: 1 for its own subclasses.
    """

    lines: Counter[str]
    functions: list[str]
    classes: dict[str, list[str]]
    private: int
    files: int
    depths: dict[str, int]

    @property
    def total(self) -> int:
        """Code lines of everything installed."""
        return self.lines.total()

    @property
    def top(self) -> int:
        """Code lines of the folders above SAMBA: experiments, leaderboard, papers, lab and commands."""
        above = FLOORS[FLOORS.index("experiments") :]
        return sum(n for folder, n in self.lines.items() if folder.split("/")[0] in above)

    @property
    def num_classes(self) -> int:
        """Number of public classes."""
        return sum(map(len, self.classes.values()))

    @property
    def public(self) -> int:
        """Number of public functions and classes of modules."""
        return len(self.functions) + self.num_classes

    @property
    def twice(self) -> dict[str, list[str]]:
        """Public class names that are defined in more than one place, with the files."""
        return {name: files for name, files in self.classes.items() if len(files) > 1}


def code_lines(source: str) -> int:
    """Returns the number of lines of Python source without blanks, comments and docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings |= {*range(statement.lineno, (statement.end_lineno or 0) + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    return len(lines - docstrings)


def template_lines(source: str) -> int:
    """Returns the number of lines of a page template that hold logic or a value, or a part of either."""
    lines: set[int] = set()
    for part in re.finditer(r"\{\{.*?\}\}|\{%.*?%\}", source, re.DOTALL):
        first = source.count("\n", 0, part.start())
        lines |= {*range(first, first + part[0].count("\n") + 1)}
    return len(lines)


def measure(root: Path = ROOT) -> Size:
    """Counts a checkout."""
    size = Size(Counter(), [], {}, 0, 0, {})
    private, files, bases = 0, 0, {}
    for path in sorted(path for floor in FLOORS for path in (root / floor).rglob("*.*")):
        name = path.relative_to(root).as_posix()
        folder = "/".join(name.split("/")[:-1][:2])
        if path.suffix == ".j2":
            size.lines[folder] += template_lines(path.read_text())
        if path.suffix != ".py":
            continue
        files += 1
        source = path.read_text()
        size.lines[folder] += code_lines(source)
        for node in ast.parse(source).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]
            if node.name.startswith("_"):
                private += 1
            elif isinstance(node, ast.ClassDef):
                size.classes.setdefault(node.name, []).append(name)
            else:
                size.functions.append(f"{name}: {node.name}")
    below = {name: depth for name in bases if (depth := _depth(name, bases)) > 0}
    return size._replace(private=private, files=files, depths=below)


def _depth(name: str, bases: dict[str, list[str]]) -> int:
    """Returns how many classes a class stands below ``FederatedEnv``; a large negative number if it does not."""
    if name == "FederatedEnv":
        return 0
    return max((1 + _depth(base, bases) for base in bases.get(name, ())), default=-(10**6))


def main() -> None:
    """Prints the table."""
    size = measure()
    for folder, lines in sorted(size.lines.items()):
        print(f"{lines:7,} {folder}")
    deepest = max(size.depths.values())
    print(f"{size.total:7,} code lines, {size.top:,} of them above SAMBA")
    print(f"{size.public:7,} public functions and classes of modules, {size.num_classes} of them classes")
    print(f"{size.private:7,} private ones")
    print(f"{size.files:7,} files")
    print(f"{deepest:7,} deep below FederatedEnv:", *(n for n, d in size.depths.items() if d == deepest))
    for name, files in size.twice.items():
        print(f"  twice: {name} in {', '.join(files)}")


if __name__ == "__main__":
    main()
