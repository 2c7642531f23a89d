"""The gallery reads pages as they are written, every picture has its source, and films are of baselines that play."""

from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]


PAGE = """# P-FCB, EXP9

Scale `small`: T = 9. What differs is said below.

## Uniform law

Regret at T:

| a | regret |
|---|---|
| b | 3 |

The paper says that "it falls":

* In T: holds (0.5).
* In n: does **not** hold (1.5).

What noise alone has saves nothing.

| a | paper | verdict |
|---|---|---|
| b | 2 | **differs** |

## Normal law

The paper says that "it falls":

* In T: undecided (1.0).
* In n: exploratory (1.0).

With 3 liars (our own bound):

| a | holds? |
|---|---|
| b | holds |

Made by `fedbandit reproduce pfcb-exp9 --scale small`, whose runs took 3 CPU-seconds.
"""


def test_the_gallery_reads_pages(generator, tmp_path):
    from generator.reproduction_page import read

    page = tmp_path / "pfcb-exp9.md"
    page.write_text(PAGE)
    page.with_suffix(".csv").write_text("name,instances\na,20\nb,\nc,5\n")
    found = read(page)
    assert found.title == "P-FCB, EXP9"
    assert found.setting == "Scale `small`: T = 9."
    assert found.panels == ["Uniform law", "Normal law"]
    assert found.of_the_paper == [
        ("Uniform law", 'The paper says that "it falls":'),
        ("Uniform law", "* In T: holds (0.5).\n* In n: does **not** hold (1.5)."),
        ("Uniform law", "| a | paper | verdict |\n|---|---|---|\n| b | 2 | **differs** |"),
        # What the paper says has been said.
        ("Normal law", "* In T: undecided (1.0).\n* In n: exploratory (1.0)."),
    ]
    assert found.beyond == [
        ("Uniform law", "What noise alone has saves nothing."),
        ("Normal law", "With 3 liars (our own bound):"),
        ("Normal law", "| a | holds? |\n|---|---|\n| b | holds |"),
    ]
    assert found.verdicts == ["holds", "does not hold", "does not hold", "undecided", "exploratory"]
    assert found.command == "fedbandit reproduce pfcb-exp9 --scale small"
    assert (found.seconds, found.instances) == (3, (5, 20))


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

    from fedbandit_envs import REGISTRY
    from fedbandit_envs.baselines import BASELINES
    from fedbandit_envs.basics.entry_points import resolve

    first = {resolve(entry.federation): env_id for env_id, entry in reversed(REGISTRY.own.items())}
    for federation, env_id in first.items():
        together, alone = (BASELINES[name] for name in cast(problem_of(federation)))
        assert together.fits(federation, env_id)
        assert alone.fits(federation, env_id)
        assert "channel" in together.wrappers
        assert not alone.wrappers


def test_the_film_of_the_first_page_is_small_and_long_enough():
    path = ROOT / "docs/static/federation.gif"
    assert path.stat().st_size < 1_000_000
    with Image.open(path) as film:
        assert film.n_frames >= 40
        assert film.size == (480, 600)


def test_tables_of_docstrings_become_tables(generator):
    from generator.markup import adapt

    lines = ["Says |x|, not ``|y|``.", "    | a | b |", "    |---|---|", "    | 1 | 2 |", "Then."]
    adapt(None, "class", "x", None, None, lines)
    assert lines[0] == "Says \\|x\\|, not ``|y|``."
    assert "    .. list-table::" in lines
    cells = [line.strip() for line in lines if line.strip().startswith(("* -", "- "))]
    assert cells == ["* - a", "- b", "* - 1", "- 2"]


def test_pages_of_the_gallery_have_names_of_their_own(generator):
    from generator.gallery import named
    from generator.reproduction_page import read

    pages = [read(path) for path in sorted((ROOT / "docs/reproductions").glob("*.md"))]
    assert len(set(named(pages).values())) == len(pages)
    one, two = pages[:2]
    assert named([one]) == {one.stem: one.title}
    alike = [one._replace(panels=["All runs"]), two._replace(title=one.title, panels=["All runs"])]
    assert named(alike) == {page.stem: f"{one.title} (`{page.stem}`)" for page in alike}
    apart = [one._replace(panels=["All runs"]), two._replace(title=one.title, panels=["Of 50 agents"])]
    assert named(apart) == {one.stem: one.title, two.stem: f"{one.title}: of 50 agents"}
