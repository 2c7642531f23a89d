"""Plays a tutorial as its reader would: every block in order, in an empty folder, and looks at what it prints."""

import contextlib
import glob
import io
import re
import shlex
import sys
import types
from typing import NamedTuple

from typer.testing import CliRunner

from fedbandit_envs.cli import app

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"# (\w+\.(?:py|toml))\n")


class Block(NamedTuple):
    """Something to do, and what the page says that it prints (None: nothing is said)."""

    language: str
    text: str
    printed: str | None


def blocks(page):
    """Returns what a page has its reader do; a block of `text` is what the block before it prints."""
    found = []
    for language, text in _FENCE.findall(page):
        if language == "text":
            assert found, "the page begins with what something prints"
            assert found[-1].printed is None, f"two outputs follow each other:\n{text}"
            found[-1] = found[-1]._replace(printed=text)
        else:
            assert language in ("python", "bash", "toml"), (
                f"a block is {language!r}; python, bash, toml or text is required"
            )
            found.append(Block(language, text, None))
    return found


def is_printed(said, printed):
    """Whether a text is what was printed; `...` in it stands for anything."""
    lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return re.fullmatch(".*?".join(map(re.escape, said.strip().split("..."))), lines, re.DOTALL) is not None


def play(page):
    """Does all that a page says, in the current folder; yields each block and what it printed.

    A block that begins with the name of a file is saved under it, as its reader is told to do, and not run.
    """
    # Classes that are written in a page live in a module, as in a session of their reader.
    session = types.ModuleType("__tutorial__")
    sys.modules[session.__name__] = session
    try:
        for block in blocks(page):
            saved = _SAVED.match(block.text)
            if block.language == "bash":
                yield block, _shell(block.text)
            elif saved:
                with open(saved[1], "w") as file:
                    file.write(block.text)
                yield block, ""
            else:
                yield block, _python(block.text, session)
    finally:
        del sys.modules[session.__name__]


def _python(text, session):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "tutorial", "exec"), vars(session))
    return out.getvalue()


def _shell(text):
    """Runs lines of `fedbandit`, in this process: to start one costs seconds."""
    printed = ""
    for line in text.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line, comments=True)
        arguments = [found for word in words for found in (sorted(glob.glob(word)) or [word])]
        assert program == "fedbandit", f"{line!r}: only commands of fedbandit are expected"
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{line!r} ended with {result.exit_code}: {result.output}"
        printed += result.output
    return printed
