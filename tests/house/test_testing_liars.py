"""Environments that run without error but lie about themselves are caught, by name; their honest twins pass.

Every liar's docstring is what the message must say. ``checks`` are those that catch it: without them it passes, which
shows that nothing else does and that a check that has become idle is noticed. All seeds are fixed.
"""

from functools import partial

import arms_env
import numpy as np
import pytest
from gymnasium import spaces
from pairs import every_fourth
from registered import PROBLEMS

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.core.neighbours import Neighbours
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.sensitivity import Change
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.testing import check_federation, federation, problem
from fedbandit_envs.testing.episodes import Trial

LIARS = []
"""Pairs of a liar and its honest twin."""


def lies_beside(honest):
    """Registers a liar beside its honest twin."""

    def register(liar):
        LIARS.append(pytest.param(liar, honest, id=liar.__name__))
        return liar

    return register


def declared(sensitivity, scale=1.0, norm=1.0, values=None):
    """Returns a sensitivity with factors on scales and norms, and perhaps another number of values."""
    changes = {
        adjacency: Change(change.values if values is None else values, change.norm * norm)
        for adjacency, change in sensitivity.changes.items()
    }
    return sensitivity._replace(
        scale={name: array * scale for name, array in sensitivity.scale.items()}, changes=changes
    )


# Sensitivity


class Arms(ArmsEnv):
    def __init__(self, num_agents=3, **kwargs):
        super().__init__(num_agents=num_agents, **{"num_arms": None if "means" in kwargs else 4, **kwargs})


@lies_beside(Arms)
class DeclaresATenth(Arms):
    """sensitivity is too small: .* the largest difference of a value is 10 in declared units; at most 1 is"""

    checks = ("check_neighbours", "check_worse_neighbours")

    def _sensitivity(self):
        return declared(super()._sensitivity(), scale=0.1)


@lies_beside(Arms)
class DeclaresFewerValues(Arms):
    """sensitivity is too small: .* the number of values that differ is 4 .*; at most 3 is declared"""

    checks = DeclaresATenth.checks

    def _sensitivity(self):
        return declared(super()._sensitivity(), values=3)


@lies_beside(Arms)
class DeclaresASmallerPair(Arms):
    """sensitivity is too small: good and defective outcomes .* the Euclidean norm is 1.41421 .*; at most 0.14"""

    checks = DeclaresATenth.checks

    def _sensitivity(self):
        told = super()._sensitivity()
        changes = {name: Change(2, norm / 10) for name, (_, norm) in told.pair.changes.items()}
        return told._replace(pair=told.pair._replace(changes=changes))


@lies_beside(Arms)
class DeclaresFewerOutcomes(Arms):
    """sensitivity is too small: good and defective outcomes .* the number of values that differ is 2 .* most 1 is"""

    checks = DeclaresATenth.checks

    def _sensitivity(self):
        told = super()._sensitivity()
        changes = {name: Change(1, norm) for name, (_, norm) in told.pair.changes.items()}
        return told._replace(pair=told.pair._replace(changes=changes))


class Linear(LinearEnv):
    def __init__(self, num_agents=3, **kwargs):
        super().__init__(num_agents=num_agents, **{"dim": None if "contexts" in kwargs else 3, **kwargs})


@lies_beside(Linear)
class DeclaresALittleLess(Linear):
    """sensitivity is too small: releases of the pair that neighbours\\('one-observation'\\) returns differ"""

    checks = ("check_neighbours",)

    def _sensitivity(self):
        return declared(super()._sensitivity(), norm=0.99)


@lies_beside(Arms)
class NamesNoNeighbours(DeclaresATenth):
    """sensitivity is too small: releases of agents that act otherwise in one round"""

    checks = ("check_worse_neighbours",)
    neighbours = staticmethod(lambda adjacency: [])


@lies_beside(Arms)
class NamesHarmlessNeighbours(DeclaresATenth):
    """sensitivity is too small: releases of agents that act otherwise in one round"""

    checks = ("check_worse_neighbours",)

    @staticmethod
    def neighbours(adjacency):
        return [Neighbours(pair.before, pair.before, pair.idle) for pair in ArmsEnv.neighbours(adjacency)]


class ProtectsOutcomes(arms_env.ArmsEnv):
    def _sensitivity(self):
        told = super()._sensitivity()
        return told._replace(changes={"one-outcome": told.changes["one-outcome"]}, pair=None)


@lies_beside(ProtectsOutcomes)
class ProtectsHalfAnOutcome(ProtectsOutcomes):
    """sensitivity is too small: releases of agents with other outcomes"""

    checks = ("check_worse_neighbours",)

    def _sensitivity(self):
        return declared(super()._sensitivity(), scale=0.5)


# Regret


