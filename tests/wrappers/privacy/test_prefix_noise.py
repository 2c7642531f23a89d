"""The noise of continual release against matrices written down independently, and what it betrays of an agent."""

import math
import pickle
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from prefix_factors import column_squares, measured_factor
from scipy.special import binom

from fedbandit_envs.core.privacy import Change, Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES, MatrixMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import (
    BltNoise,
    PrefixNoise,
    SqrtToeplitzNoise,
    TreeNoise,
    _squares,
)

SIZES = (1, 2, 3, 8, 13, 40)


def covers(node: tuple[int, int], n: int) -> np.ndarray:
    """1 for the windows that a node (level, index from 1) covers."""
    level, index = node
    return np.array([float((index - 1) << level < w <= index << level) for w in range(1, n + 1)])


def least_squares(n: int) -> np.ndarray:
    """Best linear estimate of each prefix from the subtrees it is made of: their leaves' least-squares sums."""
    nodes = [(level, i) for level in range(n.bit_length()) for i in range(1, (n >> level) + 1)]
    nodes.sort(key=lambda node: (node[1] << node[0], node[0]))
    incidence = np.array([covers(node, n) for node in nodes])
    rows = []
    for z in range(1, n + 1):
        row = np.zeros(len(nodes))
        start = 0
        for level in reversed(range(z.bit_length())):
            if z >> level & 1:
                stop = start + (1 << level)
                inside = [k for k, (h, i) in enumerate(nodes) if start <= (i - 1) << h and i << h <= stop]
                # The sum of windows that nodes at or below one node tell best.
                row[inside] += np.linalg.pinv(incidence[inside][:, start:stop]).sum(axis=0)
                start = stop
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("n", SIZES)
def test_trees_are_dyadic_nodes_and_their_least_squares_estimates(n):
    nodes = np.zeros((n, n))
    for z in range(1, n + 1):
        left = z
        while left:
            # The node that ends here was drawn when its last window was released.
            nodes[z - 1, left - 1] = 1.0
            left &= left - 1
    assert np.array_equal(measured_factor(TreeNoise(n), n), nodes)
    assert measured_factor(TreeNoise(n, estimates=True), n) == pytest.approx(least_squares(n), abs=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_the_square_of_the_square_root_adds_up(n):
    factor = measured_factor(SqrtToeplitzNoise(n), n)
    k = np.arange(n)
    assert factor[:, 0] == pytest.approx(binom(2 * k, k) / 4.0**k, rel=1e-12)
    assert factor @ factor == pytest.approx(np.tril(np.ones((n, n))), abs=1e-12)


@pytest.mark.parametrize("name", list(NOISES))
@pytest.mark.parametrize("n", SIZES)
def test_variances_are_those_of_the_factors(name, n):
    noise = NOISES[name](n)
    factor = measured_factor(noise, n)
    variances = (factor**2).sum(axis=1)
    assert [noise.variance(z) for z in range(1, n + 1)] == pytest.approx(variances)
    assert noise.variance(0) == 0
    assert noise.worst_variance == pytest.approx(variances.max())


@pytest.mark.parametrize("name", ["tree", "sqrt_toeplitz", "blt"])
@pytest.mark.parametrize("n", SIZES)
def test_column_norms_are_all_that_releases_betray(name, n):
    """Buffered noise is counted at the next power of two, at most at the planned releases."""
    noise = NOISES[name](n)
    betrayed = column_squares(measured_factor(noise, n))
    for z in range(1, n + 1):
        counted = min(1 << (z - 1).bit_length(), n) if name == "blt" else z
        assert noise.column_square(z) == pytest.approx(betrayed[counted - 1], rel=1e-12)
        assert noise.column_square(z) >= betrayed[z - 1] * (1 - 1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_buffered_noise_divides_by_a_few_geometric_sequences(n):
    factor = measured_factor(BltNoise(n), n)
    noise = BltNoise(n)
    powers = noise._decays ** np.arange(n - 1)[:, np.newaxis]
    first = np.concatenate(([1.0], powers @ noise._weights))
    c = np.array([[first[z - i] if z >= i else 0.0 for i in range(n)] for z in range(n)])
    assert factor @ c == pytest.approx(np.tril(np.ones((n, n))), abs=1e-12)


BUFFERS = {1: 1, 7: 2, 31: 2, 100: 3, 255: 3, 1000: 4, 10_000: 5, 16_383: 5, 100_000: 6, 1 << 20: 8}


@pytest.mark.parametrize(("n", "buffers"), BUFFERS.items())
def test_a_few_buffers_do_what_the_square_root_does(n, buffers):
    """The standard deviation of the noisiest prefix sum at equal privacy; sizes between are the worst ones."""
    toeplitz, root = BltNoise(n), SqrtToeplitzNoise(n)
    assert len(toeplitz._decays) == buffers
    deviation = {noise: np.sqrt(noise.column_square(n) * noise.worst_variance) for noise in (toeplitz, root)}
    assert 1 - 1e-12 <= deviation[toeplitz] / deviation[root] <= 1.0004


@pytest.mark.parametrize("n", SIZES)
def test_honaker_betrays_no_more_than_its_tree(n):
    noise = NOISES["honaker"](n)
    factor = measured_factor(noise, n)
    shifts = np.tril(np.ones((n, n)))
    betrayed = np.diag(shifts.T @ np.linalg.solve(factor @ factor.T, shifts)).max()
    assert 0.75 * noise.column_square(n) < betrayed <= noise.column_square(n) * (1 + 1e-12)


def test_the_documented_deviations_are_those_of_the_mechanisms():
    page = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d,]+) \| (\S+) \| (\S+) \| (\d) \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for releases, root, blt, buffers, honaker, tree in rows:
        n = int(releases.replace(",", ""))
        assert int(buffers) == len(BltNoise(n)._decays)
        for name, said in {"sqrt_toeplitz": root, "blt": blt, "honaker": honaker, "tree": tree}.items():
            noise = NOISES[name](n)
            assert said == f"{np.sqrt(noise.column_square(n) * noise.worst_variance):#.5g}"


