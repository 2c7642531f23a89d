"""Compositions of releases against dp-accounting and against closed forms."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from events import ALL, ONE_VALUE, PAIR_OF_30, gaussian, pure
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import every_pair

from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.accounting.event import Event

SEQUENCES = st.lists(st.tuples(st.floats(0.05, 1.5), st.integers(1, 4)), min_size=1, max_size=5)
SLOW = settings(max_examples=8, derandomize=True)
# For these numbers dp-accounting's estimates are as good with intervals five times as wide as its own, in a fifth of
# the time.
INTERVAL = {"value_discretization_interval": 5e-4}


@SLOW
@given(SEQUENCES, st.sampled_from([1e-6, 1e-3, 0.05]))
def test_gaussian_sequences_agree_with_loss_distributions(sequence, delta):
    accountant = Accountant(1, 1)
    composed = None
    for epsilon, times in sequence:
        event = gaussian(epsilon)
        part = pld.from_gaussian_mechanism(1 / (event.loss * math.sqrt(2)), **INTERVAL).self_compose(times)
        composed = part if composed is None else composed.compose(part)
        for _ in range(times):
            accountant.record(event, ALL)
    expected = composed.get_epsilon_for_delta(delta)
    assert accountant.epsilon(delta, composition="exact").epsilon == pytest.approx(expected, abs=1e-3)


@SLOW
@given(
    st.lists(
        st.tuples(st.sampled_from(["gaussian", "laplace", "randomised_response"]), st.floats(0.05, 0.8)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1e-6, 1e-2]),
)
def test_mixtures_agree_with_release_by_release_loss_distributions(sequence, delta):
    accountant = Accountant(1, 1)
    composed = None
    for kind, loss in sequence:
        if kind == "gaussian":
            event, part = (
                Event(kind, loss, 0.0, 0.0, ONE_VALUE),
                pld.from_gaussian_mechanism(1.0, sensitivity=loss, **INTERVAL),
            )
        elif kind == "laplace":
            event, part = pure(kind, loss), pld.from_laplace_mechanism(1.0, sensitivity=loss, **INTERVAL)
        else:
            event, part = (
                pure(kind, loss),
                pld.from_randomized_response(2 / (1 + math.exp(loss)), 2, **INTERVAL),
            )
        composed = part if composed is None else composed.compose(part)
        accountant.record(event, ALL)
    expected = composed.get_epsilon_for_delta(delta)
    assert accountant.epsilon(delta, composition="exact").epsilon == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_single_pure_releases_agree_with_closed_forms(epsilon):
    for kind, expected in (
        # delta = 1 - exp((eps - eps0)/2), and delta = p - e^eps (1 - p) with p = e^eps0/(1 + e^eps0).
        ("laplace", epsilon + 2 * math.log(1 - 0.05)),
        ("randomised_response", math.log(1 - 0.05 * (1 + math.exp(-epsilon))) + epsilon),
    ):
        accountant = Accountant(1, 1)
        accountant.record(pure(kind, epsilon), ALL)
        for composition in ("exact", "parallel"):
            claim = accountant.epsilon(0.05, composition=composition)
            assert claim.epsilon == pytest.approx(expected, abs=1e-3)
            assert accountant.epsilon(0.0, composition=composition).epsilon == pytest.approx(epsilon)


@given(SEQUENCES)
def test_no_composition_of_gaussians_is_below_the_exact_one(sequence):
    accountant = Accountant(1, 1)
    for epsilon, times in sequence:
        for _ in range(times):
            accountant.record(gaussian(epsilon, 1e-3, multiplier=analytic_noise_multiplier), ALL)
    basic = accountant.epsilon()
    exact = accountant.epsilon(basic.delta, composition="exact").epsilon
    assert exact <= basic.epsilon
    assert exact <= accountant.epsilon(basic.delta, composition="zcdp").epsilon


def test_parallel_is_the_largest_release_and_refuses_data_released_twice():
    accountant = Accountant(1, 1)
    for epsilon in (0.2, 0.7, 0.4):
        accountant.record(gaussian(epsilon), ALL)
    alone = Accountant(1, 1)
    alone.record(gaussian(0.7), ALL)
    assert accountant.epsilon(1e-4, composition="parallel") == alone.epsilon(1e-4, composition="parallel")
    accountant.record(Event("gaussian", 0.1, 0.1, 0.01, PAIR_OF_30, releases=2), ALL)
    claim = accountant.epsilon(1e-4, composition="parallel")
    assert claim.epsilon is None
    assert "released twice" in claim.reason
    assert accountant.epsilon(1e-4, composition="exact").epsilon > 0


@pytest.mark.parametrize(
    ("kind", "loss", "times", "mu"),
    every_pair(
        ["laplace", "randomised_response"],
        [1e-6, 1e-3, 0.3, 5.0, 35.0, 45.0, 1e3, 1e4, 1e9],
        [1, 7],
        [0.0, 0.4],
    ),
)
def test_exact_composition_says_no_more_than_basic_and_is_bounded_work(kind, loss, times, mu):
    """From 1e-6 to 1e9, where it once took minutes and gigabytes, gave 80 times the sum, or overflowed."""
    accountant = Accountant(1, 1)
    for _ in range(times):
        accountant.record(pure(kind, loss), ALL)
    parts = loss * times
    if mu:
        accountant.record(Event("gaussian", mu, 1.0, 0.01, ONE_VALUE), ALL)
        parts += float(gaussian_epsilon(1e-5, mu))
    claim = accountant.epsilon(1e-5, composition="exact")
    assert 0 <= claim.epsilon <= parts * (1 + 1e-12)
    assert claim.reason == ""
    if mu == 0 and times == 1 and loss >= 1e-3:
        # delta buys next to nothing of a single pure release.
        assert claim.epsilon >= 0.9 * loss


def test_composition_gains_where_there_is_something_to_gain():
    accountant = Accountant(1, 1)
    for _ in range(100):
        accountant.record(pure("laplace", 0.1), ALL)
    assert accountant.epsilon(1e-5, composition="exact").epsilon < 0.6 * 10
