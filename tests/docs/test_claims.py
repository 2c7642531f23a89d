"""Every figure of the papers' sentences is that of a page's numbers, and every verdict follows from the figures."""

import csv
import re
from itertools import groupby
from math import inf, nan
from pathlib import Path

import pytest
from pages import claims

from fedbandit_envs.papers.page import read_numbers
from fedbandit_envs.papers.stats import FAILS, Mean, all_hold, verdict

PAGES = Path(__file__).parents[2] / "docs" / "reproductions"
PAGE = (PAGES / "claims.md").read_text()
CLAIMS = claims(PAGE)
SENTENCES = [cells for own in CLAIMS.values() for cells in own]
FIGURES = [
    list(own)
    for _, own in groupby(csv.DictReader((PAGES / "claims.csv").open()), lambda row: int(row["claim"]))
]
NUMBERS = {path.name.partition(".")[0]: read_numbers(path) for path in PAGES.glob("*.csv.gz")}
CELL = ("panel", "name", "quantity")


def cell(figure, start=""):
    """The figure that a cell of a paper's numbers has: in numbers with an interval, or as it is printed."""
    rows = [
        row
        for row in NUMBERS[figure["page"]]
        if "-".join(filter(None, (row["experiment"], row["scale"], row["settings"]))) == figure["made"]
        and all(row[key] == figure[start + key] for key in CELL)
        and (not figure[start + "x"] or (row["x"] and float(row["x"]) == float(figure[start + "x"])))
    ]
    (row,) = rows[int(figure[start + "row"]) :][:1] if figure[start + "row"] else rows
    if row["low"]:
        return [float(row[key] or nan) for key in ("value", "low", "high")]
    ratios = re.findall(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]", row["printed"])
    if ratios:
        return [*map(float, ratios[int(figure[start + "which"] or 0)])]
    found = re.match(r"(-?[\d,]*\.?\d+)(?: ± ([\d,]*\.?\d+))?", row["printed"])
    value, half = (float((part or "nan").replace(",", "")) for part in found.groups())
    ends = {"exact": (value, value), "lower bound": (value, inf)}
    return [value, *ends.get(figure["number"], (value - half, value + half))]


def measured(figure):
    """The figure of a check: of a cell, or of two cells with what both intervals allow of their quotient."""
    above = cell(figure)
    if not figure["over name"]:
        return above
    below = cell(figure, "over ")
    if above == below:
        return [1.0, 1.0, 1.0]
    assert min(above[0], below[0]) > 0
    high = above[2] / below[1] if below[1] > 0 else inf
    return [above[0] / below[0], max(above[1], 0.0) / below[2], high]


@pytest.mark.parametrize("figures", FIGURES, ids=lambda figures: figures[0]["claim"])
def test_figures_are_those_of_the_numbers_and_the_verdict_follows(figures):
    statements = []
    for figure in figures:
        value = measured(figure)
        assert value == pytest.approx([float(figure[key]) for key in ("value", "low", "high")], nan_ok=True)
        bounds = float(figure["from"] or -inf), float(figure["to"] or inf)
        assert bounds != (-inf, inf)
        statements.append(verdict(Mean(*value, int(figure["instances"])), *bounds))
    place, quote, rule, here, says = SENTENCES[int(figures[0]["claim"]) - 1]
    assert place
    assert quote
    assert f"({figures[0]['page']}.md), {int(figures[0]['instances']):,} " in here
    if not says.startswith("not comparable"):
        assert says.partition(" (")[0] == figures[0]["verdict"] == all_hold(statements)
        for figure, bound in ((figure, figure[end]) for figure in figures for end in ("from", "to")):
            assert not bound or f"{float(bound):g}" in rule, figure
    if len(figures) == 1:
        shown = f"{float(figures[0]['value']):.3f}", f"{float(figures[0]['value']):,.0f}"
        assert figures[0]["value"] == "nan" or any(text in here for text in shown)


def test_every_sentence_has_figures_or_a_reason():
    assert len(SENTENCES) == 102
    with_figures = {int(own[0]["claim"]) for own in FIGURES}
    for number, (*_, here, says) in enumerate(SENTENCES, 1):
        assert (number in with_figures) == ("](" in here)
        assert number in with_figures or re.match("not comparable: .", says)


def test_the_counts_are_those_of_the_sentences():
    kinds = "holds", FAILS, "undecided", "exploratory", "not comparable"
    for key, own in CLAIMS.items():
        counts = [sum(cells[-1].startswith(kind) for cells in own) for kind in kinds]
        assert f"](#claims-{key}) | {len(own)} | {' | '.join(map(str, counts))} |" in PAGE
