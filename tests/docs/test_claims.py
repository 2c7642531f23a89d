"""Verdicts on the papers' sentences follow from the pages' CSV files, by one rule, and every page's paper is there."""

import csv
import inspect
import json
import tomllib
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest

from fedbandit_envs.papers.reproduction import comparison
from fedbandit_envs.papers.reproduction.comparison import Mean

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reproductions"
WRITTEN = tomllib.loads((ROOT / "docs" / "claims.toml").read_text())


@pytest.fixture
def claims(generator):
    from generator import claims

    return claims


# Intervals, bounds, number of instances, and what follows.
CASES = [
    ([(0.8, 0.9)], (-inf, 1), 20, "holds"),
    ([(0.8, 1.0)], (-inf, 1), 20, "holds"),
    ([(0.8, 1.1)], (-inf, 1), 20, "undecided"),
    ([(1.0, 1.1)], (-inf, 1), 20, "undecided"),
    ([(1.1, 1.2)], (-inf, 1), 20, "does **not** hold"),
    ([(1.1, 1.2)], (1, inf), 20, "holds"),
    ([(0.9, 1.2)], (1, inf), 20, "undecided"),
    ([(0.7, 1.2)], (1, inf), 20, "undecided"),
    ([(0.8, 0.9)], (1, inf), 20, "does **not** hold"),
    ([(2.1, 2.2)], (2, 3), 20, "holds"),
    ([(1.9, 2.2)], (2, 3), 20, "undecided"),
    ([(2.9, 3.2)], (2, 3), 20, "undecided"),
    ([(1.0, 4.0)], (2, 3), 20, "undecided"),
    ([(1.0, 1.9)], (2, 3), 20, "does **not** hold"),
    ([(3.1, 3.2)], (2, 3), 20, "does **not** hold"),
    ([(1.0, 1.0)], (1, 1), 20, "holds"),
    ([(0.9, 1.1)], (1, 1), 20, "undecided"),
    ([(nan, nan)], (-inf, 1), 20, "undecided"),
    ([(4.9, inf)], (-inf, 1), 20, "does **not** hold"),
    ([(0.8, 0.9), (0.7, 0.8)], (-inf, 1), 20, "holds"),
    ([(0.8, 0.9), (0.9, 1.1)], (-inf, 1), 20, "undecided"),
    ([(0.8, 0.9), (nan, nan)], (-inf, 1), 20, "undecided"),
    ([(0.8, 0.9), (0.9, 1.1), (1.1, 1.2)], (-inf, 1), 20, "does **not** hold"),
    ([(0.8, 0.9)], (-inf, 1), 19, "exploratory"),
    ([(1.1, 1.2)], (-inf, 1), 19, "exploratory"),
    ([(0.8, 1.1)], (-inf, 1), 0, "exploratory"),
]


def wrong(claims, verdict):
    """Cases in which a function's verdict is another than it has to be."""
    return [
        case
        for case in CASES
        if verdict(
            [claims.Check("", "", [Mean(sum(ends) / 2, *ends, case[2]) for ends in case[0]], *case[1])]
        )
        != case[3]
    ]


def test_a_verdict_follows_from_whole_intervals(claims):
    assert wrong(claims, claims.verdict) == []
    assert {case[-1] for case in CASES} == {
        claims.HOLDS,
        claims.FAILS,
        claims.UNDECIDED,
        claims.EXPLORATORY,
    }


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("check.low, check.high", "high=check.high"),
        ("check.low, check.high", "check.low"),
        ("check.low, check.high", "check.high, check.low"),
        ("in check.figures", "in check.figures[:1]"),
        ("return all_hold(", "return max("),
        ("return all_hold(", "return min("),
    ],
)
def test_no_other_rule_passes(claims, written, instead):
    source = inspect.getsource(claims.verdict)
    assert source.count(written) == 1
    mutant = {**vars(claims)}
    exec(source.replace(written, instead), mutant)
    assert wrong(claims, mutant["verdict"]) != []


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("instances < ENOUGH", "instances <= ENOUGH"),
        ("instances < ENOUGH", "instances < ENOUGH - 1"),
        ("instances < ENOUGH", "instances == 0"),
        ("low <= measure.low and", ""),
        ("and measure.high <= high", ""),
        ("and measure.high <= high", "and measure.high < high"),
        ("measure.high < low or", ""),
        ("or high < measure.low", ""),
        ("or high < measure.low", "or high <= measure.low"),
        ("measure.high < low or", "measure.value < low or"),
    ],
)
def test_no_other_rule_for_a_figure_passes(claims, monkeypatch, written, instead):
    source = inspect.getsource(comparison.verdict)
    assert source.count(written) == 1
    mutant = {**vars(comparison)}
    exec(source.replace(written, instead), mutant)
    monkeypatch.setattr(comparison, "verdict", mutant["verdict"])
    assert wrong(claims, claims.verdict) != []


