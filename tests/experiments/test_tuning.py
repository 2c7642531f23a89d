"""Tuning: races on the tasks of suites, in expectation; what is found is data that tuned baselines read."""

import json
import sys
from dataclasses import replace
from subprocess import Popen
from time import sleep

import numpy as np
import pytest
from typed import assert_explained, call

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.tuned import DATA, best_silence, constants, nearest
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.leaderboard.plays import make_entry
from fedbandit_envs.leaderboard.suites import SUITES, Edition, tracks_of
from fedbandit_envs.leaderboard.tuning import FIRST_SEED, SILENCE, TUNINGS, behind, races
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.experiment import Plan
from fedbandit_envs.registry.problems import TuningSpec

FOUND = [(name, at, found) for name, one in DATA["baselines"].items() for at, found in one["at"].items()]
BY_EPSILON = {0.1: {"scale": 0.5}, 1.0: {"scale": 0.25}, 10.0: {"scale": 0.125}}


@pytest.fixture
def coarse(monkeypatch):
    """Arms on a small grid, whose least value is a natural end."""
    grids = {name: {"scale": (0.02, 0.2, 2.0)} for name in ("UCB1", "Priv-UCB1")}
    monkeypatch.setitem(TUNINGS, "arms", TuningSpec(grids, seeds=2, natural={"scale": (0.02,)}))


@pytest.mark.usefixtures("in_this_process", "coarse")
def test_the_least_expected_regret_is_chosen_and_calls_are_merged(tmp_path):
    words = ("tune", "arms", "--rounds", 60, "--out", tmp_path)
    assert call(*words, "--baseline", "UCB1").exit_code == 0
    ran = call(*words, "--workers", 1)
    assert ran.exit_code == 0, ran.output
    kept = json.loads((tmp_path / "tuned.json").read_text())
    found, silence = kept["baselines"], kept["silence"]["arms"]
    assert [*found["Priv-UCB1-tuned"]["at"]] == ["0.1", "1", "10"]
    assert found["LinUCB-tuned"] == DATA["baselines"]["LinUCB-tuned"]
    entry = found["UCB1-tuned"]
    assert (entry["of"], entry["rounds"], [*entry["at"]]) == ("UCB1", 60, ["inf"])
    scores = []
    for tried, means, errors, seeds in entry["at"]["inf"]["tried"]:
        for task, mean, error in zip(SUITES["arms"].tasks, means, errors, strict=True):
            one = RunSpec("UCB1", task.env_id, 60, 2, FIRST_SEED, dict(task.env_kwargs), policy_kwargs=tried)
            regrets = np.array(one.run().as_json()["per_seed"])
            assert (mean, error) == pytest.approx((regrets.mean(), regrets.std(ddof=1) / 2**0.5), rel=1e-5)
        scores.append((means[0] * means[1], seeds, tried))
    assert (2, entry["at"]["inf"]["chosen"]) == min(scores)[1:]
    # The tuned form takes part with its new constants, in place of the baseline of that name.
    assert silence["tried"]["UCB1-tuned"][0] == entry["at"]["inf"]["tried"][scores.index(min(scores))][1]
    least = min(silence["tried"], key=lambda name: np.prod(silence["tried"][name][0]))
    assert (silence["name"], silence["date"]) == (least, entry["date"])
    assert {"PPO-arms", "Thompson", "UCB1"} < silence["tried"].keys() >= {"uniform-arms"}
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "shards").iterdir()}
    assert call(*words).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "shards").iterdir()} == stamps


@pytest.mark.ci
@pytest.mark.usefixtures("in_this_process")
def test_what_is_killed_goes_on_and_chooses_the_same(tmp_path):
    words = [
        "tune",
        "arms",
        "--baseline",
        "UCB1",
        "--rounds",
        "3000",
        "--seeds",
        "20",
        "--workers",
        "1",
        "--out",
    ]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = Popen([sys.executable, "-m", "fedbandit_envs", *words, str(killed)])
    while process.poll() is None and len([*killed.glob("shards/*.npz")]) < 4:
        sleep(0.01)
    process.kill()
    process.wait()
    stamps = {path: path.stat().st_mtime_ns for path in killed.glob("shards/*.npz")}
    assert len(stamps) >= 4
    assert not (killed / "tuned.json").exists()
    assert [call(*words, folder).exit_code for folder in (killed, whole)] == [0, 0]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert (killed / "tuned.json").read_text() == (whole / "tuned.json").read_text()


