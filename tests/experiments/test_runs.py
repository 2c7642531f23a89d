"""Runs in shards: resumed, of equal size, with claims and traffic kept."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from paper_runs import labelled

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments.execute import play
from fedbandit_envs.experiments.result import RunResult, weakest
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.papers import pfcb
from fedbandit_envs.papers.experiment import Plan, Scale
from fedbandit_envs.procurement_v0 import parallel_env


def test_shards_resume_and_repeat_nothing_finished(tmp_path):
    (cell,) = labelled(
        pfcb.EXPERIMENTS["pfcb-exp2"].runs(Plan("uniform", Scale(600, 2, {"epsilon": (1.0,)}), "default")),
        line="P-FCB",
    )
    assert len(cell.split()) == 1
    # Ten seeds of ten agents fit one shard; as if they did not:
    cell = replace(cell, rows=50)
    parts = cell.split()
    assert [part.seeds for part in parts] == [5, 5]
    left = Store(tmp_path).missing(parts + parts)
    assert left == parts
    told = []
    play(left, tmp_path, advance=told.append)
    assert sum(told) <= 600 * 10 * 10
    assert Store(tmp_path).missing(parts) == []
    files = sorted(tmp_path.iterdir())
    before = [(path.name, path.stat().st_mtime_ns) for path in files]
    whole = Store(tmp_path).load(cell)
    files[0].rename(files[0].with_suffix(".npz.partial"))
    assert len(Store(tmp_path).missing(parts)) == 1
    play(parts, tmp_path)
    again = Store(tmp_path).load(cell)
    np.testing.assert_array_equal(again.regret, whole.regret)
    assert before[1] == (files[1].name, files[1].stat().st_mtime_ns)
    assert sorted(tmp_path.iterdir()) == files
    # What shards say is what the run says.
    simulation = cell.run()
    np.testing.assert_array_equal(whole.regret, simulation.regret)
    np.testing.assert_array_equal(whole.rounds, simulation.rounds)
    assert whole.info.keys() == simulation.info.keys() > {"violation"}
    for name, means in simulation.info.items():
        np.testing.assert_array_equal(whole.info[name], means)
    (basic,) = (
        claim for claim in whole.claims if claim.composition == "basic" and claim.adjacency == "one-quantity"
    )
    assert basic.epsilon == pytest.approx(simulation.privacy.epsilon)


@pytest.mark.parametrize(
    ("agents", "seeds", "instances", "sizes"),
    [
        (10, 100, 5, [50, 50]),
        (10, 120, 1, [50, 50, 20]),
        (7, 100, 5, [70, 30]),
        (40, 20, 5, [10, 10]),
        (3, 20, 1, [20]),
    ],
)
def test_shards_have_about_five_hundred_rows_and_whole_turns(agents, seeds, instances, sizes):
    cell = RunSpec("SS-UCB", "FedProcurement-v0", 9, seeds, 0, {"num_agents": agents}, instances=instances)
    parts = cell.split()
    assert [part.seeds for part in parts] == sizes
    played = [part.first_seed + i for part in parts for i in range(part.seeds)]
    assert played == list(range(seeds))
    assert sum(part.size for part in parts) == cell.size == 9 * seeds * agents


def test_a_shard_s_file_is_known_by_what_it_says(tmp_path):
    cell = RunSpec("P-FCB", "FedProcurement-v0", 300, 2, 0)
    play([cell], tmp_path)
    assert Store(tmp_path).missing([cell, replace(cell, instances=2)]) == []
    for other in (replace(cell, delta=0.1), replace(cell, rounds=301)):
        assert Store(tmp_path).missing([other]) == [other]


def test_shards_keep_claims_and_traffic(tmp_path):
    cell = RunSpec("P-FCB", "FedProcurement-v0", 600, 2, 0, delta=0.1)
    play([cell], tmp_path)
    result = Store(tmp_path).load(cell)
    env, policy = cell.build()
    simulate(env, policy, range(2))
    accountant = env.env.accountant
    assert {claim.adjacency for claim in result.claims} >= {"one-quantity", "one-round"}
    for claim in result.claims:
        delta = None if claim.composition == "basic" else 0.1
        expected = accountant.epsilon(delta, composition=claim.composition, adjacency=claim.adjacency)
        assert claim == expected
    # In rounds 256 and 512 each of ten agents reaches nine others, with two numbers a producer, their noise, a header.
    np.testing.assert_array_equal(result.traffic["messages"], np.full((2, 10), 18))
    np.testing.assert_array_equal(result.traffic["bytes"], np.full((2, 10), 18 * (16 + 8 * 120)))
    np.testing.assert_allclose(result.traffic["messages"], result.info["messages"] * 600)


def test_silence_has_neither_claims_nor_traffic(tmp_path):
    cell = RunSpec("SS-UCB", "FedProcurement-v0", 10, 1, 0)
    play([cell], tmp_path)
    result = Store(tmp_path).load(cell)
    assert result.claims == []
    assert result.traffic == {}


def test_a_privatizer_that_released_nothing_says_so(tmp_path):
    cell = RunSpec("P-FCB", "FedProcurement-v0", 10, 1, 0)
    play([cell], tmp_path)
    claims = Store(tmp_path).load(cell).claims
    # Four compositions under each of the environment's four adjacencies.
    assert [claim.epsilon for claim in claims] == [0.0] * 16
    assert {claim.reason for claim in claims} == {"nothing has been released"}


def test_claims_are_those_of_the_shard_that_spent_most():
    def claim(epsilon, delta=1e-5, reason=""):
        return Claim(epsilon, delta, "one-round", "zcdp", reason)

    assert weakest([claim(1.0), claim(2.0), claim(0.5)]) == claim(2.0)
    assert weakest([claim(2.0, 0.1), claim(1.0, 0.2)]) == claim(2.0, 0.2)
    assert weakest([claim(0.0), claim(0.0)]) == claim(0.0)
    infinite, unknown = claim(float("inf"), reason="without noise"), claim(None, reason="no answer")
    assert weakest([claim(1.0), infinite]) == infinite
    assert weakest([infinite, unknown, claim(1.0)]) == unknown


def test_claims_are_joined_by_adjacency_and_composition():
    """Of each the weakest of all shards, and infinity comes back from the shards' files."""

    def shard(*epsilons):
        claims = [
            Claim(epsilon, 0.1, "one-round", how)
            for epsilon, how in zip(epsilons, ("basic", "exact"), strict=True)
        ]
        return RunResult(np.array([1]), np.zeros((1, 1, 2)), [7], claims=claims).as_arrays()

    joined = RunResult.joined([shard(1.0, float("inf")), shard(2.0, 0.5)])
    assert [(claim.composition, claim.epsilon) for claim in joined.claims] == [
        ("basic", 2.0),
        ("exact", np.inf),
    ]


