"""Intervals: the package has the routine that the simulation chooses, and the table of the page comes about again."""

import re

import numpy as np
import pytest

from fedbandit_envs.experiments.measures import mean_with_interval, ratio_with_interval

pytestmark = pytest.mark.ci
DECIDING = ("Pareto, index 2.5", "95 % N(80, 20), 5 % at 10,000")
"""Percentile covers too little under the first, and bootstrap-t is too wide under the second."""


def test_the_package_has_the_routine_that_was_chosen():
    from benchmarks.bench_intervals import PAGE, ends_of

    assert re.search(r"\nWe chose the method.*: (.*)\.\n", PAGE.read_text())[1] == "BCa"
    above, below = np.random.default_rng(0).lognormal(size=(2, 20, 3))
    means, ratios = ends_of(above), ends_of(above, below)
    np.testing.assert_allclose(mean_with_interval(above.T)[1:], means["BCa"], rtol=1e-3)
    for sample, ends in enumerate(np.transpose(ratios["BCa"])):
        found = ratio_with_interval(above[:, sample], below[:, sample])[1:]
        np.testing.assert_allclose(found, ends, rtol=1e-3)
    for other in ("percentile", "bootstrap-t", "Student"):
        assert not np.allclose(ratios[other], ratios["BCa"], rtol=1e-2)


@pytest.mark.parametrize("samples", [1000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_table_comes_about_again_and_chooses_the_package_s_routine(samples):
    """Of 8 shares none is 4.5 sigma from the page's, which are of the same and of more samples: a chance of 5e-5."""
    from benchmarks.bench_intervals import PAGE, ROUTINES, chosen, measured

    found = {(law, 100, True): measured(law, 100, samples, of_ratio=True) for law in DECIDING}
    for (law, *_), cells in found.items():
        line = re.search(rf"^\| {re.escape(law)} \| 100 \| ratio \|(.*) \|$", PAGE.read_text(), re.MULTILINE)[
            1
        ]
        said = [float(cell.partition(";")[0]) for cell in line.split("|")]
        for name, share in zip((*ROUTINES, "Student"), said, strict=True):
            assert abs(cells[name][0] - share) <= 4.5 * np.sqrt(share * (1 - share) / samples) + 0.0005
    if samples == 20_000:
        assert chosen(found) == "BCa"
