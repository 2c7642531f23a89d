"""The closed forms against arithmetic of 80 digits, and against each other."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    classic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    log_gaussian_delta,
    zcdp_epsilon,
)

EPSILONS = (0.0, 1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0, 1e3)
MUS = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 44.7, 50.0)


def reference_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(80):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_delta_is_right_down_to_1e_300(mu):
    for epsilon in EPSILONS:
        expected = reference_delta(epsilon, mu)
        if expected < 1e-300:
            assert gaussian_delta(epsilon, mu) <= 1e-299
        else:
            logarithm = float(mpmath.log(expected))
            assert log_gaussian_delta(epsilon, mu) == pytest.approx(logarithm, rel=1e-10, abs=1e-9)


@given(st.floats(-6, 3).map(lambda x: 10.0**x), st.floats(-300, -0.01).map(lambda x: 10.0**x))
def test_analytic_calibration_gives_the_delta_asked_for(epsilon, delta):
    mu = 1 / analytic_noise_multiplier(epsilon, delta)
    assert log_gaussian_delta(epsilon, mu) == pytest.approx(np.log(delta), rel=1e-8, abs=1e-9)
    assert gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-6)


def test_epsilon_takes_arrays_and_limits():
    epsilon = gaussian_epsilon([[0.0], [1e-5], [1.0]], [0.0, 1.0, np.inf])
    assert epsilon.tolist() == [
        [0.0, np.inf, np.inf],
        [0.0, pytest.approx(4.3777, abs=1e-3), np.inf],
        [0.0, 0.0, 0.0],
    ]


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01, 0.2])
def test_classic_calibration_keeps_its_promise_below_1_and_analytic_needs_less_noise(epsilon, delta):
    classic = classic_noise_multiplier(epsilon, delta)
    assert classic == pytest.approx(np.sqrt(2 * np.log(1.25 / delta)) / epsilon, rel=1e-15)
    assert gaussian_delta(epsilon, 1 / classic) <= delta
    assert analytic_noise_multiplier(epsilon, delta) < classic


@given(st.floats(0.001, 10), st.floats(1e-12, 0.5))
def test_zcdp_bounds_gaussian_privacy_from_above(mu, delta):
    assert zcdp_epsilon(delta, mu**2 / 2) >= gaussian_epsilon(delta, mu)


@pytest.mark.parametrize(
    ("epsilon", "delta", "name"),
    [(0.0, 0.1, "epsilon"), (np.nan, 0.1, "epsilon"), (1.0, 1.0, "delta"), (1.0, 9e-301, "delta")],
)
def test_bad_parameters_are_named(epsilon, delta, name):
    with pytest.raises(ValueError, match=f"{name} is .*1e-300"):
        analytic_noise_multiplier(epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-150, 1e-40, 1e-16, 1e-12, 1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-30, 1e-17, 1e-15, 1e-9])
def test_analytic_calibration_keeps_its_promise_for_the_smallest_numbers(epsilon, delta):
    """Below 1e-8 a difference of two nearly equal numbers once gave too little noise, or none to speak of."""
    mu = 1 / analytic_noise_multiplier(epsilon, delta)
    with mpmath.workdps(700):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def tail(x):
            return mpmath.erfc(x / mpmath.sqrt(2)) / 2

        given = tail(e / m - m / 2) - mpmath.exp(e) * tail(e / m + m / 2)
        assert float(given / mpmath.mpf(delta)) == pytest.approx(1, abs=1e-8)
    assert gaussian_epsilon(delta, mu) == pytest.approx(epsilon, rel=1e-6)
