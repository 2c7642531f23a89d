"""`fedbandit list`: whole names, with headings, and what is asked for alone."""

import io
import json

import pytest
from rich.console import Console
from typed import assert_explained
from typed import call as typed

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.cli import listing, terminal
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.registry.registration import REGISTRY


def call(*words):
    return typed("list", *words, columns=80)


def names(*words):
    result = call(*words)
    assert result.exit_code == 0, result.output
    heads, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert heads == ["kind", "name", "about"]
    return [name for _, name, _ in rows]


def test_a_program_gets_one_name_a_line():
    assert names() == [*REGISTRY, *BASELINES]


def test_a_terminal_of_80_columns_gets_whole_names(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "out_console", Console(file=shown, width=80))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    listing.list_(text="a", env_id="FedArms-v0")
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    first = {line.split("│")[2].strip() for line in lines if line.startswith("│")}
    assert first - {""} == set(names("--env", "FedArms-v0", "--text", "a"))
    assert "…" not in shown.getvalue()


def test_json_has_all_that_is_known():
    found = {row["name"]: row for row in json.loads(call("--json").stdout)}
    assert found.keys() == {*REGISTRY, *BASELINES}
    assert found["FedArmsSleeping-v0"] == {
        "kind": "environment",
        "name": "FedArmsSleeping-v0",
        "problem": "arms",
        "pettingzoo": "fedbandit/arms_sleeping_v0",
        "preset": REGISTRY["FedArmsSleeping-v0"].kwargs,
        "package": None,
    }
    assert found["SS-UCB"]["reference"] == BASELINES["SS-UCB"].reference


def test_what_plays_an_environment():
    linear = [name for name, one in BASELINES.items() if one.federation is LinearEnv]
    assert names("--env", "FedFixed-v0") == [
        "FedFixed-v0",
        *(name for name in linear if BASELINES[name].only in ("", "FedFixed-v0")),
    ]
    # It comes with a channel.
    assert not any(BASELINES[name].wrappers for name in names("--env", "FedArmsUnreliable-v0")[1:])


def test_of_a_text_in_any_case():
    assert names("--text", "tHoMpSoN", "--env", "FedProcurement-v0")[:1] == ["Thompson-procurement"]
    # The text stands in what the baseline does.
    assert "uniform-random" in names("--text", BASELINES["uniform-random"].summary[:9])


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_nothing_found_is_said(words):
    result = call("--text", "no such thing", *words)
    assert result.exit_code == 0
    assert result.stderr == "nothing matches\n"
    assert result.stdout == ("[]\n" if words else "")


def test_an_unknown_environment_is_explained():
    result = call("--env", "FedLineer-v0")
    assert_explained(
        result, "--env is 'FedLineer-v0'; one of 28 names is required; did you mean 'FedLinear-v0', "
    )
