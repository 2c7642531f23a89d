"""The lab's menus offer what is registered; a choice plays what the command line plays, or is refused in a sentence."""

import random
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.experiments.spec import RunSpec, SettingsError
from fedbandit_envs.lab import federation
from fedbandit_envs.lab.federation import PARTS, Choice, known_settings, suggestion
from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.wrappers.byzantine import ATTACKS
from fedbandit_envs.wrappers.participation import LAWS
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError
from fedbandit_envs.wrappers.rules import checked
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES

SMALL = {"num_agents": 4, "num_arms": 5}
LINES = ("num_agents=4", "num_arms=5")
CHOICE = Choice("FedArms-v0", "Priv-UCB1", 20, 3, assignments=LINES)


def test_every_baseline_of_a_problem_is_offered(env_id):
    problem = make_federation(env_id).unwrapped
    offered = federation.baselines(env_id)
    assert sorted(offered) == sorted(
        name
        for name, one in BASELINES.items()
        if isinstance(problem, one.federation) and one.only in ("", env_id)
    )
    # One with noise comes first, so that there is a claim to see.
    assert "privatizer" in BASELINES[offered[0]].wrappers


def test_every_baseline_is_offered_somewhere(baseline):
    assert any(BASELINES[name] is baseline for env_id in REGISTRY for name in federation.baselines(env_id))


def test_what_is_registered_later_appears_and_plays(monkeypatch):
    @checked(lambda gap: None)
    def twice(t, *, gap):
        """A schedule that came later."""
        return t // gap

    monkeypatch.setitem(REGISTRY, "FedLater-v0", REGISTRY["FedArms-v0"]._replace(env_id="FedLater-v0"))
    monkeypatch.setitem(BASELINES, "later", BASELINES["Fed-UCB1"])
    monkeypatch.setitem(SCHEDULES, "twice", twice)
    monkeypatch.setitem(ATTACKS, "later_lie", ATTACKS["sign_flip"])
    monkeypatch.setitem(LAWS, "later_law", LAWS["in_turn"])
    assert "later" in federation.baselines("FedLater-v0")
    assert "twice" in PARTS["schedule"]
    assert suggestion("schedule", "twice") == {"gap": 100}
    choice = Choice(
        "FedLater-v0", "later", 6, 3, assignments=["num_agents=3"],
        parts={
            "schedule": {"name": "twice", "gap": 2},
            "participation": {"name": "later_law"},
            "attack": {"name": "later_lie"},
        },
    )  # fmt: skip
    # Three agents tell two others in rounds 2, 4 and 6.
    assert choice.play().result.traffic["messages"].tolist() == [[6, 6, 6]] * 3


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_every_known_setting_can_be_typed_as_it_is_shown(name):
    env_id = next(env_id for env_id in REGISTRY if name in federation.baselines(env_id))
    shown = known_settings(env_id, name)
    assert len(set(shown)) == len(shown)
    assert not any(".max_cycles" in line or ".env" in line for line in shown)
    for line in shown:
        if "=" in line:
            RunSpec(name, env_id, 10, 1, 0).assigned([line])


def test_the_preset_s_own_values_are_shown():
    shown = known_settings("FedExposureLinear-v0", "Priv-FairX-LinUCB")
    assert {'env.merit="linear"', "env.num_agents=10", "env.num_arms=10", "env.dim=5"} <= set(shown)
    assert "privatizer.delta=0.1" in shown


def test_required_arguments_have_a_suggestion():
    for part, known in PARTS.items():
        for option in known:
            assert None not in suggestion(part, option).values(), (part, option)
    assert suggestion("topology", "random_regular") == {"degree": 4}
    assert suggestion("schedule", "every_round") == {}


def test_as_registered_it_is_the_run_of_the_command_line():
    outcome = CHOICE.play()
    result = RunSpec("Priv-UCB1", "FedArms-v0", 20, 3, 0, SMALL).run()
    np.testing.assert_array_equal(outcome.result.regret, result.regret)
    assert outcome.result.privacy == result.privacy
    # In rounds 1, 2, 4, 8, 16 each sends to three others.
    assert (outcome.result.traffic["messages"] == 15).all()
    assert outcome.result.messages[-1].tolist() == outcome.result.traffic["messages"].tolist()