class Clairvoyant(arms_env.ArmsEnv):
    def clairvoyant(self, observation):
        return self.hidden()["mean"].argmax(axis=-1)


class AltersRegret(Clairvoyant):
    checks = ("check_regret",)

    def _play_round(self, action):
        super()._play_round(action)
        self._info["regret"][...] = self.altered(self._info["regret"])


@lies_beside(arms_env.ArmsEnv)
class GainsInPlaceOfRegret(AltersRegret):
    """regret is -0.8\\d* under random actions; a number >= 0 is required"""

    clairvoyant = arms_env.ArmsEnv.clairvoyant

    def altered(self, regret):
        return -regret


@lies_beside(Clairvoyant)
class RegretsTheBest(AltersRegret):
    """regret is 0.01 under the actions of clairvoyant; 0 \\(to 1e-09\\) is required"""

    def altered(self, regret):
        return (regret + 0.01) * self._active


@lies_beside(Clairvoyant)
class RegretsNothing(AltersRegret):
    """regret is 0 under all random actions"""

    def altered(self, regret):
        return 0.0 * regret


@lies_beside(arms_env.ArmsEnv)
class RegretsBadLuck(arms_env.ArmsEnv):
    """regret of the same actions with other outcomes and without, .*: regret is in expectation over outcomes"""

    checks = ("check_regret",)

    def _play_round(self, action):
        super()._play_round(action)
        self._info["regret"][...] = (1 - self._reward) * self._active


# Isolation


class SeesOwnSum(arms_env.ArmsEnv):
    """Agents also see a sum of rewards: their own, last round's."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.single_observation_space = spaces.Dict(
            {**self.single_observation_space, "sum": spaces.Box(-np.inf, np.inf, (1,), np.float64)}
        )

    def seen(self):
        return self._reward

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["sum"][..., 0] = self.seen()


class Spies(arms_env.ArmsEnv):
    checks = ("check_isolation",)

    def with_others(self, own):
        """Returns what agents have, and for agent 0 the sum over all agents."""
        return np.concatenate([own.sum(axis=1, keepdims=True), own[:, 1:]], axis=1)


@lies_beside(SeesOwnSum)
class SeesAll(Spies, SeesOwnSum):
    """of agents that act alike while another agent acts otherwise, round\\[\\d\\]\\['observation'\\]\\['sum'\\] is"""

    def seen(self):
        return self.with_others(self._reward)


class SaysOwnReward(arms_env.ArmsEnv):
    """Information also has a reward: the agent's own."""

    information = {"paid": np.float64}  # noqa: RUF012 - never written to

    def said(self):
        return self._reward

    def _play_round(self, action):
        super()._play_round(action)
        self._info["paid"][...] = self.said() * self._active


@lies_beside(SaysOwnReward)
class SaysAll(Spies, SaysOwnReward):
    """acts otherwise, round\\[\\d\\]\\['info'\\]\\['paid'\\] is .*: agents learn of others by what"""

    def said(self):
        return self.with_others(self._reward)


@lies_beside(arms_env.ArmsEnv)
class PaysForAll(Spies):
    """acts otherwise, round\\[\\d\\]\\['reward'\\] is"""

    def _play_round(self, action):
        super()._play_round(action)
        self._reward[...] = self.with_others(self._reward) * self._active / self.max_num_agents


@lies_beside(SeesOwnSum)
class SeesWhatWasReleased(Spies, SeesOwnSum):
    """a round after releases, in comparison with one after silence,\\['observation'\\]\\['sum'\\] is"""

    checks = ("check_increments",)

    def seen(self):
        return self.with_others(self._released["successes"].sum(axis=-1))


@lies_beside(arms_env.ArmsEnv)
class CountsForAll(Spies):
    """acts otherwise, round\\[\\d\\]\\['observation'\\]\\['total_successes'\\] is"""

    checks = ("check_isolation", "check_worse_neighbours")

    def _play_round(self, action):
        before = self._observation["total_successes"].copy()
        super()._play_round(action)
        grown = self._observation["total_successes"] - before
        shown = self.with_others(grown) * self._active[..., np.newaxis]
        self._observation["total_successes"][...] = before + shown


# Random numbers


@lies_beside(arms_env.ArmsEnv)
class DrawsByHistory(arms_env.ArmsEnv):
    """in rounds after one in which it acted otherwise, round.*; common random numbers are required"""

    checks = ("check_common_random_numbers",)

    def _play_round(self, action):
        drawn = self._outcomes
        past = self._observation["total_pulls"][..., 0].astype(np.uint32)
        self._outcomes = drawn._replace(round=drawn.round + 1000 * past)
        super()._play_round(action)
        self._outcomes = drawn


@lies_beside(arms_env.ArmsEnv)
class LooksAtItsNeighbourReplica(arms_env.ArmsEnv):
    """of a replica alone and as number"""

    checks = ("check_seeds",)

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._mean[...] = self._mean.mean(axis=0)


