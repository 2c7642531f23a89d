"""Every block of every tutorial, and of the page on one's own data, runs, in order, and prints what the page says."""

from pathlib import Path

import pytest
from tutorials import blocks, is_printed, play

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
# The page on plug-ins installs a package: continuous integration follows it in an environment of its own.
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.stem not in ("index", "plugin"))
PAGES.append(FOLDER.parent / "own_data.md")
NEEDS = {"ppo": "stable_baselines3", "sweep": "matplotlib", "samba": "cryptography", "own_data": "pandas"}
"""Libraries of extras, by the page that cannot do without."""

COSTLY = {"ppo", "privatizer", "epsilon", "liars", "sweep", "own_data", "silos"}
"""Pages that continuous integration runs; their commands are read in ordinary runs, by `test_commands.py`."""


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=pytest.mark.ci if path.stem in COSTLY else ()) for path in PAGES
])  # fmt: skip
def test_tutorials_run(path, tmp_path, monkeypatch):
    pytest.importorskip(NEEDS.get(path.stem, "numpy"))
    monkeypatch.chdir(tmp_path)
    for block, printed in play(path.read_text()):
        if block.printed is not None:
            assert is_printed(block.printed, printed), f"{block.text}\nprinted\n{printed}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_prints_is_shown(path):
    """A number that no reader can compare with anything teaches nothing."""
    for block in blocks(path.read_text()):
        assert block.printed is not None or "print(" not in block.text, block.text


def test_what_is_said_must_be_what_is_printed():
    assert is_printed("regret: 12\n...\nend", "regret: 12\nmore\nend\n")
    assert not is_printed("regret: 12", "regret: 13")
    assert not is_printed("regret: 12", "regret: 12\nmore")


def test_every_tutorial_is_in_the_index():
    index = (FOLDER / "index.md").read_text()
    assert all(f"({path.name})" in index for path in FOLDER.glob("*.md") if path.stem != "index")
