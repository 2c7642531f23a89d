"""The site's own modules: every picture has its source, films are of baselines that play, formulas can be drawn."""

import csv
import gzip
import json
import re
from pathlib import Path

import pytest

from fedbandit_envs import REGISTRY
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.basics.entry_points import resolve

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"^ *(```+).*?^ *\1|`[^`]*`", re.MULTILINE | re.DOTALL)


def test_what_makes_every_picture_is_said(generator):
    from generator.pictures import commands

    made = commands(ROOT / "docs")
    kept = [
        str(path.relative_to(ROOT / "docs"))
        for kind in ("*.png", "*.svg", "*.gif")
        for path in (ROOT / "docs").rglob(kind)
        if not {"_build", "generated"} & set(path.parts) and path.name != "favicon.svg"
    ]
    assert set(kept) <= set(made)
    assert all(made.values()), [name for name, command in made.items() if not command]


def test_films_are_of_baselines_that_play(generator):
    from generator.film import cast
    from generator.markup import problem_of

    first = {resolve(entry.federation): env_id for env_id, entry in reversed(REGISTRY.own.items())}
    for federation, env_id in first.items():
        together, alone = (BASELINES[name] for name in cast(problem_of(federation)))
        assert together.fits(env_id)
        assert alone.fits(env_id)
        assert "channel" in together.wrappers
        assert not alone.wrappers


def test_every_paper_that_baselines_cite_is_linked(generator):
    from generator.sources import linked

    sources = {
        re.sub(r"\[[^\]]+\]\(http[^)]+\)", "", linked(one.reference)) for one in BASELINES.own.values()
    }
    assert [one for one in sources if re.search(r"\d{4}", one)] == []


def test_tables_of_docstrings_become_tables(generator):
    from generator.markup import adapt

    lines = ["Says |x|, not ``|y|``.", "    | a | b |", "    |---|---|", "    | 1 | 2 |", "Then."]
    adapt(None, "class", "x", None, None, lines)
    assert lines[0] == "Says \\|x\\|, not ``|y|``."
    assert "    .. list-table::" in lines
    cells = [line.strip() for line in lines if line.strip().startswith(("* -", "- "))]
    assert cells == ["* - a", "- b", "* - 1", "- 2"]


def test_formulas_can_be_drawn():
    pytest.importorskip("docutils", "0.22", reason="the extra 'docs' is not installed")
    from docutils.utils.math.latex2mathml import tex2mathml

    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")]
    drawn = 0
    for path in (*pages, *ROOT.glob("fedbandit_envs/*/env.py"), *ROOT.glob("baselines/**/*.py")):
        for formula in re.findall(r"\$+([^$]+)\$+", CODE.sub("", path.read_text())):
            assert tex2mathml(formula).startswith("<math"), (path, formula)
            drawn += 1
    assert drawn > 100


def test_the_metadata_are_of_the_table(generator):
    from generator.croissant import FILE, metadata

    written = json.loads(FILE.read_text())
    assert metadata() == written, "write it anew: python docs/generator/croissant.py"
    with gzip.open(FILE.with_name("results.csv.gz"), "rt") as table:
        assert [field["name"] for field in written["recordSet"][0]["field"]] == next(csv.reader(table))