def test_every_sentence_has_its_page_rows_and_measures(claims):
    """Reading raises where one is missing."""
    _, found = claims.read(ROOT / "docs")
    assert len(found) == len(WRITTEN["claims"]) > 100
    for claim in found:
        assert claim.place
        assert claim.quote
        assert all(check.says and check.figures for check in claim.checks)
        assert bool(claim.checks) == bool(claim.page)
        assert claim.checks or claim.reason, claim.quote
        assert (claim.verdict == claims.NOT_COMPARABLE) == bool(claim.reason)
        assert (claim.verdict == claims.EXPLORATORY) == (not claim.reason and claim.instances < 20)


def test_no_row_stands_twice(claims):
    _, found = claims.read(ROOT / "docs")
    assert len({(claim.paper, claim.place, claim.quote, claim.part) for claim in found}) == len(found)


def test_every_page_is_of_a_paper_or_a_question_of_our_own():
    known = (*WRITTEN["own_questions"], *(stem for paper in WRITTEN["papers"] for stem in paper["pages"]))
    for path in PAGES.glob("*.csv"):
        assert path.stem.startswith(known), f"{path.stem} is of no paper in docs/claims.toml"
    stems = [path.stem for path in PAGES.glob("*.csv")]
    assert [start for start in known if not any(stem.startswith(start) for stem in stems)] == []


def test_every_paper_whose_text_was_at_hand_has_sentences():
    own = {claim["paper"] for claim in WRITTEN["claims"]}
    keys = {paper["key"] for paper in WRITTEN["papers"]}
    assert own <= keys
    assert {paper["key"] for paper in WRITTEN["papers"] if paper["text"]} <= own


def test_figures_are_those_of_the_csv_file(claims):
    """Two sentences computed apart, by other code."""
    _, found = claims.read(ROOT / "docs")
    with (PAGES / "samba-fig8c-paper-movielens.csv").open(newline="") as file:
        rivals = [
            (float(row["value"]), float(row["low"]))
            for row in csv.DictReader(file)
            if row["name"].startswith("thompson / ") and row["name"] != "thompson / thompson"
        ]
    best = next(claim for claim in found if claim.page == "samba-fig8c-paper-movielens")
    assert sorted((figure.value, figure.low) for figure in best.checks[0].figures) == sorted(rivals)
    assert best.instances == 50
    assert best.verdict == ("holds" if min(low for _, low in rivals) >= 1 else "not so")
    more = next(claim for claim in found if claim.quote.startswith("Compared to FCB"))
    assert [check.printed for check in more.checks] == ["2.36", "3.33", "3.35", "4.94"]
    assert all(check.low < float(check.printed) < check.high for check in more.checks)
    assert more.instances == 20


TABLE = """panel,name,quantity,x,value,low,high,least,most,printed
all,a,ratio,1.0,0.5,0.4,0.6,,,
all,b,ratio,1.0,0.25,0.2,0.3,,,
all,a,ratio,10,0.8,0.7,0.9,,,
all,"""
TABLE += '''"""It falls.""",here,,,,,,,"1: 0.958 [0.947, 0.968], markets 0.95 to 0.96; 2: 0.9 [0.8, 1.1]"
all,a,time,,,,,,,1.89 ± 0.70 / 0.015
all,a,count,,,,,,,"1,043.5 (dT/D = 1)"
all,a,word,,,,,,,drawn
all,a,same,,1,,,,,1.5
all,a,same,,2,,,,,2.5
'''