def test_changes_reach_their_wrappers():
    outcome = replace(CHOICE, epsilon=3.0, faults={"loss": 0.5, "delay": 0}).play()
    assert outcome.result.privacy.epsilon == pytest.approx(3.0)
    assert (outcome.result.traffic["messages"] == 15).all()
    wrappers = {"privatizer": {"epsilon": 3.0}, "channel": {"loss": 0.5}}
    result = RunSpec("Priv-UCB1", "FedArms-v0", 20, 3, 0, SMALL, {}, wrappers).run()
    np.testing.assert_array_equal(outcome.result.regret, result.regret)


def test_what_is_typed_comes_before_what_menus_say():
    typed = replace(CHOICE, epsilon=3.0, assignments=(*LINES, "privatizer.epsilon=0.5"))
    assert typed.play().result.privacy.epsilon == pytest.approx(0.5)


def test_true_data_and_silence_have_their_claims():
    open_ = replace(CHOICE, baseline="Fed-UCB1").play()
    assert (open_.result.privacy.epsilon, open_.result.claims) == (inf, [])
    silent = replace(CHOICE, baseline="UCB1").play()
    assert (silent.result.privacy.epsilon, silent.result.traffic) == (0.0, {})


@pytest.mark.parametrize(
    ("schedule", "sent"),
    [
        ({"name": "every_round"}, 20),
        ({"name": "fixed_gap", "gap": 4}, 5),
        ({"name": "geometric", "count": 3}, 3),
    ],
)
def test_continual_release_plans_for_the_schedule(schedule, sent):
    outcome = replace(CHOICE, parts={"schedule": schedule}).play()
    assert (outcome.result.traffic["messages"] == 3 * sent).all()
    # All that was planned has been released: so all that was promised is spent.
    assert outcome.result.privacy.epsilon == pytest.approx(1.0)
    assert outcome.result.privacy.epsilon <= 1.0


def test_what_is_planned_otherwise_runs_out_in_a_sentence():
    told = replace(
        CHOICE, parts={"schedule": {"name": "every_round"}}, assignments=(*LINES, "privatizer.releases=3")
    )
    with pytest.raises(BudgetExhaustedError, match="release"):
        told.play()


def test_liars_and_honest_agents_are_groups_of_their_own():
    parts = {"attack": {"name": "garbage", "scale": 5}, "participation": {"name": "in_turn"}}
    outcome = replace(CHOICE, parts=parts, liars=0.5).play()
    assert outcome.result.groups == {"liars": [2, 3], "honest": [0, 1]}


def test_warnings_are_kept_to_be_shown():
    loud = Choice(
        "FedProcurement-v0", "P-FCB", 4, 2,
        assignments=["num_agents=2", "num_producers=3", "privatizer.epsilon=9.0", "privatizer.releases=1"],
    )  # fmt: skip
    assert ["classic calibration" in one for one in loud.play().warned] == [True]
    assert CHOICE.play().warned == []


def test_a_problem_s_switch_sets_what_it_declares():
    switches = ["The same arms in every round"]
    choice = Choice(
        "FedExposure-v0", "deserved-shares", 40, 3, switches=switches, assignments=["num_agents=2"]
    )
    deserved = choice.play().result.totals["deserved"] / 40
    np.testing.assert_allclose(deserved.sum(axis=-1), 1)
    # Without it arms are drawn anew in every round, and all deserve about a tenth.
    anew = replace(choice, switches=()).play().result.totals["deserved"] / 40
    assert np.ptp(deserved, axis=-1).min() > np.ptp(anew, axis=-1).max()


