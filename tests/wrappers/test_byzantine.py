"""Liars: what they release, and that nothing else changes."""

import json

import numpy as np
import pytest
from refusals import refusals
from typed import call

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.procurement_v0 import parallel_env as procurement
from fedbandit_envs.wrappers import (
    Byzantine,
    Channel,
    ContinualPrivatizer,
    GaussianPrivatizer,
    RandomizedResponsePrivatizer,
)

LIARS = [1, 3]
MAKES = {
    "linear": lambda: linear(num_agents=5, num_arms=6, dim=3, instance_seed=0),
    "procurement": lambda: procurement(num_agents=5, num_producers=4, instance_seed=0),
}
ENTRY = "fedbandit_envs.wrappers.byzantine:Byzantine"


def totals(env, rounds=10, senders=None, seeds=(0, 1)):
    """What each agent has told in all after each round, by name, and what the environment's agents saw."""
    reset = env.reset_batch(seeds)
    told, played = None, []
    rows = (len(seeds), env.max_num_agents)
    generator = np.random.default_rng(0)
    for t in range(rounds):
        capacity = reset.observation.get("capacity")
        if capacity is None:
            action = generator.integers(0, 6, rows)
        else:
            action = generator.integers(0, 2, capacity.shape).astype(np.int32)
        step = env.step_batch(action)
        released = env.release(np.ones(rows, bool) if senders is None else senders(t))
        told = {name: array + (0 if told is None else told[name]) for name, array in released.items()}
        played.append((told, {name: array.copy() for name, array in step.observation.items()}, released))
    return played


@pytest.fixture(params=MAKES)
def make(request):
    return MAKES[request.param]


@pytest.mark.parametrize(("attack", "factor"), [("sign_flip", -1), ({"name": "scaled", "scale": 7}, 7)])
def test_lies_that_multiply(make, attack, factor):
    honest = totals(make())
    for (told, seen, released), (truth, untouched, increments) in zip(
        totals(Byzantine(make(), LIARS, attack)), honest, strict=True
    ):
        for name in told:
            expected = truth[name].copy()
            expected[:, LIARS] *= factor
            np.testing.assert_allclose(told[name], expected, rtol=1e-12, atol=1e-12)
            assert released[name].dtype == increments[name].dtype
            np.testing.assert_array_equal(released[name][:, [0, 2, 4]], increments[name][:, [0, 2, 4]])
        for name in seen:
            np.testing.assert_array_equal(seen[name], untouched[name])


def test_garbage_is_as_large_as_it_says_and_the_truth_of_the_honest_stays(make):
    sizes = []
    honest = totals(make(), seeds=range(20))
    for (told, seen, _), (truth, untouched, _) in zip(
        totals(Byzantine(make(), LIARS), seeds=range(20)), honest, strict=True
    ):
        for name in told:
            np.testing.assert_allclose(told[name][:, [0, 2, 4]], truth[name][:, [0, 2, 4]], rtol=1e-12)
            axes = tuple(range(2, truth[name].ndim))
            size = np.sqrt(np.square(truth[name][:, LIARS].astype(float)).mean(axis=axes, keepdims=True))
            ratio = told[name][:, LIARS] / (1000 * np.where(size > 0, size, np.inf))
            sizes.append(ratio[np.broadcast_to(size > 0, ratio.shape)])
            np.testing.assert_array_equal(seen[f"total_{name}"], untouched[f"total_{name}"])
    drawn = np.concatenate(sizes)
    # Thousands of standard normal numbers, some twice; five standard deviations are passed once in a million.
    assert abs(drawn.mean()) < 0.1
    assert drawn.std() == pytest.approx(1, abs=0.1)


def test_lies_keep_to_their_form():
    told, _, released = totals(Byzantine(MAKES["linear"](), LIARS))[-1]
    np.testing.assert_allclose(told["statistic"], told["statistic"].swapaxes(-1, -2))
    _, _, released = totals(Byzantine(MAKES["procurement"](), LIARS))[-1]
    assert {array.dtype for array in released.values()} == {np.dtype(np.int64)}


def test_lies_do_not_depend_on_who_sends(make):
    """Whoever else sends, and however often oneself has, the lie of a round is the same."""
    first = np.zeros((2, 5), bool)

    def seldom(t):
        sends = first.copy()
        sends[:, 1] = t in (4, 9)
        return sends

    often, now = totals(Byzantine(make(), LIARS)), totals(Byzantine(make(), LIARS), senders=seldom)
    alone = totals(Byzantine(make(), [1]))
    again = totals(Byzantine(make(), LIARS))
    for name, array in often[-1][0].items():
        np.testing.assert_allclose(now[-1][0][name][:, 1], array[:, 1], rtol=1e-9, atol=1e-6)
        np.testing.assert_array_equal(alone[-1][0][name][:, 1], array[:, 1])
        np.testing.assert_array_equal(again[-1][0][name], array)
        assert not np.array_equal(array[0, 1], array[1, 1])