@pytest.fixture
def docs(tmp_path):
    """A documentation of one page, which has the given instances."""
    (tmp_path / "reproductions").mkdir()
    (tmp_path / "reproductions/page.csv").write_text(TABLE)
    (tmp_path / "reproductions/page.md").write_text("Scale `small`: T = 9, 25 trials.")
    return tmp_path


def one(claims, docs, check, **fields):
    """Reads a file of one sentence with one check."""
    paper = 'key = "p"\nname = "P"\ncitation = "P"\ntext = true\npages = ["page"]\ninstances = \'(\\d+) (trials)\''
    entry = {"paper": "p", "place": "1", "quote": "It falls.", "page": "page", **fields}
    lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items()]
    (docs / "claims.toml").write_text(
        "\n".join([f"[[papers]]\n{paper}\n[[claims]]", *lines, f'[[claims.checks]]\nsays = "it"\n{check}'])
    )
    (claim,) = claims.read(docs)[1]
    return claim


@pytest.mark.parametrize(
    ("check", "figures"),
    [
        ('where = {panel = "all", name = "a", quantity = "ratio", x = 10}', [(0.8, 0.7, 0.9)]),
        ('where = {panel = "all", name = ["b", "a"], quantity = "ratio", x = 1}', [(0.25, 0.2, 0.3), (0.5, 0.4, 0.6)]),
        ('where = {panel = "all", quantity = "here"}', [(0.958, 0.947, 0.968), (0.9, 0.8, 1.1)]),
        ('where = {panel = "all", name = "a", quantity = "time"}', [(1.89, 1.19, 2.59)]),
        ('where = {panel = "all", name = "a", quantity = "count"}', [(1043.5, nan, nan)]),
        ('where = {panel = "all", name = "a", quantity = "count"}\nnumber = "exact"', [(1043.5, 1043.5, 1043.5)]),
        ('where = {panel = "all", name = "a", quantity = "count"}\nnumber = "lower bound"', [(1043.5, 1043.5, inf)]),
        ('where = {panel = "all", name = "a", quantity = "same", row = 1}', [(2.5, nan, nan)]),
        (
            'where = {panel = "all", name = "a", quantity = "ratio", x = 1}\nover = {name = "b"}',
            [(2, 0.4 / 0.3, 0.6 / 0.2)],
        ),
        ('where = {panel = "all", name = "a", quantity = "ratio", x = 1}\nover = {x = 1}', [(1, 1, 1)]),
        (
            'where = {panel = "all", name = "a", quantity = "ratio", x = 1}\nover = {name = ["b", "a"]}',
            [(2, 0.4 / 0.3, 0.6 / 0.2), (1, 1, 1)],
        ),
        (
            'where = {panel = "all", name = "a", quantity = "ratio", x = [1, 10]}\nfalls = "x"',
            [(1.6, 0.7 / 0.6, 0.9 / 0.4)],
        ),
    ],
)  # fmt: skip
def test_figures_that_a_check_has(claims, docs, check, figures):
    bound = "" if "falls" in check else "\nat_most = 1"
    (found,) = one(claims, docs, check + bound).checks
    assert (found.low, found.high) == (-inf, 1)
    assert len(found.figures) == len(figures)
    for figure, expected in zip(found.figures, figures, strict=True):
        assert (figure.value, figure.low, figure.high) == pytest.approx(expected, nan_ok=True)


GOOD = 'where = {panel = "all", name = "a", quantity = "ratio", x = 1}\nat_most = 1'


def test_instances_are_read_off_the_page(claims, docs):
    assert one(claims, docs, GOOD)[5:7] == (25, "trials")
    assert one(claims, docs, GOOD).verdict == "holds"
    (docs / "reproductions/page.md").write_text("Scale `small`: T = 9, 19 trials.")
    assert one(claims, docs, GOOD).verdict == "exploratory"
    assert one(claims, docs, GOOD, not_comparable="another T").verdict == "not comparable"


