"""Ridge regression's kernels against numpy. All seeds are fixed: a test that passes once passes always."""

from math import sqrt

import numpy as np
import pytest
from compiled import from_python

from fedbandit_envs.linear import ridge as forms
from fedbandit_envs.linear import ridge as kernels
from fedbandit_envs.linear.ridge import Ridges, estimate, largest, lies_below, observe, upper_bounds

add_own_forms, add_shared_forms = from_python(forms.add_own_forms), from_python(forms.add_shared_forms)
correct, factorise, invert, rank_one = (
    from_python(getattr(kernels, name)) for name in ("correct", "factorise", "invert", "rank_one")
)


def ridge_by_least_squares(contexts, rewards, ridge):
    dim = contexts.shape[1]
    rows = np.vstack([contexts, sqrt(ridge) * np.eye(dim)])
    parameter = np.linalg.lstsq(rows, np.append(rewards, np.zeros(dim)), rcond=None)[0]
    # det V is the squared product of the singular values of the rows, which are not squared on the way.
    return parameter, 2 * np.log(np.linalg.svd(rows, compute_uv=False)).sum()


def collinear_history(rounds, spread):
    """Contexts near one direction: off it by about ``spread`` in each coordinate."""
    rng = np.random.default_rng(1)
    direction = np.full(10, 1 / sqrt(10))
    contexts = 0.9 * direction * rng.uniform(0.5, 1, (rounds, 1)) + spread * rng.standard_normal((rounds, 10))
    return contexts, contexts @ rng.standard_normal(10) + 0.1 * rng.standard_normal(rounds)


def ridge_by_rank_one(contexts, rewards, ridge):
    ridges = Ridges.without_data((1, 1, 1), contexts.shape[1], ridge)
    # There is one estimator, so that the number of the round does not matter.
    number = np.ones((1, 1, 1), np.int64)
    for x, y in zip(contexts[:, np.newaxis, np.newaxis], rewards.reshape(-1, 1, 1, 1), strict=True):
        observe(number, x, y, np.empty(contexts.shape[1]), *ridges)
    parameter = np.empty(contexts.shape[1])
    estimate(ridges.inverse[0, 0, 0], ridges.moment[0, 0, 0], parameter)
    return parameter, ridges.log_det[0, 0, 0]


@pytest.mark.parametrize(("spread", "ridge"), [(1e-2, 1.0), (1e-6, 1.0), (1e-4, 1e-3)])
def test_nearly_collinear_contexts_after_many_updates(spread, ridge):
    contexts, rewards = collinear_history(30_000, spread)
    parameter, log_det = ridge_by_rank_one(contexts, rewards, ridge)
    expected, expected_log_det = ridge_by_least_squares(contexts, rewards, ridge)
    inverse, corrected, product = np.eye(10) / ridge, np.zeros(10), np.empty(10)
    for x, y in zip(contexts, rewards, strict=True):
        correct(inverse, corrected, x, y, product)
    condition = np.linalg.cond(ridge * np.eye(10) + contexts.T @ contexts)
    error, error_of_corrected = (
        np.abs(found - expected).max() / np.abs(expected).max() for found in (parameter, corrected)
    )
    assert error_of_corrected < 1e-9
    # V^-1 b and log det V err by the condition number times rounding, as normal equations do: 1e-9 is reached up to
    # about 1e4, and of the determinant 1e-8 up to about 1e7.
    rounding = 256 * np.finfo(float).eps * condition
    assert abs(log_det - expected_log_det) < max(1e-8, rounding)
    assert error < rounding
    if condition < 1e4:
        assert error < 1e-9


