"""Suites are data, and frozen."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import wilcoxon

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.leaderboard.plays import baselines_of
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.registry.registration import make_federation

# Digests are of all arguments, defaults too.
# Whoever changes one raises the suite's version: results of another suite are other results.
FROZEN = {
    "procurement": (2, "f89a6220cedafb0f040b839b891b148bf506fb3544a14944727186273f9682a8"),
    "procurement-quick": (2, "c67daa71e690a06ceb682bf333cb7d19076cc4f2069b73a1cffd13e409664f93"),
    "linear": (2, "2e66bf43c7517a3591f6c8570a4f9dcefcd288d65ec11490f4190db87e888275"),
    "linear-quick": (2, "701e7d355203e1c76388784a25b469ab6770482b9009f4694971ddf19af5cdad"),
    "classification": (1, "a65cd8a9e35a08e91cd10294933db30429ee41bdd72c937b99109d5cca7f8637"),
    "classification-quick": (1, "ee08a7f625a04511e185d84390a6107bcf29081fb63a48f19653c55ea9c052e3"),
    "exposure": (2, "39fd6b854401fe68c37b0b300e636691a48a6cd43d675c529b3180b733689bfc"),
    "exposure-quick": (2, "75b5286bc65685018424c7b4fab335ae26b0b626464232aef7fa31a56b6899d2"),
    "arms": (3, "d49f40e1b0b9024c9ca4e17ff512335a3b7962d54d8e22686908a07138ef15d8"),
    "arms-quick": (3, "52120aa8ba973ea7af85ddf611c104398072b4a0076a0e95a9fd429cb544afa6"),
}


def test_suites_are_those_that_were_frozen():
    assert {name: (suite.version, suite.digest) for name, suite in SUITES.items()} == FROZEN


@pytest.mark.parametrize("name", SUITES)
def test_tasks_can_be_played(name):
    suite = SUITES[name]
    assert len({task.id for task in suite.tasks}) == len(suite.tasks)
    for task in suite.tasks:
        env = make_federation(task.env_id, **{**task.env_kwargs, "max_cycles": task.rounds})
        env.reset_batch([0])
        assert suite.adjacency in env.sensitivity().changes
        # Intervals need ten.
        assert task.seeds >= 10
    assert suite.reference in baselines_of(suite)


def test_every_baseline_is_in_a_quick_and_in_a_full_suite():
    # Baselines of linear bandits are in two suites: a labelled table is a linear bandit, too.
    quick, full = (
        {
            name
            for suite in SUITES.values()
            if suite.name.endswith("-quick") == short
            for name in baselines_of(suite)
        }
        for short in (True, False)
    )
    assert baselines_of(SUITES["classification"]) == baselines_of(SUITES["linear"])
    # Gaussian arms have no suites, and those of linear bandits have neither logistic rewards nor fixed contexts.
    ranked = [
        name
        for name, baseline in BASELINES.items()
        if baseline.federation is not GaussianEnv and not baseline.only
    ]
    assert sorted(quick) == sorted(full) == sorted(ranked)


@pytest.mark.parametrize(("name", "value"), [("reward_offset", 0.5), ("statistic", "moments")])
def test_arguments_that_came_later_make_another_task_if_they_are_used(name, value):
    task = SUITES["linear-quick"].tasks[0]
    unchanged = type(make_federation(task.env_id)).added_arguments[name]
    assert replace(task, env_kwargs={name: unchanged}).digest == task.digest
    assert replace(task, env_kwargs={name: value}).digest != task.digest


BY_HIDDEN = {"mean": "values", "quality": "index", "parameter": "parameter"}
"""The action format in which an agent gives estimates of a hidden parameter, by the parameter's name."""

INSTANCES = 300


def memory(env):
    """Returns how many instances repeat another one, and p-values of the test that memory of instances is of no use.

    Instances 0 to 299 are remembered, and 300 to 599 are played for a round. One agent acts as if its instance were a
    remembered one, another as if it were the mean of all of them; each is compared with the same agent after the places
    (arms, producers or features) of what it remembers are exchanged at random. Where a place means nothing beyond one
    instance, both have the same distribution of regret, and the p-values (Wilcoxon's signed-rank test, one-sided) are
    exact up to its normal approximation.
    """
    env.reset_batch(range(INSTANCES))
    [(name, remembered)] = env.hidden().items()
    observation = env.reset_batch(range(INSTANCES, 2 * INSTANCES)).observation
    instances = np.concatenate([remembered, env.hidden()[name]])
    repeated = len(instances) - len(np.unique(instances, axis=0))

    def regret(estimates):
        # A copy is as it is after the reset, which takes longer.
        mine, seen = deepcopy((env, observation))
        action = mine.action_formats[BY_HIDDEN[name]].to_action(estimates, seen)
        return mine.step_batch(action).info["regret"].mean(axis=1)

    generator, chances = np.random.default_rng(0), []
    for known in (remembered, np.broadcast_to(remembered.mean(axis=0), remembered.shape)):
        # The agents of an instance get the same order, since they may share their memory.
        orders = generator.permuted(np.tile(np.arange(known.shape[2]), (INSTANCES, 1, 1)), axis=2)
        exchanged = regret(np.take_along_axis(known, orders, axis=2))
        gain = exchanged - regret(known)
        chances.append(wilcoxon(gain, alternative="greater").pvalue if gain.any() else 1.0)
    return repeated, min(chances)


def marks_of(suite, task):
    """Returns the marks of a task's test: full suites are slow, and a table of images takes half of the time."""
    if suite.name.endswith("-quick"):
        return pytest.mark.ci if task.id.endswith("/digits") else ()
    return pytest.mark.slow


@pytest.mark.parametrize("task", [
    pytest.param(task, id=task.id, marks=marks_of(suite, task))
    for suite in SUITES.values()
    for task in suite.tasks
])  # fmt: skip
def test_memory_of_other_instances_is_of_no_use(task):
    """40 p-values, none below 1e-6: with other seeds the tests would fail without a reason in 4 of 100,000 runs."""
    repeated, chance = memory(task.federation())
    assert repeated == 0
    assert chance > 1e-6


@pytest.mark.parametrize(("env_id", "changes", "repeated", "useful"), [
    ("FedArmsMovieLens-v0", {"num_arms": 10}, 2 * INSTANCES - 1, True),
    ("FedLinearInTurn-v0", {}, 2 * INSTANCES - 1, False),
    (
        "FedClassification-v0",
        {"contexts": {"name": "classification", "data": "wine"}},
        2 * INSTANCES - 1,
        True,
    ),
    ("FedArms-v0", {"means": [0.6, 0.5, 0.5, 0.5], "spread": 0.2}, 0, True),
])  # fmt: skip
def test_instances_that_can_be_remembered_are_found(env_id, changes, repeated, useful):
    """The same arms in order; one parameter with equal entries; a table as it is; an arm that is mostly the best."""
    found, chance = memory(make_federation(env_id, **changes))
    assert found == repeated
    assert (chance < 1e-6) == useful
