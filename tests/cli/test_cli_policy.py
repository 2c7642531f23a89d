"""`fedbandit run` with a policy that is not registered, by its entry point."""

import json
import sys

import pytest
from typer.testing import CliRunner

from fedbandit_envs.cli import app

OWN = """
import numpy as np


class Constant:
    def __init__(self, arm=0, file=None):
        self.arm = arm
        if file:
            open(file)

    def reset(self, spaces, seeds):
        self.shape = seeds.shape

    def act(self, observation):
        return np.full(self.shape, self.arm)


class Mixed(Constant):
    def act(self, observation):
        return np.full(self.shape, self.shape[1] - 1)


class Plain:
    def reset(self, spaces, seeds):
        self.shape = seeds.shape

    def act(self, observation):
        return np.zeros(self.shape, int)


number = 3
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    (tmp_path / "own_policy_of_a_test.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_policy_of_a_test", raising=False)

    def invoke(policy, *words):
        shared = ("--rounds", "20", "--seeds", "2", "--set", "num_arms=4", "--set", "num_agents=2")
        return CliRunner().invoke(
            app, ["run", policy, "FedArms-v0", *shared, *words], env={"COLUMNS": "200", "TERM": "dumb"}
        )

    return invoke


def test_an_own_policy_is_run_where_it_lies(call):
    result = call("own_policy_of_a_test:Constant", "--set", "arm=2", "--check-rows", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["settings"]["baseline"] == "own_policy_of_a_test:Constant"
    assert told["settings"]["policy_kwargs"] == {"arm": 2}
    assert len(told["checked_rows"]) == 3
    other = json.loads(call("own_policy_of_a_test:Plain", "--json").stdout)
    assert other["per_seed"] != told["per_seed"]
    assert call("own_policy_of_a_test:Mixed", "--check-rows").exit_code == 1


@pytest.mark.parametrize(
    ("policy", "words", "message"),
    [
        ("UCB7", (), "baseline is 'UCB7'; one of"),
        (
            "own_policy_of_a_test:",
            (),
            "entry point is 'own_policy_of_a_test:'; 'module:attribute' is required",
        ),
        ("no_such_module:Policy", (), "No module named 'no_such_module'"),
        ("own_policy_of_a_test:Nothing", (), "has no attribute 'Nothing'"),
        (
            "own_policy_of_a_test:number",
            (),
            "which is int; a class or function that makes a policy is required",
        ),
        ("own_policy_of_a_test:Constant", ("--set", "colour=2"), "with a key among"),
        ("own_policy_of_a_test:Constant", ("--set", "arms=2"), "env.num_arms has a value already"),
        ("no_file.py:Constant", (), "there is no file no_file.py"),
        ("own_policy_of_a_test.py", (), "'own_policy_of_a_test.py:Class' is required"),
        ("own_policy_of_a_test.py:Nothing", (), "has no attribute 'Nothing'"),
        ("own_policy_of_a_test:Plain", ("--set", "args=2"), "with a key among"),
        ("own_policy_of_a_test:Constant", ("--set", "file=none.zip"), "No such file or directory"),
        (
            "fedbandit_envs.baselines.adapters:AgentFunctions",
            ("--set", "policy.agents=f"),
            "entry point is 'f'",
        ),
        (
            "fedbandit_envs.baselines.adapters:SB3Policy",
            (),
            "missing 1 required positional argument: 'model'",
        ),
    ],
)
def test_what_is_wrong_is_explained(call, policy, words, message):
    result = call(policy, *words)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in " ".join(result.output.replace("│", " ").split())
