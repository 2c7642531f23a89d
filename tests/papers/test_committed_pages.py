"""Every page of a paper says what its numbers say, and its commands make its pictures."""

import re
import shlex
from pathlib import Path

import pytest
from pages import cells, parts_of
from paper_runs import reproduce

from fedbandit_envs.papers import page as scripts
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.page import read_numbers

FOLDER = Path(__file__).parents[2] / "docs" / "reproductions"
PAGES = [FOLDER / f"{paper}.md" for paper in dict.fromkeys(one.paper for one in experiments().values())]
MADE = {
    name.removesuffix(" made"): part
    for page in PAGES
    for name, part in parts_of(page.read_text()).items()
    if name.endswith(" made")
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_its_numbers_say(page):
    """All cells with digits are those of the numbers, and all numbers with a text stand in a table or in a sentence."""
    text = page.read_text()
    sentences = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    said, known = set(), set()
    for mark, part in parts_of(text).items():
        stem, panel, *_ = mark.split(" ")
        said |= {(stem, panel, *cell) for cell in cells(part) if not mark.endswith(" numbers")}
    for row in read_numbers(page.with_suffix(".csv.gz")):
        stem = "-".join(filter(None, (row["experiment"], row["scale"], row["settings"])))
        assert f"<!-- {stem} " in text
        assert f"]({stem}.png)" in text
        if row["quantity"] == "in the text":
            assert row["printed"] in sentences or row["printed"] in text, row
        elif row["printed"]:
            known.add((stem, row["panel"], row["name"], row["quantity"], row["printed"]))
        ends = [float(row[key]) for key in ("low", "value", "high") if row[key]]
        assert ends == sorted(ends), row
    assert said == known


def test_every_picture_has_its_command():
    assert {path.stem for path in FOLDER.glob("*.png")} == set(MADE)


@pytest.mark.parametrize("stem", MADE)
def test_the_command_that_a_page_states_makes_its_picture(stem, tmp_path, monkeypatch):
    stated = re.search("^Made by `fedbandit (.*)`, whose runs", MADE[stem], re.MULTILINE)
    assert stated
    monkeypatch.setattr("fedbandit_envs.cli.terminal.play_missing", lambda *_, **__: None)
    monkeypatch.setattr(scripts.Reproduction, "report", lambda self: [self.stem])
    # No name depends on how much noise there is, which takes long to find for a shuffler.
    monkeypatch.setattr("fedbandit_envs.papers.trust._noise_multiplier", lambda *_: 1.0)
    ran = reproduce(*shlex.split(stated[1])[1:], "--out", tmp_path)
    assert ran.exit_code == 0, ran.output
    assert ran.output.split()[-1] == stem


def test_the_list_says_what_every_experiment_shows():
    ran = reproduce()
    assert ran.exit_code == 0
    told = [line.split("\N{BOX DRAWINGS LIGHT VERTICAL}")[1:-1] for line in ran.output.splitlines()]
    told = [[cell.strip() for cell in row] for row in told if row]
    assert told == [[name, one.title, one.shows] for name, one in experiments().items()]
    for one in experiments().values():
        assert re.search("; (about )?.*(seconds|minute|minutes|hour|hours)", one.shows), one.shows
