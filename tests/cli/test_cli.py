"""The command line, as a user types it."""

import json

import numpy as np
import pytest
from pairs import every_second
from registered import few, small
from typer.testing import CliRunner

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.cli import app
from fedbandit_envs.experiments.simulate import log_spaced, simulate
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.statistics import mean_and_half_width
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

runner = CliRunner()


def call(*words: str):
    return runner.invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "TERM": "dumb"})


def run_json(*words: str):
    result = call("run", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def assert_explained(result, message: str) -> None:
    """A message, exit code 2 and no traceback."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in " ".join(result.output.replace("│", " ").split())


def test_list_names_everything():
    result = call("list")
    assert result.exit_code == 0
    for name in (*REGISTRY, *BASELINES):
        assert name in result.stdout


OF_ONE_PROBLEM = [
    (name, env_id)
    for name, baseline in sorted(BASELINES.items())
    for env_id, entry in REGISTRY.items()
    if resolve(entry.federation) is baseline.federation and baseline.only in ("", env_id)
]


def refusal(name, env_id):
    """Why a baseline cannot play an id of its problem; empty if it can."""
    if env_id == "FedArmsSuper-v0" and name.startswith("FAIR-LEARN"):
        return "pulls one arm a round"
    # The id has a transport, outside of which stand observations alone.
    if env_id == "FedArmsUnreliable-v0" and BASELINES[name].wrappers:
        return "layer"
    return ""


PLAYABLE = [pair for pair in OF_ONE_PROBLEM if not refusal(*pair)]


@pytest.mark.parametrize(("baseline", "env_id"), [pair for pair in OF_ONE_PROBLEM if refusal(*pair)])
def test_a_baseline_that_does_not_fit_an_id_is_refused(baseline, env_id):
    assert_explained(call("run", baseline, env_id, "--rounds", 3, "--seeds", 1), refusal(baseline, env_id))


ONCE = dict(reversed(PLAYABLE))


# Agents who send in rounds 1, 2, 4 and 8 have done so four times in 12 rounds.
ROUNDS = [12, pytest.param(30, marks=pytest.mark.slow)]


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize(
    ("baseline", "env_id"),
    every_second(
        pytest.param(*pair, marks=() if ONCE[pair[0]] == pair[1] else pytest.mark.slow) for pair in PLAYABLE
    ),
)
def test_run_every_baseline(baseline, env_id, rounds):
    sizes = [
        word for key, value in small(env_id).items() for word in ("--set", f"env.{key}={json.dumps(value)}")
    ]
    result = run_json(baseline, env_id, "--rounds", rounds, "--seeds", 2, *sizes)
    assert result["checkpoints"][-1]["round"] == rounds
    assert result["checkpoints"][-1]["regret_mean"] == pytest.approx(np.mean(result["per_seed"]))
    assert len(result["per_seed"]) == 2


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("env_id", every_second(REGISTRY))
def test_every_baseline_plays_every_id_of_its_problem(env_id, rounds):
    """As the command line, which plays the first id of each baseline above: it reads words alike whatever they name."""
    for baseline in [name for name, played in PLAYABLE if played == env_id != ONCE[name]]:
        spec = RunSpec(baseline, env_id, rounds, 2, env_kwargs=few(env_id))
        env, policy = spec.build()
        regret = simulate(env, policy, spec.all_seeds).regret
        assert regret.shape[1:] == (2, env.max_num_agents), baseline
        assert np.isfinite(regret).all(), baseline


def test_a_file_that_is_not_there_is_explained(tmp_path):
    table = {"name": "classification", "data": str(tmp_path / "nowhere.csv"), "labels": "kind"}
    words = "--rounds", 3, "--seeds", 1, "--set", f"env.contexts={json.dumps(table)}"
    assert_explained(call("run", "LinUCB", "FedClassification-v0", *words), "nowhere.csv")


def test_run_reports_what_the_library_computes():
    result = run_json(
        "SS-UCB", "FedProcurementNormal-v0", "--rounds", 100, "--seeds", 4, "--first-seed", 7,
        "--set", "num_agents=3", "--set", "policy.radius_scale=0.5",
        "--set", 'env.market={"name": "normal", "sd": 0.2}',
    )  # fmt: skip
    market = {"name": "normal", "sd": 0.2}
    env = parallel_env(max_cycles=100, num_agents=3, market=market)
    policy = BASELINES["SS-UCB"].make_policy(radius_scale=0.5)
    curve = simulate(env, policy, range(7, 11))
    per_seed = curve.regret.mean(axis=2)
    assert result["per_seed"] == per_seed[-1].tolist()
    mean, half = mean_and_half_width(per_seed)
    for row, round_, centre, width in zip(result["checkpoints"], curve.rounds, mean, half, strict=True):
        assert row["round"] == round_
        assert row["regret_mean"] == pytest.approx(centre)
        assert row["regret_ci"] == pytest.approx([centre - width, centre + width])
    assert result["info_mean"] == {name: values.mean() for name, values in curve.info.items()}
    settings = result["settings"]
    assert settings["env_kwargs"] == {"market": market, "num_agents": 3}
    assert settings["policy_kwargs"] == {"oracle": "greedy", "radius_scale": 0.5}
    assert settings["seeds"] == [7, 8, 9, 10]


def test_run_shows_the_claims_against_every_observer():
    noise = '[["GaussianPrivatizer", {"noise_multiplier": 3.0, "releases": 20, "clip": 1.0}]]'
    words = ("UCB1-weighted-true", "FedArms-v0", "--rounds", 10, "--seeds", 2, "--set", "num_agents=3",
             "--set", "channel.stage=server", "--stack", noise)  # fmt: skip
    claims = run_json(*words)["claims"]
    infinite = [claim["observer"] for claim in claims if claim["epsilon"] == "infinity"]
    assert infinite == ["wire", "server"] * (len(claims) // 4)
    call("run", *words)
    table = call("run", *words).output  # A second table in one process has no cells of the first.
    rows = [[cell.strip() for cell in line.split("│")] for line in table.splitlines()]
    shown = {(row[1], row[3]): row[4] for row in rows if len(row) == 7}
    assert list(shown) == list(dict.fromkeys((claim["adjacency"], claim["observer"]) for claim in claims))
    assert {observer for (_, observer), epsilon in shown.items() if epsilon == "inf"} == {"wire", "server"}


def test_a_single_seed_has_no_interval():
    assert run_json("one-of-each", "FedProcurement-v0", "--rounds", 5, "--seeds", 1)["checkpoints"][0][
        "regret_ci"
    ] is None  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("UCB", "FedProcurement-v0"), "baseline is 'UCB'"),
        (("", "FedProcurement-v0"), "baseline is ''"),
        (("SS-UCB",), "Missing argument"),
        (("SS-UCB", "FedProcurement-v9"), "env_id is 'FedProcurement-v9'"),
        (("FedUCB", "FedProcurement-v0"), "env is a ProcurementEnv; this baseline plays LinearEnv"),
        (("SS-UCB", "FedProcurement-v0", "--rounds", 0), "rounds is 0"),
        (("SS-UCB", "FedProcurement-v0", "--rounds", 2**53 + 1), f"rounds is {2**53 + 1}"),
        (("SS-UCB", "FedProcurement-v0", "--rounds", "1e3"), "--rounds"),
        (("SS-UCB", "FedProcurement-v0", "--seeds", 0), "seeds is 0"),
        (("SS-UCB", "FedProcurement-v0", "--first-seed", -1), "first_seed is -1"),
        (("P-FCB", "FedProcurement-v0", "--rounds", 1), "max_cycles is 1; at least 2"),
    ],
)
def test_bad_words_are_explained(words, message):
    assert_explained(call("run", *words), message)


@pytest.mark.parametrize(
    ("baseline", "assignment", "message"),
    [
        ("SS-UCB", "", "''"),
        ("SS-UCB", "=", "'='"),
        ("SS-UCB", "colour=1", "'colour=1'"),
        ("SS-UCB", "margin", "'margin'"),
        ("SS-UCB", "env.margin=0", "'env.margin=0'"),
        ("SS-UCB", "max_cycles=3", "'max_cycles=3'"),
        ("SS-UCB", "margin=7", "margin is 7"),
        ("SS-UCB", "margin=", "margin is ''"),
        ("SS-UCB", "margin=wide", "margin is 'wide'"),
        ("SS-UCB", "margin=NaN", "margin is nan"),
        ("SS-UCB", "margin=true", "margin is True"),
        ("SS-UCB", "margin={1, 2}", "margin is '{1, 2}'"),
        ("SS-UCB", "margin={[1]: 2}", "margin is '{[1]: 2}'"),
        ("SS-UCB", f"margin={'[' * 100_000}", "margin is '[[["),
        ("SS-UCB", "zeta=0", "zeta is 0"),
        ("SS-UCB", "radius_scale=[0.5]", "radius_scale is [0.5]"),
        ("SS-UCB", "exploration_rounds=1.0", "exploration_rounds is 1.0"),
        ("SS-UCB", "num_agents=0", "num_agents is 0"),
        ("SS-UCB", "num_agents=Infinity", "num_agents is inf"),
        ("SS-UCB", "num_producers=[30]", "num_producers is [30]"),
        ("SS-UCB", "instance_seed=[]", "instance_seed is []"),
        ("SS-UCB", "instance_seed=[1, -2]", "instance_seed[1] is -2"),
        ("SS-UCB", "instance_seed=1.5", "instance_seed is 1.5"),
        ("SS-UCB", "market=log", "market"),
        ("SS-UCB", 'market={"name": "normal", "sd": -1}', "sd is -1"),
        ("SS-UCB", 'market={"sd": 1}', "market"),
        ("SS-UCB", "regret_oracle=[]", "regret_oracle is []"),
        ("FCB", "channel.topology=heptagon", "topology"),
        ("FCB", 'channel.topology={"edges": [[0, 99]]}', "topology has the edge [0, 99]"),
        ("FCB", 'channel.schedule={"name": "fixed_gap", "gap": 0}', "gap is 0"),
        ("FCB", "channel.loss=1", "loss is 1"),
        ("P-FCB", "privatizer.epsilon=0", "epsilon is 0"),
        ("P-FCB", "privatizer.budget=1", "budget is a int"),
        ("LinUCB", "dim=0", "dim is 0"),
        ("LinUCB", "num_arms=100000000000000", "num_arms is 100000000000000"),
        ("LinUCB", "ridge=0", "ridge is 0"),
        # What only the first reset can tell, since it draws the graph:
        (
            "DisLinUCB",
            'channel.topology={"name": "erdos_renyi", "probability": 0}',
            "topology and time_to_live",
        ),
    ],
)
def test_bad_assignments_are_explained(baseline, assignment, message):
    env_id = "FedProcurement-v0" if BASELINES[baseline].federation is ProcurementEnv else "FedLinear-v0"
    assert_explained(
        call("run", baseline, env_id, "--rounds", 20, "--seeds", 1, "--set", assignment), message
    )


@pytest.mark.parametrize("assignment", ["releases=1", 'budget={"epsilon": 0.5, "delta": 0.01}'])
def test_a_budget_that_does_not_last_is_explained(assignment):
    words = ("--rounds", 800, "--seeds", 1, "--set", f"privatizer.{assignment}")
    assert_explained(call("run", "P-FCB", "FedProcurement-v0", *words), "agent_0 (replica 0) has spent")


class Broken(SSUCB):
    """Has a bug that shows in the third round."""

    rounds = 0

    def act(self, observation):
        self.rounds += 1
        if self.rounds == 3:
            raise self.error("a bug")
        return super().act(observation)


class BrokenAtReset(SSUCB):
    def reset(self, spec, seeds):
        raise self.error("a bug")


@pytest.mark.parametrize("error", [ValueError, TypeError])
@pytest.mark.parametrize("broken", [Broken, BrokenAtReset])
def test_bugs_in_policies_keep_their_traceback(monkeypatch, broken, error):
    policy = type(broken.__name__, (broken,), {"error": error})
    monkeypatch.setitem(BASELINES, "broken", Baseline("", "", ProcurementEnv, policy))
    result = call("run", "broken", "FedProcurement-v0", "--rounds", 9, "--seeds", 1)
    assert type(result.exception) is error
    assert str(result.exception) == "a bug"


def test_a_policy_that_cannot_play_behind_its_wrappers_is_explained(monkeypatch):
    monkeypatch.setitem(BASELINES, "blind", Baseline("", "", ProcurementEnv, Clairvoyant))
    assert_explained(call("run", "blind", "FedProcurement-v0"), "wrap the environment in Reveal")


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--rounds", 0), "rounds is 0"), (("--seeds", -1), "seeds is -1"), (("--rounds", "x"), "--rounds")],
)
def test_bad_words_for_the_quickstart_are_explained(tmp_path, words, message):
    assert_explained(call("quickstart", *words, "--out", tmp_path / "pictures"), message)
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(
    "command", [("quickstart", "--seeds", 1), ("reproduce", "pfcb-exp1", "--trials", 2)], ids=lambda words: words[0]
)  # fmt: skip
@pytest.mark.parametrize("out", ["file", "file/below", "/proc/results", "x" * 300])
def test_a_folder_that_cannot_be_is_explained_before_anything_is_played(tmp_path, command, out):
    """The process's own folder in /proc is as closed to root as to anyone."""
    (tmp_path / "file").write_text("")
    assert_explained(call(*command, "--rounds", 10_000_000, "--out", tmp_path / out), "--out")


def test_a_picture_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "regret.png").mkdir()
    words = ("--rounds", 5, "--seeds", 1, "--out", tmp_path)
    assert_explained(call("quickstart", *words), f"Is a directory: '{tmp_path / 'regret.png'}'")


