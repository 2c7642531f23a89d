"""The page on liars at a tiny scale: groups of agents reach it, and cells with a stack have shards of their own."""

from dataclasses import replace

import numpy as np
from pages import check_page
from paper_runs import labelled, played
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers.byzantine.experiments import SCALES, byzantine
from fedbandit_envs.papers.reproduction.experiment import Plan


def test_the_page_on_liars(tmp_path):
    words = ["reproduce", "byzantine", "--out", str(tmp_path), "--rounds", "60", "--trials", "2"]
    ran = CliRunner().invoke(app, [*words, "--panel", "garbage"], env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    stem = "byzantine-small-rounds60-trials2-garbage"
    page = (tmp_path / f"{stem}.md").read_text()
    for text in ("## Garbage, true data", "40% liars", "FedUCB-trimmed", "holds?"):
        assert text in page
    assert (tmp_path / f"{stem}.png").stat().st_size > 10_000
    check_page(tmp_path / f"{stem}.md")


def test_results_of_a_group_are_those_of_its_agents(tmp_path):
    plan = Plan("garbage", replace(SCALES["small"], rounds=30, trials=2), "default")
    runs = labelled(byzantine(plan), line="FedUCB-trimmed", liars=0.2)
    result = played(runs, plan, tmp_path).one("FedUCB-trimmed")
    assert result.groups == {"liars": [8, 9], "honest": list(range(8))}
    np.testing.assert_array_equal(result.of("liars").regret, result.regret[:, :, 8:])
    np.testing.assert_array_equal(result.of("liars").traffic["messages"], result.traffic["messages"][:, 8:])
