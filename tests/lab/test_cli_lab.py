"""The command ``lab``: what is wrong with the words typed, or with what is installed, is said."""

import socket
import sys

import pytest
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.lab import serve


def test_without_marimo_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "marimo", None)
    result = CliRunner().invoke(app, ["lab", "--no-browser"])
    assert result.exit_code == 1
    assert "'fedbandit-envs[lab]'" in result.output
    assert "Traceback" not in result.output


@pytest.mark.ci
def test_a_port_that_is_taken_is_named():
    pytest.importorskip("marimo", reason="marimo is not installed: the extra 'lab' has it")
    with socket.create_server((serve.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["lab", "--no-browser", "--port", str(port)])
    assert result.exit_code == 2
    assert "--port" in result.output
    assert "in use" in result.output


@pytest.mark.parametrize("port", ["-1", "65536", "eighty"])
def test_a_port_that_is_none_is_refused(port):
    result = CliRunner().invoke(app, ["lab", "--no-browser", "--port", port])
    assert result.exit_code == 2


def test_it_listens_on_the_loopback_address():
    assert serve.HOST == "127.0.0.1"
