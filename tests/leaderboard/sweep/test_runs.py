"""Runs in shards: resumed, of equal size, with claims and traffic kept."""

from dataclasses import replace

import numpy as np
import pytest

from fedbandit_envs.leaderboard.reproduction import pfcb
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings, build, run
from fedbandit_envs.leaderboard.simulation import simulate
from fedbandit_envs.leaderboard.sweep import runs, store
from fedbandit_envs.leaderboard.sweep.backends import Local
from fedbandit_envs.leaderboard.sweep.engine import play
from fedbandit_envs.leaderboard.sweep.runs import Run, Strata


def test_shards_resume_and_repeat_nothing_finished(tmp_path):
    cell = pfcb.exp1(Plan("uniform", Scale(600, 2), "default"))["P-FCB"]
    assert len(cell.split()) == 1
    # Ten seeds of ten agents fit one shard; as if they did not:
    parts = [replace(cell, settings=replace(cell.settings, seeds=5, first_seed=first)) for first in (0, 5)]
    left = store.missing_shards(parts + parts, tmp_path)
    assert left == parts
    told = []
    play(left, tmp_path, Local(2), told.append)
    assert sum(told) <= 600 * 10 * 10
    assert store.missing_shards(parts, tmp_path) == []
    files = sorted(tmp_path.iterdir())
    before = [(path.name, path.stat().st_mtime_ns) for path in files]
    whole = store.load(parts, tmp_path)
    files[0].rename(files[0].with_suffix(".npz.partial"))
    assert len(store.missing_shards(parts, tmp_path)) == 1
    play(parts, tmp_path)
    again = store.load(parts, tmp_path)
    np.testing.assert_array_equal(again.regret, whole.regret)
    assert before[1] == (files[1].name, files[1].stat().st_mtime_ns)
    assert sorted(tmp_path.iterdir()) == files
    # What shards say is what the run says.
    simulation, result = run(cell.settings)
    np.testing.assert_array_equal(whole.regret, simulation.regret)
    np.testing.assert_array_equal(whole.rounds, simulation.rounds)
    assert whole.info.keys() == simulation.info.keys() > {"violation"}
    for name, means in simulation.info.items():
        np.testing.assert_array_equal(whole.info[name], means)
    (basic,) = (
        claim
        for claim in whole.claims
        if claim["composition"] == "basic" and claim["adjacency"] == "one-quantity"
    )
    assert basic["epsilon"] == pytest.approx(result["privacy"]["epsilon"])


@pytest.mark.parametrize(
    ("agents", "seeds", "strata", "sizes"),
    [
        (10, 100, 5, [50, 50]),
        (10, 120, 1, [50, 50, 20]),
        (7, 100, 5, [70, 30]),
        (40, 20, 5, [10, 10]),
        (3, 20, 1, [20]),
    ],
)
def test_shards_have_about_five_hundred_rows_and_whole_turns(agents, seeds, strata, sizes):
    settings = Settings("SS-UCB", "FedProcurement-v0", 9, seeds, 0, {"num_agents": agents})
    cell = Run(settings, Strata(strata))
    parts = cell.split()
    assert [part.settings.seeds for part in parts] == sizes
    played = [part.settings.first_seed + i for part in parts for i in range(part.settings.seeds)]
    assert played == list(range(seeds))
    assert sum(part.size for part in parts) == cell.size == 9 * seeds * agents


def test_a_shard_s_file_is_known_by_what_it_says(tmp_path):
    cell = Run(Settings("P-FCB", "FedProcurement-v0", 300, 2, 0))
    play([cell], tmp_path)
    assert store.missing_shards([cell, replace(cell, strata=Strata(2, "markets"))], tmp_path) == []
    for other in (replace(cell, delta=0.1), replace(cell, settings=replace(cell.settings, rounds=301))):
        assert store.missing_shards([other], tmp_path) == [other]


def test_shards_keep_claims_and_traffic(tmp_path):
    settings = Settings("P-FCB", "FedProcurement-v0", 600, 2, 0)
    cell = Run(settings, delta=0.1)
    play([cell], tmp_path)
    result = store.load([cell], tmp_path)
    env, policy = build(settings)
    simulate(env, policy, range(2))
    accountant = env.env.accountant
    assert {claim["adjacency"] for claim in result.claims} >= {"one-quantity", "one-round"}
    for claim in result.claims:
        delta = None if claim["composition"] == "basic" else 0.1
        expected = accountant.epsilon(delta, composition=claim["composition"], adjacency=claim["adjacency"])
        assert claim == vars(expected)
    # In rounds 256 and 512 each of ten agents reaches nine others, with two numbers a producer, their noise, a header.
    np.testing.assert_array_equal(result.traffic["messages"], np.full((2, 10), 18))
    np.testing.assert_array_equal(result.traffic["bytes"], np.full((2, 10), 18 * (16 + 8 * 120)))
    np.testing.assert_allclose(result.traffic["messages"], result.info["messages"] * 600)


def test_silence_has_neither_claims_nor_traffic(tmp_path):
    cell = Run(Settings("SS-UCB", "FedProcurement-v0", 10, 1, 0))
    play([cell], tmp_path)
    result = store.load([cell], tmp_path)
    assert result.claims == []
    assert result.traffic == {}


def test_a_privatizer_that_released_nothing_says_so(tmp_path):
    cell = Run(Settings("P-FCB", "FedProcurement-v0", 10, 1, 0))
    play([cell], tmp_path)
    claims = store.load([cell], tmp_path).claims
    # Four compositions under each of the environment's four adjacencies.
    assert [claim["epsilon"] for claim in claims] == [0.0] * 16
    assert {claim["reason"] for claim in claims} == {"nothing has been released"}


def test_claims_are_those_of_the_shard_that_spent_most():
    def claim(epsilon, delta=1e-5, reason="", composition="zcdp"):
        names = {"adjacency": "one-round", "composition": composition}
        return {"epsilon": epsilon, "delta": delta, "reason": reason, **names}

    def worst(*claims):
        return runs._worst_claims([[one] for one in claims])

    assert worst(claim(1.0), claim(2.0), claim(0.5)) == [claim(2.0)]
    assert worst(claim(2.0, 0.1), claim(1.0, 0.2)) == [claim(2.0, 0.2)]
    assert worst(claim(0.0), claim(0.0)) == [claim(0.0)]
    infinite, unknown = claim(float("inf"), reason="without noise"), claim(None, reason="no answer")
    assert worst(claim(1.0), infinite) == [infinite]
    assert worst(infinite, unknown, claim(1.0)) == [unknown]
    assert worst(claim(1.0), claim(2.0, composition="basic")) == [
        claim(1.0), claim(2.0, composition="basic"),
    ]  # fmt: skip
