"""The noise of continual release against matrices written down independently."""

import pickle
import re
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from prefix_factors import column_squares, measured_factor
from scipy.special import binom

from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import (
    BltNoise,
    HonakerNoise,
    SqrtToeplitzNoise,
    TreeNoise,
    fitted,
)

SIZES = (1, 2, 3, 7, 8, 13, 40, 65)


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
def test_the_tree_is_made_of_dyadic_prefix_nodes(n):
    factor = measured_factor(TreeNoise(n), n)
    nodes = np.zeros((n, n))
    for z in range(1, n + 1):
        left = z
        while left:
            # The node that ends here was drawn when its last window was released.
            nodes[z - 1, left - 1] = 1.0
            left &= left - 1
    assert np.array_equal(factor, nodes)


@pytest.mark.parametrize("n", SIZES)
def test_honaker_is_the_least_squares_estimate_of_each_subtree(n):
    assert measured_factor(HonakerNoise(n), n) == pytest.approx(least_squares(n), abs=1e-12)


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


@pytest.mark.parametrize("name", ["tree", "sqrt_toeplitz"])
@pytest.mark.parametrize("n", SIZES)
def test_column_norms_are_all_that_releases_betray(name, n):
    noise = NOISES[name](n)
    betrayed = column_squares(measured_factor(noise, n))
    assert [noise.column_square(z) for z in range(1, n + 1)] == pytest.approx(betrayed)


@pytest.mark.parametrize("n", SIZES)
def test_buffered_noise_is_counted_at_the_next_power_of_two(n):
    noise = BltNoise(n)
    betrayed = column_squares(measured_factor(noise, n))
    for z in range(1, n + 1):
        ahead = min(1 << (z - 1).bit_length(), n)
        assert noise.column_square(z) == pytest.approx(betrayed[ahead - 1], rel=1e-12)
        assert noise.column_square(z) >= betrayed[z - 1] * (1 - 1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_buffered_noise_divides_by_a_few_geometric_sequences(n):
    factor = measured_factor(BltNoise(n), n)
    toeplitz = fitted(n)
    powers = toeplitz.decays ** np.arange(n - 1)[:, np.newaxis]
    first = np.concatenate(([1.0], powers @ toeplitz.weights))
    c = np.array([[first[z - i] if z >= i else 0.0 for i in range(n)] for z in range(n)])
    assert factor @ c == pytest.approx(np.tril(np.ones((n, n))), abs=1e-12)


@pytest.mark.parametrize("coefficients", ["weights", "decays"])
@pytest.mark.parametrize("index", range(3))
def test_a_coefficient_that_is_not_the_one_counted_shows_in_the_columns(coefficients, index):
    """Each of the three buffers' two, a thousandth off."""
    n = 100
    noise = BltNoise(n)
    assert len(getattr(noise._toeplitz, coefficients)) == 3
    noise._toeplitz = copy(noise._toeplitz)
    mutant = getattr(noise._toeplitz, coefficients).copy()
    mutant[index] *= 1.001
    setattr(noise._toeplitz, coefficients, mutant)
    assert noise.column_square(n) != pytest.approx(column_squares(measured_factor(noise, n))[-1], rel=1e-6)


BUFFERS = {1: 1, 7: 2, 31: 2, 100: 3, 255: 3, 1000: 4, 10_000: 5, 16_383: 5, 100_000: 6, 1 << 20: 8}


@pytest.mark.parametrize(("n", "buffers"), BUFFERS.items())
def test_a_few_buffers_do_what_the_square_root_does(n, buffers):
    """The standard deviation of the noisiest prefix sum at equal privacy; sizes between are the worst ones."""
    toeplitz, root = BltNoise(n), SqrtToeplitzNoise(n)
    assert len(fitted(n).decays) == buffers
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
        assert int(buffers) == len(fitted(n).decays)
        for name, said in {"sqrt_toeplitz": root, "blt": blt, "honaker": honaker, "tree": tree}.items():
            noise = NOISES[name](n)
            assert said == f"{np.sqrt(noise.column_square(n) * noise.worst_variance):#.5g}"


def test_what_is_counted_ahead_is_as_little_as_documented():
    """Beside what the first z releases betray: at any z of plans up to 100, and of a long one."""
    ahead = 1.0
    for n in (*range(1, 101), 5000):
        noise, toeplitz = BltNoise(n), fitted(n)
        squares = [noise.column_square(z) / toeplitz.column_square(z) for z in range(1, min(n, 4096) + 1)]
        assert min(squares) >= 1
        ahead = max(ahead, np.sqrt(max(squares)))
    page = (Path(__file__).parents[3] / "docs" / "privacy.md").read_text(encoding="utf-8")
    assert f"{100 * (ahead - 1):.1f} % more in mu than has been spent" in page.replace("\n", " ")


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
