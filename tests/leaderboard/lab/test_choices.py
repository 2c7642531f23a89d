"""Menus offer what is registered, and what is registered later."""

import json

import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.lab import choices
from fedbandit_envs.leaderboard.lab.choices import AS_REGISTERED, NONE, Argument
from fedbandit_envs.leaderboard.lab.federation import Choice, outcome_of
from fedbandit_envs.registration import REGISTRY
from fedbandit_envs.wrappers.byzantine import ATTACKS, SignFlip
from fedbandit_envs.wrappers.participation import LAWS, InTurn
from fedbandit_envs.wrappers.registry import WRAPPERS
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.fixed_schedules import FixedGap
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES


def test_every_id_and_baseline_is_offered(env_id):
    from fedbandit_envs import make_federation

    assert env_id in choices.problems()
    problem = make_federation(env_id).unwrapped
    offered = choices.policies(env_id)
    assert offered == [name for name, one in BASELINES.items() if isinstance(problem, one.federation)]
    assert choices.to_begin_with(env_id) in offered


def test_every_baseline_is_offered_somewhere(baseline):
    assert any(BASELINES[name] is baseline for env_id in REGISTRY for name in choices.policies(env_id))


def test_wrappers_are_offered_by_layer():
    for offered, layer in ((choices.transports(), "transport"), (choices.privatizers(), "noise")):
        assert offered[:2] == [AS_REGISTERED, NONE]
        assert set(offered[2:]) == {name for name, one in WRAPPERS.items() if one.layer == layer}


def test_what_is_registered_later_appears_and_plays(monkeypatch):
    class MyChannel(Channel):
        """A carrier that came later."""

    class Twice(FixedGap):
        """A schedule that came later."""

    monkeypatch.setitem(REGISTRY, "FedLater-v0", REGISTRY["FedArms-v0"]._replace(env_id="FedLater-v0"))
    monkeypatch.setitem(BASELINES, "later", BASELINES["Fed-UCB1"])
    monkeypatch.setitem(WRAPPERS, "MyChannel", MyChannel)
    monkeypatch.setitem(SCHEDULES, "twice", Twice)
    monkeypatch.setitem(ATTACKS, "later_lie", SignFlip)
    monkeypatch.setitem(LAWS, "later_law", InTurn)
    assert "FedLater-v0" in choices.problems()
    assert "later" in choices.policies("FedLater-v0")
    assert "MyChannel" in choices.transports()
    assert "twice" in choices.schedules()
    assert "later_lie" in choices.attacks()
    assert "later_law" in choices.laws()
    assert choices.of_named(SCHEDULES, "twice") == {"gap": Argument(100, True)}
    choice = Choice(
        ("FedLater-v0", {"num_agents": 3}), ("later", {}), 6, 3, ("MyChannel", {}), ("twice", {"gap": 2}),
        law=("later_law", {}), attack=("later_lie", {}),
    )  # fmt: skip
    # Three agents tell two others in rounds 2, 4 and 6.
    assert outcome_of(choice).traffic["messages"].tolist() == [[6, 6, 6]] * 3


def test_fields_begin_empty_unless_something_must_be_said():
    told = choices.of_wrapper("UCB1", "noise", "ContinualPrivatizer")
    assert told["epsilon"] == Argument(1.0, True)
    assert not told["mechanism"].required
    assert not {"env", "noise_seed"} & told.keys()
    assert choices.of_wrapper("UCB1", "noise", AS_REGISTERED) == {}
    assert choices.of_wrapper("Priv-UCB1", "noise", NONE) == {}
    assert choices.of_wrapper("Priv-UCB1", "noise", AS_REGISTERED)["delta"] == Argument(1e-5)
    assert choices.of_named(SCHEDULES, AS_REGISTERED) == {}


def test_the_problem_s_own_defaults_are_shown():
    told = choices.of_problem("FedExposure-v0")
    assert (told["num_agents"].value, told["num_arms"].value, told["dim"].value) == (10, 10, 5)
    assert choices.of_problem("FedExposureLinear-v0")["merit"] == Argument("linear")
    assert "max_cycles" not in told


@pytest.mark.parametrize("policy", sorted(BASELINES))
def test_what_a_field_shows_can_be_said(policy):
    for name, one in choices.of_policy(policy).items():
        if one.value is None or one.value == "":
            continue
        assert choices.said({name: one.text}) == {name: json.loads(json.dumps(one.value))}, name


def test_empty_fields_say_nothing():
    fields = {"a": " ", "b": "", "c": "0", "d": "False", "e": '{"name": "x"}', "f": "ring"}
    assert choices.said(fields) == {"c": 0, "d": False, "e": {"name": "x"}, "f": "ring"}


def test_arms_can_stay_where_they_have_merit():
    assert [env_id for env_id in REGISTRY if choices.keeps_arms(env_id)] == [
        "FedExposure-v0", "FedExposureNoisy-v0", "FedExposureLinear-v0"
    ]  # fmt: skip
    matrix = choices.same_arms("FedExposure-v0", {"num_arms": 3})["contexts"]
    assert [len(row) for row in matrix] == [5, 5, 5]
    assert choices.same_arms("FedExposure-v0", {"num_arms": "three"}) == {}
