"""Suites are data, and frozen."""

from dataclasses import replace

import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.board.entries import baselines_of
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.registry.registration import make_federation

# Whoever changes one raises the suite's version: results of another suite are other results.
FROZEN = {
    "procurement": (1, "b0fb9e4c57579c3ec403b8c0f37d9c70907d584a7d39fe1e53962ce99a36867b"),
    "procurement-quick": (1, "a66162f971734471000dba7acb8fac0cade7351528a8be75e0a033ca3253d007"),
    "linear": (1, "43321b3500c92e65a4e74f8cb16fb8f96a823f09652b99e5b3eb4652606042fd"),
    "linear-quick": (1, "3ff000d66c27858fec473bca95533a230d2bbe4dad09938a56737fc5016220c2"),
    "exposure": (1, "85da69aef13382c651d20316ed04f2bfb5e5e31572b08261cbae394199214b17"),
    "exposure-quick": (1, "7c3615a1dad5ca8c1ea6c444f9359818bb0f2d5a7fc6a999f21baddae489c053"),
    "arms": (1, "280335f39e2211ab5048656f20dcda90cdf0599eeed7752ec1501bc79025be58"),
    "arms-quick": (1, "463eab4162358dc7738470040538521ab6d063351fc5b7347dbaddbe36a2c8a1"),
}


def test_suites_are_those_that_were_frozen():
    assert {name: (suite.version, suite.digest) for name, suite in SUITES.items()} == FROZEN


@pytest.mark.parametrize("name", SUITES)
def test_tasks_can_be_played(name):
    suite = SUITES[name]
    assert len({task.id for task in suite.tasks}) == len(suite.tasks)
    for task in suite.tasks:
        env = make_federation(task.env_id, **{**task.env_kwargs, "max_cycles": task.rounds})
        env.reset_batch([0])
        assert suite.adjacency in env.sensitivity().changes
        # Intervals need ten.
        assert task.seeds >= 10
    assert suite.reference in baselines_of(suite)


def test_every_baseline_is_in_a_quick_and_in_a_full_suite():
    quick = [
        name for suite in SUITES.values() if suite.name.endswith("-quick") for name in baselines_of(suite)
    ]
    full = [
        name for suite in SUITES.values() if not suite.name.endswith("-quick") for name in baselines_of(suite)
    ]
    assert sorted(quick) == sorted(full) == sorted(BASELINES)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 17},
        {"seeds": 11},
        {"id": "other"},
        {"env_id": "FedLinearBall-v0"},
        {"env_kwargs": {"dim": 3}},
    ],
)
def test_a_digest_is_of_all_that_is_said(change):
    task = SUITES["linear-quick"].tasks[0]
    assert replace(task, **change).digest != task.digest


def test_a_digest_is_of_what_is_not_said_too(monkeypatch):
    task = SUITES["exposure-quick"].tasks[0]
    base = next(
        owner
        for owner in type(make_federation(task.env_id)).__mro__
        if "num_arms" in owner.__init__.__code__.co_varnames
    )
    # As if somebody had changed a default of the base class.
    names = base.__init__.__code__.co_varnames[1 : base.__init__.__code__.co_argcount]
    defaults = list(base.__init__.__defaults__)
    defaults[names.index("spread") if "spread" in names else 0] = 7
    monkeypatch.setattr(base.__init__, "__defaults__", tuple(defaults))
    assert replace(task).digest != task.digest
