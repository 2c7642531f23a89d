"""What is put together from menus is what the command line plays, and what does not fit is refused in a sentence."""

import random
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.lab import choices
from fedbandit_envs.leaderboard.lab.choices import NONE
from fedbandit_envs.leaderboard.lab.federation import Choice, outcome_of, put_together
from fedbandit_envs.leaderboard.run import Settings, SettingsError, run
from fedbandit_envs.registration import REGISTRY
from fedbandit_envs.wrappers.byzantine import ATTACKS
from fedbandit_envs.wrappers.participation import LAWS
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES
from fedbandit_envs.wrappers.transport.topology import TOPOLOGIES

SMALL = {"num_agents": 4, "num_arms": 5}
CHOICE = Choice(("FedArms-v0", SMALL), ("Priv-UCB1", {}), 20, 3)


def test_as_registered_it_is_the_run_of_the_command_line():
    outcome = outcome_of(CHOICE)
    simulation, result = run(Settings("Priv-UCB1", "FedArms-v0", 20, 3, 0, SMALL))
    np.testing.assert_array_equal(outcome.simulation.regret, simulation.regret)
    assert outcome.claim.as_json() == result["privacy"]
    # In rounds 1, 2, 4, 8, 16 each tells three others.
    assert (outcome.traffic["messages"] == 15).all()
    assert outcome.simulation.messages[-1].tolist() == outcome.traffic["messages"].tolist()


def test_changes_reach_their_wrappers():
    told = replace(CHOICE, privatizer=("as the policy has it", {"epsilon": 3.0}), faults={"loss": 0.5})
    outcome = outcome_of(told)
    assert outcome.claim.epsilon == pytest.approx(3.0)
    assert (outcome.traffic["messages"] == 15).all()
    _, result = run(
        Settings(
            "Priv-UCB1", "FedArms-v0", 20, 3, 0, SMALL, {}, {"privatizer": {"epsilon": 3.0}, "channel": {"loss": 0.5}}
        )
    )  # fmt: skip
    assert result["per_seed"] == pytest.approx(outcome.simulation.regret[-1].mean(axis=1).tolist(), abs=0)


def test_layers_can_be_left_out_and_put_in():
    silent = outcome_of(replace(CHOICE, privatizer=(NONE, {}), transport=(NONE, {})))
    assert (silent.claim.epsilon, silent.traffic) == (0.0, {})
    open_ = outcome_of(replace(CHOICE, privatizer=(NONE, {})))
    assert open_.claim.epsilon == inf
    assert open_.claims == []
    federated, _ = run(Settings("Fed-UCB1", "FedArms-v0", 20, 3, 0, SMALL))
    np.testing.assert_array_equal(open_.simulation.regret, federated.regret)
    other = outcome_of(replace(CHOICE, privatizer=("LaplacePrivatizer", {"epsilon": 2.0})))
    assert other.claim.composition == "basic"
    assert other.claim.delta == 0
    put_in = replace(
        CHOICE, policy=("UCB1", {}), transport=("Channel", {}), schedule=("fixed_gap", {"gap": 10})
    )
    assert (outcome_of(put_in).traffic["messages"] == 2 * 3).all()


@pytest.mark.parametrize(
    "schedule", [("every_round", {}), ("fixed_gap", {"gap": 4}), ("geometric", {"count": 3})]
)
def test_continual_release_plans_for_the_schedule(schedule):
    outcome = outcome_of(replace(CHOICE, schedule=schedule))
    sent = {"every_round": 20, "fixed_gap": 5, "geometric": 3}[schedule[0]]
    assert (outcome.traffic["messages"] == 3 * sent).all()
    # All that was planned has been released: so all that was promised is spent.
    assert outcome.claim.epsilon == pytest.approx(1.0)
    assert outcome.claim.epsilon <= 1.0


def test_what_is_planned_otherwise_runs_out_in_a_sentence():
    told = replace(CHOICE, schedule=("every_round", {}), privatizer=("as the policy has it", {"releases": 3}))
    with pytest.raises(BudgetExhaustedError, match="release"):
        outcome_of(told)


def test_liars_are_told_apart():
    outcome = outcome_of(replace(CHOICE, attack=("garbage", {"scale": 5}), liars=0.5, law=("in_turn", {})))
    assert outcome.groups == {"liars": [2, 3], "honest": [0, 1]}


def test_warnings_are_kept_to_be_shown():
    loud = Choice(
        ("FedProcurement-v0", {"num_agents": 2, "num_producers": 3}), ("P-FCB", {}), 4, 2,
        privatizer=("GaussianPrivatizer", {"epsilon": 9.0, "releases": 1}),
    )  # fmt: skip
    assert ["classic calibration" in one for one in outcome_of(loud).warned] == [True]
    assert outcome_of(CHOICE).warned == []


def test_arms_that_stay_have_shares_of_their_own():
    choice = Choice(("FedExposure-v0", {"num_agents": 2}), ("deserved-shares", {}), 40, 3, same_arms=True)
    totals = outcome_of(choice).simulation.totals
    deserved = totals["deserved"] / 40
    np.testing.assert_allclose(deserved.sum(axis=-1), 1)
    # Others do in every round: so all deserve about a tenth.
    anew = outcome_of(replace(choice, same_arms=False)).simulation.totals["deserved"] / 40
    assert np.ptp(deserved, axis=-1).min() > np.ptp(anew, axis=-1).max()


