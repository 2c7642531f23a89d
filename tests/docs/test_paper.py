"""The paper in JOSS's form: its length, its figures and what makes them, its references, and its numbers."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from fedbandit_envs.papers.comparison import ENOUGH

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "docs" / "paper"
HEADER, BODY = (PAPER / "paper.md").read_text().removeprefix("---\n").split("\n---\n", 1)
PAGES = ROOT / "docs" / "reproductions"
KEYS = re.findall(r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(), flags=re.MULTILINE)


def test_it_has_at_most_a_thousand_words():
    text, _, references = BODY.partition("# References")
    assert references.strip() == ""
    assert 250 <= len(text.split()) <= 1000


def test_it_has_joss_s_parts():
    headings = re.findall(r"^# (.+)$", BODY, flags=re.MULTILINE)
    assert headings == [
        "Summary",
        "Statement of need",
        "Design",
        "What it showed",
        "Comparison with alternatives",
        "Acknowledgements",
        "References",
    ]
    for field in ("title", "tags", "authors", "date", "bibliography"):
        assert re.search(rf"^{field}:", HEADER, flags=re.MULTILINE)
    assert "bibliography: paper.bib" in HEADER


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
    papers = tomllib.loads((ROOT / "docs" / "claims.toml").read_text())["papers"]
    assert {paper["key"] for paper in papers} <= set(KEYS)


@pytest.mark.parametrize(
    ("page", "row", "said"),
    [
        ("private-federation-small", "P-FCB's epsilon of 1: paper's form | P-FCB | 2113 ± 180", "2113 ± 180"),
        ("private-federation-small", "P-FCB's epsilon of 1: tuned silence | SS-UCB-tuned | 894 ± 100", "894 ± 100"),
        ("private-federation-small", " | 0.428 [0.351, 0.503] | ", "0.428 [0.351, 0.503]"),
        ("private-federation-small", "from 0 on: procurement 40,", "40 procurement instances"),
        ("private-federation-small", "in rounds: procurement 100,000,", "100,000 rounds"),
        ("trust-small-linear-event", "| 1: local | 40 ± 2 | 0.835 [0.782, 0.888] |", "0.835 [0.782, 0.888]"),
        ("trust-small-linear-event", "| 1: server | 33 ± 2 | 0.701 [0.647, 0.762] |", "0.701 [0.647, 0.762]"),
        ("trust-small-linear-event", "| 1: true data | 6 ± 1 | 0.128 [0.113, 0.145] |", "0.128 [0.113, 0.145]"),
        ("trust-small-linear-event", "with 20 instances", "20 instances"),
        ("trust-small-linear-event", "10 agents, 10,000 rounds:", "10 agents"),
        ("feducb-critique-small", "its trigger, printed D: 0.1 | 947", "0.1, 1 or 3"),
        ("feducb-critique-small", "| 0 of 4,000 | 4.91 | **refuted** |", "4.91"),
    ],
)  # fmt: skip
def test_numbers_are_those_of_the_pages(page, row, said):
    assert row in (PAGES / f"{page}.md").read_text()
    assert said in " ".join(BODY.split())


def test_verdicts_are_those_of_the_table(generator):
    """What the paper says of verdicts: at least 20 instances, how many there are of each, and whose."""
    from generator import claims

    _, found = claims.read(ROOT / "docs")
    assert f"only where a page has at least {ENOUGH} instances" in " ".join(BODY.split())
    samba = [claim for claim in found if claim.paper == "ciucanu2022" and not claim.reason]
    assert {claim.part for claim in samba} == {"reward (of UCB1)", "of UCB1", "rewards, MovieLens"}
    assert {claim.verdict for claim in samba} == {claims.HOLDS}
    pfcb = Counter(claim.verdict for claim in found if claim.paper == "solanki2022")
    assert (pfcb[claims.HOLDS], pfcb[claims.FAILS]) == (10, 4)
    assert "ten hold over twenty markets" in " ".join(BODY.split())
    total = Counter(claim.verdict for claim in found)
    assert (
        f"{total[claims.HOLDS]} sentences hold, {total[claims.FAILS]} do not, {total[claims.UNDECIDED]} are undecided, "
        f"and {total[claims.EXPLORATORY]} have fewer instances"
    ) in " ".join(BODY.split())
    assert f"other {total[claims.NOT_COMPARABLE]} cannot be compared" in " ".join(BODY.split())
    assert 0.45 < total[claims.NOT_COMPARABLE] / total.total() < 0.55  # "half"