def test_agents_by_share_are_the_last_and_groups_say_who_lies():
    env = MAKES["linear"]()
    assert env.groups == {}
    assert Byzantine(env, 0.4).groups == {"liars": [3, 4], "honest": [0, 1, 2]}
    assert Byzantine(env, 0).groups == {"honest": [0, 1, 2, 3, 4]}
    assert Byzantine(env, 1.0).groups == {"liars": [0, 1, 2, 3, 4]}
    twice = Channel(Byzantine(Byzantine(env, [0], "sign_flip"), [3, 0]))
    assert twice.groups == {"liars": [0, 3], "honest": [1, 2, 4]}


test_bad_parameters_are_named = refusals(
    lambda kwargs: Byzantine(MAKES["linear"](), **kwargs),
    ({"agents": [5]}, ValueError, r"agents\[0\] is 5"),
    ({"agents": [-1]}, ValueError, r"agents\[0\] is -1"),
    ({"agents": 1.5}, ValueError, "agents is 1.5"),
    ({"agents": "all"}, TypeError, "agents is 'all'"),
    ({"attack": "noise"}, ValueError, "attack name is 'noise'"),
    ({"attack": 3}, TypeError, "attack is 3"),
    ({"attack": {"name": "garbage", "scale": 0}}, ValueError, "scale is 0"),
    ({"attack": {"name": "sign_flip", "scale": 2}}, TypeError, "sign_flip"),
)


@pytest.mark.parametrize("attack", ["garbage", "sign_flip", "scaled"])
def test_privatizers_add_their_noise_to_lies_and_claim_what_they_did(attack):
    for make, privatizer in (
        ("procurement", lambda env: GaussianPrivatizer(env, epsilon_per_release=1.0)),
        ("procurement", lambda env: RandomizedResponsePrivatizer(env, epsilon_per_release=1.0)),
        ("linear", lambda env: ContinualPrivatizer(env, 1.0, 0.1)),
    ):
        honest, lying = privatizer(MAKES[make]()), privatizer(Byzantine(MAKES[make](), LIARS, attack))
        for (told, _, _), (truth, _, _) in zip(totals(lying, 5), totals(honest, 5), strict=True):
            for name in told:
                np.testing.assert_array_equal(told[name][:, [0, 2, 4]], truth[name][:, [0, 2, 4]])
                assert np.isfinite(told[name]).all()
        assert lying.privacy() == honest.privacy()


def test_results_tell_groups_apart():
    given = "FedUCB-nonprivate", "FedLinear-v0", 50, 3
    specs = [RunSpec(*given, first_seed=0, stack=stack) for stack in ([[ENTRY, {"agents": [0, 2]}]], ())]
    simulation, other = (spec.run() for spec in specs)
    result, everybody = (
        {**one.as_json(), "settings": spec.recorded()}
        for one, spec in zip((simulation, other), specs, strict=True)
    )
    assert "groups" not in everybody
    assert "stack" not in everybody["settings"]
    assert [list(layer) for layer in result["settings"]["stack"]] == [[ENTRY, {"agents": [0, 2]}]]
    assert result.keys() - everybody.keys() == {"groups"}
    np.testing.assert_allclose(result["per_seed"], simulation.regret[-1].mean(axis=1))
    for name, agents in {"liars": [0, 2], "honest": [1, *range(3, 10)]}.items():
        group = result["groups"][name]
        assert group["agents"] == agents
        regret = simulation.regret[:, :, agents].mean(axis=2)
        np.testing.assert_allclose(group["per_seed"], regret[-1])
        means = [row["regret_mean"] for row in group["checkpoints"]]
        np.testing.assert_allclose(means, regret.mean(axis=1))


def test_the_command_line_takes_a_stack():
    words = ["run", "LinUCB", "FedLinear-v0", "--rounds", "20", "--seeds", "2", "--json"]
    ran = call(*words, "--stack", json.dumps([[ENTRY, {"agents": 0.2}]]))
    assert ran.exit_code == 0, ran.output
    # Older versions of click mix progress into it.
    told = json.loads(ran.stdout[ran.stdout.index("{") :])
    assert told["groups"]["liars"]["agents"] == [8, 9]
    for stack in ("[", "[3]", '[["nowhere:Nothing", {}]]', f'[["{ENTRY}", {{"agents": 2}}]]'):
        assert call(*words, "--stack", stack).exit_code == 2, stack
