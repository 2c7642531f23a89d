"""What a section prints is in its rows, tables stand between their marks, and a change of either is found."""

import math

import pytest
from pages import check_section, parts_of
from toy_paper import TOY

from fedbandit_envs.papers.experiment import Plan, Scale, Section
from fedbandit_envs.papers.page import filled, read_numbers, write_numbers
from fedbandit_envs.papers.stats import Mean, Ratio

RATIO = Ratio(0.7034, 0.688, 0.718, 20)


@pytest.fixture
def written():
    section = Section(Plan("uniform", TOY.scales["small"], "default"))
    heads = ("algorithm", "regret [95 %]", "ratio", "share", "remark", "other")
    lines = [
        ("P-FCB", Mean(2280.4, 2111.2, 2449.6, 20), RATIO, "12.3%", "no digit", 4_321),
        (
            "SS-UCB",
            Mean(-1234.56, -1300, -1169.12, 20, spec=",.1f"),
            Ratio(14.7, 14.4, 15, 20),
            "-",
            "",
            Ratio(math.nan, 0.125, 2.5, 20),
        ),
    ]
    section.table("regrets", (dict(zip(heads, line, strict=True)) for line in lines))
    section.say({"saving": Ratio(0.3, 0.25, 0.35, 20)})
    section.record({"P-FCB": {10: RATIO}}, "{} / silent")
    section.draw(
        {
            "P-FCB": {1: Mean(0.5, 0.375, 0.625, 20), 10: Mean(0.25, 0.1875, 0.3125, 20)},
            "beside": [(1, Mean(0.5, 0.375, 0.75, 20))],
            "P-FCB / silent": {10: RATIO, 20: RATIO},
        },
        {"beside": "P-FCB"},
    )
    return section


def test_what_is_printed_and_drawn_is_recorded(written):
    rows = check_section(written)
    assert [(row["name"], row["quantity"], row["printed"]) for row in rows] == [
        ("P-FCB", "regret [95 %]", "2280 [2111, 2450]"),
        ("P-FCB", "ratio", "0.703 [0.688, 0.718]"),
        ("P-FCB", "share", "12.3%"),
        ("P-FCB", "other", "4321"),
        ("SS-UCB", "regret [95 %]", "-1,234.6 [-1,300.0, -1,169.1]"),
        ("SS-UCB", "ratio", "14.700 [14.400, 15.000]"),
        ("SS-UCB", "other", "[0.12, 2.50]"),
        ("saving", "in the text", "0.300 [0.250, 0.350]"),
        ("P-FCB / silent", "ratio", ""),
        *[("P-FCB", "drawn", "")] * 2,
        ("beside", "drawn", ""),
        ("P-FCB / silent", "ratio", ""),
    ]
    assert [row["value"] for row in rows] == [
        2280.4, 0.7034, "", 4321.0, -1234.56, 14.7, "", 0.3, 0.7034, 0.5, 0.25, 0.5, 0.7034,
    ]  # fmt: skip
    assert [(row["x"], row["low"], row["high"]) for row in rows[-4:-1]] == [
        (1, 0.375, 0.625), (10, 0.1875, 0.3125), (1, 0.375, 0.75),
    ]  # fmt: skip
    assert written.beside == {"beside": "P-FCB"}
    xs, values, bars = written.curves["P-FCB"]
    assert written.curves["beside"][2].tolist() == [[0.125], [0.25]]
    assert (xs, values, bars.tolist()) == ([1, 10], [0.5, 0.25], [[0.125, 0.0625], [0.125, 0.0625]])


def test_parts_of_a_page_stand_between_marks():
    page = filled(
        "# Title\n\nProse before.\n\n<!-- a b -->\nold\n<!-- /a b -->\n\nProse behind.\n", {"a b": "| new |"}
    )
    assert page == "# Title\n\nProse before.\n\n<!-- a b -->\n\n| new |\n\n<!-- /a b -->\n\nProse behind.\n"
    both = filled(page, {"c": "| other |"})
    assert both.startswith(page)
    assert parts_of(both) == {"a b": "| new |", "c": "| other |"}
    assert filled(both, parts_of(both)) == both


def test_numbers_are_sorted_and_the_same_file_each_time(tmp_path, written):
    made = [{"experiment": "b", "scale": "small", "settings": ""} | row for row in written.rows]
    first = [{"experiment": "a", "scale": "small", "settings": ""} | row for row in written.rows]
    write_numbers(tmp_path / "one.csv.gz", [*made, *first])
    write_numbers(tmp_path / "two.csv.gz", [*first, *made])
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
    rows = read_numbers(tmp_path / "one.csv.gz")
    assert [row["experiment"] for row in rows] == ["a"] * len(first) + ["b"] * len(made)
    assert rows[0]["value"] == "2280.4"


def test_judged_ratios_are_numbers_and_verdicts_before_further_lines():
    section = Section(Plan("all", Scale(50, 2)))
    section.judge({"a / b": Ratio(0.9, 0.8, 0.95, 20)}, ("least", "a", "-"))
    cells = "| a / b | 0.900 [0.800, 0.950] |"
    assert section.tables["numbers"].endswith(cells)
    assert section.tables["verdicts"].splitlines()[2:] == [f"{cells} holds |", "| least | a | - |"]
