"""The space of distributions: what is in it, samples, batches.

Statistical tests fix their seeds and fail by chance with a probability below 1e-6 each.
"""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from fedbandit_envs.core.actions import Simplex


@pytest.mark.parametrize("shape", [(1,), (4,), (3, 2)])
def test_the_simplex_contains_its_samples_and_so_do_its_batches(shape):
    space = Simplex(shape, seed=3)
    samples = [space.sample() for _ in range(50)]
    assert all(space.contains(sample) and sample.shape == shape for sample in samples)
    batch = batch_space(space, 5)
    assert isinstance(batch, Simplex)
    assert batch.shape == (5, *shape)
    assert batch.contains(batch.sample())
    assert all(space.contains(row) for row in iterate(batch, batch.sample()))
    assert create_empty_array(space, 5).shape == (5, *shape)
    assert space == Simplex(shape)
    assert space != Simplex((*shape, 2))
    assert space != gymnasium.spaces.Box(0.0, 1.0, shape, np.float64)
    assert not space.contains(np.full(shape, 1.0 + 1e-5))
    assert not space.contains(np.full(shape, np.nan))


def test_samples_are_uniform_on_the_simplex():
    """Uniform on it means Dirichlet(1, ..., 1): entries have the variance (K - 1) / (K^2 (K + 1))."""
    space = Simplex((4,), seed=0)
    drawn = np.array([space.sample() for _ in range(20_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), 0.25, atol=6 * 0.2 / np.sqrt(20_000))
    np.testing.assert_allclose(drawn.var(axis=0), 3 / 80, rtol=0.05)


def test_a_simplex_needs_numbers():
    with pytest.raises(ValueError, match=r"shape is \(\)"):
        Simplex(())
    with pytest.raises(ValueError, match=r"shape is \(3, 0\)"):
        Simplex((3, 0))
