"""The page of FedLinUCB at a tiny scale."""

import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.cli import app


@pytest.mark.parametrize(("panel", "ours"), [("messages-15", "FedLinUCB"), ("theory", "FedLinUCB-theory")])
def test_the_page_of_fedlinucb(tmp_path, panel, ours):
    words = ["reproduce", "fedlinucb", "--out", str(tmp_path), "--rounds", "60", "--trials", "3"]
    ran = CliRunner().invoke(app, [*words, "--panel", panel], env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    rows = check_page(tmp_path / f"fedlinucb-small-rounds60-trials3-{panel}.md")
    page = (tmp_path / f"fedlinucb-small-rounds60-trials3-{panel}.md").read_text()
    assert f"* {ours} has less regret than Async-LinUCB" in page
    assert "what is said of the paper's sentences is said of this horizon alone" in page
    # The abstract's bounds are set beside runs of an agent that sees everything; the theory's panel has none.
    assert ("same regret guarantee as in the single-agent setting" in page) == (panel != "theory")
    drawn = [float(row["value"]) for row in rows if row["name"] == ours and row["quantity"] == "drawn"]
    assert drawn == sorted(drawn)
    assert drawn[-1] > 0
