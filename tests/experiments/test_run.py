"""Runs: what settings are read as, what a result records, and rows that are checked."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from pairs import every_second
from registered import PROBLEMS, small
from typer.testing import CliRunner

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB, UniformRandom
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.cli import app
from fedbandit_envs.experiments.row_check import MixedRowsError, RowCheck
from fedbandit_envs.experiments.simulate import play_started, simulate, split_seeds
from fedbandit_envs.experiments.spec import RunSpec, SettingsError
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.problems import Registered
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.transport.channel import Channel

P_FCB = ("P-FCB", "FedProcurement-v0", 30, 2, 0)


@pytest.mark.parametrize(
    ("assignment", "part", "value"),
    [
        ("check=False", "policy", False),
        ("check=false", "policy", False),
        ("check=True", "policy", True),
        ("radius_scale=.5", "policy", 0.5),
        ("radius_scale=1_000.", "policy", 1000.0),
        ("margin=-.05", "policy", -0.05),
        ("zeta=None", "policy", None),
        ("zeta=null", "policy", None),
        ("exploration_rounds=2", "policy", 2),
        ("instance_seed=[1, 2]", "env", [1, 2]),
        ("market={'name': 'normal', 'sd': .2}", "env", {"name": "normal", "sd": 0.2}),
        ("env.market=normal", "env", "normal"),
        ("channel.topology=ring", "channel", "ring"),
        ("privatizer.epsilon=Infinity", "privatizer", np.inf),
        ("privatizer.clip=2.5", "privatizer", 2.5),
        # What JSON cannot write could not be recorded: it is text.
        ("market={1, 2}", "env", "{1, 2}"),
        ("market=b'normal'", "env", "b'normal'"),
        ("market=a=b", "env", "a=b"),
        ("market=", "env", ""),
    ],
)
def test_values_are_read_as_json_then_python_then_text(assignment, part, value):
    settings = RunSpec(*P_FCB).assigned([assignment])
    kwargs = {"env": settings.env_kwargs, "policy": settings.policy_kwargs, **settings.wrapper_kwargs}[part]
    (read,) = kwargs.values()
    assert read == value
    assert type(read) is type(value)


def test_false_is_false_and_none_is_none_in_play():
    """FCB is unchecked as it is; an unread "False" would be true, and check."""
    settings = [
        RunSpec("P-FCB", "FedProcurement-v0", 600, 2, 0).assigned(assignments)
        for assignments in (["check=False", "zeta=None"], [], ["check=True"])
    ]
    unchecked, default, checked = (one.run().regret for one in settings)
    env = BASELINES["P-FCB"].wrap(parallel_env(max_cycles=600))
    expected = simulate(env, BASELINES["P-FCB"].make_policy(check=False), range(2)).regret
    np.testing.assert_array_equal(unchecked, expected)
    np.testing.assert_array_equal(default, checked)
    assert (unchecked != checked).any()


@pytest.mark.parametrize(
    "wrong",
    [
        {"baseline": "UCB"},
        {"env_id": "FedProcurement-v9"},
        {"rounds": 0},
        {"rounds": 1.5},
        {"seeds": "2"},
        {"first_seed": -1},
    ],
)
def test_wrong_settings_are_settings_errors(wrong):
    right = dict(zip(("baseline", "env_id", "rounds", "seeds", "first_seed"), P_FCB, strict=True))
    with pytest.raises(SettingsError, match=f"{next(iter(wrong))} is {next(iter(wrong.values()))!r}"):
        RunSpec(**{**right, **wrong})


def test_a_result_records_the_stack_of_the_id(monkeypatch):
    problem = REGISTRY["FedProcurement-v0"].problem
    stack = [["fedbandit_envs.wrappers.interleaved:Interleaved", {"period": 3}]]
    monkeypatch.setitem(REGISTRY, "FedKept-v0", Registered(problem, "FedKept-v0", {"num_agents": 2}, stack))
    recorded = RunSpec("SS-UCB", "FedKept-v0", 5, 1, 0).recorded()
    assert json.loads(json.dumps(recorded))["stack"] == stack
    assert "stack" not in RunSpec("SS-UCB", "FedProcurement-v0", 5, 1, 0).recorded()


class Pooled(SSUCB):
    """Cheats: whatever the wrappers let through, every agent learns from what all agents of its replica see."""

    def act(self, observation):
        pooled = dict(observation)
        for name in ("total_delivered", "total_good"):
            array = observation[name]
            pooled[name] = np.broadcast_to(array.sum(axis=1, keepdims=True), array.shape).copy()
        return super().act(pooled)


class AskingInTurn(PFCB):
    """Asks to send every third round; each agent does as its own clock says."""

    def act(self, observation):
        return {"action": super().act(observation), "send": self._send(observation)}

    def _send(self, observation):
        return observation["round"][..., 0] % 3 == 0


class AskingTogether(AskingInTurn):
    """Cheats in when it sends alone: the agent that has bought most does."""

    def _send(self, observation):
        bought = observation["total_delivered"].sum(axis=-1)
        return bought == bought.max(axis=1, keepdims=True)


ASKING = {"channel": WrapperSpec(Channel, {"schedule": "on_request"})}


@pytest.fixture
def extra(monkeypatch):
    for name, policy, wrappers in (
        ("cheat", Pooled, {}),
        ("asking", AskingInTurn, ASKING),
        ("asking-cheat", AskingTogether, ASKING),
    ):
        entry = Baseline("", "", ProcurementEnv, policy, wrappers=wrappers)
        monkeypatch.setitem(BASELINES, name, entry)


def command(*words):
    return CliRunner().invoke(
        app, ["run", *map(str, words), "--json"], env={"COLUMNS": "200", "TERM": "dumb"}
    )


@pytest.mark.parametrize(("cheat", "named"), [("cheat", "action"), ("asking-cheat", "send")])
def test_a_policy_that_mixes_rows_is_caught(extra, cheat, named):
    words = (cheat, "FedProcurement-v0", "--rounds", 60, "--seeds", 2, "--set", "num_producers=5")
    believed = command(*words)
    assert believed.exit_code == 0, believed.output
    assert json.loads(believed.stdout)["checked_rows"] == []
    caught = command(*words, "--check-rows")
    assert caught.exit_code == 1
    assert isinstance(caught.exception, SystemExit)
    assert caught.stdout == ""
    assert re.search(rf"Error: replica \d, agent \d, round \d+: {named}(\[\d\])? is .* alone", caught.stderr)


@pytest.mark.parametrize("name", every_second([*BASELINES, "asking"]))
def test_policies_that_keep_rows_apart_pass(extra, name):
    federation = PROBLEMS[BASELINES[name].federation].federation
    env_id = BASELINES[name].only or next(
        env_id for env_id, entry in REGISTRY.items() if entry.federation == federation
    )
    settings = {**small(env_id), "num_agents": 10}
    rows = RunSpec(name, env_id, 30, 2, 0, settings).run(check_rows=3).checked_rows
    assert len(set(rows)) == len(rows) == 3
    assert all(r in range(2) and j in range(10) for r, j in rows)


def test_checking_changes_nothing_but_says_so():
    settings = RunSpec("P-FCB", "FedProcurement-v0", 300, 3, 5, {"num_producers": 5})
    plain, watched = (settings.run(check_rows=check) for check in (0, 3))
    np.testing.assert_array_equal(plain.regret, watched.regret)
    unchecked, checked = plain.as_json(), watched.as_json()
    assert unchecked.pop("checked_rows") == []
    rows = checked.pop("checked_rows")
    assert checked == unchecked
    assert settings.run(check_rows=3).as_json()["checked_rows"] == rows


def test_rows_follow_from_seeds_and_are_all_where_there_are_few():
    env = parallel_env(num_agents=4, num_producers=3, max_cycles=2)
    drawn = set()
    for first in range(10):
        check = RowCheck(UniformRandom(), UniformRandom)
        check.reset(env.policy_spec, row_seeds(range(first, first + 5), 4))
        drawn.add(tuple(check.rows))
    assert len(drawn) > 5
    check.reset(env.policy_spec, row_seeds([0], 2))
    assert check.rows == [(0, 0), (0, 1)]


def test_an_error_in_a_row_alone_says_so():
    class NeedsCompany(UniformRandom):
        def act(self, observation):
            if observation["round"].shape[1] == 1:
                raise IndexError("no neighbour")
            return super().act(observation)

    env = parallel_env(num_agents=4, num_producers=3, max_cycles=2)
    with pytest.raises(IndexError, match="no neighbour") as raised:
        simulate(env, RowCheck(NeedsCompany(), NeedsCompany), [0])
    assert re.search(r"replica 0, agent \d, round 1 alone", raised.value.__notes__[0])


@pytest.mark.parametrize(
    ("odd", "difference"),
    [
        (lambda action: action[..., 0], r"action has shape \(1, 1, 3\) among all rows, \(1, 1\)"),
        (
            lambda action: {"action": action, "send": 1},
            r"\['action'\] is chosen among all rows, \['action', '",
        ),
    ],
)
def test_actions_of_another_form_are_caught(odd, difference):
    class OddAlone(UniformRandom):
        def act(self, observation):
            action = super().act(observation)
            return odd(action) if action.shape[1] == 1 else action

    env = parallel_env(num_agents=4, num_producers=3, max_cycles=2)
    with pytest.raises(MixedRowsError, match=difference):
        simulate(env, RowCheck(OddAlone(), OddAlone), [0])


@pytest.mark.parametrize("name", ["Priv-UCB1", "UCB1"])
def test_episodes_are_the_same_in_any_shards(monkeypatch, name):
    """Two rows at a time, 500, and by hand, all at once."""
    spec = RunSpec(name, "FedArms-v0", 30, 7, 3, env_kwargs={"num_agents": 2, "num_arms": 3})
    env, policy = spec.build()
    began = env.reset_batch(spec.all_seeds)
    policy.reset(env.policy_spec, row_seeds(spec.all_seeds, 2))
    whole = play_started(env, policy, spec.all_seeds, began, lambda played: None)
    in_one, in_shards = spec.run(), replace(spec, rows=2).run()
    monkeypatch.setattr(split_seeds, "__defaults__", (4, 1))
    done = []
    by_chunks = simulate(*spec.build(), spec.all_seeds, done.append)
    assert sum(done) == 7 * 2 * 30
    assert by_chunks.labels == whole.labels
    assert in_shards.claims == in_one.claims
    for other in (in_one, in_shards, by_chunks):
        assert list(other.seeds) == list(spec.all_seeds)
        assert other.privacy == whole.privacy
        for kind in ("info", "traffic", "totals"):
            there, expected = getattr(other, kind), getattr(whole, kind)
            assert there.keys() == expected.keys()
            for key in expected:
                np.testing.assert_array_equal(there[key], expected[key])
        np.testing.assert_array_equal(other.regret, whole.regret)
        assert (other.messages is None) is (whole.messages is None)
        if whole.messages is not None:
            np.testing.assert_array_equal(other.messages, whole.messages)


def test_rows_are_checked_in_several_shards():
    spec = RunSpec("UCB1", "FedArms-v0", 5, 7, 0, env_kwargs={"num_agents": 2, "num_arms": 3}, rows=4)
    assert [replica // 2 for replica, _ in spec.run(check_rows=5).checked_rows] == [0, 0, 1, 2, 3]
