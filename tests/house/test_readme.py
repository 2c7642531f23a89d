"""Every Python block of the README runs as it stands; the shell blocks are run by CI in fresh environments."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]


@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_python_blocks_run(block, capsys):
    if "stable_baselines3" in block:
        pytest.importorskip("stable_baselines3")
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    assert "{" in (printed := capsys.readouterr().out) or re.search(r": \d+", printed)


def test_the_page_on_learning_runs():
    """Its blocks, one after another, end with an environment that asks whether to send."""
    page = (Path(__file__).parents[2] / "docs" / "learning.md").read_text()
    names = {"__name__": "learning"}
    for _, block in re.findall(r"^```(python)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "learning.md", "exec"), names)
    assert names["env"].action_space.shape == (31,)


def test_all_blocks_are_python_or_one_of_the_two_commands():
    assert {language for language, _ in BLOCKS} == {"python", "bash"}
    commands = [text for language, text in BLOCKS if language == "bash"]
    assert len(commands) == 2
    assert commands[0].endswith("fedbandit quickstart\n")
    assert commands[1].endswith("pytest\n")
