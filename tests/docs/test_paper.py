"""The paper in JOSS's form: its length, its figures and what makes them, its references, and its numbers."""

import re
from collections import Counter
from pathlib import Path

import pytest
from pages import claims

from fedbandit_envs.papers.stats import ENOUGH

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "docs" / "paper"
HEADER, BODY = (PAPER / "paper.md").read_text().removeprefix("---\n").split("\n---\n", 1)
PAGES = ROOT / "docs" / "reproductions"
KEYS = re.findall(r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(), flags=re.MULTILINE)


def test_it_has_at_most_a_thousand_words():
    text, _, references = BODY.partition("# References")
    assert references.strip() == ""
    assert 250 <= len(text.split()) <= 1000


def test_figures_are_there_and_are_made_by_the_commands_that_stand_below_them(generator):
    from generator.pictures import commands

    made_by = commands(ROOT / "docs")
    figures = re.findall(
        r"^!\[.*?`([^`]+)`\.\\label\{(fig:\w+)\}\]\(\.\./([^)]+)\)$", BODY, flags=re.MULTILINE
    )
    assert len(figures) == BODY.count("![") > 0
    for command, label, path in figures:
        assert (ROOT / "docs" / path).exists()
        assert command == made_by[path]
        assert f"\\autoref{{{label}}}" in BODY


def test_whatever_is_cited_is_in_the_bibliography_and_the_other_way_round():
    assert len(KEYS) == len(set(KEYS))
    assert set(re.findall(r"@(\w+)", BODY)) == set(KEYS)


def test_the_bibliography_has_the_papers_of_the_table_of_claims():
    papers = claims((PAGES / "claims.md").read_text()).keys()
    assert set() < papers <= set(KEYS)


@pytest.mark.parametrize(
    ("page", "row", "said"),
    [
        ("private_federation", "| paper's form, epsilon 1 | P-FCB | 1610 [1456, 1772] |", "1610 [1456, 1772]"),
        ("private_federation", "| untuned silence | Thompson-procurement | 574 [521, 663] |", "574 [521, 663]"),
        ("private_federation", "| Thompson-procurement-weighted-tuned | 372 [343, 404] |", "372 [343, 404]"),
        ("private_federation", "30,000 rounds in procurement", "20 procurement instances over 30,000 rounds"),
        ("trust", "| 1: local | 40 ± 2 | 0.835 [0.782, 0.888] |", "0.835 [0.782, 0.888]"),
        ("trust", "| 1: server | 33 ± 2 | 0.701 [0.647, 0.762] |", "0.701 [0.647, 0.762]"),
        ("trust", "| 1: true data | 6 ± 1 | 0.128 [0.113, 0.145] |", "0.128 [0.113, 0.145]"),
        ("trust", "There are 20 instances", "20 instances"),
        ("trust", "| line | 10 agents |", "10 agents"),
        ("feducb_critique", "its trigger, printed D: 0.1 | 947", "0.1, 1 or 3"),
        ("feducb_critique", "| 0 of 4,000 | 4.91 | **refuted** |", "4.91"),
    ],
)  # fmt: skip
def test_numbers_are_those_of_the_pages(page, row, said):
    assert row in (PAGES / f"{page}.md").read_text()
    assert said in " ".join(BODY.split())


def test_verdicts_are_those_of_the_table():
    """What the paper says of verdicts: at least 20 instances, how many there are of each, and whose."""
    body = " ".join(BODY.split())
    rows = claims((PAGES / "claims.md").read_text())
    kinds = ("holds", "does **not** hold", "undecided", "exploratory", "not comparable")
    found = {
        key: Counter(next(kind for kind in kinds if cells[-1].startswith(kind)) for cells in own)
        for key, own in rows.items()
    }
    assert f"only where a page has at least {ENOUGH} instances" in body
    samba = [cells for cells in rows["ciucanu2022"] if not cells[-1].startswith("not comparable")]
    assert {re.search(r'" \((.*?\)?)\)$', cells[1])[1] for cells in samba} == {
        "reward of UCB1", "of UCB1", "rewards, MovieLens", "rewards, Jester", "rankings",
    }  # fmt: skip
    assert [cells[-1] for cells in samba if "rewards, Jester" in cells[1]] == ["undecided"]
    assert found["ciucanu2022"]["holds"] == len(samba) - 1
    assert [found["solanki2022"][kind] for kind in kinds[:2]] == [11, 5]
    assert "Eleven sentences of P-FCB's paper hold over twenty markets" in body
    assert "Five other sentences do not hold" in body
    total = sum(found.values(), Counter())
    holds, fails, undecided, exploratory, apart = (total[kind] for kind in kinds)
    assert f"{holds} sentences hold, {fails} do not, and {undecided} are undecided" in body
    assert exploratory == 0
    assert f"other {apart} cannot be compared" in body
    assert 0.45 < apart / total.total() < 0.55  # "half"