@pytest.mark.parametrize(
    ("check", "fields", "message"),
    [
        (GOOD.replace('"a"', '"c"'), {}, "page.csv has 0 rows at .*'name': 'c'.*; 1 is required"),
        (GOOD.replace("x = 1}", "x = 2}"), {}, "page.csv has 0 rows"),
        (GOOD.replace(", x = 1", ""), {}, "page.csv has 2 rows"),
        (GOOD.replace("x = 1}", "x = 1, row = 1}"), {}, "page.csv has 0 rows"),
        (GOOD.replace('"ratio", x = 1', '"word"'), {}, "page.csv has no number"),
        (GOOD.replace("\nat_most = 1", ""), {}, "'it' has no bounds"),
        (GOOD.replace("at_most", "atmost"), {}, r"'it' has \['atmost'\], which nothing reads"),
        (GOOD.replace("panel", "pannel"), {}, r"'it' has \['pannel'\], which nothing reads"),
        (GOOD + '\nnumber = "exactly"', {}, r"'it' has \['exactly'\], which nothing reads"),
        (GOOD, {"verdict": "holds"}, r"'It falls.' has \['verdict'\], which nothing reads"),
        (GOOD, {"instances": r"(\d+) (runs)"}, "page.md does not say its instances as"),
    ],
)
def test_what_is_wrong_is_said(claims, docs, check, fields, message):
    with pytest.raises(ValueError, match=message):
        one(claims, docs, check, **fields)


def test_a_sentence_without_checks_needs_a_reason(claims, docs):
    (docs / "claims.toml").write_text(
        '[[papers]]\nkey = "p"\n[[claims]]\npaper = "p"\nplace = "1"\nquote = "It falls."'
    )
    with pytest.raises(ValueError, match=r"'It falls.' has neither checks nor a reason"):
        claims.read(docs)


def test_quotients_are_of_positive_figures(claims):
    wide = Mean(2.0, -1.0, 5.0, 20)
    with pytest.raises(ValueError, match="not a quotient of positive figures"):
        claims.quotient(Mean(1.0, 0.9, 1.1, 20), replace(wide, value=0.0))
    above = claims.quotient(wide, Mean(4.0, 2.0, 8.0, 20))
    assert (above.value, above.low, above.high) == (0.5, 0.0, 2.5)
    below = claims.quotient(Mean(4.0, 2.0, 8.0, 20), wide)
    assert (below.value, below.low, below.high) == (2.0, 0.4, inf)
    assert comparison.verdict(below, high=1.0) == "undecided"


def test_the_page_and_the_gallery_have_all_of_them(claims, tmp_path):
    from generator import claims_page, gallery
    from generator.folder import Folder

    folder = Folder(tmp_path)
    for part in (claims_page, gallery):
        part.write(folder, ROOT / "docs")
    page, shown = ((tmp_path / name).read_text() for name in ("claims.md", "gallery.md"))
    papers, found = claims.read(ROOT / "docs")
    for claim in found:
        assert f'"{claim.quote}"' in page
        assert claim.reason in page
    assert page.count("exploratory (") == sum(claim.verdict == claims.EXPLORATORY for claim in found)
    for key, paper in papers.items():
        own = [claim.verdict for claim in found if claim.paper == key]
        head, *_ = shown.partition("````{container} figures")
        row = next((line for line in head.split("\n") if f"claims.md#claims-{key})" in line), "")
        assert bool(row) == bool(own), "the table stands before the pictures"
        if own:
            kinds = (claims.HOLDS, claims.FAILS, claims.UNDECIDED, claims.EXPLORATORY, claims.NOT_COMPARABLE)
            counts = [len(own), *(own.count(kind) for kind in kinds)]
            assert row == f"| [{paper['name']}](claims.md#claims-{key}) | {' | '.join(map(str, counts))} |"
            assert f"(claims-{key})=" in page
