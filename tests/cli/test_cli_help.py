"""What `--help` says of each command: all of it is printed, and its example runs."""

import re
import shlex
import shutil
from dataclasses import replace
from functools import cache
from glob import glob

import pytest
import typer
from tiny_board import TINY
from typer.testing import CliRunner

from fedbandit_envs.cli import app, lab, samba
from fedbandit_envs.leaderboard import engine, privatizer_attack
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.samba.roles import RoleReport

MINE = """
import numpy as np

class Mine:
    def reset(self, spaces, seeds):
        self.rows = seeds.shape

    def act(self, observation):
        return np.zeros(self.rows, int)
"""


def commands(group, *words):
    """All commands by the words that call them."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *words, name)
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))
BEFORE = {
    "plot": ["sweep"],
    "samba-role": ["samba-keys"],
    "leaderboard verify": ["leaderboard run"],
    "leaderboard report": ["leaderboard run"],
    "leaderboard withdraw": ["leaderboard run"],
}
"""Commands whose examples use what those of other commands have written."""


def call(words, columns=80):
    return CliRunner().invoke(app, words, env={"COLUMNS": str(columns), "TERM": "dumb"})


def example(name):
    """The words of a command's example, from its help at 80 columns, where it may take two lines."""
    help_ = call([*name.split(), "--help"]).output
    (words,) = re.findall(r"^ *Example: fedbandit (.*?)\n *\n", help_, re.MULTILINE | re.DOTALL)
    return shlex.split(words)


def plain(text):
    """The text without frames, line breaks and the marks of code."""
    return " ".join(text.replace("│", " ").replace("`", "").split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_prints_all_that_is_to_be_said(name):
    printed = plain(call([*name.split(), "--help"], columns=2000).output)
    assert plain(COMMANDS[name].help) in printed
    for parameter in COMMANDS[name].params:
        assert plain(getattr(parameter, "help", "") or "") in printed


def test_square_brackets_are_printed():
    assert "Needs the extra [report]." in plain(call(["quickstart", "--help"]).output)
    assert "[default: 0.01; pure: 0; continual: 0.1]" in plain(call(["audit", "--help"], columns=200).output)


COSTLY = {"audit", "plot", "sweep"}
"""Commands whose examples continuous integration runs."""


@pytest.fixture(scope="module")
def run_example(tmp_path_factory):
    """A function that runs a command's example once and returns the folder in which it has done so.

    The leaderboard plays a tiny suite in place of the named one; the lab and a role of SAMBA reach no network.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, "linear-quick", replace(TINY, name="linear-quick"))
        patch.setattr(privatizer_attack, "_SAMPLES", 100)
        patch.setattr(engine, "_ROWS_FIRST", 1)
        patch.setattr(lab, "serve", lambda port, show: show(f"port {port}"))
        patch.setattr(samba, "play_over_network", lambda setup, *others: RoleReport("comp", {}, 0.0))

        @cache
        def run(name):
            folder = tmp_path_factory.mktemp("example")
            for each in BEFORE.get(name, []):
                shutil.copytree(run(each), folder, dirs_exist_ok=True)
            patch.chdir(folder)
            (folder / "mine.py").write_text(MINE)
            words = [one for word in example(name) for one in (glob(word) or [word])]
            # One worker is this process, which knows the tiny suite.
            workers = any("--workers" in option.opts for option in COMMANDS[name].params)
            result = call([*words, *(["--workers", "1"] if workers else [])])
            assert result.exit_code == 0, (words, result.output)
            assert words[: len(name.split())] == name.split()
            return folder

        yield run


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ci if name in COSTLY else ()) for name in COMMANDS]
)
def test_examples_run(name, run_example):
    run_example(name)
