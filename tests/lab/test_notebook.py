"""The lab's notebook runs, and its functions say what the package says."""

import socket
import subprocess
import sys

import chromium
import numpy as np
import pytest
from typed import assert_explained, call

from fedbandit_envs.experiments.spec import RunSpec, SettingsError
from fedbandit_envs.lab import NOTEBOOK
from fedbandit_envs.registry.registration import REGISTRY


@pytest.fixture(scope="module")
def notebook():
    """The notebook, which imports marimo: that takes a second."""
    from fedbandit_envs.lab import notebook

    return notebook


def test_the_notebook_runs_from_top_to_bottom(notebook):
    _, defined = notebook.app.run()
    assert defined["problem"].value == "FedArms-v0"


def test_a_run_is_that_of_its_settings(notebook):
    name, result, warned = notebook.play("FedArms-v0", "MOSS-weighted", 50, 2, ["epsilon=0.5"], "", [])
    alone = RunSpec("MOSS-weighted", "FedArms-v0", 50, 2).changed({"epsilon": 0.5}).run()
    np.testing.assert_array_equal(result.regret, alone.regret)
    assert (name, warned) == ("MOSS-weighted, epsilon=0.5", [])
    assert result.privacy.epsilon == alone.privacy.epsilon


def test_wrappers_divide_the_agents_and_the_table_has_a_line_for_each_group(notebook):
    liars = '[["Byzantine", {"attack": "sign_flip", "agents": 0.2}]]'
    run = notebook.play("FedArms-v0", "MOSS-weighted", 20, 2, [], liars, [])
    table = notebook.table([run])
    assert list(table["agents"]) == ["all", "liars", "honest"]
    assert table["regret per agent"][0] == pytest.approx(run[1].regret[-1].mean())
    assert f"<td>{table['regret per agent'][0]:.5g}</td>" in notebook.fitted(table).text


def test_a_wrong_setting_is_refused_by_name(notebook):
    with pytest.raises(SettingsError, match="colour"):
        notebook.play("FedArms-v0", "UCB1", 10, 1, ["colour=1"], "", [])


def test_shares_are_pulls_over_rounds_beside_what_was_deserved(notebook):
    (panel,) = REGISTRY["FedExposure-v0"].problem.lab_panels
    (switch,) = REGISTRY["FedExposure-v0"].problem.lab_choices
    name, result, _ = notebook.play("FedExposure-v0", "FairX-LinUCB", 30, 2, [], "", [switch])
    shares = notebook.shares(panel, result)
    assert switch in name
    assert list(shares.columns) == list(panel.series)
    assert shares.sum().to_numpy() == pytest.approx(np.ones(shares.shape[1]))
    assert shares.iloc[:, 0].is_monotonic_decreasing


INSIDE = """
const inside = (root, found = []) => {
  for (const one of root.querySelectorAll("*")) { found.push(one); if (one.shadowRoot) inside(one.shadowRoot, found); }
  return found;
};
"""
"""What is in the page lies in shadows, which queries do not enter."""


@pytest.mark.ci
def test_the_button_plays_the_run_of_the_forms(tmp_path):
    """The command serves a copy, which runs without its code being seen; the run's line appears in the table."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = ["lab", "lab.py", "--port", port, "--no-browser", "--no-code"]
    with subprocess.Popen(
        [sys.executable, "-c", "from fedbandit_envs.cli import app; app()", *words],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    ) as process:  # fmt: skip
        driver = None
        try:
            address = next(
                word for line in process.stdout for word in line.split() if word.startswith("http")
            )
            driver = chromium.start(tmp_path / "profile")
            chromium.narrow(driver, 390)
            # The browser knows no names.
            driver.get(address.replace("localhost", "127.0.0.1"))
            press = (
                "inside(document).find((one) => one.tagName === 'BUTTON' && one.textContent.trim() === 'Run')"
            )
            chromium.until(driver, f"{INSIDE} const run = {press}; if (run) run.click(); return Boolean(run)")
            chromium.until(
                driver,
                INSIDE + "return inside(document).some((one) => one.textContent === '1: uniform-arms')",
            )
            # On a phone, too, no table is cut or has to be scrolled.
            wide = "return inside(document).filter((one) => one.tagName === 'TABLE').map((one) => one.scrollWidth)"
            widths = driver.execute_script(INSIDE + wide)
            assert len(widths) == 2
            assert max(widths) < 390
            assert chromium.asked_elsewhere(driver) == []
        finally:
            if driver:
                driver.quit()
            process.terminate()
    assert (tmp_path / "lab.py").read_text() == NOTEBOOK.read_text()


def test_without_marimo_the_command_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedbandit_envs.cli.terminal.find_spec", lambda name: None)
    assert_explained(call("lab"), "fedbandit-envs[lab]", exit_code=1)
    assert list(tmp_path.iterdir()) == []
