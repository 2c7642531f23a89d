"""Floors: they regret what the package regrets.

Statistical tests have fixed seeds and a false-alarm rate of 1e-4 each; there are six of them.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytestmark = pytest.mark.ci
"""Benchmarks are not a part of the package, and their kernels take long to compile."""

ALARM = 1e-4


@pytest.mark.parametrize(
    "name", [path.stem for path in Path(__file__).parents[2].glob("benchmarks/bench_*.py")]
)
def test_every_benchmark_finds_what_it_imports(name):
    import_module(f"benchmarks.{name}")


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
