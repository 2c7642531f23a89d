"""Words that make no sense, to every command: a message and an exit code at once, no traceback, and no wait."""

import signal

import pytest
from typer.testing import CliRunner

from fedbandit_envs.cli import app

HUGE = [10**12, 10**30]
ARMS = ("run", "UCB1", "FedArms-v0", "--rounds", 5, "--seeds", 1)
SAMBA = ("samba", "--plain", "--budget", 20)
ROLE = ("samba-role", "comp", "--connect", "127.0.0.1:1", "--keys", "FILE")
ODD = {
    "empty": b"",
    "binary": bytes(range(256)),
    "deep": b"[" * 100_000,
    "a list": b"[1, 2]",
    "an object": b"{}",
    "zeros": bytes(99),
    "text": b"hello\n",
    "no number": b'{"role": NaN, "schema": 1e999}',
}
"""Contents of files, by name."""

TAKES_A_FILE = [
    ("leaderboard", "verify", "FILE"),
    ("leaderboard", "report", "--results", "FILE", "--out", "pages"),
    ROLE,
    ("samba-keys", "FILE", "--no-tls"),
    ("samba", "--plain", "--ratings", "FILE"),
    ("quickstart", "--out", "FILE"),
    ("tune", "arms", "--out", "FILE"),
    ("reproduce", "FILE"),
    ("reproduce", "pf-ucb", "--panel", "films", "--data", "FILE"),
    ("run", "FILE", "FedArms-v0"),
    ("run", "UCB1", "FILE"),
    (*ARMS, "--stack", "FILE"),
    (*ARMS, "--set", "FILE"),
    ("audit", "FILE"),
    ("sweep", "FILE"),
    ("sweep", "--env", "FedArms-v0", "--policy", "FILE", "--grid", "agents=2"),
    ("plot", "FILE", "--x", "x"),
]
TAKES_A_NUMBER = [
    (*ARMS[:3], "--seeds", 1, "--rounds", "N"),
    (*ARMS[:3], "--rounds", 5, "--seeds", "N"),
    (*ARMS, "--set", "num_agents=N"),
    (*ARMS, "--set", "num_arms=N"),
    ("run", "SS-UCB", "FedProcurement-v0", "--rounds", 5, "--seeds", 1, "--set", "num_producers=N"),
    ("run", "LinUCB", "FedLinear-v0", "--rounds", 5, "--seeds", 1, "--set", "dim=N"),
    ("quickstart", "--seeds", "N"),
    ("audit", "laplace", "--releases", "N"),
    ("audit", "laplace", "--samples", "N"),
    ("tune", "arms", "--seeds", "N", "--out", "out"),
    ("sweep", *ARMS[3:], "--env", "FedArms-v0", "--policy", "UCB1", "--grid", "agents=N", "--out", "out"),
    (*SAMBA, "--arms", "N"),
    ("samba", "--plain", "--budget", "N"),
    ("samba", "--owners-per-role", "N", "--budget", 3),
    ("samba-keys", "keys", "--owners", "N"),
    ("lab", "--port", "N"),
]


def call(folder, monkeypatch, words, seconds=30):
    """Types a command in a folder; whatever takes longer, or asks for more memory, is an error of the test."""
    monkeypatch.chdir(folder)

    def late(*_):
        raise AssertionError(f"{words} has not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        result = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200", "TERM": "dumb"})
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    return result


@pytest.mark.parametrize("words", TAKES_A_FILE, ids=lambda words: " ".join(map(str, words)))
def test_files_of_another_kind_are_explained(tmp_path, monkeypatch, words):
    (tmp_path / "a folder").mkdir()
    for name, content in ODD.items():
        (tmp_path / name).write_bytes(content)
    before = {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()}
    names = [*ODD, "a folder", "missing/missing"]
    if words[-2:] == ("--out", "FILE") or words[0] == "samba-keys":
        names = list(ODD)
    for name in names:
        typed = [name if word == "FILE" else word for word in words]
        result = call(tmp_path, monkeypatch, typed)
        assert result.exit_code in (1, 2), (name, result.output)
        assert "Error" in result.output or "rror:" in result.output, result.output
    assert {file: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == before


@pytest.mark.parametrize("words", TAKES_A_NUMBER, ids=lambda words: " ".join(map(str, words)))
def test_numbers_out_of_all_proportion_are_explained(tmp_path, monkeypatch, words):
    for number in (*HUGE, -1, 0, "nan", "many", ""):
        if number == 0 and words[0] == "lab":
            continue
        typed = [str(word).replace("N", str(number)) if str(word).endswith("N") else word for word in words]
        result = call(tmp_path, monkeypatch, typed)
        assert result.exit_code == 2, (number, result.output)
    assert not list(tmp_path.iterdir()) or words[0] == "tune"