# Releases and statistics


@lies_beside(arms_env.ArmsEnv)
class ReleasesNothingOfAnArm(arms_env.ArmsEnv):
    """releases of 'pulls' add up to \\[0\\] where 'total_pulls' has grown by \\[[1-6]\\]"""

    checks = ("check_totals",)

    def _release(self, sends):
        return {name: array * (np.arange(4) > 0) for name, array in super()._release(sends).items()}


@lies_beside(arms_env.ArmsEnv)
class ReleasesAgain(arms_env.ArmsEnv):
    """release of 'pulls' a second time in a row is \\[1\\]; zero is required"""

    checks = ("check_increments",)

    def _release(self, sends):
        grown = super()._release(sends)
        again = sends & ~grown["pulls"].any(axis=-1) & (self._round > 0)
        return {name: array + again[..., np.newaxis] for name, array in grown.items()}


@lies_beside(arms_env.ArmsEnv)
class CountsForTheInactive(arms_env.ArmsEnv):
    """total_pulls of agents that do not act is or grows by \\[1\\]"""

    checks = ("check_inactive",)

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["total_pulls"][..., 0] += ~self._active


@lies_beside(arms_env.ArmsEnv)
class PaysTheInactive(arms_env.ArmsEnv):
    """reward of agents that do not act is or grows by \\[1.\\]"""

    checks = ("check_inactive",)

    def _play_round(self, action):
        super()._play_round(action)
        self._reward[~self._active] = 1.0


@lies_beside(arms_env.ArmsEnv)
class NeedsLessNoiseForAWhile(arms_env.ArmsEnv):
    """sensitivity after round 4 and at reset.*; a constant is required over an episode"""

    checks = ("check_sensitivity",)

    def _sensitivity(self):
        return declared(super()._sensitivity(), norm=0.99 if self._round == 5 else 1.0)


@lies_beside(arms_env.ArmsEnv)
class PromisesMoreLater(arms_env.ArmsEnv):
    """largest_reward\\(\\) after a round and at reset.*; a constant is required"""

    checks = ("check_arrays",)

    def _largest_reward(self):
        return super()._largest_reward() + self._observation["total_pulls"].sum(axis=-1)


@lies_beside(arms_env.ArmsEnv)
class PaysTwice(arms_env.ArmsEnv):
    """reward is \\[2.\\] where largest_reward\\(\\) is \\[1.\\]"""

    checks = ("check_arrays",)

    def _play_round(self, action):
        super()._play_round(action)
        self._reward *= 1 + (action == 3)


# What is shown


class Hints(SeesOwnSum):
    def seen(self):
        return 0.5


@lies_beside(Hints)
class HintsAtTheBestMean(Hints):
    """observation 'sum' has a number of hidden 'mean' in 108 of 108 rows at reset"""

    checks = ("check_hidden",)

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._observation["sum"][...] = self._mean.max(axis=-1)[:, np.newaxis, np.newaxis]

    def seen(self):
        return self._mean.max(axis=-1)[:, np.newaxis]


class HasConstants(arms_env.ArmsEnv):
    @property
    def public(self):
        return {"price": np.arange(4.0)}


@lies_beside(HasConstants)
class HasVariables(HasConstants):
    """public is \\{'price': .*\\} after round 0; what it was before the episode is required"""

    checks = ("check_public",)

    @property
    def public(self):
        return {"price": np.arange(4.0) + (self._round or 0)}


@lies_beside(arms_env.ArmsEnv)
class EndsEarly(arms_env.ArmsEnv):
    """with max_cycles 5, truncated is \\[False, False, False, True, True\\] by round"""

    checks = ("check_horizon",)

    def step_batch(self, action):
        step = super().step_batch(action)
        early = self.max_cycles == 5 and self._round == 4
        return step._replace(truncated=self._result.views["over"]) if early else step


@lies_beside(arms_env.ArmsEnv)
class KnowsAtReset(SaysOwnReward):
    """info 'paid' is \\[1.\\] at reset; zeros are required"""

    checks = ("check_arrays",)

    def _start(self, randomness, instance_seeds):
        super()._start(randomness, instance_seeds)
        self._info["paid"][:, 0] = 1.0


def without(monkeypatch, *names):
    """Switches checks off, after making sure that there are such."""
    known = {check.__name__ for check in (*federation.CHECKS, *federation.PROBLEM_CHECKS)}
    assert set(names) <= known
    for checks in ("CHECKS", "PROBLEM_CHECKS"):
        left = [check for check in getattr(federation, checks) if check.__name__ not in names]
        monkeypatch.setattr(federation, checks, left)


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(("liar", "honest"), LIARS)
def test_liars_are_caught(liar, honest):
    with pytest.raises(AssertionError, match=liar.__doc__):
        check_federation(liar)


