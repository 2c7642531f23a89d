"""Runs: what settings are read as, what a result records, and shards that are joined, with claims and traffic kept."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments.execute import play
from fedbandit_envs.experiments.result import (
    RunResult,
    log_spaced,
    play_started,
    simulate,
    split_seeds,
    weakest,
)
from fedbandit_envs.experiments.spec import RunSpec, SettingsError, read_assignments
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registry.problems import Registered
from fedbandit_envs.registry.registration import REGISTRY

P_FCB = ("P-FCB", "FedProcurement-v0", 30, 2, 0)


@pytest.mark.parametrize(
    ("assignment", "part", "value"),
    [
        ("check=true", "policy", True),
        ("radius_scale=.5", "policy", 0.5),
        ("instance_seed=[1, 2]", "env", [1, 2]),
        ("market={'name': 'normal', 'sd': .2}", "env", {"name": "normal", "sd": 0.2}),
        ("channel.topology=ring", "channel", "ring"),
        ("privatizer.epsilon=Infinity", "privatizer", np.inf),
        # What JSON cannot write could not be recorded: it is text.
        ("market={1, 2}", "env", "{1, 2}"),
        ("market=", "env", ""),
    ],
)
def test_values_are_read_as_json_then_python_then_text(assignment, part, value):
    settings = RunSpec(*P_FCB).changed(read_assignments([assignment]))
    kwargs = {"env": settings.env_kwargs, "policy": settings.policy_kwargs, **settings.wrapper_kwargs}[part]
    (read,) = kwargs.values()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"baseline": "UCB"},
        {"env_id": "FedProcurement-v9"},
        {"rounds": 0},
        {"rounds": 1.5},
        {"seeds": 2**20 + 1},
        {"first_seed": -1},
        {"delta": 1.0},
    ],
)
def test_wrong_settings_are_settings_errors(wrong):
    right = dict(zip(("baseline", "env_id", "rounds", "seeds", "first_seed"), P_FCB, strict=True))
    with pytest.raises(SettingsError, match=f"{next(iter(wrong))} is {next(iter(wrong.values()))!r}"):
        RunSpec(**{**right, **wrong})


def test_a_result_records_the_stack_of_the_id(monkeypatch):
    problem = REGISTRY["FedProcurement-v0"].problem
    stack = [["fedbandit_envs.wrappers.releases:Interleaved", {"period": 3}]]
    monkeypatch.setitem(REGISTRY, "FedKept-v0", Registered(problem, "FedKept-v0", {"num_agents": 2}, stack))
    recorded = RunSpec("SS-UCB", "FedKept-v0", 5, 1, 0).recorded()
    assert json.loads(json.dumps(recorded))["stack"] == stack
    assert "stack" not in RunSpec("SS-UCB", "FedProcurement-v0", 5, 1, 0).recorded()


@pytest.mark.parametrize("name", ["Priv-UCB1", "UCB1"])
def test_episodes_are_the_same_in_any_shards(monkeypatch, capsys, name):
    """Two rows at a time, 500, and by hand, all at once."""
    spec = RunSpec(name, "FedArms-v0", 30, 7, 3, env_kwargs={"num_agents": 2, "num_arms": 3})
    env, policy = spec.build()
    began = env.reset_batch(spec.all_seeds)
    whole = play_started(env, policy, spec.all_seeds, began, lambda played: None)
    in_one, in_shards = spec.run(), replace(spec, rows=2).run()
    monkeypatch.setattr(split_seeds, "__defaults__", (4, 1))
    by_chunks = simulate(*spec.build(), spec.all_seeds, progress=True)
    # A full bar says how long it took, and that nothing is left.
    assert re.search(r"━ 0:00:\d\d 0:00:00", capsys.readouterr().err)
    assert by_chunks.labels == whole.labels
    assert in_shards.claims == in_one.claims
    for other in (in_one, in_shards, by_chunks):
        assert list(other.seeds) == list(spec.all_seeds)
        assert other.privacy == whole.privacy
        for kind in ("info", "traffic", "totals"):
            there, expected = getattr(other, kind), getattr(whole, kind)
            assert there.keys() == expected.keys()
            for key in expected:
                np.testing.assert_array_equal(there[key], expected[key])
        np.testing.assert_array_equal(other.regret, whole.regret)
        assert (other.messages is None) is (whole.messages is None)
        if whole.messages is not None:
            np.testing.assert_array_equal(other.messages, whole.messages)


def test_a_run_in_files_resumes_and_says_what_a_run_without_files_says(tmp_path):
    cell = RunSpec("P-FCB", "FedProcurement-v0", 600, 4, delta=0.1, rows=20)
    parts = cell.split()
    assert [part.seeds for part in parts] == [2, 2]
    assert Store(tmp_path).missing([cell, *parts]) == parts
    told = []
    play([cell], tmp_path, advance=told.append)
    assert sum(told) == cell.size == 600 * 4 * 10
    for same in (cell, replace(cell, instances=2), replace(cell, labels={"line": "ours"})):
        assert Store(tmp_path).missing([same]) == []
    for other in (replace(cell, delta=0.2), replace(cell, rounds=601), replace(cell, first_seed=1)):
        assert len(Store(tmp_path).missing([other])) == 2
    files = sorted(tmp_path.iterdir())
    stamp = files[1].stat().st_mtime_ns
    files[0].unlink()
    play([cell], tmp_path)
    assert files[1].stat().st_mtime_ns == stamp
    kept, whole = Store(tmp_path).load(cell), cell.run()
    np.testing.assert_array_equal(kept.regret, whole.regret)
    np.testing.assert_array_equal(kept.rounds, whole.rounds)
    assert kept.info.keys() == whole.info.keys() > {"violation"}
    for name, means in whole.info.items():
        np.testing.assert_array_equal(kept.info[name], means)
    # In rounds 256 and 512 each of ten agents reaches nine others, with two numbers a producer, their noise, a header.
    np.testing.assert_array_equal(kept.traffic["messages"], np.full((4, 10), 18))
    np.testing.assert_array_equal(kept.traffic["bytes"], np.full((4, 10), 18 * (16 + 8 * 120)))
    np.testing.assert_allclose(kept.traffic["messages"], kept.info["messages"] * 600)
    env, policy = cell.build()
    simulate(env, policy, range(2))
    assert {claim.adjacency for claim in kept.claims} >= {"one-quantity", "one-round"}
    for claim in kept.claims:
        delta = None if claim.composition == "basic" else 0.1
        expected = env.env.accountant.epsilon(delta, composition=claim.composition, adjacency=claim.adjacency)
        assert claim == expected


@pytest.mark.parametrize(
    ("agents", "seeds", "instances", "sizes"),
    [
        (10, 100, 5, [50, 50]),
        (7, 100, 5, [70, 30]),
        (40, 20, 5, [10, 10]),
        (501, 2, 1, [1, 1]),
    ],
)
def test_shards_have_about_five_hundred_rows_and_whole_turns(agents, seeds, instances, sizes):
    cell = RunSpec("SS-UCB", "FedProcurement-v0", 9, seeds, 0, {"num_agents": agents}, instances=instances)
    parts = cell.split()
    assert [part.seeds for part in parts] == sizes
    assert [seed for part in parts for seed in part.all_seeds] == list(range(seeds))
    assert sum(part.size for part in parts) == cell.size == 9 * seeds * agents


def test_runs_that_release_nothing():
    silent = RunSpec("SS-UCB", "FedProcurement-v0", 10, 1, 0).run()
    assert silent.claims == []
    assert silent.traffic == {}
    claims = RunSpec("P-FCB", "FedProcurement-v0", 10, 1, 0).run().claims
    # Four compositions under each of the environment's four adjacencies.
    assert [claim.epsilon for claim in claims] == [0.0] * 16
    assert {claim.reason for claim in claims} == {"nothing has been released"}


def test_claims_are_those_of_the_shard_that_spent_most():
    def claim(epsilon, delta=1e-5, reason="", trust="local", observer="everybody"):
        return Claim(epsilon, delta, "one-round", "zcdp", reason, trust=trust, observer=observer)

    assert weakest([claim(1.0), claim(2.0), claim(0.5)]) == claim(2.0)
    assert weakest([claim(2.0, 0.1), claim(1.0, 0.2)]) == claim(2.0, 0.2)
    assert weakest([claim(0.0), claim(0.0)]) == claim(0.0)
    infinite, unknown = claim(float("inf"), reason="without noise"), claim(None, reason="no answer")
    assert weakest([claim(1.0), infinite]) == infinite
    assert weakest([infinite, unknown, claim(1.0)]) == unknown
    # A local claim of one shard says nothing about another shard's, which is smaller through a shuffler only.
    both = [claim(3.0, observer="fellow"), claim(2.0, trust="shuffler", observer="fellow")]
    expected = claim(3.0, trust="shuffler", observer="fellow")
    assert weakest(both) == weakest(both[::-1]) == expected

    def shard(*epsilons):
        claims = [
            Claim(epsilon, 0.1, "one-round", how)
            for epsilon, how in zip(epsilons, ("basic", "exact"), strict=True)
        ]
        return RunResult(np.array([1]), np.zeros((1, 1, 2)), [7], claims=claims).as_arrays()

    joined = RunResult.joined([shard(1.0, float("inf")), shard(2.0, 0.5)]).claims
    assert [(one.composition, one.epsilon) for one in joined] == [("basic", 2.0), ("exact", np.inf)]


@pytest.mark.parametrize("stage", [None, "shuffler", {"name": "aggregator", "honest": 3}, "server"])
def test_claims_are_those_against_every_observer(stage):
    """Also where shards are joined. Without a stage they are the accountant's."""
    noise = ["GaussianPrivatizer", {"noise_multiplier": 3.0, "releases": 40, "clip": 1.0}]
    stages = {} if stage is None else {"stage": stage}
    cell = RunSpec(
        "MOSS-weighted-true", "FedArms-v0", 20, 3, env_kwargs={"num_agents": 5}, wrapper_kwargs={"channel": stages},
        stack=[noise], delta=1e-4, rows=5,
    )  # fmt: skip
    whole = cell.run()
    env, policy = cell.build()
    simulate(env, policy, range(3))
    layer = find_layer(env, "noise")
    expected = [
        claim
        for adjacency in env.sensitivity().changes
        for how in ("basic", "zcdp", "exact", "parallel")
        for claim in layer.claims(
            delta=None if how == "basic" else 1e-4, composition=how, adjacency=adjacency
        )
    ]
    assert whole.claims == expected
    assert len(cell.split()) == 3
    assert cell.join([shard.play() for shard in cell.split()]).claims == expected
    assert whole.as_json()["claims"] == [claim.as_json() for claim in expected]
    observers = [claim.observer for claim in env.privacy_claims()]
    assert [claim.observer for claim in expected] == observers * (len(expected) // len(observers))
    assert ("everybody" in observers) == (stage != "server")
    if stage is None:
        assert observers == ["everybody"]
        assert expected[0] == layer.accountant.epsilon(adjacency=expected[0].adjacency)
    if stage == "server":
        assert [claim.epsilon for claim in expected if claim.trust == "local"] == [np.inf] * (
            len(expected) // 2
        )


def test_a_table_has_a_row_a_checkpoint_seed_and_agent():
    spec = RunSpec(
        "P-FCB", "FedProcurement-v0", 300, 3, 5, {"num_agents": 2},
        wrapper_kwargs={"privatizer": {"epsilon_per_release": 2.0}}, labels={"line": "ours", "share": 0.5},
    )  # fmt: skip
    result = spec.run()
    frame = result.to_frame()
    assert list(frame.columns) == [
        "env_id", "baseline", "epsilon", "line", "share", "num_agents", "rounds", "seed", "agent", "round", "regret",
        "messages", "claim_epsilon", "claim_delta", "claim_adjacency",
    ]  # fmt: skip
    assert len(frame) == result.regret.size
    constant = frame.iloc[:, :7].drop_duplicates()
    assert constant.to_numpy().tolist() == [
        ["FedProcurement-v0", "P-FCB", 2.0, "ours", 0.5, 2, result.rounds[-1]]
    ]
    assert {*frame.claim_epsilon} == {result.privacy.epsilon}
    for at in np.ndindex(result.regret.shape):
        round_, seed, agent = result.rounds[at[0]], (5, 6, 7)[at[1]], at[2]
        row = frame[(frame["round"] == round_) & (frame.seed == seed) & (frame.agent == agent)]
        assert row.regret.item() == result.regret[at]
        assert row.messages.item() == result.messages[at]


def test_a_run_of_one_s_own_has_the_same_table(tmp_path, monkeypatch):
    env = BASELINES["SS-UCB"].wrap(parallel_env(num_agents=2, max_cycles=20))
    result = simulate(env, BASELINES["SS-UCB"].make_policy(), [3, 4])
    frame = result.to_frame()
    assert set(frame.env_id) == {"procurement_v0"}
    assert set(frame.baseline) == {"SSUCB"}
    assert set(frame.epsilon) == {None}
    assert sorted(set(frame.seed)) == [3, 4]
    assert ">2, 2, 20<" in result._repr_html_(), "seeds, agents, rounds"
    result.plot().savefig(tmp_path / "curve.svg")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        result.to_frame()


@pytest.mark.parametrize("rounds", [1, 2, 9, 10, 1000, 99_999])
def test_checkpoints_are_log_spaced(rounds):
    at = log_spaced(rounds)
    assert at[0] == 1
    assert at[-1] == rounds
    assert (np.diff(at) > 0).all()
    assert min(rounds, 3) <= len(at) <= 1 + 10 * np.log10(rounds) + 1
