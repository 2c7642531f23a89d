"""What a section prints is in its CSV rows, and a change of either is found."""

import csv
import math

import pytest
from pages import check_page
from toy_paper.experiments import TOY

from fedbandit_envs.papers.reproduction.comparison import Mean, Ratio
from fedbandit_envs.papers.reproduction.experiment import Plan
from fedbandit_envs.papers.reproduction.page import COLUMNS, Section

RATIO = Ratio(0.7034, 0.688, 0.718, 20)


def write(folder):
    section = Section(TOY, Plan("uniform", TOY.scales["small"], "default"))
    other = Ratio(14.7, 14.4, 15, 20)
    heads = ("algorithm", "regret (± 95 %)", "ratio", "share", "remark", "other")
    lines = [
        ("P-FCB", Mean(2280.4, 2111.2, 2449.6, 20), RATIO, "12.3%", "no digit", 4_321),
        (
            "SS-UCB",
            Mean(-1234.56, -1300, -1169.12, 20, spec=",.1f"),
            other,
            "-",
            "",
            Ratio(math.nan, 0.125, 2.5, 20),
        ),
    ]
    text = [section.table(dict(zip(heads, line, strict=True)) for line in lines)]
    text += ["", f"It saves {section.say('saving', Ratio(0.3, 0.25, 0.35, 20))} of it."]
    section.record({"P-FCB": {10: RATIO}}, "{} / silent")
    section.draw(
        {
            "P-FCB": {1: Mean(0.5, 0.375, 0.625, 20), 10: Mean(0.25, 0.1875, 0.3125, 20)},
            "beside": [(1, Mean(0.5, 0.375, 0.75, 20))],
            "P-FCB / silent": {10: RATIO, 20: RATIO},
        }
    )
    path = folder / "page.md"
    path.write_text("\n".join(text))
    with path.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(section.rows)
    return path


def test_what_is_printed_and_drawn_is_recorded(tmp_path):
    rows = check_page(write(tmp_path))
    assert [(row["name"], row["quantity"], row["printed"]) for row in rows] == [
        ("P-FCB", "regret (± 95 %)", "2280 ± 169"),
        ("P-FCB", "ratio", "0.703 [0.688, 0.718]"),
        ("P-FCB", "share", "12.3%"),
        ("P-FCB", "other", "4321"),
        ("SS-UCB", "regret (± 95 %)", "-1,234.6 ± 65.4"),
        ("SS-UCB", "ratio", "14.700 [14.400, 15.000]"),
        ("SS-UCB", "other", "[0.12, 2.50]"),
        ("saving", "in the text", "0.300 [0.250, 0.350]"),
        ("P-FCB / silent", "ratio", ""),
        *[("P-FCB", "drawn", "")] * 2,
        ("beside", "drawn", ""),
        ("P-FCB / silent", "ratio", ""),
    ]
    assert [row["value"] for row in rows] == [
        "2280.4", "0.7034", "", "4321.0", "-1234.56", "14.7", "", "0.3", "0.7034", "0.5", "0.25", "0.5", "0.7034",
    ]  # fmt: skip
    assert [(row["x"], row["low"], row["high"]) for row in rows[-4:-1]] == [
        ("1", "0.375", "0.625"), ("10", "0.1875", "0.3125"), ("1", "0.375", "0.75"),
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".md", ".csv"])
@pytest.mark.parametrize(("said", "changed"), [
    ("2280 ± 169", "2281 ± 169"),
    ("2280 ± 169", "2280 ± 168"),
    ("0.703 [0.688, 0.718]", "0.704 [0.688, 0.718]"),
    ("0.703 [0.688, 0.718]", "0.703 [0.689, 0.718]"),
    ("12.3%", "12.4%"),
    ("4321", "4322"),
    ("65.4", "65.5"),
    ("2.50]", "2.51]"),
    ("0.300 [0.250", "0.301 [0.250"),
])  # fmt: skip
def test_an_edited_number_is_found(tmp_path, suffix, said, changed):
    path = write(tmp_path)
    file = path.with_suffix(suffix)
    before, found, after = file.read_text().rpartition(said)
    assert found
    file.write_text(before + changed + after)
    with pytest.raises(AssertionError):
        check_page(path)


@pytest.mark.parametrize(
    ("said", "changed"), [("2280.4", "2281.4"), ("0.7034", "0.8034"), ("2111.2", "2110.2")]
)
def test_an_edited_number_behind_what_is_printed_is_found(tmp_path, said, changed):
    path = write(tmp_path)
    file = path.with_suffix(".csv")
    file.write_text(file.read_text().replace(said, changed, 1))
    with pytest.raises(AssertionError):
        check_page(path)


def test_an_edited_line_of_both_or_a_line_left_out_is_found(tmp_path):
    path = write(tmp_path)
    for file in (path, path.with_suffix(".csv")):
        file.write_text(file.read_text().replace("2280 ± 169", "2380 ± 169"))
    with pytest.raises(AssertionError):
        check_page(path)
    path = write(tmp_path)
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "SS-UCB" not in line))
    with pytest.raises(AssertionError):
        check_page(path)
