"""Tuning: one grid, one budget and seeds of its own; what is found is data that tuned baselines read."""

import json

import numpy as np
import pytest
from typed import call

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, OURS, TUNED
from fedbandit_envs.baselines.tuned import DATA, constants
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.tuning import FIRST_SEED, TUNINGS, mean_regret, tuning_runs
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.experiment import Plan
from fedbandit_envs.registry.problems import TuningSpec

TUNED_NAMES = [(name, problem) for problem, one in TUNINGS.items() for name in one.baselines]


@pytest.fixture
def coarse(monkeypatch):
    """Arms on a grid of two."""
    grid = ({"scale": 0.5}, {"scale": 2.0})
    arms = TuningSpec(("FedArms-v0",), 60, 2, grid, {"UCB1-tuned": "UCB1", "Priv-UCB1-tuned": "Priv-UCB1"})
    monkeypatch.setitem(TUNINGS, "arms", arms)
    return arms


@pytest.mark.usefixtures("in_this_process")
def test_the_least_regret_on_tuning_seeds_is_chosen_and_nothing_is_played_twice(coarse, tmp_path):
    ran = call("tune", "arms", "--out", tmp_path, "--seeds", 3)
    assert ran.exit_code == 0, ran.output
    found = json.loads((tmp_path / "tuned.json").read_text())
    assert found["command"] == "fedbandit tune arms --seeds 3"
    assert list(found["baselines"]) == ["UCB1-tuned", "Priv-UCB1-tuned"]
    for name, entry in found["baselines"].items():
        regrets = []
        for tried, (kept, regret) in zip(coarse.grid, entry["tried"], strict=True):
            settings = RunSpec(coarse.baselines[name], "FedArms-v0", 60, 3, FIRST_SEED, policy_kwargs=tried)
            expected = np.mean(settings.run().as_json()["per_seed"])
            assert (kept, regret) == (tried, pytest.approx(expected, abs=0.005))
            regrets.append(expected)
        assert entry["chosen"] == coarse.grid[int(np.argmin(regrets))]
        assert (entry["rounds"], entry["seeds"]) == (60, 3)
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "shards").iterdir()}
    assert len(stamps) == 4
    assert call("tune", "arms", "--out", tmp_path, "--seeds", 3).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "shards").iterdir()} == stamps


@pytest.mark.parametrize("problem", TUNINGS)
def test_all_baselines_of_a_problem_have_the_same_grid_budget_and_seeds(problem):
    plans = tuning_runs(problem)
    assert [next(iter(plans))] == [
        name
        for name in plans
        if name in ("SS-UCB-tuned", "LinUCB-tuned", "FairX-tuned", "UCB1-tuned", "Gaussian-UCB-tuned")
    ]

    def budget(settings):
        return settings.labels, settings.env_id, settings.rounds, settings.all_seeds

    (first, *others) = ([budget(one) for runs in grid for one in runs] for grid in plans.values())
    assert others
    assert all(other == first for other in others)
    assert first[0][3][0] == FIRST_SEED


@pytest.mark.parametrize(("name", "problem"), TUNED_NAMES)
def test_kept_constants_are_the_least_of_what_was_tried(name, problem):
    entry, plan = DATA["baselines"][name], TUNINGS[problem]
    assert DATA["command"] == "fedbandit tune all"
    assert DATA["first_seed"] == FIRST_SEED
    assert [tried for tried, _ in entry["tried"]] == list(plan.grid)
    assert (entry["of"], entry["env_ids"], entry["rounds"], entry["seeds"]) == (
        plan.baselines[name], list(plan.env_ids), plan.rounds, plan.seeds,
    )  # fmt: skip
    assert entry["chosen"] == min(entry["tried"], key=lambda pair: pair[1])[0] == constants(name)
    tuned, base = BASELINES[name], BASELINES[entry["of"]]
    assert tuned.policy == base.policy
    if problem == "gaussian" and base.wrappers:
        # Constants are the server policy's.
        plans = [form.wrappers["server"].kwargs["policy"] for form in (base, tuned)]
        assert plans[1] == {**plans[0], **entry["chosen"]}
        assert tuned.policy_kwargs == base.policy_kwargs
    else:
        assert tuned.policy_kwargs == {**base.policy_kwargs, **entry["chosen"]}
        assert tuned.wrappers == base.wrappers


@pytest.mark.parametrize("problem", BASELINE_OF)
def test_what_weighs_has_silence_s_constants(problem):
    names = BASELINE_OF[problem]
    assert constants(names[TUNED]).items() <= BASELINES[names[OURS]].policy_kwargs.items()


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


def test_regrets_of_several_ids_have_their_geometric_mean():
    class Played:
        def __init__(self, regret):
            self.regret = np.full((1, 2, 3), regret)

    assert mean_regret([Played(4.0), Played(9.0)]) == pytest.approx(6.0)
    assert mean_regret([Played(4.0), Played(0.0)]) == 0.0
    assert mean_regret([Played(4.0), Played(-1.0)]) == -1.0
