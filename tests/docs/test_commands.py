"""Commands that pages show, too dear to run: each names a command that there is, with arguments that it takes.

Those of tutorials are run as well (`test_tutorials.py`), and those of README, by continuous integration.
"""

import re
import shlex
from pathlib import Path

import pytest
import typer

from fedbandit_envs.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
    *sorted((ROOT / "docs/reproductions").glob("*.md")),
]
_BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(fedbandit [^`]+)`")


def commands(page):
    """Returns the commands of a page's blocks, in the words of a shell."""
    shown = [text for language, text in _BLOCK.findall(page) if language in ("", "bash")]
    lines = [line for text in shown for line in text.replace("\\\n", " ").splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def understand(words, whole=True):
    """Has `fedbandit` read a command, and does not run it; one that is not whole may lack arguments."""
    command, name = typer.main.get_command(app), "fedbandit"
    while hasattr(command, "commands"):
        name, *words = words
        if (found := command.get_command(typer.Context(command), name)) is None:
            raise KeyError(name)
        command = found
    # Brackets stand around what may be left out.
    words = [word.strip("[]") for word in words]
    if whole:
        command.make_context(name, words)
    else:
        command.make_parser(command.context_class(command, info_name=name)).parse_args(words)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_commands_are_understood(path):
    page = path.read_text()
    for program, *words in commands(page):
        if program == "fedbandit":
            understand(words)
        elif program == "python" and words[0].endswith(".py"):
            assert (ROOT / words[0]).exists(), words
    for command in _INLINE.findall(page):
        words = shlex.split(command)[1:]
        if "..." not in words and any(word.startswith("--") for word in words):
            # A sentence may name a command without its arguments.
            understand(words, whole=False)


def test_what_is_no_command_is_not_understood():
    understand(["run", "SS-UCB", "FedProcurement-v0"])
    with pytest.raises(Exception, match="No such option"):
        understand(["run", "SS-UCB", "FedProcurement-v0", "--no-such"])
    with pytest.raises(KeyError):
        understand(["no-such"])


def test_the_front_page_runs():
    shown = _BLOCK.findall((ROOT / "docs/index.md").read_text())
    (block,) = (text for language, text in shown if language == "python")
    names = {}
    exec(compile(block, "index.md", "exec"), names)
    assert names["env"].observation_space.shape
