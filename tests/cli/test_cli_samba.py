"""SAMBA on the command line, as a user types it."""

import contextlib
import json
import multiprocessing
import os
import re
import socket
import sys
from pathlib import Path

import pytest
from samba_runs import means_of, plain
from typed import assert_explained, call

from fedbandit_envs.baselines.arms import UCB1, Choice
from fedbandit_envs.cli import app
from fedbandit_envs.samba import messages, network
from fedbandit_envs.samba.owners import Algorithm
from fedbandit_envs.samba.roles import RoleReport

pytest.importorskip("cryptography")
pytest.importorskip("phe")


@pytest.fixture(autouse=True)
def small_paillier_keys(monkeypatch):
    monkeypatch.setattr(messages, "KEY_BITS", 512)


def samba_json(*words) -> dict:
    result = call("samba", "--json", *words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


class Cautious(UCB1):
    """A user's own algorithm: UCB with half the radius."""

    def __init__(self):
        super().__init__(scale=1.0)


class OddOnesOut(UCB1):
    """Picks in a way that Comp cannot (SAMBA, section 5.1)."""

    choice: Choice = "odd arms first"


def test_json_holds_what_was_asked_for_and_what_came_out():
    words = ("--algorithm", "pursuit", "--ratings", "jester", "--arms", 4, "--budget", 60, "--seed", 3)
    secure, open_ = samba_json(*words), samba_json(*words, "--plain")
    expected = plain(Algorithm("pursuit"), means_of("jester", 4), 60, 3)[0].reward
    assert secure["cumulative_reward"] == open_["cumulative_reward"] == expected
    assert (
        secure["operations"]["aes_encryptions"] == secure["operations"]["aes_decryptions"] == 2 * 2 * 4 * 56
    )
    assert (
        secure["operations"]["paillier_encryptions"] + secure["operations"]["paillier_decryptions"] == 4 + 1
    )
    assert secure["bytes"] > 4 * 56 * 4 * 29
    assert set(secure["cpu_seconds"]) == {"customer", "controller", "comp", "owner-0"}
    assert all(seconds > 0 for seconds in secure["cpu_seconds"].values())
    assert secure["claim"]["trust"] == "cryptography"
    assert secure["claim"]["epsilon"] == "infinity"
    assert secure["claim"]["noise"] == "repeatable"
    assert secure["settings"]["seed"] == 3
    assert open_["bytes"] == 0
    assert not any(open_["operations"].values())
    assert open_["claim"] is None


def test_a_table_for_people():
    result = call("samba", "--arms", 3, "--budget", 20, "--seed", 1)
    assert result.exit_code == 0
    reward = plain(Algorithm("ucb"), means_of("movielens", 3), 20, 1)[0].reward
    assert any("cumulative reward" in line and str(reward) in line for line in result.stdout.splitlines())
    assert "trust: cryptography" in result.stdout
    unseeded = samba_json("--arms", 3, "--budget", 20)
    assert unseeded["claim"]["noise"] == "secret"
    assert unseeded["settings"]["seed"] is None


def test_processes():
    words = ("--arms", 2, "--budget", 30, "--seed", 2, "--algorithm", "thompson")
    there, here = samba_json(*words, "--transport", "tcp"), samba_json(*words)
    assert there["cumulative_reward"] == here["cumulative_reward"]
    assert set(there["cpu_seconds"]) == {"customer", "controller", "comp", "owner-0", "owner-1"}


def test_parameters_of_the_algorithm():
    words = ("--arms", 4, "--budget", 80, "--seed", 0, "--algorithm", "epsilon-greedy")
    explored = [
        samba_json(*words, "--set", f"epsilon={e}")["operations"]["aes_encryptions"] for e in (0.0, 1.0)
    ]
    assert explored == [2 * 4 * 76, 4 * 76]


def test_ratings_of_ones_own(tmp_path):
    pytest.importorskip("pandas")
    own = tmp_path / "own.csv"
    own.write_text("user,item,rating\n1,1,5\n1,2,1\n2,1,4\n2,3,5\n")
    table = {"name": "ratings", "table": str(own), "scale": [1, 5], "threshold": 4}
    result = samba_json("--ratings", json.dumps(table), "--arms", 3, "--budget", 30, "--seed", 0)
    assert result["cumulative_reward"] == plain(Algorithm("ucb"), [1.0, 0.0, 1.0], 30, 0)[0].reward
    apart = json.dumps({**table, "agent": "user", "definition": "all_users"})
    assert_explained(call("samba", "--ratings", apart, "--arms", 3), "a table without 'agent' is required")


def test_an_algorithm_of_ones_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "ones_own", sys.modules[__name__])
    result = samba_json("--algorithm", "ones_own:Cautious", "--arms", 3, "--budget", 40, "--seed", 1)
    expected = plain(Algorithm("ucb", {"scale": 1.0}), means_of("movielens", 3), 40, 1)[0].reward
    assert result["cumulative_reward"] == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--algorithm", "reinforcement-comparison"), "needs other owners' data for a score"),
        (("--algorithm", "ones_own:OddOnesOut"), "choice is 'odd arms first'; one of 'argmax'"),
        (("--algorithm", "nonsense"), "algorithm name is 'nonsense'"),
        (("--algorithm", "ones_own:Nobody"), "no attribute 'Nobody'"),
        (("--set", "epsilon=1"), "unexpected keyword argument 'epsilon'"),
        (
            ("--ratings", "nowhere.data"),
            "means is 'nowhere.data'; one of 'movielens', 'jester', {'name': 'ratings'",
        ),
        (("--arms", 101), "an integer in [1, 100]"),
        (("--budget", 9), "budget is 9; an integer >= 10"),
        (("--transport", "pigeon"), "'pigeon'; one of 'local', 'tcp'"),
        (("--tls",), "'tcp' alone can be put under TLS"),
        (("--timeout", 0), "timeout is 0.0"),
    ],
)
def test_wrong_words_are_explained(monkeypatch, words, message):
    monkeypatch.setitem(sys.modules, "ones_own", sys.modules[__name__])
    assert_explained(call("samba", *words), message)


