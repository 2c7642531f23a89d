"""What is measured of FedUCB besides regret, against formulas and simulations of the tests' own."""

import math

import numpy as np
import pytest

from fedbandit_envs.experiments.store import source_digest
from fedbandit_envs.papers.experiment import Measurement, Plan
from fedbandit_envs.papers.feducb_critique import (
    ERROR,
    EXPERIMENTS,
    FIXED,
    PRINTED,
    TRUE,
    added_noise,
    epsilon_at_least,
    first_messages,
    printed_bound,
    printed_trigger,
)


def played(cell):
    return cell.join([cell.play()])


def attack(baseline, horizons, made_for):
    """The measurement of an attack on 40 federations with each history."""
    arguments = {"baseline": baseline, "epsilon": 3.0, "horizons": horizons, "made_for": made_for}
    return Measurement(first_messages, arguments, range(40), 40, 1.0)


@pytest.mark.parametrize("made_for", [None, 7])
def test_the_trigger_s_times_tell_two_histories_apart_for_sure(made_for):
    """With the printed D at a horizon that betrays the observation, and with a D made for that."""
    found = played(attack(PRINTED, (220, 240), made_for))
    if made_for is None:
        assert 220 <= found.horizon <= 240
        assert 0 < found.share < 0.2
        threshold, *sides = printed_trigger(PRINTED, 3.0, found.horizon)
        without, including = (math.ceil(threshold / side) for side in sides)
    else:
        without, including = 8, 7
    assert set(found.without) == {without}
    assert set(found.including) == {including}
    assert without == including + 1
    assert "choose when to send" in found.reason
    # 30 test samples: at least 1e-4/2 to the 1/30th of one side, at most one less that of the other.
    rate = (ERROR / 2) ** (1 / 30)
    assert epsilon_at_least(found.without, found.including, 0.1) == pytest.approx(
        math.log((rate - 0.1) / (1 - rate)) if rate > 0.55 else 0.0
    )


def test_times_fixed_in_advance_betray_nothing():
    found = played(attack(FIXED, (100, 100), 7))
    assert set(found.without) == set(found.including) == {1}
    assert found.reason == ""
    assert epsilon_at_least(found.without, found.including, 0.1) == 0.0


def test_the_printed_trigger_is_that_of_algorithm_1():
    """log det of S + (rho_max - rho_min) I over that of S = M rho_min I, rho_max = 3 rho_min, per agent."""
    threshold, without, including = printed_trigger(PRINTED, 1.0, 172)
    assert without == pytest.approx(2 * math.log(3))
    assert 0 < including - without < 1e-4
    rho = 1 / (3 * math.expm1(including - without))  # M rho_min
    assert threshold == pytest.approx(2 * 172 * 2 / (math.log(3 + 172 / (2 * rho)) + 1), rel=1e-6)


@pytest.mark.parametrize("swapped", [False, True])
def test_bounds_of_epsilon_are_those_of_the_rates(swapped):
    """Rounds 3 with probability 0.9 under one history and 0.1 under the other: epsilon is ln 8 at delta 0.1."""
    rng = np.random.default_rng(0)
    without, including = (np.where(rng.random(40_000) < rate, 3, 5) for rate in (0.1, 0.9))
    if swapped:
        without, including = including, without
    found = epsilon_at_least(without, including, 0.1)
    # A wrong bound has probability 1e-4; the seed is fixed.
    assert 0.9 * math.log(8) < found < math.log(8)


@pytest.mark.parametrize("agents", [1, 6])
def test_noise_of_agents_adds_up(agents):
    """Variances of 3,000 values are within 5 sigma, 13 %, of what they are: 1e-6 a side; 300 federations a shard."""
    arguments = {"baseline": FIXED, "agents": agents, "rounds": 4}
    found = played(Measurement(added_noise, arguments, range(1000), 300, 4.0))
    assert found.summed.size == 3000
    assert found.single.size == 3000 * agents
    # Round 4's is the third release of a tree for three: two draws, sqrt(2) 4 sqrt(m) ln(2/delta) (L^2 + B^2) each.
    one = 2 * (math.sqrt(2) * 4 * math.sqrt(3) * math.log(20) * 2) ** 2
    assert found.single.var() == pytest.approx(one, rel=0.13)
    assert found.summed.var() == pytest.approx(agents * one, rel=0.13)


def test_proposition_1_as_printed():
    """n <= 2 sqrt((dT/D) log(rho_max/rho_min + T L^2/(d rho_min))) + 4, with Theorem 1's D of both."""
    depth = 1 + math.ceil(math.log2(1000))
    reach = math.sqrt(32) * depth * 2 * math.log(40)
    reach *= 4 * math.sqrt(10) + 2 * math.log(2 * 1000 * 10 / 0.01)
    inner = math.log(3 + 1000 / (10 * reach))
    assert printed_bound(1000, True, 16) == (pytest.approx(2 * math.sqrt(16 * inner) + 4), 16)
    rate = (inner + 1) / 2
    assert printed_bound(1000, True, None) == pytest.approx((2 * math.sqrt(rate * inner) + 4, rate))
    assert printed_bound(1000, False, 4)[0] == pytest.approx(4 * math.sqrt(math.log(1 + 1000)) + 4)


def test_a_small_threshold_breaks_proposition_1():
    """With dT/D = 64 and printed noise: the clock strikes more often than the bound allows; true data keeps it."""
    scale = EXPERIMENTS["feducb-critique"].scales["tiny"]
    runs = EXPERIMENTS["feducb-critique"].runs(Plan("messages", scale, "default"))
    for line, private in ((PRINTED, True), (TRUE, False)):
        (run,) = (run for run in runs if (run.labels["line"], run.labels["rate"]) == (line, 64))
        found = played(run).traffic["messages"].max() / 9
        assert (found > printed_bound(scale.rounds, private, 64)[0]) == private


def test_a_key_is_that_of_function_arguments_and_seeds():
    cell = attack(FIXED, (100, 100), 7)
    assert cell._replace(labels={"line": "other"}).key == cell.key
    others = [
        cell._replace(measure=added_noise), cell._replace(seeds=range(41)), attack(PRINTED, (100, 100), 7),
        attack(FIXED, (100, 101), 7), attack(FIXED, (100, 100), None),
    ]  # fmt: skip
    assert all(other.key != cell.key for other in others)
    # The function's module may import more than the class's, whose source the store takes in.
    assert source_digest(first_messages.__module__) in cell.key
