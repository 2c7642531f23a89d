"""What `--help` says of each command: all of it is printed, and its example runs."""

import re
import shlex
import shutil
from functools import cache

import pytest
import typer
from typed import call, said

from fedbandit_envs.cli import app
from fedbandit_envs.samba.messages import Counts
from fedbandit_envs.samba.roles import RoleReport

GROUP = typer.main.get_command(app)
COMMANDS = {name: command for name, command in GROUP.commands.items() if name != "leaderboard"}
BEFORE = {"plot": "sweep", "samba-role": "samba-keys"}
"""Commands whose examples use what those of other commands have written."""
COSTLY = {"audit", "plot", "sweep"}
"""Commands whose examples continuous integration runs."""


def example(*names):
    """The words of a command's example, from its help at 80 columns, where it may take two lines."""
    help_ = call(*names, "--help", columns=80).output
    assert help_.count("\n") <= 42, "it fits a screen"
    (words,) = re.findall(r"^ *Example: fedbandit (.*?)\n *\n", help_, re.MULTILINE | re.DOTALL)
    return shlex.split(words)


def test_square_brackets_are_printed_and_groups_are_listed():
    assert "Needs the extra [report]." in said(call("quickstart", "--help", columns=80))
    assert "[default: 0.01; pure: 0; continual: 0.1]" in said(call("audit", "--help"))
    board = GROUP.commands["leaderboard"]
    for name in ("run", "submit", "verify", "report"):
        assert name in call("leaderboard", "-h").output
        # It would play for minutes.
        group, *words = example("leaderboard", name)
        assert (group, words.pop(0)) == ("leaderboard", name)
        board.commands[name].make_context(name, words)


@pytest.fixture(scope="module")
def run_example(tmp_path_factory):
    """A function that runs a command's example once and returns the folder in which it has done so.

    A role of SAMBA reaches no network.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "fedbandit_envs.samba.network.play_over_network",
            lambda role, *others: RoleReport("comp", Counts(), 0.0),
        )

        @cache
        def run(name):
            folder = tmp_path_factory.mktemp("example")
            if name in BEFORE:
                shutil.copytree(run(BEFORE[name]), folder, dirs_exist_ok=True)
            patch.chdir(folder)
            words = example(name)
            workers = any("--workers" in option.opts for option in COMMANDS[name].params)
            result = call(*words, *(["--workers", "1"] if workers else []), columns=80)
            assert result.exit_code == 0, (words, result.output)
            assert words[0] == name
            return folder

        yield run


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.ci if name in COSTLY else ())
    for name in COMMANDS
    if name != "lab"
])  # fmt: skip
def test_examples_run(name, run_example):
    run_example(name)
