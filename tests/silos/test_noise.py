"""Secret noise has the law that it claims, on a grid that says nothing about what it was added to."""

from random import Random

import numpy as np
import pytest
from scipy import stats
from silo_runs import noisy, plan_of

from fedbandit_envs.core.privacy import Change, Sensitivity
from fedbandit_envs.silos import Silo
from fedbandit_envs.silos.noise import STEPS, SecretDraws, _factors, randomised, rounded
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Gaussian, Laplace
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism


@pytest.mark.parametrize(("kind", "law"), [("normal", stats.norm), ("laplace", stats.laplace)])
@pytest.mark.parametrize(("size", "number"), [(1, 10_000), (4, 60_000)])
def test_integers_have_the_rounded_law(kind, law, size, number):
    # A false alarm in one of a thousand seeds, for each of the four.
    draws = SecretDraws(Random(5))
    drawn = np.array([getattr(draws, kind)(size) for _ in range(number)])
    ends = np.arange(-4 * size, 4 * size + 2) - 0.5
    expected = np.diff(law.cdf(ends / size))
    found = np.histogram(drawn, ends)[0]
    rest = 1 - expected.sum(), len(drawn) - found.sum()
    assert stats.chisquare([*found, rest[1]], len(drawn) * np.array([*expected, rest[0]])).pvalue > 1e-3


@pytest.mark.parametrize(
    "mechanism", [Gaussian(epsilon=1.0, delta=1e-5, releases=2), Laplace(epsilon=1.0, releases=2)]
)
def test_a_release_lies_on_the_grid_and_has_the_variance_that_it_announces(mechanism):
    plain = Sensitivity({"sums": np.full((1, 1, 400), 0.7)}, {"one-observation": Change(2, 1.5)})
    sensitivity = rounded(plain, rounds=1000, windows=1)
    # Rounding counts: two steps in each number, beside errors of sums.
    assert sensitivity.changes["one-observation"].norm == pytest.approx(1.5 + 2 * 20 / STEPS, abs=1e-8)
    mechanism.start(sensitivity, 10, [])
    statistic = {"sums": np.linspace(-1e5, 1e5, 400).reshape(1, 1, 400) / 3}
    releases = [randomised(mechanism, statistic, np.zeros((1, 1), int), {}) for _ in range(25)]
    step = sensitivity.scale["sums"][0, 0, 0] / STEPS
    noise = np.concatenate([(one["sums"] - statistic["sums"]).ravel() for one in releases])
    for one in releases:
        counts = one["sums"] / step
        assert np.abs(counts - np.rint(counts)).max() < 1e-4
    variance = releases[0]["sums_noise_variance"][0, 0]
    # Of 10,000 draws; a false alarm in one of ten thousand runs.
    assert noise.var() == pytest.approx(variance[0], rel=0.06 if isinstance(mechanism, Gaussian) else 0.13)
    assert len(np.unique(noise)) == len(noise)
    with pytest.raises(OverflowError, match="the statistic has"):
        randomised(mechanism, {"sums": np.full((1, 1, 400), 1e12)}, np.zeros((1, 1), int), {})


def test_claims_of_secret_noise_keep_to_the_plan(tmp_path):
    plan = plan_of("linear", 8, baseline="fedbandit_envs.baselines.linear:FedUCB", stack=noisy())
    with Silo(plan, 0, tmp_path / "0.db") as silo:
        for _ in range(8):
            silo.observe(silo.act({"contexts": np.full((6, 3), 0.5)}), 1.0)
            if silo.due:
                silo.release()
        assert 0.9999 < silo.privacy().epsilon <= 1.0
        assert silo.privacy().noise == "secret"


@pytest.mark.parametrize("matrix", ["sqrt_toeplitz", "blt", "tree", "independent"])
def test_correlated_noise_has_the_variances_that_it_announces(matrix):
    mechanism = MatrixMechanism(1.0, 1e-5, matrix, releases=6)
    # Windows in which nothing differs but how sums are rounded count, too.
    plain = Sensitivity(
        {"sums": np.full((1, 1, 10, 10), 0.7)}, {"one-observation": Change(2, 1.5)}, symmetric=True
    )
    sensitivity = rounded(plain, rounds=1000, windows=6)
    assert sensitivity.changes["one-observation"].norm == pytest.approx(1.5 + 6 * 2 * 10 / STEPS, abs=1e-7)
    mechanism.start(sensitivity, 10, [])
    statistic = {"sums": np.linspace(-1e5, 1e5, 100).reshape(1, 1, 10, 10)}
    statistic["sums"] += statistic["sums"].swapaxes(-1, -2)
    upper, errors, announced = np.triu_indices(10, 1), np.zeros((6, 60, 45)), np.zeros(6)
    for run in range(60):
        past = {}
        for z in range(6):
            release = randomised(mechanism, statistic, np.full((1, 1), z), past)
            noise = (release["sums"] - statistic["sums"])[0, 0]
            assert np.array_equal(noise, noise.T)
            errors[z, run] = noise[upper]
            announced[z] = release["sums_noise_variance"][0, 0, 0, 1]
        assert past["shown"].shape == past["grown"].shape == (6, 55)
        # What was shown lies on the grid; the rest follows from it.
        steps = past["shown"] / (sensitivity.scale["sums"][0, 0, 0, 0] / STEPS)
        assert np.abs(steps - np.rint(steps)).max() < 1e-3
    # Of 2,700 draws; a false alarm in one of a thousand runs.
    found = errors.cumsum(axis=0).reshape(6, -1).var(axis=1)
    assert found == pytest.approx(announced.cumsum(), rel=0.11)
    # What events count is the norm of what one window, or an equal change of all, moves in C x.
    kind = type(mechanism._noise)
    for z in range(1, 7):
        shown = _factors(kind, 6)[1][:z]
        assert np.square(shown).sum(axis=0).max() <= mechanism._noise.column_square(z) * (1 + 1e-12)
        assert np.square(shown.sum(axis=1)).sum() <= mechanism._noise.sum_square(z) * (1 + 1e-12)
    mechanism._calibrate(sensitivity, 10)
    expected = [mechanism._noise.variance(z) * mechanism._variance[0, 0, 1] for z in range(1, 7)]
    assert announced.cumsum() == pytest.approx(expected, rel=1e-5)


def test_noise_that_releases_share_survives_a_restart(tmp_path):
    plan = plan_of("arms", 8, baseline="MOSS-weighted")
    shown = []
    for _ in range(8):
        with Silo(plan, 0, tmp_path / "0.db") as silo:
            silo.observe(silo.act({}), 1)
            if silo.due:
                before = {name: array.copy() for name, array in silo._past.items()}
                shown.append(silo.release().arrays["pulls"])
                for name, array in before.items():
                    assert np.array_equal(silo._past[name][: len(array)], array)
                # Growth of all windows so far, and no window twice.
                assert np.array_equal(silo._past["grown"].sum(axis=0)[:4], silo.totals["pulls"])
    with Silo(plan, 0, tmp_path / "0.db") as silo:
        assert silo._past["shown"].shape == (4, 8)
        mixing = _factors(type(silo._mechanism._noise), 4)[0]
        assert np.allclose(mixing @ silo._past["shown"][:, :4], shown)
        assert 0.9999 < silo.privacy().epsilon <= 1.0
        assert silo.report().fields["mechanism"]["name"] == "MatrixMechanism"