@pytest.mark.parametrize("honest", sorted({pair.values[1] for pair in LIARS}, key=lambda twin: twin.__name__))
def test_their_honest_twins_are_not(honest):
    check_federation(honest)


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(("liar", "honest"), every_fourth(LIARS))
def test_without_its_checks_a_liar_passes(liar, honest, monkeypatch):
    without(monkeypatch, *liar.checks)
    check_federation(liar)


def test_every_check_of_problems_is_needed():
    """A check that no liar needs alone could be switched off unnoticed."""
    alone = {liar.checks[0] for liar, _ in (pair.values for pair in LIARS) if len(liar.checks) == 1}
    assert {check.__name__ for check in federation.PROBLEM_CHECKS} <= alone


CHECKS_OF_SENSITIVITY = [problem.check_neighbours, problem.check_worse_neighbours]


def trial(make):
    return Trial(make, range(problem.TRIES), problem.ROUNDS)


@pytest.mark.parametrize("check", CHECKS_OF_SENSITIVITY)
@pytest.mark.parametrize("factor", [10, 1000])
@pytest.mark.parametrize("env", PROBLEMS)
def test_both_checks_of_sensitivity_catch_every_problem_that_declares_too_little(env, factor, check):
    class Liar(env):
        def _sensitivity(self):
            return declared(super()._sensitivity(), scale=1 / factor)

    small = PROBLEMS[env].small
    check(trial(partial(env, num_agents=3, **small)))
    with pytest.raises(AssertionError, match="sensitivity is too small"):
        check(trial(partial(Liar, num_agents=3, **small)))


@pytest.mark.parametrize("env_id", REGISTRY)
def test_presets_as_large_as_they_are_registered_declare_enough(env_id):
    """In the sizes of arms, dimensions and producers; more agents release no more each."""
    agents = min(REGISTRY[env_id].kwargs.get("num_agents", 10), 4)
    for check in CHECKS_OF_SENSITIVITY:
        check(trial(lambda: make_federation(env_id, num_agents=agents).unwrapped))


@pytest.mark.parametrize("env", PROBLEMS)
def test_one_agent_with_as_little_as_there_can_be(env):
    """With one arm or producer every action may be the best."""
    size = {"num_producers": 1} if env is ProcurementEnv else {"num_arms": 1}
    for check in federation.PROBLEM_CHECKS:
        if check is not problem.check_regret:
            check(trial(partial(env, num_agents=1, **size)))


@pytest.mark.parametrize("env", PROBLEMS)
def test_registered_problems_name_a_clairvoyant_and_worst_neighbours(env):
    made = env(num_agents=2, **PROBLEMS[env].small)
    observation = made.reset_batch([0]).observation
    assert made.clairvoyant(observation) is not None
    assert all(made.neighbours(adjacency) for adjacency in made.sensitivity().changes)


class Crowds(arms_env.ArmsEnv):
    """An arm that two agents pull pays half: agents interact."""

    interacting = True

    def _play_round(self, action):
        super()._play_round(action)
        pulls = (action[..., np.newaxis] == action[:, np.newaxis]).sum(axis=-1)
        self._reward /= np.maximum(pulls, 1)


def test_agents_that_interact_declare_it(monkeypatch):
    with pytest.warns(
        UserWarning, match="Crowds declares interacting = True: not checked is whether agents see"
    ):
        check_federation(Crowds)
    monkeypatch.setattr(Crowds, "interacting", False)
    with pytest.raises(AssertionError, match="a problem whose agents interact declares interacting = True"):
        check_federation(Crowds)


def test_arms_that_wear_out_declare_it(monkeypatch):
    with pytest.raises(AssertionError, match="declares stateful = True"):
        check_federation(DrawsByHistory)
    monkeypatch.setattr(DrawsByHistory, "stateful", True)
    check_federation(DrawsByHistory)


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("oracle", ["greedy", "exact"])
def test_an_oracle_that_actions_beat_declares_it(oracle):
    env = ProcurementEnv(num_agents=2, num_producers=3, regret_oracle=oracle)
    assert env.approximate_oracle == (oracle == "greedy")
    check_federation(partial(ProcurementEnv, num_agents=2, num_producers=3, regret_oracle=oracle))


class LosesItsTotal(arms_env.ArmsEnv):
    statistics = ("pulls",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.single_release_space = spaces.Dict(
            {"pulls": spaces.Box(0, MOST, (4,), np.int64), "spare": spaces.Box(0, MOST, (4,), np.int64)}
        )


def test_what_is_released_has_a_total():
    with pytest.raises(
        AssertionError, match="observations have no 'total_spare'; whatever is released needs"
    ):
        problem.check_totals(trial(LosesItsTotal))