@pytest.mark.parametrize("seeds", [40, 100, 200])
def test_no_safe_constant_is_dropped_behind_a_reckless_one(seeds):
    """95 % N(80, 20) and 5 % at 10,000 against N(200, 20), 500 samples; three standard errors of ten seeds drop 60 %.

    A share of 3 % would pass with probability 0.003.
    """
    generator, dropped = np.random.default_rng(seeds), 0
    for _ in range(500):
        safe, usual = generator.normal(200, 20, seeds), generator.normal(80, 20, seeds)
        reckless = np.where(generator.random(seeds) < 0.05, 10_000.0, usual)
        regrets, lost = np.array([reckless, safe])[:, np.newaxis], np.array([10_000.0])
        played = (regrets[..., :stop] for stop in (seeds // 2, 3 * seeds // 4))
        dropped += any(behind(seen, seen / 2, lost)[1] for seen in played)
    assert dropped <= 5
    # What is lost from the start is dropped.
    assert behind(np.array([usual, usual + 20_000])[:, np.newaxis], 0 * regrets, lost).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "values", "chosen", "further"),
    [
        ("scale", (0.005, 0.02, 0.08), 0.005, [0.00125]),
        ("scale", (0.5, 1.0), 1.0, [2.0]),
        ("scale", (0.5, 1.0, 2.0), 1.0, []),
        ("margin", (0, 0.3, 1.0), 0, []),
        ("rounds", (0, 1), 1, [2]),
        ("share", (0.0, 1.0), 1.0, []),
        ("pool", ("sum", "mean"), "sum", []),
        ("check", (False, True), True, []),
    ],
)
def test_a_grid_is_extended_beyond_ends_that_are_not_natural(monkeypatch, name, values, chosen, further):
    tuning = TuningSpec({"UCB1": {name: values}}, seeds=2, natural={"share": (1.0,)})
    monkeypatch.setitem(TUNINGS, "arms", tuning)
    (race,) = races("arms", DATA, "UCB1")
    points = race.extended(values.index(chosen)).points
    assert [point[1][name] for point in points] == [*values, *further]


@pytest.mark.parametrize(("name", "at", "found"), FOUND)
def test_kept_constants_are_the_least_of_what_was_tried(name, at, found):
    entry = DATA["baselines"][name]
    assert found["chosen"] == constants(name, float(at))
    (problem,) = [problem for problem, one in TUNINGS.items() if entry["of"] in one.grids]
    assert TUNINGS[problem].tuned_name(entry["of"]) == name
    whole = [row for row in found["tried"] if row[3] == max(one[3] for one in found["tried"])]
    assert not whole or found["chosen"] == min(whole, key=lambda row: np.prod(row[1]))[0]
    if "old" not in entry:
        assert all(len(row[1]) == len(row[2]) == len(entry["tasks"]) for row in found["tried"])
        if problem in SUITES:
            tasks = SUITES[problem].tasks
            assert (entry["tasks"], entry["rounds"]) == ([task.id for task in tasks], tasks[0].rounds)
        for key, value in found["chosen"].items():
            values = [row[0][key] for row in found["tried"]]
            ends = {min(values), max(values)} - {0, *TUNINGS[problem].natural.get(key, ())}
            assert len(set(values)) == 1 or value not in ends


@pytest.mark.parametrize("suite", DATA["silence"])
def test_best_silence_is_the_least_of_what_was_tried(suite):
    kept = DATA["silence"][suite]
    assert best_silence(suite) == best_silence(f"{suite}-quick") == kept["name"] in BASELINES
    most = max((row[2] for row in kept["tried"].values()), default=0)
    whole = {name: np.prod(row[0]) for name, row in kept["tried"].items() if row[2] == most}
    assert "old" in kept or kept["name"] == min(whole, key=whole.get)


