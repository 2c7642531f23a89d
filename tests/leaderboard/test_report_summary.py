"""The table for a README, and how it comes there."""

import pytest
from board_results import federation_pays, result

from fedbandit_envs.leaderboard.report import report
from fedbandit_envs.leaderboard.report.page import BEGIN, END, renewed, summary
from fedbandit_envs.leaderboard.report.rows import rows_of
from fedbandit_envs.leaderboard.result import ResultError

SUITE = "arms-quick"


def test_summary_has_the_best_of_every_track():
    other = result("linear-quick", "LinUCB", "silent", 0.4)
    seen = result(SUITE, "sees-all", "revealed", 0.0)
    heads, _, arms, linear = summary(rows_of([*federation_pays(SUITE), seen, other])).splitlines()
    assert heads == "| suite | silent | private-0.1 | private-1 | private-10 | non-private |"
    # Without the reference's result there is no score, and no ratio is written.
    assert (
        linear == "| linear-quick | LinUCB (random-arm was not run) | not run | not run | not run | not run |"
    )
    cells = [cell.strip() for cell in arms.strip("|").split("|")]
    assert [cell.split()[0] for cell in cells[:4]] == [
        "arms-quick",
        "UCB1-tuned",
        "UCB1-weighted-placebo",
        "UCB1-weighted",
    ]
    (best,) = [
        row for rows in rows_of(federation_pays(SUITE)).values() for row in rows if row.name == "UCB1-tuned"
    ]
    assert float(cells[1].split()[1]) == pytest.approx(float(best.ratio.value), abs=5e-3)


def test_the_table_of_a_readme_is_renewed_and_nothing_else(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\ntable\n{END}\nafter\n")
    every = federation_pays(SUITE)[:4]
    report(every, tmp_path / "out", readme=readme)
    expected = f"before\n{BEGIN}\n{summary(rows_of(every))}\n{END}\nafter\n"
    assert readme.read_text() == expected
    report(every, tmp_path / "out", readme=readme)
    assert readme.read_text() == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{BEGIN}\n",
        f"{END}\n{BEGIN}\n",
        f"{BEGIN}\n{BEGIN}\n{END}\n",
        f"{BEGIN}\n{END}\n{END}\n",
        f"in line {BEGIN} {END}",
    ],
)
def test_a_readme_without_marks_stays_as_it_is(text):
    with pytest.raises(ResultError, match="both are required"):
        renewed(text, "table")
