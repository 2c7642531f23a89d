"""Privacy of secure sums against the joint covariance of all that an observer sees; agent 0 is the victim."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from prefix_factors import measured_factor
from secure_sums import unknown_shares

from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES

SIGMA, HONEST, DISTANCE = 1.7, 3, 0.6
ALONE = DISTANCE * np.sqrt(HONEST) / SIGMA


def mu(present: np.ndarray, known: tuple[int, ...], weights: np.ndarray, change: np.ndarray) -> float:
    """The mu of a change of the sums, by the covariance of the noise in them that the observer does not know.

    Each agent has a stream of draws, and its share of the noise in sum t is weights[t] times it, if it is present.
    """
    unknown = np.delete(present, known, axis=1)
    shares = unknown[..., np.newaxis] * weights[:, np.newaxis] * SIGMA / np.sqrt(HONEST)
    flat = shares.reshape(len(present), -1)
    seen = unknown.any(axis=1)
    covariance = (flat @ flat.T)[np.ix_(seen, seen)]
    return float(np.sqrt(change[seen] @ np.linalg.solve(covariance, change[seen])))


def sum_mu(local_mu, shares):
    """The mu of sums with so many unknown shares of noise, by the first paragraph of `stage_claims`."""
    return local_mu / np.sqrt(shares)


def patterns(count: int, seed: int):
    """Who is present in each sum, the victim at least once, and each set of others who may collude."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        sums, agents = int(generator.integers(1, 6)), int(generator.integers(2, 6))
        present = generator.random((sums, agents)) < generator.choice([0.5, 0.8, 1.0])
        present[generator.integers(sums), 0] = True
        known = int(generator.integers(0, agents))
        yield present, known, list(combinations(range(1, agents), known))


def test_one_sum_has_the_mu_of_its_worst_observer():
    """Independent noise: the server, a fellow and colluders with drop-outs, to the last digits."""
    for present, known, observers in patterns(500, 1):
        alone = DISTANCE * np.eye(len(present))
        at = np.flatnonzero(present[:, 0])
        worst = max(mu(present, own, np.eye(len(present)), alone[t]) for own in observers for t in at)
        assert sum_mu(ALONE, unknown_shares(present, known)[0]) == pytest.approx(worst, rel=1e-12)


def test_the_printed_formula():
    """Promised to h = M, a fellow sees sqrt(M/(M - 1)) times as much; with more shares than promised mu is smaller."""
    everyone = np.ones((4, 10), np.bool_)
    for known, k in ((0, 10), (1, 9), (4, 6), (9, 1)):
        assert unknown_shares(everyone, known).tolist() == [k] * 10
        assert sum_mu(0.3 * np.sqrt(10) / 2.0, k) == pytest.approx(0.3 * np.sqrt(10 / k) / 2.0, rel=1e-12)


def test_all_releases_together_never_have_more():
    for present, known, observers in patterns(500, 2):
        change = DISTANCE * present[:, 0]
        said = sum_mu(ALONE * np.sqrt(present[:, 0].sum()), unknown_shares(present, known)[0])
        for own in observers:
            assert mu(present, own, np.eye(len(present)), change) <= said * (1 + 1e-12)


@cache
def square_root_factor(sums):
    """The matrix that makes releases from the draws of all of them, of as many sums."""
    return np.linalg.solve(
        measured_factor(NOISES["sqrt_toeplitz"](sums), sums), np.tril(np.ones((sums, sums)))
    )


@pytest.mark.ci
def test_one_window_of_a_matrix_mechanism():
    """One stream an agent through one matrix, whoever is present: 2,000 patterns."""
    equal = 0
    for present, known, observers in patterns(2000, 3):
        sums = len(present)
        factor = square_root_factor(sums)
        shares = unknown_shares(present, known)[0]
        for own, t in product(observers, np.flatnonzero(present[:, 0])):
            true = mu(present, own, np.linalg.inv(factor), DISTANCE * np.eye(sums)[t])
            said = sum_mu(ALONE * np.linalg.norm(factor[:, t]), shares)
            assert true <= said * (1 + 1e-12)
            equal += abs(true / said - 1) < 1e-12
            assert not present.all() or true == pytest.approx(said, rel=1e-12)
    assert equal > 100


@pytest.mark.parametrize("name", list(NOISES))
def test_all_data_of_an_agent_under_a_matrix_mechanism(name):
    """Every sign of each changed window, against the agents that are present at all of the victim's releases."""
    equal = 0
    for present, known, observers in patterns(300, 4):
        own_sums = np.flatnonzero(present[:, 0])
        last = int(own_sums[-1]) + 1
        present, noise = present[:last], NOISES[name](last)
        weights = np.diff(measured_factor(noise, last), axis=0, prepend=0.0)
        said = sum_mu(
            ALONE * np.sqrt(noise.sum_square(last)), unknown_shares(present, known, every_release=True)[0]
        )
        for own, signs in product(observers, product((1, -1), repeat=len(own_sums) - 1)):
            change = np.zeros(last)
            change[own_sums] = DISTANCE * np.array([1, *signs])
            true = mu(present, own, weights, change)
            assert true <= said * (1 + 1e-10)
            equal += abs(true / said - 1) < 1e-10
    assert equal > 20


def test_only_agents_in_all_sums_of_the_victim_count_for_all_of_its_data():
    generator = np.random.default_rng(5)
    for _ in range(100):
        present = generator.random((4, 6)) < 0.7
        for known in (0, 2):
            said = unknown_shares(present, known, every_release=True)
            for victim in range(6):
                own = present[present[:, victim]]
                assert said[victim] == max(own.all(axis=0).sum() - known, 1)


def test_an_agent_in_no_sum():
    absent = np.array([[True, True, False]])
    assert unknown_shares(absent).tolist() == [2, 2, 3]
    assert unknown_shares(np.ones((0, 3), np.bool_), 1, every_release=True).tolist() == [2, 2, 2]
