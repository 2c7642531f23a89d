"""The scripts on liars, digits and FedLinUCB; and the tables that all scripts of these nine papers write when tiny."""

import numpy as np
import pytest
from pages import check_paper
from paper_runs import labelled, played
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers.byzantine import EXPERIMENTS as BYZANTINE
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.classification import ALPHA, EXPERIMENTS
from fedbandit_envs.papers.experiment import Plan, Scale
from fedbandit_envs.papers.fedlinucb import EXPERIMENTS as FEDLINUCB
from fedbandit_envs.papers.page import Section
from fedbandit_envs.papers.stats import Ratio, bounded

TINY = {
    "byzantine": ("small", "garbage", 30),
    "classification": ("tiny", "alike", 8),
    "fed-pe": ("tiny", None, 20),
    "fedglb": ("tiny", None, 20),
    "feducb-critique": ("tiny", None, 200),
    "local-trust": ("tiny", "order", 30),
    "private-budget": ("tiny", "procurement", 150),
    "private-federation": ("tiny", "arms", 150),
    "trust": ("tiny", "procurement-event", 400),
    "zhou-fig2b": ("tiny", None, 30),
}


@pytest.mark.parametrize("name", TINY)
def test_an_experiment_writes_its_tables_numbers_and_picture(tmp_path, name):
    if name == "classification":
        pytest.importorskip("sklearn")
    scale, panel, rounds = TINY[name]
    words = ["reproduce", name, "--scale", scale, "--rounds", str(rounds), "--trials", "2"]
    words += ["--panel", panel] if panel else []
    ran = CliRunner().invoke(app, [*words, "--out", str(tmp_path)], env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    stem = "-".join(filter(None, (name, scale, f"rounds{rounds}", "trials2", panel)))
    _, rows = check_paper(tmp_path, experiments()[name].paper, stem)
    assert {row["panel"] for row in rows} == ({panel} if panel else {*experiments()[name].panels})


@pytest.mark.parametrize(
    "name", ["byzantine", "fedglb", "fed-pe", "zhou-fig2a", "zhou-fig2b", "local-trust", "classification"]
)
def test_no_two_runs_of_a_panel_are_alike(name):
    experiment = experiments()[name]
    for panel in experiment.panels:
        runs = experiment.runs(Plan(panel, experiment.scales["small"], "default"))
        assert len({tuple(sorted(run.labels.items())) for run in runs}) == len(runs)
        assert len({str(run.key) for run in runs}) == len(runs)


def test_a_row_of_verdicts_has_a_bound_or_none():
    value = Ratio(0.9, 0.8, 0.95, 20)
    row = bounded("regret", "a / b", value, 1)
    assert row == {"regret": "a / b", "here": value, "bound": "at most 1", "verdict": "holds"}
    assert bounded("regret", "a / b", value, 0.7)["verdict"] == "does **not** hold"
    assert bounded("regret", "a / b", value) == row | {"bound": "", "verdict": ""}


def test_liars_are_set_beside_no_liars_and_silence(tmp_path):
    plan = Plan("garbage", Scale(60, 2), "default")
    runs, section = played(BYZANTINE["byzantine"].runs(plan), plan, tmp_path), Section(plan)
    BYZANTINE["byzantine"].report(section, runs)
    found = {(row["name"], row["x"]): row["value"] for row in section.rows if row["quantity"] == "ratio"}
    assert {found[name, x] for name, x in found if name.endswith("without liars") and x == 0} == {1.0}
    assert {found["LinUCB / silent", x] for x in (0.0, 0.2, 0.4)} == {1.0}


def test_results_of_a_group_are_those_of_its_agents(tmp_path):
    plan = Plan("garbage", Scale(30, 2), "default")
    runs = labelled(BYZANTINE["byzantine"].runs(plan), line="FedUCB-trimmed", liars=0.2)
    result = played(runs, plan, tmp_path).one("FedUCB-trimmed")
    assert result.groups == {"liars": [8, 9], "honest": list(range(8))}
    np.testing.assert_array_equal(result.of("liars").regret, result.regret[:, :, 8:])
    np.testing.assert_array_equal(result.of("liars").traffic["messages"], result.traffic["messages"][:, 8:])


@pytest.mark.parametrize("panel", EXPERIMENTS["classification"].panels)
def test_all_runs_are_of_the_same_digits_in_one_form_or_the_other(panel):
    pytest.importorskip("sklearn")
    for run in EXPERIMENTS["classification"].runs(Plan(panel, Scale(30, 2), "default")):
        contexts = run.env_kwargs["contexts"]
        assert contexts.get("alpha") == (ALPHA if panel == "unlike" else None)
        assert contexts.get("features") == ("shared" if run.baseline == "LinUCB-disjoint" else None)


@pytest.mark.parametrize(("panel", "agents"), [("regret-15", 15), ("messages-50", 50), ("theory", 15)])
def test_fedlinucb_s_federations(panel, agents):
    runs = FEDLINUCB["fedlinucb"].runs(Plan(panel, Scale(60, 3), "default"))
    assert {run.env_kwargs["num_agents"] for run in runs} == {agents}
    assert [run.labels["line"] for run in runs][-1] == ("LinUCB-theory" if panel == "theory" else "LinUCB")


def test_messages_are_set_beside_d_m_squared(tmp_path):
    plan = Plan("in-turn", Scale(200, 3), "default")
    runs = played(FEDLINUCB["fedlinucb"].runs(plan), plan, tmp_path)
    section = Section(plan)
    FEDLINUCB["fedlinucb"].report(section, runs)
    result = runs["FedLinUCB"]
    total = result.messages.sum(axis=2).mean(axis=1)
    at = dict(zip(result.rounds, total, strict=True))
    early = at[min(rounds for rounds in at if rounds >= 20)]
    assert (
        f"| messages, FedLinUCB / d M^2 = 3,375 | {total[-1] / (15 * 15**2):.3f} |"
        in section.tables["verdicts"]
    )
    assert (
        f"| messages, FedLinUCB, at T / at T / 10 | {total[-1] / early:.2f} |" in section.tables["verdicts"]
    )
    drawn = [row["value"] for row in section.rows if (row["name"], row["quantity"]) == ("FedLinUCB", "drawn")]
    assert drawn == sorted(drawn)
    assert drawn[-1] > 0
