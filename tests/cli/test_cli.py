"""The command line, as a user types it."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from runpy import run_module

import numpy as np
import own_policies
import pytest
from pairs import every_second
from registered import few, small
from typed import assert_explained, call

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines import comparison_lines as compared
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.procurement import SSUCB, Clairvoyant
from fedbandit_envs.baselines.tuned import best_silence
from fedbandit_envs.experiments.measures import mean_with_interval, ratio_with_interval, rounded
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registry.registration import REGISTRY


def run_json(*words: str):
    result = call("run", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_as_a_module_it_prints_its_version(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedbandit", "--version"])
    with pytest.raises(SystemExit, match=r"^0$"):
        run_module("fedbandit_envs", run_name="__main__")
    assert capsys.readouterr().out == f"{version('fedbandit-envs')}\n"


def test_help_imports_no_command_s_libraries():
    """They would take a second: help is asked for often."""
    code = "import sys; from fedbandit_envs.cli import app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ("baselines", "experiments", "leaderboard", "papers", "wrappers")
    heavy = {"joblib", "matplotlib", "networkx", "pandas", "scipy.stats"}
    assert not (heavy | {f"fedbandit_envs.{folder}" for folder in own}) & set(done.stdout.split())


FITTING = [(name, env_id) for name, one in BASELINES.items() for env_id in REGISTRY if one.fits(env_id)]
REFUSED = {
    ("FAIR-LEARN-UCB1", "FedArmsSuper-v0"): "pulls one arm a round",
    # The id has a transport, outside of which stand observations alone.
    ("Fed-UCB1", "FedArmsUnreliable-v0"): "layer",
    (
        "LinUCB",
        "FedArms-v0",
    ): "env is a ArmsEnv; this baseline plays LinearEnv. `fedbandit list --env ID` names",
}
"""Why baselines cannot play an id."""
PLAYABLE = [pair for pair in FITTING if pair not in REFUSED]


def test_a_baseline_that_does_not_fit_an_id_is_refused():
    assert set(REFUSED) - set(FITTING) == {*REFUSED} - {("FAIR-LEARN-UCB1", "FedArmsSuper-v0")}
    for (name, env_id), message in REFUSED.items():
        assert_explained(call("run", name, env_id, "--rounds", 3, "--seeds", 1), message)


@pytest.mark.parametrize("env_id", every_second(REGISTRY))
def test_every_baseline_plays_every_id_of_its_problem(env_id, monkeypatch):
    """One of them by the command line, which reads words alike whatever they name. Agents send in rounds 1, 2, 4, 8."""
    # How large a shuffler's noise must be is searched for long.
    monkeypatch.setattr("fedbandit_envs.baselines.linear.registered.largest_loss", lambda *arguments: 0.1)
    for baseline in [name for name, played in PLAYABLE if played == env_id]:
        spec = RunSpec(baseline, env_id, 12, 2, env_kwargs=few(env_id))
        env, policy = spec.build()
        regret = simulate(env, policy, spec.all_seeds).regret
        assert regret.shape[1:] == (2, env.max_num_agents), baseline
        assert np.isfinite(regret).all(), baseline
    sizes = [
        word for key, value in small(env_id).items() for word in ("--set", f"env.{key}={json.dumps(value)}")
    ]
    result = run_json(baseline, env_id, "--rounds", 12, "--seeds", 2, *sizes)
    assert result["checkpoints"][-1]["round"] == 12
    assert result["checkpoints"][-1]["regret_mean"] == pytest.approx(np.mean(result["per_seed"]))
    assert len(result["per_seed"]) == 2


def test_run_reports_what_the_library_computes():
    result = run_json(
        "SS-UCB", "FedProcurementNormal-v0", "--rounds", 100, "--seeds", 5, "--first-seed", 7,
        "--set", "num_agents=3", "--set", "policy.radius_scale=0.5",
        "--set", 'env.market={"name": "normal", "sd": 0.2}',
    )  # fmt: skip
    market = {"name": "normal", "sd": 0.2}
    env = parallel_env(max_cycles=100, num_agents=3, market=market)
    policy = BASELINES["SS-UCB"].make_policy(radius_scale=0.5)
    curve = simulate(env, policy, range(7, 12))
    per_seed = curve.regret.mean(axis=2)
    assert result["per_seed"] == per_seed[-1].tolist()
    intervals = mean_with_interval(per_seed)
    for row, round_, mean, *ends in zip(result["checkpoints"], curve.rounds, *intervals, strict=True):
        assert row["round"] == round_
        assert row["regret_mean"] == pytest.approx(mean)
        assert row["regret_ci"] == pytest.approx(ends)
    assert result["info_mean"] == {name: values.mean() for name, values in curve.info.items()}
    assert result["checked_rows"] == 0
    settings = result["settings"]
    assert settings["env_kwargs"] == {"market": market, "num_agents": 3}
    assert settings["policy_kwargs"] == {"oracle": "greedy", "radius_scale": 0.5}
    assert settings["seeds"] == [7, 8, 9, 10, 11]
    single = run_json("one-of-each", "FedProcurement-v0", "--rounds", 5, "--seeds", 1)
    assert single["checkpoints"][0]["regret_ci"] is None


def test_run_shows_the_claims_against_every_observer():
    noise = '[["GaussianPrivatizer", {"noise_multiplier": 3.0, "releases": 20, "clip": 1.0}]]'
    words = ("MOSS-weighted-true", "FedArms-v0", "--rounds", 10, "--seeds", 2, "--set", "num_agents=3",
             "--set", "channel.stage=server", "--stack", noise)  # fmt: skip
    claims = run_json(*words)["claims"]
    infinite = [claim["observer"] for claim in claims if claim["epsilon"] == "infinity"]
    assert infinite == ["wire", "server"] * (len(claims) // 4)
    table = call("run", *words).output
    rows = [[cell.strip() for cell in line.split("│")] for line in table.splitlines()]
    shown = {(row[1], row[3]): row[4] for row in rows if len(row) == 7}
    assert list(shown) == list(dict.fromkeys((claim["adjacency"], claim["observer"]) for claim in claims))
    assert {observer for (_, observer), epsilon in shown.items() if epsilon == "inf"} == {"wire", "server"}
    assert "own delta" not in call("run", "Priv-UCB1", "FedArms-v0", "--rounds", 9, "--seeds", 1).output
    printed = ("P-FCB", "FedProcurement-v0", "--rounds", 300, "--seeds", 1)
    own = run_json(*printed)["privacy"]
    said = (
        f"epsilon {own['epsilon']:.4g} for one-quantity at the mechanism's own delta 0.02, basic composition"
    )
    assert own["delta"] == 0.02
    assert said in call("run", *printed).output


RUN = ("run", "SS-UCB", "FedProcurement-v0")
SET = (*RUN, "--rounds", 20, "--seeds", 1, "--set")
P_FCB = ("run", "P-FCB", "FedProcurement-v0", "--rounds", 800, "--seeds", 1, "--set")
OWN = ("run", "mine.py:Constant", "FedArms-v0", "--rounds", 20, "--seeds", 2, "--set", "num_arms=4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "UCB", "FedProcurement-v0"), "names is required; did you mean 'UCB1', 'CUCB', "),
        (("run", "FedArms-v0", "UCB1"), "baseline is 'FedArms-v0', an environment's id; the baseline comes first"),
        ((*RUN, "--agents", 3), "No such option: --agents; arguments follow --set, such as --set agents=VALUE"),
        ((*RUN, "--out", "x"), "--out, which is an option of `quickstart`, `privacy`"),
        ((*RUN, "--seed", 3), "No such option: --seed (Possible options: --seeds)"),
        (("list", "arms"), "argument(s) (arms); list has the options --env, --text, --json"),
        (("leaderboard", "verify", ".", "--out", "x"), "--out, which is an option of `run`, `submit`, `report`"),
        (("leaderboard", "verify", "."), ". has no entries.json; a folder of results is required"),
        (("leaderboard", "verify", "file"), "'file' is a file"),
        ((*P_FCB[:3], "--set", "privatizr.epsilon=1"), "names is required; did you mean 'privatizer.epsilon', "),
        (("privacy", *P_FCB[1:3], "--format", "xml"), "--format is 'xml'; one of 'markdown', 'html', 'json'"),
        (("privacy", *P_FCB[1:3], "--out", "taken"), "'taken' is a directory"),
        (("plot", "file", "--x", "round"), "Invalid value for file: No columns"),
        ((*RUN, "--rounds", 0), "rounds is 0"),
        ((*RUN, "--rounds", "1e3"), "--rounds"),
        (("run", "P-FCB", "FedProcurement-v0", "--rounds", 1), "max_cycles is 1; at least 2"),
        ((*SET, "margin=-1"), "margin is -1"),
        ((*SET, f"margin={'[' * 100_000}"), "margin is '[[["),
        ((*P_FCB, 'privatizer.budget={"epsilon": 0.5, "delta": 0.01}'), "agent_0 (replica 0) has spent"),
        (
            ("run", "LinUCB", "FedLinear-v0", "--set", "num_arms=100000000000000"),
            "num_arms is 100000000000000",
        ),
        # Only the first reset can tell, since it draws the graph.
        (
            ("run", "FedUCB-nonprivate", "FedLinear-v0", "--rounds", 20, "--seeds", 1, "--set",
             'channel.topology={"name": "erdos_renyi", "probability": 0}', "--set", "channel.schedule=synchronise"),
            "topology and time_to_live",
        ),
        (
            ("run", "LinUCB", "FedClassification-v0", "--set",
             'env.contexts={"name": "classification", "data": "nowhere.csv", "labels": "kind"}'),
            "nowhere.csv",
        ),
        (("run", "mine.py", "FedArms-v0"), "'mine.py:Class' is required"),
        (("run", "mine.py:Nothing", "FedArms-v0"), "has no attribute 'Nothing'"),
        (("run", "none.py:Policy", "FedArms-v0"), "there is no file none.py"),
        ((*OWN, "--set", "file=none.zip"), "No such file or directory"),
        (
            ("run", "fedbandit_envs.baselines.adapters:SB3Policy", "FedArms-v0"),
            "missing 1 required positional argument: 'model'",
        ),
        (("quickstart", "--rounds", 0, "--out", "pictures"), "rounds is 0"),
        (("quickstart", "--rounds", 5, "--seeds", 1, "--out", "taken"), "Is a directory"),
    ],
)  # fmt: skip
def test_wrong_words_are_explained(own, words, message):
    (own / "file").write_text("")
    (own / "taken" / "regret.png").mkdir(parents=True)
    assert_explained(call(*words), message)
    assert not (own / "pictures").exists()


def test_the_privacy_report_is_that_of_what_was_played(tmp_path):
    """Its numbers are in `tests/silos/test_reports.py`."""
    words = ("privacy", "MOSS-weighted", "FedArms-v0", "--rounds", 20, "--set", "epsilon=3", "--format")
    fields = json.loads(call(*words, "json").stdout)
    env, policy = RunSpec("MOSS-weighted", "FedArms-v0", 20, 1).changed({"epsilon": 3}).build()
    regret = simulate(env, policy, [0]).regret[-1].mean()
    assert fields["measured"] == {"mean_regret_of_an_agent": regret}
    assert fields["guarantees"][0]["epsilon"] == env.privacy().epsilon == pytest.approx(3)
    told = {
        "baseline": "MOSS-weighted",
        "env_id": "FedArms-v0",
        "settings": ["epsilon=3"],
        "rounds_planned": 20,
    }
    assert told.items() <= fields["subject"].items()
    assert call(*words, "html", "--out", tmp_path / "page").stdout.strip() == str(tmp_path / "page")
    assert (tmp_path / "page").read_text() == call(*words, "html").stdout.removesuffix("\n")
    assert "| baseline | MOSS-weighted |" in call(*words, "markdown").stdout


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The current folder, with a policy of the user's own."""
    shutil.copy(own_policies.__file__, tmp_path / "mine.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_own_policy_is_run_by_its_file(own):
    path = list(sys.path)
    words = ("FedArms-v0", "--rounds", 20, "--seeds", 2, "--set", "num_arms=4", "--set", "num_agents=2")
    told = run_json("mine.py:Constant", *words, "--set", "arm=2", "--check-rows")
    assert told["settings"]["baseline"] == "mine.py:Constant"
    assert told["settings"]["policy_kwargs"] == {"arm": 2}
    assert told["checked_rows"] == 3
    assert run_json("mine.py:Constant", *words)["per_seed"] != told["per_seed"]
    assert "rows that were played alone act the same" in call("run", "UCB1", *words, "--check-rows").stdout
    mixed = call("run", "mine.py:Mixed", *words, "--check-rows")
    assert mixed.stdout == ""
    assert_explained(mixed, "alone and among the others, the action in round", exit_code=1)
    assert call("run", "mine.py:Mixed", *words).exit_code == 0
    assert sys.path == path


class Broken(SSUCB):
    """Has a bug that shows in the third round."""

    rounds, error = 0, TypeError

    def act(self, observation):
        self.rounds += 1
        if self.rounds == 3:
            raise self.error("a bug")
        return super().act(observation)


class BrokenAtReset(SSUCB):
    error = ValueError

    def reset(self, spec, seeds):
        raise self.error("a bug")


@pytest.mark.parametrize("broken", [Broken, BrokenAtReset])
def test_bugs_in_policies_keep_their_traceback(monkeypatch, broken):
    monkeypatch.setitem(BASELINES, "broken", Baseline("", "", ProcurementEnv, broken))
    result = call("run", "broken", "FedProcurement-v0", "--rounds", 9, "--seeds", 1)
    assert type(result.exception) is broken.error
    assert str(result.exception) == "a bug"


def test_a_policy_that_cannot_play_behind_its_wrappers_is_explained(monkeypatch):
    monkeypatch.setitem(BASELINES, "blind", Baseline("", "", ProcurementEnv, Clairvoyant))
    assert_explained(call("run", "blind", "FedProcurement-v0"), "wrap the environment in Reveal")


@pytest.mark.parametrize("out", ["file/below", "/proc/results", "x" * 300])
def test_a_folder_that_cannot_be_is_explained_before_anything_is_played(tmp_path, out):
    """The process's own folder in /proc is as closed to root as to anyone."""
    (tmp_path / "file").write_text("")
    for command in (("quickstart", "--seeds", 1), ("sweep", "--env", "FedArms-v0", "--policy", "UCB1",
                    "--grid", "agents=2"), ("tune", "arms")):  # fmt: skip
        assert_explained(call(*command, "--rounds", 10_000_000, "--out", tmp_path / out), "--out")


@pytest.mark.parametrize("missing", ["matplotlib", "pandas"])
def test_without_the_extra_report_nothing_is_played(monkeypatch, tmp_path, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    # It would play for hours.
    result = call("quickstart", "--rounds", "1000000", "--out", tmp_path / "out")
    assert_explained(result, f"Error: {missing} is missing, which comes with the [report] extra", 1)
    assert not (tmp_path / "out").exists()


QUICK = {"nothing": compared.TUNED, "noisy counts": compared.OURS_TUNED, "true counts": compared.TRUE_TUNED}


def test_the_quickstart_shows_what_privacy_costs_and_what_to_try_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = re.sub(" +", " ", call("quickstart", "--rounds", 200, "--seeds", 5).stdout)
    env = make_federation("FedArms-v0", max_cycles=200)
    results = {sent: simulate(env, compared.BASELINE_OF["arms"][line], 5) for sent, line in QUICK.items()}
    for sent, result in results.items():
        ratio = rounded(ratio_with_interval(result.per_seed, results["nothing"].per_seed))
        row = f"{sent} │ {rounded(result.mean)} │ {ratio} │ {result.privacy.epsilon:.4g} "
        assert row in shown
    assert (tmp_path / "fedbandit-quickstart/regret.png").stat().st_size > 10_000
    tries = re.findall(r"^ fedbandit (\w+)([^#\n]*)", shown.partition("Try next:")[2], re.MULTILINE)
    assert [command for command, _ in tries] == ["run", "sweep", "list"]
    for command, words in tries:
        few = () if command == "list" else ("--rounds", 9, "--seeds", 2)
        assert call(command, *words.split(), *few).exit_code == 0


@pytest.mark.slow
def test_the_quickstart_is_true_in_expectation():
    """At its horizon, under seeds of its own; a whole interval of 95 % lies below 1."""
    env = make_federation("FedArms-v0", max_cycles=10_000)
    names = [compared.BASELINE_OF["arms"][line] for line in QUICK.values()]
    silent, private, true = (simulate(env, name, range(10**6, 10**6 + 100)).per_seed for name in names)
    assert ratio_with_interval(private, silent)[2] < 1
    assert ratio_with_interval(true, silent)[2] < 1


@pytest.mark.parametrize(
    ("env_id", "name", "rows"),
    [
        ("FedArms-v0", "Priv-UCB1", ["Priv-UCB1", best_silence("arms")]),
        ("FedArms-v0", best_silence("arms"), [best_silence("arms")]),
        # It has a channel, and so no silent policy; there is none for the last problem.
        ("FedArmsUnreliable-v0", "UCB1", ["UCB1"]),
        ("FedGaussian-v0", "Gaussian-UCB", ["Gaussian-UCB"]),
    ],
)
def test_a_run_is_compared_with_the_best_silence(env_id, name, rows):
    shown = call("run", name, env_id, "--rounds", 9, "--seeds", 2).stdout
    found = [line.split("│")[1].strip() for line in shown.split("┘")[0].splitlines() if "│" in line]
    assert found == rows
    assert ("1.00" in shown) is (best_silence("arms") in rows)
