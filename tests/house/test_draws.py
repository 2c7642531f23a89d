"""Counter-based draws: bits are Threefry's, laws hold, and rows, rounds and keys know nothing of each other.

Laws are tested at 1e-4 each, under fixed seeds: of the 36 tests one in 278 would raise a false alarm.
"""

import numpy as np
import pytest
from compiled import from_python
from numba import njit
from scipy import stats
from seed_inversion import entropy_behind
from threefry_reference import threefry as reference

from fedbandit_envs.randomness import draws
from fedbandit_envs.randomness.draws import Draws, EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose, row_keys, row_seeds

LEVEL = 1e-4
SAMPLES = 1 << 20

fill_bits = from_python(draws.fill_bits)


@njit
def compiled_threefry(key0, key1, counter0, counter1):
    return draws.threefry(key0, key1, counter0, counter1)


def test_bits_are_those_of_the_definition():
    # The authors' known answers for twenty rounds (test vectors of Random123).
    assert reference((0, 0), (0, 0), 20) == (0x6B200159, 0x99BA4EFE)
    rng = np.random.default_rng(0)
    words = rng.integers(2**32, size=(52, 4), dtype=np.uint32)
    words[:2] = [[0], [2**32 - 1]]
    for key0, key1, counter0, counter1 in words:
        expected = reference((int(key0), int(key1)), (int(counter0), int(counter1)), 13)
        assert compiled_threefry(key0, key1, counter0, counter1) == expected


def test_arrays_of_bits_hold_the_pairs_of_their_counters():
    bits = np.empty(draws.padded(33), np.uint32)
    assert bits.size == 64
    fill_bits(np.uint32(5), np.uint32(6), np.uint32(7), bits)
    pairs = [reference((5, 6), (7, lane), 13) for lane in range(32)]
    np.testing.assert_array_equal(bits, np.array(pairs, np.uint32).T.reshape(-1))


def fill_uniforms(key0, key1, round_, out):
    out[...] = draws.Draws(np.array([[[key0, key1]]]), np.array([[round_]])).uniforms(out.size)[0, 0]


LAWS = {
    "normal": (from_python(draws.fill_normals), np.float32, stats.norm),
    "exponential": (from_python(draws.fill_exponentials), np.float32, stats.expon),
    "uniform": (fill_uniforms, np.float64, stats.uniform),
}


def _filled(law, key, round_=0, size=SAMPLES):
    fill, dtype, _ = LAWS[law]
    out = np.empty(size, dtype)
    fill(np.uint32(key), np.uint32(77), np.uint32(round_), out)
    return out.astype(np.float64)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("key", [1, 2**31])
def test_laws(law, key):
    shares = LAWS[law][2].cdf(_filled(law, key))
    assert stats.kstest(shares, lambda share: share).pvalue > LEVEL
    # What a Kolmogorov test is blind to: 4,096 bins of equal probability.
    counts = np.histogram(shares, bins=4096, range=(0, 1))[0]
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_tails(law):
    # Two-sided for normal numbers. 2^24 of them: 1e-2 beyond 6 standard deviations are expected, 950 beyond 4.
    quantile = LAWS[law][2]
    cuts = quantile.isf([3e-5, 1e-6, 1e-7]) if law == "normal" else quantile.isf([6e-5, 2e-6, 2e-7])
    beyond, total, largest = np.zeros(3, np.int64), 0, 0.0
    for round_ in range(16):
        size = np.abs(_filled(law, 3, round_))
        beyond += [(size > cut).sum() for cut in cuts]
        total += size.size
        largest = max(largest, size.max())
    for count, chance in zip(beyond, (6e-5, 2e-6, 2e-7), strict=True):
        assert stats.binomtest(int(count), total, chance).pvalue > LEVEL
    assert largest > 5.0


def test_the_smallest_words_reach_far_into_the_tails():
    @njit
    def extremes():
        zero, half = np.uint32(0), np.uint32(0)
        return draws.normal_pair(zero, half), draws.normal_pair(np.uint32(2**32 - 1), half)

    far, near = extremes()
    np.testing.assert_allclose(far[0], np.sqrt(64 * np.log(2)), rtol=1e-6)
    assert abs(near[0]) < 1e-3


