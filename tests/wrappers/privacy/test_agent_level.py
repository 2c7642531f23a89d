"""Privacy of all data of an agent, whose releases are clipped: each of them may change by twice the clip."""

import math
from itertools import product

import numpy as np
import pytest
from prefix_factors import measured_factor

from fedbandit_envs.core.sensitivity import Change, Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES, MatrixMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import BufferedToeplitz, PrefixNoise, fitted

ALL = list(NOISES)


def information(noise: PrefixNoise, z: int) -> np.ndarray:
    """C^T C of the first z releases, from what each draw does to prefix sums."""
    sums = np.tril(np.ones((z, z)))
    factor = measured_factor(noise, z)
    return sums.T @ np.linalg.solve(factor @ factor.T, sums)


def over_all_signs(gram: np.ndarray) -> float:
    """The largest squared norm of the change of C x, if each window changes by 1, -1, or not at all."""
    changes = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(gram))))
    return float(np.einsum("ij,jk,ik->i", changes, gram, changes).max())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
def test_the_joint_change_is_the_largest_over_all_signs(name, n):
    noise = NOISES[name](n)
    for z in range(1, n + 1):
        true = over_all_signs(information(NOISES[name](n), z))
        assert noise.sum_square(z) == pytest.approx(true, rel=1e-10)
        assert PrefixNoise.sum_square(noise, z) == pytest.approx(true, rel=1e-10)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [16, 40, 100])
def test_formulas_are_those_of_the_noise(name, n):
    gram = information(NOISES[name](n), n)
    assert gram.min() >= -1e-9
    assert NOISES[name](n).sum_square(n) == pytest.approx(gram.sum(), rel=1e-9)


def test_the_printed_norms():
    noise = NOISES["sqrt_toeplitz"](400)
    assert math.sqrt(noise.column_square(400)) == pytest.approx(1.724, abs=5e-4)
    assert math.sqrt(noise.sum_square(400)) == pytest.approx(319.35, abs=5e-3)


@pytest.mark.parametrize(
    ("n", "agent", "event"),
    [(16, 1.130, 0.486), (100, 1.273, 0.253), (400, 1.377, 0.149), (1000, 1.442, 0.103)],
)
@pytest.mark.parametrize("name", ["sqrt_toeplitz", "blt"])
def test_independent_noise_has_less_where_all_releases_count(name, n, agent, event):
    """The printed deviations of the last sum, relative to independent noise."""
    noise = NOISES[name](n)
    assert math.sqrt(noise.variance(n) * noise.sum_square(n)) / n == pytest.approx(agent, abs=1.5e-3)
    one = math.sqrt(noise.variance(n) * noise.column_square(n) / n)
    assert one == pytest.approx(event, abs=1.5e-3)


class Signed(PrefixNoise):
    """The factor C = [[1, 0], [-0.9, 1]], whose columns partly cancel."""

    def column_square(self, z):
        return 1.81 if z > 1 else 1.0

    def variance(self, z):
        return (0.0, 1.0, 1.9**2 + 1)[z]

    def start(self, rows, values):
        self._first = np.zeros((rows, values))

    def advance(self, rows, z, draws):
        if z == 1:
            self._first[rows] = draws[0]
            return draws[0]
        return draws[0] + 0.9 * self._first[rows]


def test_columns_that_cancel_do_not_hide_a_change():
    c = np.array([[1.0, 0.0], [-0.9, 1.0]])
    noise = Signed(2)
    assert 2 * math.sqrt(noise.sum_square(2)) == pytest.approx(4.294, abs=5e-4)
    assert noise.sum_square(2) == pytest.approx(over_all_signs(c.T @ c))
    assert 2 * np.linalg.norm(c.sum(axis=1)) == pytest.approx(2.010, abs=5e-4)
    assert noise.sum_square(1) == pytest.approx(1.0)


def test_buffers_of_negative_weight_count_by_their_size():
    # Poles and zeros in the opposite order, so that coefficients fall below 0.
    toeplitz = BufferedToeplitz(np.array([0.5, 2.0]), np.array([0.2, 1.0]))
    assert toeplitz.weights.min() < 0
    first = np.concatenate(([1.0], toeplitz.decays ** np.arange(5)[:, np.newaxis] @ toeplitz.weights))
    c = np.array([[first[t - s] if t >= s else 0.0 for s in range(6)] for t in range(6)])
    assert toeplitz.sum_square(6) >= over_all_signs(c.T @ c)
    assert fitted(100).weights.min() > 0


def sensitivity() -> Sensitivity:
    """A clip of 1.5 on two numbers; one event changes a fifth of it."""
    scale = {"statistic": np.full((1, 1, 2), 1.5)}
    return Sensitivity(scale, {"one-observation": Change(2, 0.2), "agent": Change(2, 2.0)})


def started(**kwargs) -> MatrixMechanism:
    mechanism = MatrixMechanism(**{"epsilon": 2.0, "delta": 1e-3, "releases": 9, **kwargs})
    mechanism.start(sensitivity(), 20, [np.random.default_rng(0)])
    return mechanism


def event(mechanism: MatrixMechanism, z: int) -> Event:
    """The event that is recorded at the z-th release."""
    changed = mechanism.events(np.ones((1, 1), np.bool_), np.array([[z - 1]]))
    (booked,) = (event for event, times in changed.items() if times[0, 0] > 0)
    return booked


@pytest.mark.parametrize("name", ALL)
def test_a_matrix_mechanism_protects_all_data_of_an_agent(name):
    """The noise is what all planned releases need, and each event has the mu of the releases so far."""
    mechanism = started(matrix=name, adjacency="agent")
    spent = []
    for z in range(1, 10):
        booked = event(mechanism, z)
        deviation = mechanism._noise_multiplier * 1.5
        change = 2 * 1.5 * math.sqrt(over_all_signs(information(NOISES[name](9), z)))
        assert booked.mu("agent") == pytest.approx(change / deviation, rel=1e-10)
        column = 0.2 * 1.5 * math.sqrt(mechanism._noise.column_square(z))
        assert booked.mu("one-observation") == pytest.approx(column / deviation, rel=1e-12)
        spent.append(gaussian_epsilon(1e-3, booked.mu("agent")))
        assert booked.promised("agent") == booked.promised("one-observation") == (2.0, 1e-3)
    assert spent == sorted(spent)
    assert spent[-1] <= 2.0
    assert spent[-1] == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_an_event_level_budget_says_what_it_is_worth_for_an_agent(name):
    booked = event(started(matrix=name), 9)
    ratio = booked.mu("agent") / booked.mu("one-observation")
    assert ratio > 10
    # Basic composition counts a k times larger mu as k^2 releases.
    times = booked.change("agent").values
    assert times == math.ceil(ratio**2 - 1e-9)
    assert booked.promised("agent") == (2.0 * times, pytest.approx(1e-3 * times))


def test_ten_independent_releases():
    """C = 1, s = 20: the printed epsilon, ours and that of dp-accounting."""
    accountant = Accountant(1, 1)
    one = Event("gaussian", 1 / 20, 1.0, 1e-9, (("agent", Change(3, 2.0)),))
    accountant.record(one, np.array([[10]]))
    said = accountant.epsilon(1e-3, composition="exact", adjacency="agent").epsilon
    assert said == pytest.approx(0.78289, abs=5e-6)
    from dp_accounting import GaussianDpEvent, NeighboringRelation, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    theirs = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-5)
    theirs.compose(SelfComposedDpEvent(GaussianDpEvent(10.0), 10))
    assert said == pytest.approx(theirs.get_epsilon(1e-3), abs=2e-5)
