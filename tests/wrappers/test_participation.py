"""Agents that sit rounds out: nothing is played or drawn for them, and their luck is that of their own rounds."""

import numpy as np
import pytest
from channels import PRODUCERS, small
from pairs import every_second
from refusals import refusals
from registered import small as small_of

from fedbandit_envs import REGISTRY, make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer, Interleaved, Participation

PROBABLY = {"name": "probability", "probability": 0.4}
IDS = [env_id for env_id, entry in REGISTRY.items() if not entry.stack]
LAST = ("delivered", "good", "pulled_context", "last_reward")
KEPT = {"total_delivered", "total_good", "total_statistic"}


def federation(env_id, **kwargs):
    return make_federation(env_id, **{"num_agents": 4, "max_cycles": 60, **small_of(env_id), **kwargs})


def constant_action(env, replicas):
    env.single_action_space.seed(1)
    one = np.asarray(env.single_action_space.sample())
    return np.broadcast_to(one, (replicas, env.max_num_agents, *one.shape)).copy()


def copied(step):
    arrays = {**step.observation, **step.info, "reward": step.reward}
    return {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("law", ["uniform", PROBABLY], ids=str)
def test_who_sits_out_gets_nothing_and_keeps_what_it_has(env_id, law):
    env = Participation(federation(env_id), law)
    before = {name: array.copy() for name, array in env.reset_batch([1, 2]).observation.items()}
    action = constant_action(env, 2)
    played = np.zeros((2, 4), int)
    for t in range(1, 31):
        active = before["active"][..., 0]
        after = copied(env.step_batch(action))
        played += active
        np.testing.assert_array_equal(after["own_round"][..., 0], played)
        assert (after["round"] == t).all()
        for name in {"reward", *env.env._info, *LAST} & after.keys():
            assert not after[name][~active].any(), name
        for name in KEPT & after.keys():
            changed = (after[name] != before[name]).reshape(2, 4, -1).any(axis=-1)
            assert not changed[~active].any(), name
            assert name == "total_good" or changed[active].all(), name
        if "contexts" in after and not env.public.get("fixed"):
            # What is offered is drawn anew for those who act next, and for nobody else.
            offered = (after["contexts"] != before["contexts"]).reshape(2, 4, -1).any(axis=-1)
            if env_id == "FedClassification-v0":
                # A row of the table may be drawn twice in succession.
                offered |= after["active"][..., 0]
            np.testing.assert_array_equal(offered, after["active"][..., 0])
        before = after
    if law != PROBABLY:
        assert (played.sum(axis=1) == 30).all()


@pytest.mark.parametrize("env_id", every_second(IDS))
def test_luck_is_counted_in_own_rounds(env_id):
    """An agent's k-th own round has the same outcome whenever it comes, and whoever else acts."""
    histories = []
    for law in ("in_turn", PROBABLY, {"name": "sequence", "rounds": [[0, 1, 2, 3]]}):
        env = Participation(federation(env_id, max_cycles=300, instance_seed=3), law)
        observation = env.reset_batch([7]).observation
        of_agents = [[] for _ in range(4)]
        for _ in range(120):
            active = observation["active"][0, :, 0].copy()
            step = env.step_batch(constant_action(env, 1))
            observation = step.observation
            for j in np.flatnonzero(active):
                of_agents[j].append(step.reward[0, j])
        histories.append(of_agents)
    for j in range(4):
        first, second, third = (history[j] for history in histories)
        for other in (second, third):
            shared = min(len(first), len(other))
            assert shared >= 25
            assert first[:shared] == other[:shared]


@pytest.mark.parametrize("env_id", IDS)
def test_all_is_what_there_is_without_it(env_id):
    plain, wrapped = federation(env_id), Participation(federation(env_id), "all")
    first, second = plain.reset_batch([5, 6]), wrapped.reset_batch([5, 6])
    for _ in range(40):
        for name, array in first.observation.items():
            np.testing.assert_array_equal(array, second.observation[name])
        first, second = (env.step_batch(constant_action(env, 2)) for env in (plain, wrapped))
        np.testing.assert_array_equal(first.reward, second.reward)
    assert second.observation["active"].all()


def test_laws():
    """Uniform: 2,000 rounds, 500 an agent, within 5 sd (97); each with probability 0.4: 800 within 5 sd (110)."""
    counts = {}
    for name, law in {"uniform": "uniform", "probability": PROBABLY}.items():
        env = Participation(small(max_cycles=3000), law)
        env.reset_batch([0])
        for _ in range(2000):
            seen = env.step_batch(np.zeros((1, 4, PRODUCERS), np.int64)).observation
        counts[name] = seen["own_round"][0, :, 0]
    assert (abs(counts["uniform"] - 500) < 97).all()
    assert (abs(counts["probability"] - 800) < 110).all()
    given = {"name": "sequence", "rounds": [2, [0, 3], []]}
    for law, expected in ((given, [[2], [0, 3], [], [2], [0, 3]]), ("in_turn", [[0], [1], [2], [3], [0]])):
        env = Participation(small(), law)
        seen = [np.flatnonzero(env.reset_batch([0]).observation["active"]).tolist()]
        for _ in range(4):
            step = env.step_batch(np.zeros((1, 4, PRODUCERS), np.int64))
            seen.append(np.flatnonzero(step.observation["active"]).tolist())
        assert seen == expected


@pytest.mark.parametrize("name", ["SS-UCB", "P-FCB", "FedUCB-min"])
def test_baselines_learn_in_rounds_of_their_own(name):
    """Policies meet what is new to them only when they act: regret an own round falls."""
    baseline = BASELINES[name]
    sizes = {"num_agents": 4, "max_cycles": 4000, "instance_seed": 1}
    env = baseline.wrap(Participation(baseline.federation(**sizes), "uniform"))
    curve = simulate(env, baseline.make_policy(), range(3))
    regret = curve.regret.mean(axis=(1, 2))
    early, late = (np.interp(t, curve.rounds, regret) for t in (500, 3500))
    assert regret[-1] - late < 0.8 * early


@pytest.mark.filterwarnings("ignore:calibration is 'classic'")
def test_the_statistic_leaves_once_however_agents_come_and_go():
    env = Channel(
        GaussianPrivatizer(Interleaved(Participation(small(), PROBABLY), 3), epsilon_per_release=1e9),
        echo=True,
    )
    observation = env.reset_batch([0]).observation
    heard = np.zeros((1, 4, PRODUCERS))
    for _ in range(50):
        observation = env.step_batch(np.full((1, 4, PRODUCERS), 2)).observation
        heard += observation["inbox_delivered"].sum(axis=(2, 3))
    total = observation["total_delivered"].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(heard, np.broadcast_to(total, heard.shape), atol=1e-3)


test_bad_laws_are_named = refusals(
    lambda law: Participation(small(), law),
    ("sometimes", ValueError, r"law name is 'sometimes'; one of \['all', 'in_turn', "),
    ({"name": "probability", "probability": 1.5}, ValueError, "probability is 1.5"),
    ({"name": "sequence", "rounds": []}, ValueError, r"rounds is \[\]"),
    ({"name": "sequence", "rounds": [-1]}, ValueError, r"rounds\[0\] is -1"),
    ({"name": "sequence", "rounds": [0, [1, 4]]}, ValueError, r"rounds\[1\] is 4; an integer in"),
)


def test_one_participation_is_enough():
    with pytest.raises(ValueError, match="env has a Participation already"):
        Participation(Participation(small()))