def test_a_run_that_fails_has_no_result(monkeypatch):
    from fedbandit_envs.samba.messages import SecureError
    from fedbandit_envs.samba.roles import Comp

    def fails(self, peer, kind, content):
        raise SecureError("an encrypted score does not open")

    monkeypatch.setattr(Comp, "_answer", fails)
    result = call("samba", "--json")
    assert_explained(result, "Error: an encrypted score does not open", exit_code=1)
    assert result.stdout == ""


def test_keys_for_machines(tmp_path):
    out = tmp_path / "keys"
    result = call("samba-keys", out, "--owners", 1, "--owners", 2, "--seed", 4)
    assert result.exit_code == 0, result.output
    roles = {"comp", "controller", "customer", "owner-0", "owner-1"}
    files = [Path(line) for line in result.stdout.split()]
    assert {path.parent.name for path in files} == {path.name for path in out.iterdir()} == roles
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {folder.stat().st_mode & 0o777 for folder in (out, *out.iterdir())} == {0o700}
    assert_explained(call("samba-keys", out), "File exists")
    assert_explained(
        call("samba-keys", tmp_path / "other", "--owners", 0), "number of owners of owner-0 is 0"
    )
    message = "number of owners is 65537; an integer in [1, 65536] is required"
    assert_explained(call("samba-keys", tmp_path / "other", "--owners", 1, "--owners", 65536), message)
    assert not (tmp_path / "other").exists()


@pytest.mark.ci
def test_the_five_hosts_of_the_example(tmp_path):
    """Every role by the command that docs/samba-compose.yaml gives it, under TLS; keys are gone afterwards."""
    keys = tmp_path / "keys"
    assert call("samba-keys", keys, "--owners", 1, "--owners", 1, "--seed", 4).exit_code == 0
    example = (Path(__file__).parents[2] / "docs" / "samba-compose.yaml").read_text()
    commands = {words[2]: words for words in map(json.loads, re.findall(r"command: (\[.*\])", example))}
    assert set(commands) == {path.name for path in keys.iterdir()}
    with socket.create_server(("127.0.0.1", 0)) as free:
        here = f"127.0.0.1:{free.getsockname()[1]}"
    # Forks have all modules already; apart from that they are what a shell would start.
    context = multiprocessing.get_context("fork")
    running = {}
    for role, words in commands.items():
        changed = {
            "/keys/keys.json": str(keys / role / "keys.json"),
            "0.0.0.0:7000": here,
            "controller:7000": here,
        }
        typed = [*(changed.get(word, word) for word in words[1:]), "--timeout", "60", "--json"]
        assert sum(word in changed for word in words) == 2
        running[role] = context.Process(target=_type, args=(typed, tmp_path / role))
    for process in running.values():
        process.start()
    for process in running.values():
        process.join(120)
    assert [process.exitcode for process in running.values()] == [0] * 5
    reports = {role: json.loads((tmp_path / role).read_text()) for role in running}
    assert reports["customer"]["reward"] == plain(Algorithm("ucb"), [0.31, 0.27], 1000, 4)[0].reward
    assert [report["reward"] for role, report in reports.items() if role != "customer"] == [None] * 4
    assert not list(keys.glob("*/*"))


