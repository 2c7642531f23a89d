"""The map of the packages is that of the code, and the gallery reads pages as they are written."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def generator(monkeypatch):
    """The folder of the site's own modules, as `docs/conf.py` has it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "generator"]:
        del sys.modules[name]


def test_the_map_is_of_today_s_code(generator):
    from generator.architecture import packages_svg

    drawn = packages_svg(ROOT)
    assert (ROOT / "docs/packages.svg").read_text() == drawn, "sphinx-build draws it anew"
    assert all(f">{room}/</text>" in drawn for room in ("board", "privacy", "procurement", "adapters"))


def test_the_gallery_reads_pages(generator, tmp_path):
    from generator.gallery import read

    page = tmp_path / "pfcb-exp9.md"
    page.write_text(
        "# P-FCB, EXP9\n\nScale `small`: T = 9.\n\n## Panel\n\n| a | holds? |\n|---|---|\n| b | holds |\n\n"
        '* "It falls": does **not** hold.\n\n'
        "Made by `fedbandit reproduce pfcb-exp9 --scale small`, whose runs took 3 CPU-seconds.\n"
    )
    found = read(page)
    assert found.title == "P-FCB, EXP9"
    assert found.setting == "Scale `small`: T = 9."
    assert found.sentences == ['"It falls": does **not** hold.']
    assert found.verdicts == ["does **not** hold", "holds"]
    assert found.command == "fedbandit reproduce pfcb-exp9 --scale small"


def test_tables_of_docstrings_become_tables(generator):
    from generator.markup import adapt

    lines = ["Says |x|, not ``|y|``.", "    | a | b |", "    |---|---|", "    | 1 | 2 |", "Then."]
    adapt(None, "class", "x", None, None, lines)
    assert lines[0] == "Says \\|x\\|, not ``|y|``."
    assert "    .. list-table::" in lines
    cells = [line.strip() for line in lines if line.strip().startswith(("* -", "- "))]
    assert cells == ["* - a", "- b", "* - 1", "- 2"]
