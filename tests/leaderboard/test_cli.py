"""The command line, as a user types it."""

import json

import numpy as np
import pytest
from registered import small
from typer.testing import CliRunner

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.leaderboard.cli import app
from fedbandit_envs.leaderboard.simulation import log_spaced, simulate
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registration import REGISTRY

runner = CliRunner()


def call(*words: str):
    return runner.invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "TERM": "dumb"})


def run_json(*words: str):
    result = call("run", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_list_names_everything():
    result = call("list")
    assert result.exit_code == 0
    for name in (*REGISTRY, *BASELINES):
        assert name in result.stdout


PLAYABLE = [
    (name, env_id)
    for name, baseline in sorted(BASELINES.items())
    for env_id, entry in REGISTRY.items()
    if resolve(entry.federation) is baseline.federation
]


@pytest.mark.parametrize(("baseline", "env_id"), PLAYABLE)
def test_run_every_baseline(baseline, env_id):
    sizes = [word for key, value in small(env_id).items() for word in ("--set", f"env.{key}={value}")]
    result = run_json(baseline, env_id, "--rounds", 30, "--seeds", 2, *sizes)
    assert result["checkpoints"][-1]["round"] == 30
    assert result["checkpoints"][-1]["regret_mean"] == pytest.approx(np.mean(result["per_seed"]))
    assert len(result["per_seed"]) == 2


def test_a_baseline_plays_its_own_environments_only():
    result = call("run", "FedUCB", "FedProcurement-v0")
    assert result.exit_code == 2
    assert "env is a ProcurementEnv; this baseline plays LinearEnv" in " ".join(result.output.split())


def test_run_reports_what_the_library_computes():
    result = run_json(
        "SS-UCB", "FedProcurementNormal-v0", "--rounds", 100, "--seeds", 4, "--first-seed", 7,
        "--set", "num_agents=3", "--set", "policy.radius_scale=0.5", "--set", "env.sd=0.2",
    )  # fmt: skip
    env = parallel_env(max_cycles=100, num_agents=3, market="normal", sd=0.2)
    policy = BASELINES["SS-UCB"].make_policy(radius_scale=0.5)
    curve = simulate(env, policy, range(7, 11))
    per_seed = curve.regret.mean(axis=2)
    assert result["per_seed"] == per_seed[-1].tolist()
    mean, half = mean_and_half_width(per_seed)
    for row, round_, centre, width in zip(result["checkpoints"], curve.rounds, mean, half, strict=True):
        assert row["round"] == round_
        assert row["regret_mean"] == pytest.approx(centre)
        assert row["regret_ci"] == pytest.approx([centre - width, centre + width])
    settings = result["settings"]
    assert settings["env_kwargs"] == {"market": "normal", "num_agents": 3, "sd": 0.2}
    assert settings["policy_kwargs"] == {"oracle": "greedy", "radius_scale": 0.5}
    assert settings["seeds"] == [7, 8, 9, 10]


def test_a_single_seed_has_no_interval():
    assert run_json("one-of-each", "FedProcurement-v0", "--rounds", 5, "--seeds", 1)["checkpoints"][0][
        "regret_ci"
    ] is None  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("UCB", "FedProcurement-v0"), "baseline is 'UCB'"),
        (("SS-UCB", "FedProcurement-v9"), "env_id is 'FedProcurement-v9'"),
        (("SS-UCB", "FedProcurement-v0", "--rounds", 0), "rounds is 0"),
        (("SS-UCB", "FedProcurement-v0", "--seeds", 0), "seeds is 0"),
        (("SS-UCB", "FedProcurement-v0", "--set", "colour=1"), "'colour=1'"),
        (("SS-UCB", "FedProcurement-v0", "--set", "margin"), "'margin'"),
        (("SS-UCB", "FedProcurement-v0", "--set", "max_cycles=3"), "'max_cycles=3'"),
        (("SS-UCB", "FedProcurement-v0", "--set", "num_agents=0"), "num_agents is 0"),
        (("SS-UCB", "FedProcurement-v0", "--set", "margin=7"), "margin is 7"),
        (("SS-UCB", "FedProcurement-v0", "--set", "margin=wide"), "margin is 'wide'"),
    ],
)
def test_bad_words_are_explained(words, message):
    result = call("run", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_quickstart_draws(tmp_path):
    result = call("quickstart", "--rounds", 50, "--seeds", 2, "--out", tmp_path / "pictures")
    assert result.exit_code == 0, result.output
    for suffix, least in ((".png", 10_000), (".html", 100_000)):
        path = tmp_path / "pictures" / f"regret{suffix}"
        assert str(path) in result.stdout
        assert path.stat().st_size > least


@pytest.mark.parametrize("rounds", [1, 2, 9, 10, 1000, 99_999])
def test_checkpoints_are_log_spaced(rounds):
    at = log_spaced(rounds)
    assert at[0] == 1
    assert at[-1] == rounds
    assert (np.diff(at) > 0).all()
    assert len(at) <= 1 + 10 * np.log10(rounds) + 1


def test_intervals_cover_as_often_as_they_say():
    """2,000 intervals of five normal values cover the mean 1,900 times, four sigma (39) off at most: 6e-5."""
    values = np.random.default_rng(0).normal(3.0, 2.0, (2000, 5))
    mean, half = mean_and_half_width(values)
    assert abs((np.abs(mean - 3.0) <= half).sum() - 1900) < 40
