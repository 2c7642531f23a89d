"""Events of new kinds, by the curves that they give: against dp-accounting's own composition and closed forms."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from events import ALL, ONE_VALUE, gaussian

from fedbandit_envs.core.privacy import Change
from fedbandit_envs.wrappers.privacy.accounting.calibration import zcdp_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant, Event

GAMMA = 0.3
COMPOSED = ("zcdp", "exact", "parallel")


@dataclass(frozen=True)
class Staircase(Event):
    """Noise of Geng and Viswanath (2014): a density that falls by e^-loss at gamma, 1 + gamma, 2 + gamma ..."""

    gamma: float = GAMMA

    def loss_distribution(self, change, interval):
        # Shifted by 1, the likelihood ratio is e^loss beyond gamma on one side, e^-loss on the other, and 1 between.
        decay, narrow = math.exp(-self.loss), min(self.gamma, 1 - self.gamma)
        height = (1 - decay) / (2 * (self.gamma + decay * (1 - self.gamma)))
        up = 0.5 + narrow * height
        between = abs(1 - 2 * self.gamma) * height * (decay if self.gamma < 0.5 else 1)
        upper = {"up": up, "between": between, "down": up * decay}
        lower = {"up": up * decay, "between": between, "down": up}
        return pld.from_two_probability_mass_functions(
            {name: math.log(mass) for name, mass in lower.items()},
            {name: math.log(mass) for name, mass in upper.items()},
            value_discretization_interval=interval,
        ).self_compose(change.values)


class DiscreteGaussian(Event):
    """Discrete Gaussian noise of parameter 1/loss in counts."""

    def loss_distribution(self, change, interval):
        one = pld.from_discrete_gaussian_mechanism(1 / self.loss, 1, value_discretization_interval=interval)
        return one.self_compose(change.values)


def staircase_by_density(epsilon, gamma, pessimistic):
    """From the density itself: its pieces between all steps of both neighbours, and the two tails."""
    decay = math.exp(-epsilon)
    height = (1 - decay) / (2 * (gamma + decay * (1 - gamma)))

    def log_density(x):
        whole, part = divmod(abs(x), 1.0)
        return math.log(height) - epsilon * (whole + (part >= gamma))

    reach = math.ceil(30 / epsilon)
    steps = [sign * (k + g) for k in range(reach + 1) for g in (0, gamma) for sign in (1, -1)]
    edges = np.unique([*steps, *(1 + np.array(steps))])
    edges = edges[(edges >= -reach) & (edges <= reach)]
    lower, upper = {}, {}
    for left, right in pairwise(edges):
        if right - left > 1e-9:
            middle, length = (left + right) / 2, math.log(right - left)
            lower[left], upper[left] = log_density(middle) + length, log_density(middle - 1) + length
    tail = math.log(0.5) - epsilon * reach
    lower["right"], upper["right"] = tail, tail + epsilon
    lower["left"], upper["left"] = tail, tail - epsilon
    return pld.from_two_probability_mass_functions(lower, upper, pessimistic_estimate=pessimistic)


def one_value(kind, loss, pessimistic):
    """dp-accounting's distribution of one changed value, at its own interval of 1e-4."""
    how = {"pessimistic_estimate": pessimistic}
    if kind == "gaussian":
        return pld.from_gaussian_mechanism(1 / loss, **how)
    if kind == "laplace":
        return pld.from_laplace_mechanism(1 / loss, **how)
    if kind == "randomised_response":
        return pld.from_randomized_response(2 / (1 + math.exp(loss)), 2, **how)
    if kind == "discrete_gaussian":
        return pld.from_discrete_gaussian_mechanism(1 / loss, 1, **how)
    return staircase_by_density(loss, GAMMA, pessimistic)


MAKES = {"staircase": Staircase, "discrete_gaussian": DiscreteGaussian}
KINDS = ("gaussian", "laplace", "randomised_response", *MAKES)


# These two mixtures hold all kinds.
@pytest.mark.parametrize("seed", [3, 5])
def test_mixtures_lie_between_dp_accountings_estimates(seed):
    random = np.random.default_rng([25, seed])
    accountant = Accountant(1, 1)
    parts = {True: pld.identity(), False: pld.identity(pessimistic_estimate=False)}
    # Every second mixture has one of the new kinds for certain.
    kinds = [*random.choice(KINDS, random.integers(1, 5)), *random.choice(list(MAKES), seed % 2)]
    for kind in kinds:
        loss, values, times = 10 ** random.uniform(-1.5, 0), int(random.integers(1, 4)), random.integers(1, 6)
        changes = (("one-life", Change(values, math.sqrt(values))),)
        accountant.record(MAKES.get(kind, Event)(str(kind), loss, loss, 0.0, changes), int(times) * ALL)
        for pessimistic, part in parts.items():
            one = one_value(kind, loss, pessimistic).self_compose(int(values * times))
            parts[pessimistic] = part.compose(one)
    delta = 10 ** random.uniform(-8, -2)
    claim = accountant.epsilon(delta, composition="exact")
    assert (claim.reason, claim.adjacency) == ("", "one-life")
    assert claim.epsilon >= parts[False].get_epsilon_for_delta(delta) - 1e-9
    assert claim.epsilon == pytest.approx(parts[True].get_epsilon_for_delta(delta), rel=0.02)


