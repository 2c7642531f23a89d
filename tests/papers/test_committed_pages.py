"""Every page of a reproduction that is kept here says what its CSV file says."""

import re
import shlex
from pathlib import Path

import pytest
from pages import check_page
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers import page as scripts
from fedbandit_envs.papers.reproduction.page import Reproduction

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reproductions").glob("*.md"))


def test_there_are_pages():
    assert PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_its_csv_file_says(page):
    check_page(page)
    assert page.with_suffix(".png").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_that_a_page_states_makes_files_of_its_name(page, tmp_path, monkeypatch):
    stated = re.search("^Made by `fedbandit (.*)`, whose runs", page.read_text(), re.MULTILINE)
    assert stated, f"{page.name} states no command"
    monkeypatch.setattr("fedbandit_envs.cli.terminal.play_missing", lambda *_: None)
    monkeypatch.setattr(Reproduction, "report", lambda self: [self._file("md")])
    monkeypatch.setattr(scripts.Reproduction, "report", lambda self: [self._out / f"{self.stem}.md"])
    # No name depends on how much noise there is, which takes long to find for a shuffler.
    monkeypatch.setattr("fedbandit_envs.papers.trust._noise_multiplier", lambda *_: 1.0)
    ran = CliRunner().invoke(app, [*shlex.split(stated[1]), "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert ran.output.split()[-1].endswith(f"/{page.name}")
