"""The twin's random numbers: the package's own to the bit, and noise of the right law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiled import from_python
from scipy import stats

from fedbandit_envs import functional as twin
from fedbandit_envs.functional import draws
from fedbandit_envs.randomness import draws as package
from fedbandit_envs.randomness.streams import Purpose, row_keys

KEYS = row_keys(range(30), 4, Purpose.OUTCOME)
ROUND = 17
SIZE = 200


def by_row(function):
    return np.asarray(jax.jit(jax.vmap(jax.vmap(function)))(KEYS))


def filled(fill, dtype):
    """What the package's kernel fills an array of each row with."""
    out, fill = np.empty((*KEYS.shape[:2], package.padded_size(SIZE)), dtype), from_python(fill)
    for at in np.ndindex(*KEYS.shape[:2]):
        fill(*KEYS[at], np.uint32(ROUND), out[at])
    return out[..., :SIZE]


def test_importing_changes_no_setting_of_jax():
    assert not jax.config.jax_enable_x64
    assert jnp.zeros(1).dtype == np.float32


def test_words_are_the_package_s_to_the_bit():
    np.testing.assert_array_equal(
        by_row(lambda key: draws.words(key, ROUND, SIZE)), filled(package.fill_bits, np.uint32)
    )


@pytest.mark.parametrize("kind", ["normals", "exponentials"])
def test_numbers_are_the_package_s_to_the_bit(kind):
    wanted = filled(getattr(package, f"fill_{kind}"), np.float32)
    np.testing.assert_array_equal(by_row(lambda key: getattr(draws, kind)(key, ROUND, SIZE)), wanted)


def test_uniform_numbers_are_the_package_s_to_the_bit():
    wanted = package.Draws(KEYS, np.full(KEYS.shape[:2], ROUND, np.uint32)).uniforms(SIZE)
    pairs = lambda key: draws.threefry(key, ROUND, jnp.arange(SIZE))  # noqa: E731
    with jax.enable_x64(True):
        np.testing.assert_array_equal(by_row(lambda key: draws.uniform(*pairs(key), jnp.float64)), wanted)
    single = by_row(lambda key: draws.uniform(*pairs(key), jnp.float32))
    assert single.dtype == np.float32
    assert single.max() < 1
    np.testing.assert_allclose(single, wanted, atol=2.0**-23)


@pytest.mark.parametrize("mechanism", ["tree", "honaker", "sqrt_toeplitz", "independent", "blt"])
def test_noise_of_sums_has_the_announced_variance(mechanism):
    """The noise of 7 releases of 4,000 agents; 5 tests of 14 numbers at 5 standard errors: 4e-5 false alarms."""
    stack = [
        ["ContinualPrivatizer", {"epsilon": 1.0, "delta": 1e-5, "mechanism": mechanism, "releases": 7}],
        ["Channel", {"schedule": {"name": "fixed_gap", "gap": 1}}],
    ]
    noise = twin.make("FedArms-v0", stack, num_agents=2, max_cycles=7).federation.noise
    keys = row_keys(range(1000), 4, Purpose.NOISE).reshape(-1, 2)
    each = jax.vmap(jax.vmap(lambda key, z: noise.draw(key, z, (), jnp.float32), (0, None)), (None, 0))
    drawn = np.asarray(jax.jit(each)(keys, jnp.arange(1, 8)), np.float64)
    sums, variances = drawn.cumsum(axis=0), noise.growth.cumsum()
    spread = np.sqrt(2 / len(keys))
    np.testing.assert_allclose((sums**2).mean(axis=1), variances, rtol=5 * spread)
    np.testing.assert_array_less(np.abs(sums.mean(axis=1)), 5 * np.sqrt(variances / len(keys)))
    assert stats.kstest(sums[-1] / np.sqrt(variances[-1]), "norm").pvalue > 1e-5


def test_noise_of_matrices_is_symmetric_and_of_the_announced_variance():
    """Variances of 4 x 4 entries at 5 standard errors: 1e-5 false alarms."""
    stack = [
        ["ContinualPrivatizer", {"epsilon": 1.0, "delta": 1e-5, "mechanism": "tree", "releases": 5}],
        ["Channel", {"schedule": {"name": "fixed_gap", "gap": 2}}],
    ]
    env = twin.make("FedLinearBall-v0", stack, num_agents=2, num_arms=2, dim=3, max_cycles=10)
    params = env.params(range(1000))
    state, _ = jax.vmap(env.reset)(params)
    sums = {"statistic": jnp.zeros((1000, 2, 4, 4))}
    sent = jax.jit(jax.vmap(env.federation.exchange, (0, 0, 0, None)))(params, sums, state, 2)["inbox"]
    drawn, variance = (np.asarray(sent[f"inbox_statistic{of}"]) for of in ("", "_noise_variance"))
    np.testing.assert_array_equal(drawn, drawn.swapaxes(2, 3))
    np.testing.assert_allclose((drawn**2).mean(axis=(0, 1)), variance[0, 0], rtol=5 * np.sqrt(2 / 2000))
    assert variance[0, 0, 0, 0] == pytest.approx(2 * variance[0, 0, 0, 1])
