"""The FedUCB paper's experiments: tables at a tiny scale, and what is asked of them over 1e5 rounds."""

import math
from dataclasses import replace

import pytest
from pages import check_paper
from pairs import every_second
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments.execute import play
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.papers.experiment import Plan, Scale
from fedbandit_envs.papers.feducb import EXPERIMENTS, budgets, nearer_to_one
from fedbandit_envs.papers.stats import Ratio, judged, links, ratio
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.transport.schedule import make_schedule


@pytest.mark.parametrize("name", every_second(EXPERIMENTS))
def test_every_experiment_of_fed_ucb_writes_its_tables(tmp_path, name):
    words = ["reproduce", name, "--out", str(tmp_path), "--rounds", "20", "--trials", "2"]
    ran = CliRunner().invoke(app, words, env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    parts, rows = check_paper(tmp_path, "feducb", f"{name}-small-rounds20-trials2")
    assert {row["panel"] for row in rows} == {*EXPERIMENTS[name].panels}
    page = "".join(parts.values())
    # Two trials decide nothing.
    assert "does **not** hold" not in page
    for always in (
        "random-arm",
        "LinUCB",
        *(["LinUCB-0.5", "LinUCB-private"] if name != "feducb-horizon" else []),
    ):
        assert always in page


@pytest.mark.slow
def test_fed_ucb_over_1e5_rounds(tmp_path):
    """Ten agents, 100 arms, d = 10, epsilon 1: what sharing gains, noise costs and graphs order. Half an hour."""

    def results(experiment, panel, names):
        runs = EXPERIMENTS[experiment].runs(Plan(panel, Scale(100_000, 5, {"epsilon": (1.0,)}), "default"))
        chosen = [run for run in runs if run.labels["line"] in names]
        play(chosen, tmp_path)
        return {run.labels["line"]: Store(tmp_path).load(run) for run in chosen}

    shared, ours, printed, least = "FedUCB-nonprivate", "FedUCB", "FedUCB-printed", "FedUCB-min"
    played = results("feducb-fig1a", "epsilon", ["LinUCB", shared, ours, printed, least])
    assert ratio(played["LinUCB"], played[shared]).at_least(5) == "holds"
    assert ratio(played[ours], played[printed]).at_most(1 / 5) == "holds"
    assert ratio(played[least], played["LinUCB"]).at_most(1.2) == "holds"
    names = ["complete", "star", "ring", "line"]
    for panel in ("nonprivate", "private"):
        graphs = results("feducb-graphs", panel, names)
        assert judged("", links(graphs[name] for name in names))[2] == "holds"


@pytest.mark.parametrize("name", ["feducb-fig1b", "feducb-fig1c", "feducb-fig2"])
def test_medium_has_the_paper_s_agents_and_keeps_each_trial(name):
    experiment = EXPERIMENTS[name]
    scale = experiment.scales["medium"]
    for panel in experiment.panels:
        three, ten = (
            experiment.runs(Plan(panel, replace(scale, trials=trials), "default")) for trials in (3, 10)
        )
        assert [run.labels for run in three] == [run.labels for run in ten]
        for run, longer in zip(three, ten, strict=True):
            assert run.agents == 100
            assert run.rounds == 100_000
            assert run.env_kwargs["num_arms"] == min(100, run.env_kwargs["dim"] ** 2)
            shards = [part.key for part in run.split()]
            assert len(shards) == 3
            assert shards == [part.key for part in longer.split()][:3]


def test_one_mechanism_serves_all_budgets_of_communication():
    experiment = EXPERIMENTS["feducb-fig1b"]
    for panel, mechanism in {"printed": "tree", "mended": "blt", "least": "blt"}.items():
        runs = experiment.runs(Plan(panel, Scale(64, 3, {"agents": (4,)}), "default"))
        federated = [run for run in runs if "budget" in run.labels]
        assert len(federated) == 3
        for run in federated:
            env, _ = run.build()
            privatizer = find_layer(env, "noise")
            assert isinstance(privatizer.mechanism._noise, NOISES[mechanism])
            # As many releases are planned as there are messages.
            changed = run.wrapper_kwargs.get("channel", {"schedule": budgets(4, 64)["log T"]})
            assert privatizer.mechanism.max_releases == make_schedule(changed["schedule"]).count(64)


@pytest.mark.parametrize(("first", "last", "says"), [
    ((1.4, 1.6), (1.1, 1.2), "holds"),
    ((0.5, 0.6), (0.8, 1.1), "holds"),
    ((0.99, 1.01), (0.90, 0.92), "does **not** hold"),
    ((1.4, 1.6), (0.5, 0.8), "undecided"),
    # An interval beyond 1 is at its nearer end from 1, not at 1.
    ((1.4, 1.6), (1.5, 2.5), "undecided"),
    ((1.2, 1.4), (1.5, 2.5), "does **not** hold"),
    ((math.nan, math.nan), (1.1, 1.2), "undecided"),
])  # fmt: skip
def test_sensitivity_is_how_far_a_ratio_is_from_1(first, last, says):
    ratios = [Ratio(sum(ends) / 2, *ends, 20) for ends in (first, last)]
    assert nearer_to_one(*ratios) == says