def test_what_is_counted_ahead_is_as_little_as_documented():
    """Beside what the first z releases betray: at any z of plans up to 100, and of a long one."""
    ahead = 1.0
    for n in (*range(1, 101), 5000):
        noise, many = BltNoise(n), range(1, min(n, 4096) + 1)
        exact = [1 + _squares(noise._weights, noise._rates, z - 1) for z in many]
        squares = [noise.column_square(z) / one for z, one in zip(many, exact, strict=True)]
        assert min(squares) >= 1
        ahead = max(ahead, np.sqrt(max(squares)))
    page = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text(encoding="utf-8")
    assert f"{100 * (ahead - 1):.1f} % more than has been spent" in page.replace("\n", " ")


@pytest.mark.parametrize("name", ["blt", "tree", "honaker"])
def test_memory_does_not_grow_with_releases(name):
    noise = NOISES[name](100_000)
    noise.start(2, 3)
    sizes = []
    for z in range(1, 300):
        noise.advance(np.arange(2), z, np.ones((noise.draws(z), 2, 3)))
        sizes.append(len(pickle.dumps(noise)))
    assert len(set(sizes)) == 1


@pytest.mark.parametrize("name", list(NOISES))
def test_rows_at_different_releases_are_independent(name):
    """Each row alone, and all of them interleaved at random."""
    n, rows, values = 70, 4, 3
    generator = np.random.default_rng(5)
    draws = {z: generator.standard_normal((NOISES[name](n).draws(z), rows, values)) for z in range(1, n + 1)}

    def play(turns):
        noise = NOISES[name](n)
        noise.start(rows, values)
        done, seen = np.zeros(rows, int), {}
        for who in turns:
            for z in np.unique(done[who]) + 1:
                at = who[done[who] == z - 1]
                increments = noise.advance(at, int(z), draws[z][:, at])
                seen.update({(row, int(z)): tuple(x) for row, x in zip(at, increments, strict=True)})
            done[who] += 1
        return seen

    alone = play([np.array([row]) for row in range(rows) for _ in range(n)])
    together = play([np.arange(rows)] * n)
    order = generator.permutation(np.repeat(np.arange(rows), n))
    assert play([np.array([row]) for row in order]) == alone == together


def information(noise: PrefixNoise, z: int) -> np.ndarray:
    """C^T C of the first z releases, from what each draw does to prefix sums."""
    sums = np.tril(np.ones((z, z)))
    factor = measured_factor(noise, z)
    return sums.T @ np.linalg.solve(factor @ factor.T, sums)


def over_all_signs(gram: np.ndarray) -> float:
    """The largest squared norm of the change of C x, if each window changes by 1, -1, or not at all."""
    changes = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(gram))))
    return float(np.einsum("ij,jk,ik->i", changes, gram, changes).max())


@pytest.mark.parametrize("name", list(NOISES))
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_joint_change_is_the_largest_over_all_signs(name, n):
    noise = NOISES[name](n)
    for z in range(1, n + 1):
        true = over_all_signs(information(NOISES[name](n), z))
        assert noise.sum_square(z) == pytest.approx(true, rel=1e-10)


@pytest.mark.parametrize("name", list(NOISES))
@pytest.mark.parametrize("n", [16, 40])
def test_formulas_are_those_of_the_noise(name, n):
    gram = information(NOISES[name](n), n)
    assert gram.min() >= -1e-9
    assert NOISES[name](n).sum_square(n) == pytest.approx(gram.sum(), rel=1e-9)


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


@pytest.mark.parametrize("name", list(NOISES))
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


@pytest.mark.parametrize("name", list(NOISES))
def test_an_event_level_budget_says_what_it_is_worth_for_an_agent(name):
    booked = event(started(matrix=name), 9)
    ratio = booked.mu("agent") / booked.mu("one-observation")
    assert ratio > 10
    # Basic composition counts a k times larger mu as k^2 releases.
    times = booked.change("agent").values
    assert times == math.ceil(ratio**2 - 1e-9)
    assert booked.promised("agent") == (2.0 * times, pytest.approx(1e-3 * times))