def test_forms_are_tuned_on_the_tracks_that_they_fit():
    for problem, tuning in TUNINGS.items():
        tracks = {}
        for race in races(problem, DATA, rounds=50):
            tracks.setdefault(race.form, []).append(race.track.name)
        private = ["private-0.1", "private-1", "private-10"]
        suites = [] if tuning.tasks else ["silent"] * (2 if problem == "linear" else 1)
        assert tracks.pop(SILENCE, []) == suites
        assert tracks.keys() == tuning.grids.keys()
        assert all(names in (["silent"], ["non-private"], private) for names in tracks.values())
        assert suites or problem == "gaussian"


def test_constants_by_epsilon_reach_the_policy(monkeypatch):
    name = "Priv-UCB1-by-epsilon"
    monkeypatch.setitem(BASELINES, name, replace(BASELINES["Priv-UCB1"], by_epsilon=BY_EPSILON).at(1.0))
    assert nearest(BY_EPSILON, 3.0) == BY_EPSILON[1.0]
    assert (nearest(BY_EPSILON, 3.3), nearest(BY_EPSILON, float("inf"))) == (BY_EPSILON[10.0],) * 2
    suite = SUITES["arms-quick"]
    for track in ("private-0.1", "private-10"):
        chosen = tracks_of(suite)[track]
        entry = make_entry(suite, Edition.draw(suite), chosen, name)
        assert entry.settings["policy"]["scale"] == BY_EPSILON[chosen.epsilon]["scale"]
    run = RunSpec(name, "FedArms-v0", 20, 2)
    assert run.build()[1]._scale == 0.25
    asked = run.changed({"epsilon": 0.2})
    assert (asked.build()[1]._scale, asked.recorded()["policy_kwargs"]["scale"]) == (0.5, 0.5)
    assert asked.changed({"scale": 3.0}).build()[1]._scale == 3.0
    ran = call("run", name, "FedArms-v0", "--rounds", 20, "--seeds", 2, "--set", "epsilon=12", "--json")
    assert json.loads(ran.stdout)["settings"]["policy_kwargs"]["scale"] == 0.125


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "PROBLEM is 'nothing'; one of"),
        (["arms", "--baseline", "LinUCB"], "baseline is 'LinUCB'; one of 'UCB1'"),
        (["arms", "--seeds", "0"], "Invalid value for '--seeds'"),
        (["arms", "--rounds", "-1"], "Invalid value for '--rounds'"),
    ],
)
def test_a_wrong_name_or_number_is_explained(tmp_path, words, message):
    assert_explained(call("tune", *words, "--out", tmp_path / "out"), message)


@pytest.mark.usefixtures("coarse")
def test_a_plan_keeps_nothing(tmp_path):
    ran = call("tune", "arms", "--plan", "--rounds", 50, "--baseline", "UCB1", "--out", tmp_path)
    # Three points on two tasks of ten agents with two seeds.
    assert "6e+03" in ran.output
    assert "CPU seconds, estimated" in ran.output
    assert not list(tmp_path.iterdir())


def test_no_experiment_plays_what_was_tuned_on(monkeypatch):
    # No seed depends on how much noise there is, which takes long to find for a shuffler.
    monkeypatch.setattr("fedbandit_envs.papers.trust._noise_multiplier", lambda *_: 1.0)
    played = 0
    # SAMBA's, which need an extra to be planned, have nothing that was tuned.
    for experiment in (one for name, one in experiments().items() if not name.startswith("samba")):
        for panel in experiment.panels.keys() - experiment.needs_data:
            for cell in experiment.runs(Plan(panel, experiment.scales["paper"], "default")):
                if isinstance(cell, RunSpec):
                    played += 1
                    assert cell.all_seeds[-1] < FIRST_SEED
    assert played > 300
