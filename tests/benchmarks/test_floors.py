"""Floors: their draws have the laws that they say, and they regret what the package regrets.

Statistical tests have fixed seeds and a false-alarm rate of 1e-4 each; there are seventeen of them.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytestmark = pytest.mark.ci
"""Benchmarks are not a part of the package, and their kernels take long to compile."""

ALARM = 1e-4


@pytest.fixture(autouse=True, scope="module")
def checkout():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        yield


@pytest.mark.parametrize(
    "name", [path.stem for path in Path(__file__).parents[2].glob("benchmarks/bench_*.py")]
)
def test_every_benchmark_finds_what_it_imports(name):
    import_module(f"benchmarks.{name}")


def reference_words(state, number):
    """Words of one lane, by xoshiro128++ as published, in Python's integers."""
    s, words = [int(word) for word in state], []
    for _ in range(number):
        mixed = (s[0] + s[3]) % 2**32
        words.append(((mixed << 7 | mixed >> 25) % 2**32 + s[0]) % 2**32)
        shifted = (s[1] << 9) % 2**32
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = (s[3] << 11 | s[3] >> 21) % 2**32
    return words


def test_words_are_xoshiros():
    from benchmarks.floors.draws import fresh_lanes, refill

    lanes = fresh_lanes(3)
    expected = [reference_words(lanes[:, lane], 5) for lane in (0, 31)]
    words = np.empty((5, 32), np.uint32)
    for row in words:
        refill(lanes, row)
    assert words[:, [0, 31]].T.tolist() == expected


@pytest.fixture(scope="module")
def offers(checkout):
    """Contexts, means and best arms of 200 rounds, and theta*."""
    from benchmarks.floors import linear
    from benchmarks.floors.draws import fresh_lanes

    floor = linear.FirstArm([5])
    lanes, words, cuts = (
        fresh_lanes(1, linear.LANES),
        np.empty(linear.LANES, np.uint32),
        np.empty((5, 100), np.int32),
    )
    across, length = np.empty(10 * linear.LANES, np.float32), np.empty(100, np.float32)
    means, contexts, drawn = np.empty(100), np.empty(10 * linear.LANES), []
    for _ in range(200):
        best = linear.offer(lanes, words, cuts, across, length, floor._mirror[0], means, contexts)
        drawn.append((contexts.reshape(10, linear.LANES)[:, :100].T.copy(), means.copy(), int(best)))
    x, mean, best = (np.array(part) for part in zip(*drawn, strict=True))
    return x, mean, best, floor


def uniform(values):
    """p-value of uniformity on [0, 1]."""
    return stats.kstest(values, "uniform").pvalue


def test_contexts_have_the_bands_law(offers):
    x, mean, best, floor = offers
    theta = floor._mirror[0] * -2 * floor._mirror[0, 0]
    theta[0] += 1
    np.testing.assert_allclose(x @ theta, mean, atol=1e-12)
    assert np.array_equal(mean.argmax(axis=1), best)
    others = np.ones(mean.shape, bool)
    others[np.arange(200), best] = False
    assert uniform((mean[others] - 0.5) / 0.1) > ALARM
    assert uniform((mean[~others] - 0.7) / 0.1) > ALARM
    assert stats.chisquare(np.bincount(best // 10, minlength=10)).pvalue > ALARM
    rest = x - mean[..., np.newaxis] * theta
    squares = (rest**2).sum(axis=-1) / (1 - mean**2)
    assert squares.max() <= 1 + 1e-6
    assert uniform(squares.reshape(-1) ** 4.5) > ALARM
    # Squares of three numbers of a direction in nine dimensions: Beta(3/2, 3), whichever the numbers are.
    basis = np.linalg.svd(theta[np.newaxis])[2][1:]
    direction = rest @ basis.T
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    for few in ([0, 1, 2], [3, 5, 8], [4, 6, 7]):
        part = (direction[..., few] ** 2).sum(axis=-1).reshape(-1)
        assert stats.kstest(part, stats.beta(1.5, 3).cdf).pvalue > ALARM
    assert stats.binomtest(int((direction[..., 0] > 0).sum()), 20_000).pvalue > ALARM


def test_rewards_have_the_beta_law(offers):
    from benchmarks.floors import linear
    from benchmarks.floors.draws import fresh_lanes, refill

    lanes, words = fresh_lanes(2, linear.LANES), np.empty(linear.LANES, np.uint32)
    drawn = []
    for _ in range(5000):
        refill(lanes, words)
        drawn.append(linear.reward(0.63, lanes, words))
    assert stats.kstest(drawn, stats.beta(0.63, 0.37).cdf).pvalue > ALARM


@pytest.fixture(params=["as Python", pytest.param("compiled", marks=pytest.mark.slow)])
def loops(request, monkeypatch):
    """Compiles the loops over rounds, into which all that they call is compiled again, in slow runs only."""
    from benchmarks.floors import linear

    if request.param == "as Python":
        monkeypatch.setattr(linear, "by_rounds", linear.by_rounds.py_func)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("run", ["linear alone", "LinUCB"])
def test_rounds_in_turn_have_the_law_of_rounds_of_one_agent(run):
    """Words are used in another order: a t-test over replicas whose instances are the same.

    The loop over rounds is Python's in ordinary runs, as it is written; what it calls is compiled. Slow runs have it
    compiled too. That of UCB1 always is, in the next test.
    """
    from benchmarks.floors.__main__ import RACES

    floors = (RACES[run].floors[name] for name in ("by rounds", "by agents"))
    turns, agents = (played(floor(range(40)), 300) for floor in floors)
    assert stats.ttest_rel(turns.mean(axis=1), agents.mean(axis=1)).pvalue > ALARM
    assert not np.array_equal(turns, agents)


def played(player, rounds):
    """Regret after so many rounds, ``(replicas, agents)``."""
    player.play(rounds - getattr(player, "played", 0))
    return player.regret


def test_rows_in_lanes_have_the_same_words_in_any_order():
    from benchmarks.floors.__main__ import RACES

    turns, agents = (
        played(RACES["UCB1"].floors[name](range(40)), 300) for name in ("by rounds", "by agents")
    )
    np.testing.assert_array_equal(turns, agents)


def test_an_action_that_stays_regrets_the_same():
    from benchmarks.floors.__main__ import RACES

    race = RACES["arms alone"]
    np.testing.assert_allclose(
        played(race.package(range(7)), 50), played(race.floors["by agents"](range(7)), 50)
    )


@pytest.mark.parametrize(
    ("run", "floor", "replicas", "rounds"),
    [
        ("linear alone", "by agents", 10, 100),
        ("LinUCB", "by agents", 20, 150),
        ("UCB1", "one row", 100, 1000),
        ("UCB1", "by agents", 100, 1000),
    ],
)
def test_a_floor_regrets_what_the_package_does(run, floor, replicas, rounds):
    """The same instances with luck of their own: a paired t-test over replicas."""
    from benchmarks.floors.__main__ import RACES

    seeds = range(1000, 1000 + replicas)
    players = RACES[run].package(seeds), RACES[run].floors[floor](seeds)
    package, own = (played(player, rounds).mean(axis=1) for player in players)
    assert stats.ttest_rel(package, own).pvalue > ALARM
    # It could fail: a twentieth more regret would be seen.
    spread = np.std(own - package, ddof=1) / np.sqrt(replicas)
    assert 4 * spread < 0.05 * package.mean()
