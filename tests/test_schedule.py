"""Schedules: in which rounds messages are sent, counted against the papers' listings."""

import json
import pickle
import re

import pytest

from fedbandit_envs.wrappers.schedule import (
    SCHEDULES,
    Doubling,
    EveryRound,
    FixedGap,
    GrowingThenFixed,
    OnRequest,
    Silent,
    make_schedule,
)

EVERY_SPEC = [
    "silent",
    "every_round",
    "doubling",
    {"name": "doubling", "mode": "printed"},
    {"name": "fixed_gap", "gap": 7},
    {"name": "growing_then_fixed", "limit": 40},
    "on_request",
]


def rounds(schedule, horizon: int) -> list[int]:
    return [t for t in range(1, horizon + 1) if schedule.sends(t)]


def test_p_fcb_sends_8_or_16_times_in_a_hundred_thousand_rounds():
    assert rounds(Doubling(), 100_000) == [2**k for k in range(8, 16)]
    burst = list(range(200, 208))
    assert rounds(Doubling(mode="printed"), 100_000) == burst + [2**k for k in range(8, 16)]


@pytest.mark.parametrize(("start", "stop"), [(1, 1), (1, 100), (3, 3), (5, 70), (64, 64), (200, 40_000)])
def test_doubling_equals_the_listing(start, stop):
    """Algorithm 1 of P-FCB, line by line."""
    printed, tau = [], 1
    for t in range(1, 50_000):
        if start <= t <= stop and t >= tau:
            printed.append(t)
            tau *= 2
    assert rounds(Doubling(start, stop, "printed"), 49_999) == printed
    powers = [2**k for k in range(16) if start <= 2**k <= stop]
    assert rounds(Doubling(start, stop), 49_999) == powers


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 31, 32, 33, 1000])
def test_growing_then_fixed_equals_the_listing(limit):
    """Algorithm 6.1 of the thesis, lines 10 to 17."""
    listed, tau = [], 1
    for t in range(1, 5000):
        if t == tau:
            listed.append(t)
            tau = 2 * tau if t < limit else tau + limit
    assert rounds(GrowingThenFixed(limit), 4999) == listed


def test_silence_every_round_and_fixed_gaps():
    assert rounds(Silent(), 50) == []
    assert rounds(EveryRound(), 5) == [1, 2, 3, 4, 5]
    assert rounds(FixedGap(4), 13) == [4, 8, 12]
    assert rounds(FixedGap(1), 3) == [1, 2, 3]
    assert rounds(OnRequest(), 3) == [1, 2, 3]


@pytest.mark.parametrize("spec", EVERY_SPEC, ids=str)
def test_specifications_are_json_and_schedules_compare_and_pickle(spec):
    schedule = make_schedule(json.loads(json.dumps(spec)))
    assert make_schedule(schedule) is schedule
    twin = pickle.loads(pickle.dumps(schedule))
    assert twin == schedule
    assert rounds(twin, 3000) == rounds(schedule, 3000)
    assert schedule.fixed_in_advance == (spec != "on_request")


def test_every_schedule_has_a_tested_name():
    assert set(SCHEDULES) == {spec if isinstance(spec, str) else spec["name"] for spec in EVERY_SPEC}


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("often", ValueError, "schedule name is 'often'; one of ['doubling',"),
        ({"gap": 3}, ValueError, "schedule name is None"),
        ({"name": ["silent"]}, ValueError, "schedule name is ['silent']"),
        (5, TypeError, "schedule is 5"),
        (None, TypeError, "schedule is None"),
        (Doubling, TypeError, "schedule is <class"),
        ({"name": "fixed_gap"}, TypeError, "gap"),
        ({"name": "fixed_gap", "gap": 3, "start": 1}, TypeError, "schedule 'fixed_gap'"),
        ({"name": "fixed_gap", "gap": 0}, ValueError, "gap is 0; an integer >= 1"),
        ({"name": "fixed_gap", "gap": 2.5}, TypeError, "gap is 2.5; an integer >= 1"),
        ({"name": "fixed_gap", "gap": True}, TypeError, "gap is True"),
        ({"name": "growing_then_fixed", "limit": -1}, ValueError, "limit is -1; an integer >= 1"),
        ({"name": "doubling", "start": 0}, ValueError, "start is 0; an integer >= 1"),
        ({"name": "doubling", "start": 9, "stop": 8}, ValueError, "stop is 8; an integer >= 9"),
        ({"name": "doubling", "mode": "halving"}, ValueError, "mode is 'halving'"),
    ],
)
def test_bad_specifications_are_named(spec, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make_schedule(spec)
