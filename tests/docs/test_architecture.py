"""The gallery reads pages as they are written, every picture has its source, and films are of baselines that play."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


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


def test_tables_of_docstrings_become_tables(generator):
    from generator.markup import adapt

    lines = ["Says |x|, not ``|y|``.", "    | a | b |", "    |---|---|", "    | 1 | 2 |", "Then."]
    adapt(None, "class", "x", None, None, lines)
    assert lines[0] == "Says \\|x\\|, not ``|y|``."
    assert "    .. list-table::" in lines
    cells = [line.strip() for line in lines if line.strip().startswith(("* -", "- "))]
    assert cells == ["* - a", "- b", "* - 1", "- 2"]