@pytest.mark.parametrize("dim", [1, 2, 5, 10, 17])
def test_rank_one_adds_a_square(dim):
    rng = np.random.default_rng(dim)
    root = rng.standard_normal((dim, 2 * dim))
    matrix, x, product = root @ root.T, rng.standard_normal(dim), np.empty(dim)
    inverse = np.linalg.inv(matrix)
    expected = inverse @ x
    assert rank_one(inverse, x, product) == pytest.approx(x @ expected, rel=1e-9)
    np.testing.assert_allclose(product, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(inverse @ (matrix + np.outer(x, x)), np.eye(dim), atol=1e-8)
    np.testing.assert_array_equal(inverse, inverse.T)


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("dim", [1, 2, 5, 10, 17])
def test_factorise_and_invert(dim, shift):
    rng = np.random.default_rng(dim)
    root = rng.standard_normal((dim, 2 * dim))
    matrix, factor, inverse = root @ root.T, np.zeros((dim, dim)), np.empty((dim, dim))
    # Neither the upper triangle is read nor what is beyond the factor's rows and columns.
    read = np.full((dim + 1, dim + 1), np.nan)
    read[:dim, :dim] = np.tril(matrix) + np.triu(read[:dim, :dim], 1)
    log_det = factorise(read, shift, factor)
    matrix += shift * np.eye(dim)
    assert log_det == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), atol=1e-12 * np.abs(matrix).max())
    invert(factor, inverse)
    expected = np.linalg.inv(matrix)
    np.testing.assert_allclose(inverse, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize(("least", "shift"), [(0.0, 0.0), (-1e-3, 0.0), (0.5, -0.5), (-0.5, 0.4)])
def test_factorise_refuses_what_is_not_positive_definite(least, shift):
    matrix = np.diag([1.0, least, 2.0])
    assert np.isnan(factorise(matrix, shift, np.zeros((3, 3))))


@pytest.mark.parametrize("sign", [-1, 1])
def test_smallest_eigenvalues_are_compared_with_their_bounds(sign):
    rng = np.random.default_rng(3)
    statistics = rng.standard_normal((20, 4, 4))
    statistics += np.swapaxes(statistics, 1, 2)
    smallest = np.linalg.eigvalsh(statistics[:, :3, :3])[:, 0]
    assert smallest.min() < 0 < smallest.max()
    np.testing.assert_array_equal(lies_below(statistics, smallest + sign * 1e-3), sign > 0)


@pytest.mark.parametrize(("arms", "dim"), [(1, 1), (7, 3), (100, 10)])
def test_upper_bounds(arms, dim):
    rng = np.random.default_rng(arms)
    root = rng.standard_normal((dim, 2 * dim))
    inverse, parameter = np.linalg.inv(root @ root.T), rng.standard_normal(dim)
    contexts, bound = rng.standard_normal((arms, dim)), np.empty(arms)
    upper_bounds(contexts.T.copy(), inverse, parameter, 0.7, 0.3, np.empty((3, arms)), bound)
    lengths = np.sqrt(np.einsum("ki,ih,kh->k", contexts, inverse, contexts))
    expected = contexts @ parameter + 0.7 * lengths + 0.3 * np.linalg.norm(contexts @ inverse, axis=1)
    np.testing.assert_allclose(bound, expected, rtol=1e-12, atol=1e-12)
    assert largest(bound) == expected.argmax()


@pytest.mark.parametrize(("arms", "dim", "count"), [(1, 1, 1), (7, 3, 5), (100, 10, 63)])
def test_forms_of_many_vectors(arms, dim, count):
    rng = np.random.default_rng(arms)
    matrices, vectors = rng.standard_normal((dim, dim, arms)), rng.standard_normal((dim, arms))
    matrices = matrices + matrices.transpose(1, 0, 2)
    form, product = np.ones(arms), np.empty(arms)
    add_own_forms(matrices, vectors, product, form)
    np.testing.assert_allclose(
        form, 1 + np.einsum("ik,ihk,hk->k", vectors, matrices, vectors), rtol=1e-12, atol=1e-11
    )
    form[:] = 1
    add_shared_forms(matrices[..., 0].copy(), vectors, count, product, form)
    expected = 1 + np.einsum("ik,ih,hk->k", vectors, matrices[..., 0], vectors)
    np.testing.assert_allclose(form[:count], expected[:count], rtol=1e-12, atol=1e-11)
    assert (form[count:] == 1).all()