def recorded(*events):
    accountant = Accountant(1, len(events))
    for event, agent in zip(events, np.eye(len(events), dtype=bool), strict=True):
        accountant.record(event, agent[np.newaxis])
    return accountant


def test_a_curve_of_one_release_is_parallel_and_that_of_two_is_exact():
    event = Staircase("staircase", 0.5, 0.5, 0.0, ONE_VALUE)
    accountant = recorded(event)
    alone = accountant.epsilon(1e-3, composition="exact").epsilon
    accountant.record(event, ALL)
    assert accountant.epsilon(1e-3, composition="parallel").epsilon == alone
    assert alone < accountant.epsilon(1e-3, composition="exact").epsilon < 1.0
    # All that it promises is pure, and adds up at delta 0.
    assert accountant.epsilon(0.0, composition="exact").epsilon == 1.0
    twice = Event("staircase", 0.5, 0.5, 0.0, ONE_VALUE, releases=2)
    claim = recorded(twice).epsilon(1e-3, composition="parallel")
    assert (claim.epsilon, "released twice" in claim.reason) == (None, True)


@pytest.mark.parametrize(
    ("interval", "pessimistic", "message"), [(1e-3, True, "1e-3|0.001"), (None, False, "[Ee]stimat")]
)
def test_a_curve_of_another_interval_or_an_optimistic_one_is_refused(interval, pessimistic, message):
    class Wrong(Event):
        def loss_distribution(self, change, asked):
            return pld.from_laplace_mechanism(
                1.0, pessimistic_estimate=pessimistic, value_discretization_interval=interval or asked
            )

    with pytest.raises(ValueError, match=message):
        recorded(Wrong("wrong", 1.0, 1.0, 0.0, ONE_VALUE)).epsilon(1e-3, composition="exact")


class WithRho(Event):
    def rho(self, change):
        return (self.loss * change.norm) ** 2 / 2


@pytest.mark.parametrize("delta", [1e-9, 0.3])
@pytest.mark.parametrize("loss", [1e-3, 20.0])
def test_zcdp_takes_a_rho(delta, loss):
    ours, rho = (kind("gaussian" if kind is Event else "mine", loss, 1.0, 0.0, ONE_VALUE)
                 for kind in (Event, WithRho))  # fmt: skip
    accountant = recorded(ours, rho)
    accountant.record(ours, np.ones((1, 2), np.bool_))
    plain, by_rho = accountant.epsilon_by_agent(delta, composition="zcdp")[0]
    assert plain == zcdp_epsilon(delta, loss**2)
    assert by_rho == zcdp_epsilon(delta, loss**2)
    # At delta 0 neither has an answer that is finite, nor an unknown one.
    assert np.isinf(accountant.epsilon_by_agent(0.0, composition="zcdp")).all()
    assert accountant.epsilon(0.0, composition="zcdp").epsilon == math.inf


def test_an_answer_is_missing_for_those_alone_who_released_what_gives_none():
    curve, rho = Staircase("staircase", 0.5, 0.5, 0.0, ONE_VALUE), WithRho("mine", 0.5, 0.5, 0.0, ONE_VALUE)
    accountant = recorded(gaussian(0.5), curve, rho)
    for composition, answered in (
        ("basic", [1, 1, 1]), ("zcdp", [1, 0, 1]), ("exact", [1, 1, 0]), ("parallel", [1, 1, 0]),
    ):  # fmt: skip
        rows = accountant.epsilon_by_agent(0.05, composition=composition)[0]
        assert np.isfinite(rows).tolist() == [bool(one) for one in answered]
        claim = accountant.epsilon(0.05, composition=composition)
        assert (claim.epsilon is None) is (0 in answered)
    assert "'mine': its event gives no privacy loss distribution" in claim.reason
    assert "'staircase': its event gives no rho" in (accountant.epsilon(0.05, composition="zcdp").reason)


@pytest.mark.parametrize("composition", ["basic", *COMPOSED])
@pytest.mark.parametrize("loss", [0.0, 0.5, math.inf])
def test_no_curve_protects_what_is_not_protected(composition, loss):
    """Neither an adjacency that an event does not name, whatever its loss, nor a release without noise."""
    event = Staircase("staircase", loss, loss, 0.0, ONE_VALUE)
    adjacency = "one-quantity" if loss == math.inf else "one-life"
    accountant = recorded(event)
    if composition != "parallel":
        # Something without an answer, of the same agent, makes privacy no less lost.
        accountant.record(Event("new", 0.5, 0.5, 0.0, ONE_VALUE), ALL)
    claim = accountant.epsilon(1e-3, composition=composition, adjacency=adjacency)
    assert claim.epsilon == math.inf
    expected = "released without noise" if loss == math.inf else "does not protect one-life"
    assert expected in claim.reason


def test_events_of_two_classes_are_two_events():
    fields = ("mine", 0.5, 0.5, 0.0, ONE_VALUE)
    accountant = Accountant(1, 1)
    for event in (Event(*fields), WithRho(*fields), Staircase(*fields), WithRho(*fields)):
        accountant.record(event, ALL)
    assert accountant.counts.ravel().tolist() == [1, 2, 1]
