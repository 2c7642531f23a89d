"""The list of all pictures, with the command that makes each."""

import re
from pathlib import Path

import fedbandit_envs
from fedbandit_envs.basics.entry_points import resolve
from generator.folder import Folder
from generator.markup import problem_of, table

_MADE = re.compile(r"<!-- (\S+) made -->\s+Made by `([^`]+)`")
_FILM = "PYTHONPATH=docs python docs/generator/film.py docs/static/federation.gif"
_SITE = "sphinx-build -W -b html docs docs/_build/html"
_REPORT = "fedbandit leaderboard report --results {0} --out {0}"


def write(folder: Folder, docs: Path) -> None:
    """Writes the page."""
    folder.write("pictures.md", _page(docs))


def commands(docs: Path) -> dict[str, str]:
    """Returns what makes each picture, by its path in the documentation.

    Args:
        docs: The folder of the documentation.
    """
    problems = {problem_of(resolve(entry.federation)): None for entry in fedbandit_envs.REGISTRY.own.values()}
    return {
        "leaderboard/leaderboard.png": _REPORT.format("docs/leaderboard"),
        "leaderboard-full/leaderboard.png": _REPORT.format("docs/leaderboard-full"),
        "growth.png": "python -m benchmarks.bench_growth docs/growth.png",
        "static/federation.gif": _FILM,
        **{f"generated/environments/{problem}.{kind}": _SITE for problem in problems for kind in ("gif", "png")},
        **{
            f"reproductions/{stem}.png": command
            for path in sorted((docs / "reproductions").glob("*.md"))
            for stem, command in _MADE.findall(path.read_text())
        },
    }  # fmt: skip


def _page(docs: Path) -> str:
    return "\n\n".join(
        [
            "# What makes every picture",
            "Commands are typed in a checkout, where the package is installed with all extras. `fedbandit reproduce`\n"
            "writes where `--out` says, and goes on where it was stopped.",
            table(
                ["picture", "made by"],
                [
                    [f"[{path}](../{path})", f"`{command}`"]
                    for path, command in commands(docs).items()
                ],
            ),
        ]
    ) + "\n"  # fmt: skip
