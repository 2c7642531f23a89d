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


def test_commands_are_read_from_names(generator):
    from generator.gallery import command_of

    assert command_of("pfcb-exp1-paper-printed") == (
        "fedbandit reproduce pfcb-exp1 --scale paper --mode printed --out docs/reproductions"
    )
    assert command_of("feducb-fig1a-small-rounds100000-trials5-epsilon") == (
        "fedbandit reproduce feducb-fig1a --scale small --rounds 100000 --trials 5 --panel epsilon"
        " --out docs/reproductions"
    )
    assert command_of("pfcb-exp1-huge") == ""
    assert command_of("what-is-this") == ""


def test_tables_of_docstrings_become_tables(generator):
    from generator.markup import adapt

    lines = ["Says |x|.", "    | a | b |", "    |---|---|", "    | 1 | 2 |", "Then."]
    adapt(None, "class", "x", None, None, lines)
    assert lines[0] == "Says \\|x\\|."
    assert "    .. list-table::" in lines
    assert [line.strip() for line in lines if line.strip().startswith(("* -", "- "))] == ["* - a", "- b", "* - 1", "- 2"]