WRONG = {
    "no such baseline": ({"baseline": "nobody"}, "baseline is 'nobody'"),
    "no such problem": ({"problem": "FedNothing-v0"}, "env_id is 'FedNothing-v0'"),
    "another problem's baseline": ({"baseline": "LinUCB", "assignments": ()}, "plays LinearEnv"),
    "no such schedule": ({"parts": {"schedule": {"name": "sometimes"}}}, "schedule name is 'sometimes'"),
    "a schedule lacks its argument": ({"parts": {"schedule": {"name": "fixed_gap"}}}, "gap"),
    "faults of nothing": ({"baseline": "UCB1", "faults": {"loss": 0.1}}, "loss cannot be set: UCB1 has no transport"),
    "noise of nothing": ({"baseline": "UCB1", "epsilon": 1.0}, "epsilon cannot be set: UCB1 has no noise layer"),
    "a server has no graph": ({"baseline": "Fed-UCB1-server", "parts": {"topology": {"name": "ring"}}}, "topology"),
    "agents are asked who cannot answer": ({"parts": {"schedule": {"name": "on_request"}}}, "choose when to send"),
    "loss too large": ({"faults": {"loss": 1.0}}, "loss is 1.0"),
    "epsilon below 0": ({"epsilon": -1}, "epsilon is -1"),
    "epsilon is a word": ({"assignments": (*LINES, "epsilon=x")}, "epsilon|'>'"),
    "an unknown argument": ({"assignments": ["policy.colour=1"]}, "colour"),
    "no assignment": ({"assignments": ["colour"]}, "colour"),
    "a problem's argument": ({"assignments": ["num_arms=0"]}, "num_arms is 0"),
    "too few rounds": ({"rounds": 0}, "rounds is 0"),
    "no rounds": ({"rounds": None}, "rounds is None"),
    "no such attack": ({"parts": {"attack": {"name": "charm"}}}, "attack name is 'charm'"),
    "liars beyond all": ({"parts": {"attack": {"name": "garbage"}}, "liars": 2.0}, "agents is 2.0"),
    "participation twice": (
        {
            "problem": "FedLinearAsync-v0", "baseline": "LinUCB", "assignments": ["num_arms=3", "dim=2"],
            "parts": {"participation": {"name": "in_turn"}},
        },
        "Participation already",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_a_sentence(name):
    changes, message = WRONG[name]
    with pytest.raises(SettingsError, match=message) as refused:
        replace(CHOICE, **changes).play()
    assert "\n" not in str(refused.value)


def _drawn(env_id: str, draw: random.Random) -> Choice:
    """Draws from every menu, with the arguments that fields begin with."""
    parts = {}
    for part, known in PARTS.items():
        if draw.random() < 0.3:
            option = draw.choice(list(known))
            parts[part] = {"name": option, **suggestion(part, option)}
    small = {**REGISTRY[env_id].problem.small, "num_agents": 6}
    return Choice(
        env_id, draw.choice(federation.baselines(env_id)), 7, 2, draw.choice([None, None, 2.0]), parts,
        faults={"loss": draw.choice([0, 0, 0.3]), "delay": draw.choice([0, 0, 1])},
        assignments=[f"env.{name}={value}" for name, value in small.items()],
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env_id", ["FedArms-v0", "FedProcurement-v0", "FedLinear-v0", "FedExposure-v0"])
def test_whatever_is_chosen_plays_or_is_refused_in_a_sentence(env_id):
    draw = random.Random(7)
    played = refused = 0
    for _ in range(25):
        choice = _drawn(env_id, draw)
        try:
            outcome = choice.play()
        except (SettingsError, BudgetExhaustedError):
            refused += 1
        else:
            assert np.isfinite(outcome.result.regret).all()
            played += 1
    assert min(played, refused) >= 3


def test_labels_say_what_is_not_as_registered():
    assert CHOICE.label == "Priv-UCB1, num_agents=4, num_arms=5"
    other = replace(
        CHOICE, assignments=(), epsilon=0.5, faults={"loss": 0.1, "delay": 0},
        parts={"topology": {"name": "ring"}, "attack": {"name": "garbage", "scale": 3}},
    )  # fmt: skip
    assert other.label == "Priv-UCB1, ring, garbage 3, epsilon 0.5, loss 0.1"


def test_registered_baselines_stay_as_they_are():
    before = BASELINES["Priv-UCB1"]
    kwargs = {part: dict(spec.kwargs) for part, spec in before.wrappers.items()}
    replace(CHOICE, epsilon=3.0, parts={"schedule": {"name": "every_round"}}).play()
    assert BASELINES["Priv-UCB1"] is before
    assert {part: dict(spec.kwargs) for part, spec in before.wrappers.items()} == kwargs