def _type(words: list[str], out: Path) -> None:
    with out.open("w") as file, contextlib.redirect_stdout(file):
        app(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("comp", "--connect", "127.0.0.1:1", "--listen", "127.0.0.1:1"), "comp requires --connect, and not"),
        (("comp", "--connect", "somewhere"), "HOST:PORT is required"),
        (
            ("owner-0", "--connect", "127.0.0.1:1", "--keys-of", "comp"),
            "role is 'comp'; one of 'owner-0' is required",
        ),
        (("comp", "--connect", "127.0.0.1:1", "--timeout", "nan"), "--timeout is nan"),
        (("comp", "--connect", "example.org:7001"), "TLS is required for all but localhost"),
        (("customer", "--connect", "127.0.0.1:1", "--algorithm", "ucb"), "budget is None"),
        (("controller", "--listen", "127.0.0.1:0"), "algorithm is None"),
        (("owner-0", "--connect", "127.0.0.1:1", "--algorithm", "ucb", "--mean", "7"), "7"),
    ],
)
def test_wrong_words_for_a_role_keep_its_keys(tmp_path, words, message):
    assert call("samba-keys", tmp_path / "keys", "--no-tls").exit_code == 0
    *words, whose = words if "--keys-of" in words else (*words, words[0])
    words = [word for word in words if word != "--keys-of"]
    keys = tmp_path / "keys" / whose / "keys.json"
    assert_explained(call("samba-role", *words, "--keys", keys), message)
    assert keys.exists()


@pytest.mark.parametrize("role", ["comp", "controller"])
def test_keys_are_kept_until_a_peer_has_accepted_them(tmp_path, role):
    assert call("samba-keys", tmp_path, "--no-tls").exit_code == 2
    assert call("samba-keys", tmp_path / "keys", "--no-tls").exit_code == 0
    keys = tmp_path / "keys" / role / "keys.json"
    words = ("samba-role", role, "--keys", keys, "--timeout", 0.1, "--algorithm", "ucb")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        if role == "comp":
            message = f"controller at {at} has not accepted comp for 0.1 s: it does not answer"
            assert_explained(call(*words, "--connect", at), message, exit_code=1)
        else:
            assert_explained(call(*words, "--listen", at), "address already in use")
            assert keys.exists()
            result = call(*words, "--listen", "127.0.0.1:0")
            assert_explained(result, "customer, comp, owner-0, owner-1 did not connect", exit_code=1)
    assert keys.exists()
    keys.parent.chmod(0o500)
    if not os.access(keys.parent, os.W_OK):  # root may write everywhere
        assert_explained(call(*words, "--connect", at), "cannot be removed")


def test_a_role_says_what_it_has_counted(tmp_path, monkeypatch):
    counts = messages.Counts(aes_encryptions=1200, bytes=31)
    report = RoleReport("comp", counts, 1.5)

    def plays(role, address, timeout, calls):
        calls.accepted()
        return report

    monkeypatch.setattr(network, "play_over_network", plays)
    assert call("samba-keys", tmp_path / "keys", "--no-tls").exit_code == 0
    keys = tmp_path / "keys" / "comp" / "keys.json"
    result = call("samba-role", "comp", "--keys", keys, "--connect", "127.0.0.1:1")
    assert result.exit_code == 0, result.output
    assert "comp is done after 1.50 CPU seconds: aes encryptions 1,200, aes decryptions 0," in result.stdout
    assert result.stdout.strip().endswith("frames 0, bytes 31")
    assert not keys.exists()


def test_a_file_that_is_no_key_file_stays(tmp_path):
    (tmp_path / "keys.json").write_text("[]")
    result = call("samba-role", "comp", "--keys", tmp_path / "keys.json", "--connect", "127.0.0.1:1")
    assert_explained(result, f"{tmp_path / 'keys.json'} is no key file")
    assert (tmp_path / "keys.json").exists()