@pytest.mark.parametrize("other", ["lane", "round", "key", "half"])
@pytest.mark.parametrize("law", LAWS)
def test_nothing_is_correlated(law, other):
    """Draws and their squares, across lanes next to each other, rounds, keys, and the two of a pair."""
    here = _filled(law, 5, 9)
    there = {
        "lane": np.roll(here, 1),
        "round": _filled(law, 5, 10),
        "key": _filled(law, 6, 9),
        "half": np.roll(here, SAMPLES // 2),
    }[other]
    for power in (1, 2):
        a, b = here**power, there**power
        # Those of a pair meet twice when the halves change places.
        count = SAMPLES / 2 if other == "half" else SAMPLES
        z = np.corrcoef(a, b)[0, 1] * np.sqrt(count)
        assert 2 * stats.norm.sf(abs(z)) > LEVEL


def test_normal_pairs_have_no_direction():
    """The angle of a pair is uniform, and independent of its length."""
    drawn = _filled("normal", 8)
    x, y = drawn.reshape(2, -1)
    angle = np.arctan2(y, x) / (2 * np.pi) + 0.5
    length = stats.chi2(2).cdf(x * x + y * y)
    counts = np.histogram2d(angle, length, bins=[64, 16])[0]
    assert stats.chisquare(counts.reshape(-1)).pvalue > LEVEL


def test_logarithm_and_circle_are_exact_to_float32():
    drawn = _filled("exponential", 4, size=1 << 16)
    bits = np.empty(1 << 16, np.uint32)
    fill_bits(np.uint32(4), np.uint32(77), np.uint32(0), bits)
    exact = -np.log((bits // 2 + 0.5) / 2**31)
    # Near 1 float32 knows a number to 6e-8, and so its logarithm.
    np.testing.assert_allclose(drawn, exact, rtol=5e-7, atol=1.3e-7)
    x, y = _filled("normal", 4, size=1 << 16).reshape(2, -1)
    np.testing.assert_allclose(x * x + y * y, 2 * drawn[: 1 << 15], rtol=2e-6, atol=1e-6)


def test_rows_do_not_know_of_each_other():
    alone, together = EpisodeRandomness([7], 2, own=False), EpisodeRandomness([3, 7, 9], 5, own=False)
    for kind in ("uniforms", "normals"):
        some = getattr(alone.draws(Purpose.OUTCOME, 1), kind)(4)
        many = getattr(together.draws(Purpose.OUTCOME, 1), kind)(4)
        np.testing.assert_array_equal(many[1, :2], some[0])
        assert np.unique(many).size == many.size


def test_own_luck_waits_for_its_agent():
    own, common = EpisodeRandomness([1], 2, own=True), EpisodeRandomness([1], 2, own=False)
    active = np.array([[True, False]])
    waiting, going = own.draws(Purpose.CONTEXT), common.draws(Purpose.CONTEXT)
    first = waiting.uniforms()
    for luck in (own, common):
        luck.advance(active)
    assert waiting.uniforms()[0, 1] == first[0, 1]
    assert waiting.uniforms()[0, 0] == going.uniforms()[0, 0] != first[0, 0]
    assert going.uniforms()[0, 1] != first[0, 1]


def test_purposes_have_keys_of_their_own():
    keys = [row_keys([1], 3, purpose, *key) for purpose in Purpose for key in ((), (0,), (1,))]
    words = np.concatenate(keys, axis=1).view(np.uint64)
    assert np.unique(words).size == words.size


def test_no_seed_follows_from_what_policies_are_given():
    """NumPy's seed sequences run backwards: without a hash, two policies' seeds are the episode's."""
    secret = 2**127 + 987654321
    bare = np.random.SeedSequence(secret, spawn_key=(Purpose.POLICY,)).generate_state(4).tolist()
    assert entropy_behind(bare, (int(Purpose.POLICY),)) == secret
    given = row_seeds([secret], 2).view(np.uint32).ravel().tolist()
    for spawn_key in ((), (int(Purpose.POLICY),)):
        found = entropy_behind(given, spawn_key)
        assert found != secret
        assert not np.array_equal(row_seeds([found], 2), row_seeds([secret], 2))


def test_a_policys_draws_follow_from_its_seeds():
    seeds = row_seeds([5, 6], 3)
    drawn = Draws.of_policy(seeds, 4).uniforms()
    rounds = np.full((2, 3, 1), 4)
    np.testing.assert_array_equal(Draws.of_policy(seeds, rounds).uniforms(), drawn)
    np.testing.assert_array_equal(Draws.of_policy(seeds[:1, 1:2], 4).uniforms(), drawn[:1, 1:2])
    rounds[1, 2] = 5
    assert (Draws.of_policy(seeds, rounds).uniforms() != drawn).sum() == 1