def test_shards_that_cannot_be_written_are_explained(tmp_path):
    (tmp_path / "shards").write_text("")
    words = ("--rounds", 50, "--trials", 2, "--out", tmp_path)
    assert_explained(call("reproduce", "pfcb-exp1", *words), f"File exists: '{tmp_path / 'shards'}'")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("exp1",), "EXPERIMENT is 'exp1'; one of 'byzantine'"),
        (("",), "EXPERIMENT is ''"),
        (("pfcb-exp1", "--scale", "huge"), "scale of pfcb-exp1 is 'huge'"),
        (("pfcb-exp1", "--panel", "2"), "panel of pfcb-exp1 is '2'"),
        (("pfcb-exp1", "--mode", "odd"), "mode of pfcb-exp1 is 'odd'"),
        (("pfcb-exp1", "--rounds", "0"), "rounds is 0"),
        (("pfcb-exp1", "--rounds", "1", "--workers", "1"), "max_cycles is 1; at least 2"),
        (("pfcb-exp1", "--trials", "1"), "trials is 1"),
        (("pfcb-exp1", "--workers", "0"), "--workers"),
    ],
)
def test_bad_words_for_a_reproduction_are_explained(tmp_path, words, message):
    assert_explained(call("reproduce", *words, "--out", tmp_path), message)


def test_a_budget_that_does_not_last_in_a_reproduction_is_explained(tmp_path, monkeypatch):
    def play(name, backend, cells, folder):
        raise BudgetExhaustedError("agent_0 (replica 0) has spent it all")

    monkeypatch.setattr("fedbandit_envs.cli.terminal.play_missing", play)
    assert_explained(call("reproduce", "pfcb-exp1", "--out", tmp_path), "has spent it all")


def test_quickstart_draws(tmp_path):
    result = call("quickstart", "--rounds", 50, "--seeds", 2, "--out", tmp_path / "pictures")
    assert result.exit_code == 0, result.output
    path = tmp_path / "pictures" / "regret.png"
    assert str(path) in result.stdout
    assert path.stat().st_size > 10_000


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
