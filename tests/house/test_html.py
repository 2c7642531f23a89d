"""What notebooks show of environments, baselines, claims and results: whole tables, with texts escaped."""

import re
import sys
from html import unescape

import numpy as np
import pytest
from registered import small

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments import RunResult
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer


def rows(shown):
    """The cells of a table, row by row."""
    found = re.findall(r"<tr.*?</tr>", shown, re.DOTALL)
    return [list(map(unescape, re.findall(r"<t[hd]\b.*?>(.*?)</t[hd]>", row, re.DOTALL))) for row in found]


def cells(thing):
    return dict(rows(thing._repr_html_()))


@pytest.mark.parametrize("env_id", REGISTRY)
def test_environments_show_themselves_before_they_are_reset(env_id):
    env = make_federation(env_id, **small(env_id), max_cycles=7)
    shown = cells(env)
    assert shown["rounds"] == "7"
    assert shown["agents"] == str(env.max_num_agents)
    assert {f"observation: {name}" for name in env.single_observation_space} <= shown.keys()


def test_wrappers_are_shown_from_the_outermost_in():
    env = Channel(GaussianPrivatizer(make_federation("FedProcurement-v0"), epsilon_per_release=1.0))
    assert cells(env)["layers"] == "Channel > GaussianPrivatizer > ProcurementEnv"


def test_baselines_show_their_policy_and_wrappers():
    for name, baseline in BASELINES.items():
        shown = cells(baseline)
        assert {"policy", *baseline.wrappers} <= shown.keys(), name
        assert all(f"{key}={value!r}" in shown["policy"] for key, value in baseline.policy_kwargs.items())


def test_claims_show_all_but_an_empty_reason():
    claim = Claim(np.inf, 1e-5, "<agent & all>", "exact")
    assert cells(claim) == {
        "epsilon": "inf", "delta": "1e-05", "adjacency": "<agent & all>", "composition": "exact",
        "trust": "local", "noise": "none", "observer": "everybody",
    }  # fmt: skip
    assert cells(Claim(None, 0.0, "agent", "basic", "a < b"))["reason"] == "a < b"


def test_results_show_themselves_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for seeds, interval in ((5, "0.00 [0.00, 0.00]"), (4, "0.00")):
        result = RunResult(np.array([1, 5]), np.zeros((2, seeds, 2)), range(seeds), labels={"line": "<b>"})
        assert cells(result) == {
            "line": "<b>", "seeds, agents, rounds": f"{seeds}, 2, 5", "regret per agent": interval,
            "claimed epsilon": "0", "at delta": "0",
        }  # fmt: skip
        assert (
            repr(result)
            == f"RunResult(line='<b>', {seeds} seeds, 2 agents, regret per agent after 5 rounds 0)"
        )