WRONG = {
    "no such policy": ({"policy": ("nobody", {})}, "policy is 'nobody'"),
    "no such problem": ({"problem": ("FedNothing-v0", {})}, "problem is 'FedNothing-v0'"),
    "another problem's policy": ({"policy": ("LinUCB", {})}, "plays LinearEnv"),
    "no such channel": ({"transport": ("Pigeon", {})}, "transport is 'Pigeon'"),
    "no such schedule": ({"schedule": ("sometimes", {})}, "schedule is 'sometimes'"),
    "a schedule lacks its argument": ({"schedule": ("fixed_gap", {})}, "gap"),
    "faults of nothing": ({"policy": ("UCB1", {}), "faults": {"loss": 0.1}}, "no.*transport|there is none"),
    "noise of nothing": (
        {"policy": ("UCB1", {}), "privatizer": ("as the policy has it", {"epsilon": 1.0})},
        "epsilon cannot be said",
    ),
    "a server has no graph": ({"transport": ("Server", {}), "topology": ("ring", {})}, "Server has none"),
    "agents are asked who cannot answer": ({"schedule": ("on_request", {})}, "does not say when to send"),
    "own data twice": ({"transport": ("Server", {})}, "echo=False"),
    "loss too large": ({"faults": {"loss": 1.0}}, "loss is 1.0"),
    "epsilon below 0": ({"privatizer": ("ContinualPrivatizer", {"epsilon": -1, "delta": 0.1})}, "epsilon is -1"),
    "epsilon is a word": ({"privatizer": ("ContinualPrivatizer", {"epsilon": "x", "delta": 0.1})}, "epsilon|'>'"),
    "an unknown argument": ({"policy": ("UCB1", {"colour": 1})}, "colour"),
    "a problem's argument": ({"problem": ("FedArms-v0", {"num_arms": 0})}, "num_arms is 0"),
    "too few rounds": ({"rounds": 0}, "rounds is 0"),
    "liars beyond all": ({"attack": ("garbage", {}), "liars": 2.0}, "agents is 2.0"),
    "participation twice": (
        {"problem": ("FedLinearAsync-v0", {"num_arms": 3, "dim": 2}), "policy": ("LinUCB", {}), "law": ("in_turn", {})},
        "Participation already",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_a_sentence(name):
    changes, message = WRONG[name]
    with pytest.raises(SettingsError, match=message) as refused:
        outcome_of(replace(CHOICE, **changes))
    assert "\n" not in str(refused.value)


def _drawn(env_id: str, draw: random.Random) -> Choice:
    """Draws from every menu; what must be said is said as fields begin."""

    def begun(told):
        return {name: one.value for name, one in told.items() if one.required}

    def named(offered, known):
        name = draw.choice(offered) if draw.random() < 0.5 else offered[0]
        return name, begun(choices.of_named(known, name))

    policy = draw.choice(choices.policies(env_id))
    transport, noise = draw.choice(choices.transports()), draw.choice(choices.privatizers())
    return Choice(
        (env_id, {**REGISTRY[env_id].problem.small, "num_agents": 6}), (policy, {}), 7, 2,
        (transport, begun(choices.of_wrapper(policy, "transport", transport))),
        named(choices.schedules(), SCHEDULES),
        named(choices.topologies(), TOPOLOGIES),
        (noise, begun(choices.of_wrapper(policy, "noise", noise))),
        named(choices.laws(), LAWS),
        named(choices.attacks(), ATTACKS),
        faults={"loss": draw.choice([0, 0.3]), "delay": draw.choice([0, 0, 1])},
        same_arms=draw.random() < 0.5,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("env_id", ["FedArms-v0", "FedProcurement-v0", "FedLinear-v0", "FedExposure-v0"])
def test_whatever_is_chosen_plays_or_is_refused_in_a_sentence(env_id):
    draw = random.Random(7)
    played = refused = 0
    for _ in range(25):
        choice = _drawn(env_id, draw)
        try:
            outcome = outcome_of(choice)
        except (SettingsError, BudgetExhaustedError):
            refused += 1
        else:
            assert np.isfinite(outcome.simulation.regret).all()
            played += 1
    assert min(played, refused) >= 3


def test_labels_say_what_is_not_as_registered():
    assert CHOICE.label == "Priv-UCB1, num_agents 4, num_arms 5"
    other = replace(
        CHOICE, problem=("FedArms-v0", {}), topology=("ring", {}), faults={"loss": 0.1, "delay": 0},
        attack=("garbage", {}), privatizer=("as the policy has it", {"epsilon": 0.5}),
    )  # fmt: skip
    assert other.label == "Priv-UCB1, graph ring, epsilon 0.5, lies garbage, loss 0.1"


def test_registered_baselines_stay_as_they_are():
    before = BASELINES["Priv-UCB1"]
    baseline, _ = put_together(replace(CHOICE, privatizer=(NONE, {})))
    assert BASELINES["Priv-UCB1"] is before
    assert list(baseline.wrappers) == ["channel"]
    assert list(before.wrappers) == ["privatizer", "channel"]
