"""Data sets of episodes: what is written is what the batch API plays, and labels are its best actions."""

import hashlib
import json

import numpy as np
import pytest
from scipy import stats
from typed import assert_explained, call

from fedbandit_envs import functional as twin
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.core.wrapper import build
from fedbandit_envs.registry.registration import find_registered

NOISE = ["GaussianPrivatizer", {"noise_multiplier": 2.0}]
MESSAGES = ["Channel", {"schedule": {"name": "fixed_gap", "gap": 5}}]
# Id, arguments, wrappers, policy.
CASES = {
    "arms": ("FedArmsSpread-v0", {"num_arms": 4}, [], twin.PureRandom()),
    "gaussian": ("FedMixed-v0", {"reward_bound": 1.5}, [NOISE, MESSAGES], twin.PureGaussianUCB()),
    "procurement": ("FedProcurement-v0", {"num_agents": 2, "num_producers": 5}, [MESSAGES], twin.PureSSUCB()),
    "linear": ("FedLinearBall-v0", {"num_agents": 2, "num_arms": 5, "dim": 3}, [MESSAGES], twin.PureLinUCB()),
    "pool": ("FedLogistic-v0", {"num_agents": 2}, [], twin.PureRandom()),
    "exposure": ("FedExposure-v0", {"num_agents": 2}, [], twin.PureFairX()),
}
SEEDS, ROUNDS, ARRIVALS = [7, 3, 11], 23, [5, 10, 15, 20]


@pytest.mark.parametrize("case", CASES)
def test_episodes_are_those_of_the_batch_api_and_labels_its_best_actions(case):
    env_id, kwargs, stack, policy = CASES[case]
    kept = twin.trajectories(twin.make(env_id, stack, np.float64, **kwargs), policy, SEEDS, ROUNDS)
    entry = find_registered(env_id)
    host = build(entry.federation, (*entry.stack, *stack), **{**entry.kwargs, **kwargs})
    seen, compared = host.reset_batch(SEEDS).observation, {"action", "best", "reward", "agent", "seed"}
    shape, spent = (len(SEEDS), host.max_num_agents), []
    np.testing.assert_array_equal(kept["seed"], np.transpose([SEEDS] * shape[1]))
    np.testing.assert_array_equal(kept["agent"], [range(shape[1])] * shape[0])

    def now(array, t):
        # No other axis is as long as that of rounds.
        return array[:, :, t] if array.shape[2:3] == (ROUNDS,) else array

    for t in range(ROUNDS):
        best = host.unwrapped.clairvoyant(seen)
        np.testing.assert_allclose(now(kept["best"], t), best, rtol=1e-12)
        for name in set(kept) & set(seen):
            array, wanted = now(kept[name], t), seen[name]
            if name.startswith("inbox") and t not in ARRIVALS:
                assert not seen["inbox_mask"].any()
                continue
            if name.startswith("inbox"):
                mask = seen["inbox_mask"].reshape(*shape, -1, *[1] * (wanted.ndim - 3))
                array, wanted = array[:, :, ARRIVALS.index(t)], (wanted * mask).sum(axis=2)
            if NOISE not in stack or not name.startswith("inbox") or "variance" in name:
                np.testing.assert_allclose(array, wanted.reshape(array.shape), rtol=1e-9, err_msg=name)
            compared.add(name)
        spent += [host.privacy().epsilon] * (t in ARRIVALS)
        step = host.step_batch(now(kept["action"], t))
        np.testing.assert_allclose(now(kept["reward"], t), step.reward, rtol=1e-12)
        seen = step.observation
    if stack:
        np.testing.assert_array_equal(kept["message_round"][1, 1], ARRIVALS)
        np.testing.assert_array_equal(kept["epsilon"][1, 1], spent)
        assert np.isfinite(spent).all() == (NOISE in stack)
    assert set(kept) - compared <= {"epsilon", "message_round", "merit_floor", "merit_scale"}


def test_random_arms_are_pulled_equally_often():
    """A chi-squared test of 1,000 agents' 8,000 pulls of 7 arms: 1e-4 false alarms."""
    env = twin.make("FedArms-v0", num_agents=10, num_arms=7, max_cycles=8)
    actions = twin.trajectories(env, twin.PureRandom(), range(100))["action"]
    assert stats.chisquare(np.bincount(actions.ravel(), minlength=7)).pvalue > 1e-4
    assert len(np.unique(actions.reshape(-1, 8), axis=0)) > 990
    with pytest.raises(UnfitError, match="an action that is an arm; the environment has Simplex"):
        twin.rollout(twin.make("FedExposure-v0", max_cycles=5), twin.PureRandom(), [1])


def test_files_hold_the_episodes_and_say_what_they_are(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    env = twin.make(*("FedLinearBall-v0", [MESSAGES]), num_agents=2, num_arms=5, dim=3, max_cycles=12)
    policy, written = twin.PureLinUCB(alpha=0.5), []
    monkeypatch.setattr("fedbandit_envs.functional.episodes.CHUNK_BYTES", 10_000)
    path, about = twin.write_trajectories(env, policy, range(4, 15), tmp_path, done=written.append)
    wanted = twin.trajectories(env, policy, range(4, 15))
    table, file = parquet.read_table(path), parquet.ParquetFile(path)
    assert len(written) == file.num_row_groups > 2, "episodes are written some at a time"
    assert sum(written) == 11
    for name, array in wanted.items():
        column = table[name].combine_chunks()
        for _ in array.shape[2:]:
            column = column.flatten()
        np.testing.assert_array_equal(column.to_numpy().reshape(array.shape), array, err_msg=name)
    said = json.loads(about.read_text())
    assert said["distribution"][0]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert '"num_arms": 5' in said["description"]
    fields = {field["name"]: field for field in said["recordSet"][0]["field"]}
    assert list(fields) == table.column_names
    assert fields["contexts"]["cr:arrayShape"] == "12,5,3"
    assert (fields["best"]["dataType"], fields["epsilon"]["dataType"]) == ("sc:Integer", "sc:Float")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--policy", "UCB1"], "policy name is 'UCB1'; one of ['PureFairX', "),
        (["--policy", '{"name": "PureUCB1", "scale": -1}'], "scale is -1"),
        (["--policy", "PureSSUCB"], "PureSSUCB needs ['delivered', 'good']"),
        (["--policy", "PureUCB1", "--set", "awake=0.5"], "awake=0.5 is not in the functional twin"),
    ],
)
def test_wrong_settings_are_explained(tmp_path, words, message):
    done = call("trajectories", "--env", "FedArms-v0", "--out", tmp_path / "out", "--rounds", 5, *words)
    assert_explained(done, message)
    assert not list((tmp_path / "out").glob("*.json"))
