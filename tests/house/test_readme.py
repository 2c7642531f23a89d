"""Every Python block of the README and the tour runs as it stands; CI runs shell blocks in fresh environments."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README, TOUR = ((ROOT / name).read_text() for name in ("README.md", "docs/tour.md"))


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


BLOCKS = blocks(README)
PYTHON = [text for language, text in BLOCKS + blocks(TOUR) if language == "python"]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=str(place), marks=pytest.mark.ci if ".learn(" in block else ())
        for place, block in enumerate(PYTHON)
    ],
)
def test_python_blocks_run(block, capsys):
    if "stable_baselines3" in block:
        pytest.importorskip("stable_baselines3")
    exec(compile(block, "page", "exec"), {"__name__": "readme"})
    assert "{" in (printed := capsys.readouterr().out) or re.search(r": \d+", printed)


def test_the_page_on_learning_runs():
    """Its blocks, one after another, end with an environment that asks whether to send.

    `tests/docs/test_learning.py` plays the block that trains, and compares what it prints.
    """
    names = {"__name__": "learning"}
    for language, block in blocks((ROOT / "docs" / "learning.md").read_text()):
        if language == "python" and "sb3_recipes" not in block:
            exec(compile(block, "learning.md", "exec"), names)
    assert names["env"].action_space.shape == (31,)


def test_the_readme_is_short_and_says_all():
    assert len(README.splitlines()) <= 80
    assert len(README.split()) <= 700
    assert sum(language == "python" for language, _ in BLOCKS) == 3
    assert README.count("![") <= 1, "a figure"
    for place in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / place).exists(), place


def test_all_blocks_are_python_or_one_of_the_two_commands():
    assert {language for language, _ in BLOCKS} == {"python", "bash"}
    commands = [text for language, text in BLOCKS if language == "bash"]
    assert len(commands) == 2
    assert commands[0].endswith("fedbandit quickstart\n")
    assert commands[1].endswith("pytest\n")