def staged(stage, **kwargs):
    """A run of few rounds behind a stage, with a clip; it has three replicas, one in each shard."""
    noise = ["GaussianPrivatizer", {"noise_multiplier": 3.0, "releases": 40, "clip": 1.0}]
    stages = {} if stage is None else {"stage": stage}
    return RunSpec(
        "UCB1-weighted-true", "FedArms-v0", 20, 3, env_kwargs={"num_agents": 5}, wrapper_kwargs={"channel": stages},
        stack=[noise], delta=1e-4, rows=5, **kwargs,
    )  # fmt: skip


@pytest.mark.parametrize("stage", [None, "shuffler", {"name": "aggregator", "honest": 3}, "server"])
def test_claims_are_those_against_every_observer(stage):
    """Also where shards are joined. Without a stage they are the accountant's."""
    cell = staged(stage)
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
    assert cell.join([shard.play(lambda played: None) for shard in cell.split()]).claims == expected
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


def test_the_weakest_claim_needs_the_trust_of_every_shard():
    """A local claim of one shard says nothing about another shard's, which is smaller through a shuffler only."""

    def claim(epsilon, trust, observer="fellow"):
        return Claim(epsilon, 1e-5, "agent", "exact", trust=trust, observer=observer)

    both = [claim(3.0, "local"), claim(2.0, "shuffler")]
    assert weakest(both) == weakest(both[::-1]) == claim(3.0, "shuffler")
    assert weakest([claim(0.0, "shuffler"), claim(1.0, "local", "everybody")]) == claim(1.0, "shuffler")


def test_a_table_has_a_row_a_checkpoint_seed_and_agent():
    spec = RunSpec(
        "P-FCB", "FedProcurement-v0", 300, 3, 5, {"num_agents": 2},
        wrapper_kwargs={"privatizer": {"epsilon": 2.0}}, labels={"line": "ours", "share": 0.5},
    )  # fmt: skip
    result = spec.run()
    frame = result.to_frame()
    assert list(frame.columns) == [
        "env_id", "baseline", "epsilon", "line", "share", "num_agents", "seed", "agent", "round", "regret", "messages",
    ]  # fmt: skip
    assert len(frame) == result.regret.size
    constant = frame.iloc[:, :6].drop_duplicates()
    assert constant.to_dict("records") == [
        {"env_id": "FedProcurement-v0", "baseline": "P-FCB", "epsilon": 2.0, "line": "ours", "share": 0.5,
         "num_agents": 2},
    ]  # fmt: skip
    for checkpoint, round_ in enumerate(result.rounds):
        for replica, seed in enumerate((5, 6, 7)):
            for agent in range(2):
                row = frame[(frame["round"] == round_) & (frame.seed == seed) & (frame.agent == agent)]
                assert row.regret.item() == result.regret[checkpoint, replica, agent]
                assert row.messages.item() == result.messages[checkpoint, replica, agent]


def test_a_run_of_one_s_own_has_the_same_table(tmp_path):
    env = BASELINES["SS-UCB"].wrap(parallel_env(num_agents=2, max_cycles=20))
    result = simulate(env, BASELINES["SS-UCB"].make_policy(), [3, 4])
    frame = result.to_frame()
    assert set(frame.env_id) == {"procurement_v0"}
    assert set(frame.baseline) == {"SSUCB"}
    assert set(frame.epsilon) == {None}
    assert sorted(set(frame.seed)) == [3, 4]
    shown = result._repr_html_()
    assert "2 seeds, 2 agents" in shown
    assert all(f">{round_}<" in shown for round_ in result.rounds)
    result.plot().savefig(tmp_path / "curve.svg")


def test_a_table_without_pandas_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = RunResult(np.array([1]), np.zeros((1, 1, 2)), [7])
    with pytest.raises(ImportError, match=r"\[report\] extra"):
        result.to_frame()


def test_labels_are_no_part_of_what_is_played(tmp_path):
    spec = RunSpec("SS-UCB", "FedProcurement-v0", 9, 2)
    play([spec], tmp_path)
    assert Store(tmp_path).missing([replace(spec, labels={"line": "silence"})]) == []
