"""What a newcomer passes to simulations and sweeps: names, objects, functions, and things that are none of these."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.arms import UCB1
from fedbandit_envs.baselines.linear import LinUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.experiments import simulate, summary, sweep
from fedbandit_envs.experiments.measures import mean_with_interval, ratio_with_interval, rounded

pandas = pytest.importorskip("pandas")


def first_arm(observation):
    return np.zeros(observation["total_pulls"].shape[:2], np.int64)


def arms(rounds=15, agents=2):
    return make_federation("FedArms-v0", num_agents=agents, max_cycles=rounds)


class Acting:
    """Has no ``reset``."""

    act = staticmethod(first_arm)


def test_a_policy_has_a_name_or_is_an_object_or_a_function(tmp_path):
    forms = ["UCB1", BASELINES["UCB1"], UCB1(), UCB1, replace(BASELINES["UCB1"])]
    expected = simulate(arms(), UCB1(), range(4)).regret
    for form in forms:
        result = simulate(arms(), form, 4)
        np.testing.assert_array_equal(result.regret, expected)
        assert result.labels["baseline"] == "UCB1"
    wrapped, policy = BASELINES["MOSS-weighted"].wrap(arms()), BASELINES["MOSS-weighted"].make_policy()
    private = simulate(arms(), "MOSS-weighted", np.arange(4))
    np.testing.assert_array_equal(private.regret, simulate(wrapped, policy, {0, 1, 2, 3}).regret)
    assert private.privacy == wrapped.privacy()
    assert simulate("FedArms-v0", first_arm, iter([7])).labels == {
        "env_id": "FedArms-v0", "baseline": "first_arm", "epsilon": None,
    }  # fmt: skip
    # In a sweep all play alike, too; what has no name is not kept, and other processes need not know it.
    listed = [{"policy": form, "label": f"{place}"} for place, form in enumerate(forms)]
    frame = sweep(
        "FedArms-v0", [*listed, first_arm], {"agents": [2]},
        rounds=15, seeds=4, folder=tmp_path, workers=2,
    )  # fmt: skip
    of_first = simulate(arms(), first_arm, 4).per_seed
    for label, regrets in frame[frame["round"] == 15].groupby("baseline").regret:
        np.testing.assert_allclose(regrets, of_first if label == "first_arm" else expected[-1].mean(axis=1))
    assert len([*(tmp_path / "shards").iterdir()]) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: simulate("FedArm-v0", "UCB1"), ValueError, "did you mean 'FedArms-v0'"),
        (lambda: simulate(gym.make("FedArms-v0"), "UCB1"), TypeError, r"env is <Order.*; the id of an environment"),
        (lambda: simulate(UCB1(), arms()), TypeError, "env is <fed.* make_federation"),
        (lambda: simulate(arms(), "UBC1"), ValueError, "did you mean 'UCB1'"),
        (lambda: simulate(arms(), None), TypeError, "policy is None; the name of a baseline, a Baseline, a policy"),
        (lambda: simulate(arms(), Acting()), TypeError, r"an object with reset and act"),
        (lambda: simulate(arms(), lambda: 0), TypeError, "a function that maps the observations"),
        (lambda: simulate(arms(), lambda one, two: 0), TypeError, "a function that maps the observations"),
        (lambda: simulate(arms(), lambda seen: 0, 3), TypeError, r"action is 0; a numpy array .* = \(3, 2\)"),
        (lambda: simulate(arms(), "SS-UCB"), ValueError, "this baseline plays ProcurementEnv"),
        (lambda: simulate("FedProcurement-v0", UCB1(), 1), UnfitError, "reads 'total_pulls', .* are capacity, cost"),
        (lambda: simulate("FedProcurement-v0", first_arm, 1), UnfitError, "reads 'total_pulls', .* capacity, cost"),
        (lambda: simulate(arms(), LinUCB(), 1), UnfitError, "reads 'contexts', .* are round, total_pulls"),
        (lambda: simulate(arms(), "UCB1", 0), ValueError, "seeds is 0; an integer >= 1"),
        (lambda: simulate(arms(), "UCB1", []), ValueError, "seeds is \\[\\]"),
        (lambda: simulate(arms(), "UCB1", [0, -1]), ValueError, r"seeds\[1\] is -1"),
        (lambda: simulate(arms(), "UCB1", "many"), TypeError, "seeds is 'many'; an integer"),
        (lambda: simulate(arms(), "UCB1", 1, checkpoints=[5, 50]), ValueError, r"rising rounds up to 15"),
        (lambda: simulate(arms(), "UCB1", 1, checkpoints=[9, 5, 15]), ValueError, r"rising rounds up to 15"),
        (lambda: sweep(arms(), ["UCB1"]), ValueError, "env_id is <.*; an id such as 'FedArms-v0'"),
        (lambda: sweep("FedArms-v0", "UCB1"), ValueError, "policies is 'UCB1'; a list"),
        (lambda: sweep("FedArms-v0", [None]), ValueError, "policy is None; the name"),
        (lambda: sweep("FedArms-v0", [UCB1(), "UCB1"]), ValueError, r"labels of policies is \['UCB1', 'UCB1'\]"),
        (lambda: sweep("FedArms-v0", [{"polcy": "UCB1"}]), ValueError, "did you mean 'policy'"),
        (lambda: sweep("FedArms-v0", ["UCB1"], ["agents"]), ValueError, "grid is \\['agents'\\]; a mapping"),
        (lambda: sweep("FedArms-v0", ["UCB1"], seeds=[1, 2]), ValueError, r"seeds is \[1, 2\]; an integer"),
        (lambda: sweep("FedArms-v0", ["UCB1"], rounds=5, workers=0), ValueError, "workers is 0; an integer >= 1"),
    ],
)  # fmt: skip
def test_wrong_things_are_explained(tmp_path, monkeypatch, call, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call()
    assert not [*tmp_path.iterdir()]


def test_a_summary_compares_with_silence_under_the_same_settings(tmp_path):
    frame = sweep(
        "FedArms-v0", ["MOSS-weighted", "UCB1", "Thompson"], {"epsilon": [0.5, 5.0], "agents": [2, 3]},
        rounds=40, seeds=6, folder=tmp_path,
    )  # fmt: skip
    table = summary(frame.sample(frac=1, random_state=0))
    assert len(table) == 2 * 2 + 2 + 2
    for row in table.to_dict("records"):
        own, *silent = (
            simulate(arms(40, row["agents"]), name, 6).per_seed if name != "MOSS-weighted"
            else simulate(
                BASELINES[name].wrap(arms(40, row["agents"]), {"privatizer": {"epsilon": row["epsilon"]}}),
                BASELINES[name].make_policy(), 6,
            ).per_seed
            for name in (row["baseline"], "UCB1", "Thompson")
        )  # fmt: skip
        assert row["regret"] == rounded(mean_with_interval(own))
        assert row["ratio"] == rounded(ratio_with_interval(own, min(silent, key=np.mean)))
        assert row["seeds"] == 6
        assert row["claim_epsilon"] == pytest.approx(
            row["epsilon"] if row["baseline"] == "MOSS-weighted" else 0
        )
    assert {*summary(frame[frame.baseline == "MOSS-weighted"]).ratio} == {rounded((np.nan,) * 3)}
    # Agents of one run are averaged; other seeds are no comparison.
    runs = [simulate(arms(), "UCB1", 5), simulate(arms(), "MOSS-weighted", range(1, 6))]
    joined = summary(pandas.concat([run.to_frame() for run in runs]))
    assert joined.regret.tolist() == [rounded(run.mean) for run in runs]
    assert joined.ratio.tolist() == ["1.00 [1.00, 1.00]", rounded((np.nan,) * 3)]


def test_a_summary_is_written_as_latex_and_markdown(tmp_path):
    table = summary(sweep("FedArms-v0", ["UCB1"], rounds=9, seeds=2, folder=tmp_path))
    pytest.importorskip("jinja2")
    assert r"\begin{tabular}" in table.to_latex(index=False, float_format="%.3g")
    pytest.importorskip("tabulate")
    assert "| FedArms-v0 | UCB1" in table.to_markdown(index=False, floatfmt=".3g")
