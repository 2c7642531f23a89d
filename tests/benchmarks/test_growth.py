"""The page on growth: exponents are right, measurements are made, and the page says what its CSV file holds."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def checkout():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield


def points_of(sizes, seconds, kilobytes, run="SS-UCB", size="rounds"):
    from benchmarks.growth.series import Measurement

    rows = zip(sizes, seconds, kilobytes, strict=True)
    return [Measurement(run, size, n, taken, taken, taken, held) for n, taken, held in rows]


def test_exponents_of_powers():
    from benchmarks.growth.page import exponent

    sizes = [1, 10, 20, 40, 80]
    # The smallest of five has no say.
    assert exponent(sizes, [7.0, *(3.0 * n**1.5 for n in sizes[1:])]) == pytest.approx((1.5, 1.5, 1.5))
    assert exponent(sizes, [4.0] * 5) == (0.0, 0.0, 0.0)


def test_the_interval_of_an_exponent_holds_the_truth_as_often_as_it_says():
    """Of 400 intervals 380 are to hold; fewer than 362 or more than 395 are so with a probability of 1e-4 each."""
    from benchmarks.growth.page import exponent

    rng, sizes = np.random.default_rng(0), np.array([10, 20, 40, 80])
    fits = [exponent(sizes, sizes**0.7 * np.exp(0.1 * rng.standard_normal(4))) for _ in range(400)]
    assert 362 <= sum(fit.low <= 0.7 <= fit.high for fit in fits) <= 395


def test_no_exponent_is_printed_that_cannot_tell_one_from_two():
    """Seconds that fall and rise again have a slope, and no exponent."""
    from benchmarks.growth.page import exponent, table

    bent = [0.1, 0.4, 0.2, 0.8]
    fit = exponent([10, 20, 40, 80], bent)
    assert fit.high - fit.low > 1
    assert not fit.is_known
    printed = table(points_of([10, 20, 40, 80], bent, [50.0, 100.0, 200.0, 400.0]))
    assert "| 0.1 to 0.8 | - | 1 | 50 to 400 | 1.00 [1.00, 1.00] | 0 |" in printed


@pytest.mark.ci
def test_measurements_are_of_what_is_run():
    """Memory is what a run holds; time is that of a process of its own, in which nothing is left from the last one."""
    from benchmarks.growth.series import Series, measure

    kept = []

    def run(*, rounds):
        def work():
            assert not kept
            kept.append(np.ones(125 * rounds))

        return work

    series = Series(run, {"rounds": 5}, "rounds", (100, 1000), "1", "1")
    points = list(measure("x", series._replace(run=partial(_forgetting, run, kept)), series.values, 2))
    assert [point.kilobytes for point in points] == pytest.approx([100, 1000], abs=20)
    assert all(point.fastest <= point.seconds <= point.slowest for point in points)


def _forgetting(run, kept, **sizes):
    """What is kept by a run in this process, which compiles kernels, is forgotten; children keep theirs."""
    kept.clear()
    return run(**sizes)


def test_a_failure_in_a_child_is_an_error():
    from benchmarks.growth.series import _in_a_child

    with pytest.raises(RuntimeError, match="failed"):
        _in_a_child(lambda: 1 / 0)


def test_every_series_runs():
    """At its smallest size, ten rounds or releases: names of sizes are those that environments know."""
    from benchmarks.growth.series import SERIES

    for name, all_of in SERIES.items():
        assert len({series.size for series in all_of}) == len(all_of), name
        for series in all_of:
            assert series.size in series.base
            assert list(series.values) == sorted(set(series.values))
            few = {size: min(number, 10) for size, number in series.base.items()}
            series.run(**{**few, series.size: min(series.values[0], 10)})()


@pytest.mark.ci
def test_files_hold_what_was_measured(tmp_path):
    from benchmarks.growth.page import draw, read_csv, table, write_csv, write_page

    points = points_of([500, 1000, 2000], [0.1, 0.2, 0.4], [50.0, 50.0, 50.0])
    points += points_of([125, 250, 500], [0.1, 0.4, 1.6], [10.0, 20.0, 40.0], "sqrt_toeplitz", "releases")
    write_csv(points, tmp_path / "growth.csv")
    assert read_csv(tmp_path / "growth.csv") == points
    draw(points, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    write_page(points, "a machine", "a command", 3, tmp_path / "growth.md")
    page = (tmp_path / "growth.md").read_text()
    assert table(points) in page
    assert "| 0.1 to 0.4 | 1.00 [1.00, 1.00] | 1 | 50 to 50 | 0.00 [0.00, 0.00] | 0 |" in page
    assert "| 0.1 to 1.6 | 2.00 [2.00, 2.00] | 2 | 10 to 40 | 1.00 [1.00, 1.00] | 1 |" in page


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("growth*.md")), ids=lambda page: page.stem)
def test_the_page_says_what_its_csv_file_holds(page):
    from benchmarks.growth.page import read_csv, table

    assert table(read_csv(page.with_suffix(".csv"))) in page.read_text()
