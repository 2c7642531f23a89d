"""The command line where extras, or modules of Linux and macOS, are missing: what needs them says so, at once."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fedbandit_envs.cli import app

# Dependencies are imported first: they have other ways on Windows, and ask for the platform.
AS_ON_WINDOWS = """
import ctypes, json, os, signal, sys

import gymnasium, joblib, jsonschema, networkx, numba, pettingzoo, rich.progress, scipy.stats, typer.testing

sys.modules |= dict.fromkeys(("fcntl", "resource", "pwd", "grp", "termios"))
load = ctypes.CDLL


def load_by_name(name, *others, **named):
    if name is None:
        raise TypeError("a name is required")
    return load(name, *others, **named)


ctypes.CDLL = load_by_name
for module, name in ((signal, "SIGKILL"), (signal, "SIGXCPU"), (os, "memfd_create"), (os, "geteuid")):
    delattr(module, name)

from fedbandit_envs.cli import app

sys.platform = "win32"
for words in json.loads(sys.argv[1]):
    result = typer.testing.CliRunner().invoke(app, words, env={"COLUMNS": "300", "TERM": "dumb"})
    print(json.dumps([result.exit_code, result.output, repr(result.exception)]))
"""

LOCKS = "files are locked by Python's module fcntl, which win32 lacks: Linux, macOS or WSL is required"
BOARD = ("--suite", "arms-quick", "--out", "board")


@pytest.mark.ci
def test_windows_has_all_commands_and_what_it_lacks_is_said_when_used(tmp_path):
    (tmp_path / "mine.py").write_text("class Mine:\n    def reset(self): ...\n    def act(self): ...\n")
    commands = {
        ("list",): (0, "SS-UCB"),
        ("run", "random-arm", "FedLinear-v0", "--rounds", "5", "--seeds", "2"): (0, "regret per agent"),
        ("tune", "linear", "--rounds", "5", "--seeds", "1", "--workers", "1"): (2, LOCKS),
        ("leaderboard", "run", "FedUCB1", *BOARD): (2, "BASELINE is 'FedUCB1'"),
        ("leaderboard", "run", "UCB1", *BOARD): (2, LOCKS),
        ("leaderboard", "report", "--results", "board", "--out", "page"): (2, "entries.json"),
    }
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_WINDOWS, json.dumps(list(commands))],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for line, (words, (code, message)) in zip(done.stdout.splitlines(), commands.items(), strict=True):
        exit_code, output, exception = json.loads(line)
        assert (exit_code, exception) == (code, f"SystemExit({code})" if code else "None"), (words, output)
        assert message in " ".join(output.replace("│", " ").split()), words


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
@pytest.mark.parametrize("words", [("quickstart",), ("reproduce", "pfcb-exp1")], ids=lambda words: words[0])
def test_without_the_extra_report_nothing_is_played(monkeypatch, tmp_path, missing, words):
    monkeypatch.setitem(sys.modules, missing, None)
    # It would play for hours.
    result = CliRunner().invoke(app, [*words, "--rounds", "1000000", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert result.output == (
        f"Error: {missing} is missing, which comes with the [report] extra: "
        "python -m pip install 'fedbandit-envs[report]'\n"
    )
    assert not (tmp_path / "out").exists()
