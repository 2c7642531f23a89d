"""Schedules: in which rounds messages are sent, counted against the papers' listings."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refusals

from fedbandit_envs.wrappers.transport.schedule import SCHEDULES, Schedule, make_schedule

EVERY_SPEC = [
    "silent",
    "every_round",
    "doubling",
    {"name": "doubling", "mode": "printed"},
    {"name": "doubling", "start": 3, "stop": None},
    {"name": "doubling", "start": 1, "stop": None},
    {"name": "doubling", "start": 3, "stop": None, "mode": "printed"},
    {"name": "fixed_gap", "gap": 7},
    {"name": "growing_then_fixed", "limit": 40},
    {"name": "geometric", "count": 9, "horizon": 700},
    "on_request",
    "synchronise",
    "announced",
]
ASKED = {"on_request", "synchronise"}


def of(name: str, **arguments) -> Schedule:
    return make_schedule({"name": name, **arguments})


def rounds(schedule, horizon: int) -> list[int]:
    """In which rounds everybody sends if everybody asks."""
    everybody = np.ones((1, 2), bool)
    sent = np.concatenate([everybody[:0], *(schedule.senders(t, everybody) for t in range(1, horizon + 1))])
    np.testing.assert_array_equal(sent[:, 0], sent[:, 1])
    return (np.flatnonzero(sent[:, 0]) + 1).tolist()


@pytest.mark.parametrize(("start", "stop"), [(1, 1), (1, 100), (3, 3), (5, 70), (64, 64), (200, 4000)])
def test_doubling_equals_the_listing(start, stop):
    """Algorithm 1 of P-FCB, line by line."""
    printed, tau, horizon = [], 1, 2 * stop
    for t in range(1, horizon + 1):
        if start <= t <= stop and t >= tau:
            printed.append(t)
            tau *= 2
    assert rounds(of("doubling", start=start, stop=stop, mode="printed"), horizon) == printed
    powers = [2**k for k in range(16) if start <= 2**k <= stop]
    assert rounds(of("doubling", start=start, stop=stop), horizon) == powers


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 31, 32, 33, 1000])
def test_growing_then_fixed_equals_the_listing(limit):
    """Algorithm 6.1 of the thesis, lines 10 to 17."""
    listed, tau, horizon = [], 1, 4 * limit + 200
    for t in range(1, horizon + 1):
        if t == tau:
            listed.append(t)
            tau = 2 * tau if t < limit else tau + limit
    assert rounds(of("growing_then_fixed", limit=limit), horizon) == listed


def test_geometric_rounds_by_hand():
    assert rounds(of("geometric", count=3, horizon=10_000), 10_000) == [10, 100, 1000]
    # 2^(1/4), 2^(1/2), ... of the horizon 16; then its 9th roots, which coincide at the beginning.
    assert rounds(of("geometric", count=3, horizon=16), 16) == [2, 4, 8]
    assert rounds(of("geometric", count=8, horizon=10), 10) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert rounds(of("geometric", count=1, horizon=1), 5) == [1]


@pytest.mark.parametrize("horizon", [1, 2, 3, 10, 64, 101, 1000, 3000])
def test_geometric_rounds_are_as_many_as_asked_for_and_distinct(horizon):
    counts = {1, 2, 3, 10, 31, horizon // 2, horizon - 1, horizon}
    for count in counts & {*range(1, min(horizon, 1000) + 1)}:
        listed = rounds(of("geometric", count=count, horizon=horizon), horizon)
        assert len(set(listed)) == len(listed) == count
        assert list(listed) == sorted(listed)
        assert listed[0] >= 1
        assert listed[-1] <= horizon
        # Where the gaps have grown beyond one round, nothing moves: within half a round of the progression.
        ideal = horizon ** (np.arange(1, count + 1) / (count + 1))
        free = np.flatnonzero(np.diff(ideal) > 2)
        if free.size and ideal[free[0]] > 2 * count:
            np.testing.assert_allclose(listed[free[0] :], ideal[free[0] :], atol=0.5 + 1e-9)


@settings(max_examples=100)
@given(
    schedule=st.one_of(
        st.builds(of, st.just("fixed_gap"), gap=st.integers(1, 70)),
        st.builds(of, st.just("growing_then_fixed"), limit=st.integers(1, 70)),
        st.builds(
            lambda start, length, mode: of(
                "doubling", start=start, stop=None if length is None else start + length, mode=mode
            ),
            st.integers(1, 70),
            st.one_of(st.none(), st.integers(0, 200)),
            st.sampled_from(["powers_of_two", "printed"]),
        ),
    ),
    horizon=st.integers(0, 300),
)
def test_counts_equal_brute_force_whatever_the_arguments(schedule, horizon):
    assert schedule.count(horizon) == len(rounds(schedule, horizon))


def test_counts_by_hand():
    million = 10**7
    assert of("every_round").count(million) == million
    assert of("fixed_gap", gap=3).count(million) == 3_333_333
    assert of("doubling").count(million) == 8
    assert of("doubling", mode="printed").count(million) == 16
    assert of("doubling", start=1, stop=None).count(million) == 24
    assert of("growing_then_fixed", limit=1000).count(million) == 11 + (million - 1024) // 1000
    assert of("geometric", count=32, horizon=1000).count(million) == 32
    assert of("silent").count(million) == 0
    assert of("on_request").count(million) == of("synchronise").count(million) == million


def test_who_sends_when_some_ask():
    asked = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 1]], bool)
    assert np.array_equal(of("on_request").senders(1, asked), asked)
    assert of("synchronise").senders(1, asked).tolist() == [[True] * 3, [False] * 3, [True] * 3]
    assert of("fixed_gap", gap=2).senders(1, asked).tolist() == [[False] * 3] * 3
    assert of("fixed_gap", gap=2).senders(2, asked).tolist() == [[True] * 3] * 3


def test_a_fixed_schedule_is_its_counting_function():
    def primes_below_ten(t):
        return sum(prime <= t for prime in (2, 3, 5, 7))

    for schedule in (make_schedule(primes_below_ten), make_schedule(Schedule(primes_below_ten))):
        assert rounds(schedule, 20) == [2, 3, 5, 7]
        assert schedule.fixed_in_advance


@pytest.mark.parametrize("spec", EVERY_SPEC, ids=str)
def test_specifications_are_json_and_schedules_pickle(spec):
    schedule = make_schedule(json.loads(json.dumps(spec)))
    assert make_schedule(schedule) is schedule
    twin = pickle.loads(pickle.dumps(schedule))
    assert rounds(twin, 800) == rounds(schedule, 800)
    assert schedule.fixed_in_advance == (spec not in ASKED if isinstance(spec, str) else True)
    assert schedule.needs_all_connected == (spec == "synchronise")
    assert schedule.announced == (spec == "announced")


def test_every_schedule_has_a_tested_name():
    assert set(SCHEDULES) == {spec if isinstance(spec, str) else spec["name"] for spec in EVERY_SPEC}


test_bad_specifications_are_named = refusals(
    make_schedule,
    ("often", ValueError, r"schedule name is 'often'; one of \['announced', 'doubling',"),
    (5, TypeError, "schedule is 5"),
    ({"name": "fixed_gap", "gap": 3, "start": 1}, TypeError, "schedule 'fixed_gap'"),
    ({"name": "fixed_gap", "gap": 0}, ValueError, "gap is 0; an integer >= 1"),
    ({"name": "growing_then_fixed", "limit": -1}, ValueError, "limit is -1; an integer >= 1"),
    ({"name": "doubling", "start": 0}, ValueError, "start is 0; an integer >= 1"),
    ({"name": "doubling", "start": 9, "stop": 8}, ValueError, "stop is 8; an integer >= 9"),
    ({"name": "doubling", "mode": "halving"}, ValueError, "mode is 'halving'"),
    ({"name": "geometric", "count": 10, "horizon": 9}, ValueError, r"count is 10; an integer in \[1, 9\]"),
    ({"name": "geometric", "count": 1, "horizon": 0}, ValueError, "horizon is 0; an integer >= 1"),
)
