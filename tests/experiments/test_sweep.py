"""Sweeps as a user plays them from Python: the table against runs by hand, and settings that make no sense."""

import sys
from pathlib import Path

import numpy as np
import own_policies
import pytest

from fedbandit_envs import experiments, make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.experiments.spec import RunSpec, SettingsError
from fedbandit_envs.experiments.sweep import sweep_runs, write_tables

pandas = pytest.importorskip("pandas")

OWN = Path(own_policies.__file__).read_text()
ARMS = {"env_id": "FedArms-v0", "rounds": 12, "seeds": 3, "settings": {"arms": 4}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path


def test_the_table_has_what_runs_by_hand_have():
    frame = experiments.sweep(
        policies=[
            "MOSS-weighted",
            "UCB1",
            {"policy": "mine.py:Constant", "label": "second", "settings": {"arm": 1}},
        ],
        grid={"epsilon": np.array([0.5, 5.0]), "agents": [2, 3]},
        **ARMS,
    )
    # 2 x 2 runs of the first, 2 of the others, which have no epsilon; 3 seeds, 11 checkpoints.
    checkpoints = frame["round"].unique().tolist()
    assert checkpoints[-1] == 12
    assert len(frame) == (4 + 2 + 2) * 3 * len(checkpoints)
    assert not frame.duplicated(["baseline", "epsilon", "agents", "seed", "round"]).any()
    made = {"UCB1": BASELINES["UCB1"].make_policy, "second": lambda: resolve("mine.py:Constant")(1)}
    for agents in (2, 3):
        for name, make in made.items():
            result = simulate(
                make_federation("FedArms-v0", num_agents=agents, num_arms=4, max_cycles=12), make(), range(3)
            )
            rows = frame[(frame.baseline == name) & (frame.agents == agents)]
            assert rows.epsilon.isna().all()
            for seed in range(3):
                np.testing.assert_allclose(
                    rows[rows.seed == seed].regret, result.regret[:, seed].mean(axis=1)
                )
        for epsilon in (0.5, 5.0):
            env = make_federation("FedArms-v0", num_agents=agents, num_arms=4, max_cycles=12)
            env = BASELINES["MOSS-weighted"].wrap(env, {"privatizer": {"epsilon": epsilon}})
            result = simulate(env, BASELINES["MOSS-weighted"].make_policy(), range(3))
            rows = frame[
                (frame.baseline == "MOSS-weighted") & (frame.agents == agents) & (frame.epsilon == epsilon)
            ]
            np.testing.assert_allclose(rows.claim_epsilon, result.privacy.epsilon)
            last = rows[rows["round"] == 12]
            np.testing.assert_allclose(last.regret, result.regret[-1].mean(axis=1))
            np.testing.assert_allclose(last.messages, result.messages[-1].mean(axis=1))
            np.testing.assert_allclose(last.bytes, result.traffic["bytes"].mean(axis=1))
            np.testing.assert_allclose(last.wasted, result.info["wasted"].mean(axis=1))
            assert rows[rows["round"] < 12].wasted.isna().all()
    assert set(frame.rounds) == {12}
    assert (frame.num_agents == frame.agents).all()


def test_the_table_is_the_same_after_it_was_written(folder):
    frame = experiments.sweep(
        policies=["Fed-UCB1", "UCB1"],
        grid={
            "channel.schedule": ["every_round", {"name": "fixed_gap", "gap": 4}],
            "rounds": [5, 12],
            "loss": [0, 0.5],
        },
        **{name: value for name, value in ARMS.items() if name != "rounds"},
    )
    assert set(frame["channel.schedule"].dropna()) == {"every_round", '{"name": "fixed_gap", "gap": 4}'}
    assert set(frame["rounds"]) == {5, 12}
    assert (frame[frame.baseline == "UCB1"].groupby("rounds")["round"].max() == [5, 12]).all()
    paths = write_tables(frame, folder)
    read = [pandas.read_csv(paths[-1])]
    if len(paths) > 1:
        read.append(pandas.read_parquet(paths[0]))
    for again in read:
        pandas.testing.assert_frame_equal(again, frame, check_dtype=False)


def test_a_larger_grid_plays_what_is_new(folder, monkeypatch):
    small = {**ARMS, "policies": ["mine.py:Constant"], "grid": {"arm": [0, 1]}}
    first = experiments.sweep(**small, folder=folder / "kept")
    kept = {path: path.stat().st_mtime_ns for path in (folder / "kept" / "shards").iterdir()}
    second = experiments.sweep(**{**small, "grid": {"arm": [0, 1, 2]}}, folder=folder / "kept")
    now = {path: path.stat().st_mtime_ns for path in (folder / "kept" / "shards").iterdir()}
    assert kept.items() <= now.items()
    assert len(now) == len(kept) + 1
    pandas.testing.assert_frame_equal(second[second.arm < 2], first)
    # A policy that was changed plays anew.
    (folder / "mine.py").write_text(OWN.replace("self.arm)", "3 - self.arm)"))
    third = experiments.sweep(**{**small, "grid": {"arm": [2]}}, folder=folder / "kept")
    np.testing.assert_array_equal(third.regret, first[first.arm == 1].regret)


def test_wrappers_of_the_stack_are_settings_of_their_own():
    noise = [["ContinualPrivatizer", {"delta": 1e-5, "releases": 12}], ["Channel", {}]]
    runs = sweep_runs(
        policies=["mine.py:Constant"], grid={"epsilon": [1, 2], "Channel.loss": [0, 0.5]}, stack=noise, **ARMS
    )
    assert [[kwargs for _, kwargs in run.stack] for run in runs] == [
        [{"delta": 1e-5, "releases": 12, "epsilon": epsilon}, {"loss": loss}]
        for epsilon in (1, 2)
        for loss in (0, 0.5)
    ]
    assert noise == [["ContinualPrivatizer", {"delta": 1e-5, "releases": 12}], ["Channel", {}]]
    alone = [{"policy": "mine.py:Constant", "stack": noise, "settings": {"Channel.loss": 0.5}}, "UCB1"]
    runs = sweep_runs(policies=alone, grid={"epsilon": [1, 2]}, **ARMS)
    assert [[kwargs for _, kwargs in run.stack] for run in runs] == [
        *([{"delta": 1e-5, "releases": 12, "epsilon": epsilon}, {"loss": 0.5}] for epsilon in (1, 2)),
        [],
    ]


def test_names_that_several_parts_have_are_ambiguous():
    spec = RunSpec("MOSS-weighted", "FedArms-v0", 5, 1, stack=[["GaussianPrivatizer", {}]])
    assert spec.places("epsilon") == [("privatizer", "epsilon"), ("GaussianPrivatizer", "epsilon")]
    with pytest.raises(SettingsError, match=r"one of 'privatizer.epsilon', 'GaussianPrivatizer.epsilon' is"):
        spec.changed({"epsilon": 1})
    assert spec.changed({"GaussianPrivatizer.epsilon": 2}).stack[0][1] == {"epsilon": 2}
    # `agents` is short for `num_agents`, and the name of another argument of this wrapper.
    liars = RunSpec("UCB1", "FedArms-v0", 5, 1, stack=[["Byzantine", {}]])
    assert liars.places("agents") == [("env", "num_agents"), ("Byzantine", "agents")]
    assert liars.places("Byzantine.agents") == [("Byzantine", "agents")]
    assert spec.changed({"agents": 2}).changed({"arms": 3}).env_kwargs == {"num_agents": 2, "num_arms": 3}


@pytest.mark.parametrize(("changes", "message"), [
    ({"grid": {"epsilon": [1, 1.0]}}, r"grid: epsilon is \[1, 1.0\]; a list of different values"),
    ({"grid": {"epsilon": [object()]}}, "not JSON serializable"),
    ({"grid": {"epsilo": [1]}}, "key for .* is 'epsilo'; one of .* did you mean 'epsilon'"),
    ({"grid": {"epsilon": [1, -1]}}, "epsilon is -1"),
    ({"grid": {"agents": [2], "num_agents": [3]}}, "env.num_agents has a value already"),
    ({"grid": {"arms": [2]}}, "arms is in settings and in the grid"),
    ({"policies": "UCB1"}, "policies is 'UCB1'; a list"),
    (
        {"policies": ["UCB1", {"policy": "UCB1", "settings": {"scale": 2}}]},
        "labels of policies is .* a list of different values is required",
    ),
    ({"policies": [{"policy": "UCB1", "colour": 2}]}, "key of policies is 'colour'; one of 'policy', 'label'"),
    ({"policies": ["SS-UCB"], "grid": {"agents": [2]}}, "this baseline plays ProcurementEnv"),
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused_before_anything_is_played(folder, changes, message):
    right = {**ARMS, "policies": ["MOSS-weighted"], "grid": {"epsilon": [1]}}
    with pytest.raises(SettingsError, match=message):
        experiments.sweep(**{**right, **changes}, folder=folder / "out")
    assert not (folder / "out").exists()


def test_without_pandas_nothing_is_played(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pandas"):
        experiments.sweep(policies=["UCB1"], grid={"agents": [2]}, **ARMS, folder=folder / "out")
    assert not (folder / "out").exists()
