"""Mutants of the real code, each made by one patch: what finds it lets the honest code pass and catches the mutant.

Some are found by an attack, others by what holds of any federation: nothing is sent twice, the silent are silent, noise
is everybody's own, no round tells more than the environment says. Lower bounds are too high with probability 1e-4
each: were their seeds not fixed, one of the 12 audits of honest mechanisms would raise a false alarm in 1 of 800 runs.
"""

import math

import numpy as np
import pytest

from fedbandit_envs.core.problem import Problem
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.linear.neighbours import of_outer
from fedbandit_envs.linear.rewards import RewardDistribution
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.procurement.neighbours import sensitivity as procurement_sensitivity
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers import (
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
)
from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.privacy import privatizer as privatizer_module
from fedbandit_envs.wrappers.privacy.audit import Audit, attack
from fedbandit_envs.wrappers.privacy.mechanisms.additive import (
    AdditiveMechanism,
    Gaussian,
    Laplace,
    RandomizedResponse,
)
from fedbandit_envs.wrappers.privacy.mechanisms.prefix_noise import SqrtToeplitzNoise, TreeNoise
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer

pytestmark = pytest.mark.filterwarnings("ignore:the classic calibration")


def gaussian(adjacency="one-quantity", epsilon=4.0, samples=6_000, **kwargs) -> Audit:
    evidence = attack(
        lambda env: GaussianPrivatizer(env, epsilon, releases=1, **kwargs),
        ProcurementEnv, adjacency, samples=samples,
    )  # fmt: skip
    return evidence.against(1e-5)


def continual(mechanism, samples=8_000, epsilon=4.0, releases=4) -> Audit:
    evidence = attack(
        lambda env: ContinualPrivatizer(
            env, epsilon, 1e-5, mechanism, releases=releases, adjacency="one-observation"
        ),
        LinearEnv, "one-observation", releases=releases, altered=1, samples=samples,
    )  # fmt: skip
    return evidence.against(1e-5)


# Found by attacks.


def test_a_scale_that_ends_at_50_units_is_caught(monkeypatch):
    """As if no market had more than the default's."""
    assert gaussian().holds
    monkeypatch.setattr(
        ProcurementEnv,
        "_sensitivity",
        lambda self: procurement_sensitivity(np.minimum(self._observation["capacity"], 50)),
    )
    assert not gaussian().holds


def test_a_replaced_observation_that_would_show_in_one_array_only_is_caught(monkeypatch):
    """A good unit in the place of a defective one is one more of these and one less of those."""
    both = {"adjacency": "one-observation", "pair": "good_and_defective"}
    assert gaussian(**both).holds
    honest = ProcurementEnv._sensitivity

    def mutant(self):
        real = honest(self)
        changes = {**real.pair.changes, "one-observation": real.pair.changes["one-quantity"]}
        return real._replace(pair=real.pair._replace(changes=changes))

    monkeypatch.setattr(ProcurementEnv, "_sensitivity", mutant)
    assert not gaussian(**both).holds


@pytest.mark.parametrize("mechanism", ["sqrt_toeplitz", "tree"])
def test_a_scale_without_rewards_is_caught(monkeypatch, mechanism):
    assert continual(mechanism).holds
    monkeypatch.setattr(
        LinearEnv,
        "_sensitivity",
        lambda self: of_outer(self._observation["total_statistic"].shape, self._context_bound, 0.0),
    )
    assert not continual(mechanism).holds


# Two values of one standard deviation, or as many as a symmetric matrix has: each is cut off in 0.0027 of all cases,
# which nothing shows that looks at the middle.


@pytest.mark.parametrize("adjacency", ["one-quantity", pytest.param("one-outcome", marks=pytest.mark.slow)])
def test_gaussian_noise_without_tails_is_caught(monkeypatch, adjacency):
    assert gaussian(adjacency, epsilon=0.5, samples=25_000).holds
    honest = Gaussian.draw

    def draw(self, generator, share, out):
        honest(self, generator, share, out)
        np.clip(out, -3, 3, out=out)

    monkeypatch.setattr(Gaussian, "draw", draw)
    assert not gaussian(adjacency, epsilon=0.5, samples=25_000).holds


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [("sqrt_toeplitz", SqrtToeplitzNoise), pytest.param("tree", TreeNoise, marks=pytest.mark.slow)],
)
def test_continual_noise_without_tails_is_caught(monkeypatch, mechanism, noise):
    settings = {"epsilon": 1.0, "samples": 20_000, "releases": 2}
    assert continual(mechanism, **settings).holds
    honest = noise.advance
    monkeypatch.setattr(
        noise, "advance", lambda self, rows, z, draws: honest(self, rows, z, np.clip(draws, -3, 3))
    )
    assert not continual(mechanism, **settings).holds


def test_laplace_noise_without_tails_is_caught(monkeypatch):
    def result() -> Audit:
        evidence = attack(
            lambda env: LaplacePrivatizer(env, 1.0, releases=1),
            ProcurementEnv,
            "one-quantity",
            samples=12_000,
        )
        return evidence.against(0.0)

    assert result().holds
    honest = Laplace.draw

    def draw(self, generator, share, out):
        honest(self, generator, share, out)
        np.clip(out, -5, 5, out=out)

    monkeypatch.setattr(Laplace, "draw", draw)
    assert not result().holds


@pytest.mark.parametrize(("mechanism", "delta"), [(GaussianPrivatizer, 1e-5), (LaplacePrivatizer, 0.0)])
def test_the_same_noise_in_every_release_is_caught(monkeypatch, mechanism, delta):
    """What differs between two releases then is no secret."""

    def result() -> Audit:
        evidence = attack(
            lambda env: mechanism(env, 2.0, releases=2),
            ProcurementEnv, "one-quantity", releases=2, altered=1, samples=2_000,
        )  # fmt: skip
        return evidence.against(delta)

    assert result().holds
    honest = AdditiveMechanism.randomise

    def randomise(self, statistic, sends, index):
        if not index.any():
            self.states = [generator.bit_generator.state for generator in self._generators]
        for generator, state in zip(self._generators, self.states, strict=True):
            generator.bit_generator.state = state
        return honest(self, statistic, sends, index)

    monkeypatch.setattr(AdditiveMechanism, "randomise", randomise)
    assert not result().holds


def test_flips_at_the_share_of_another_release_are_caught(monkeypatch):
    """Shares decrease: who always flips at the first tells more in all later releases than is in the books."""

    def result() -> Audit:
        evidence = attack(
            lambda env: RandomizedResponsePrivatizer(env, 4.0),
            ProcurementEnv, "one-outcome", releases=3, samples=3_000,
        )  # fmt: skip
        return evidence.against(0.0)

    assert result().holds
    honest = RandomizedResponse.randomise
    monkeypatch.setattr(
        RandomizedResponse,
        "randomise",
        lambda self, statistic, sends, index: honest(self, statistic, sends, 0 * index),
    )
    assert not result().holds


def test_later_releases_that_are_not_booked_are_caught(monkeypatch):
    """The door has counted them: nothing is claimed any more."""

    def claim():
        env = LaplacePrivatizer(LinearEnv(max_cycles=50), 1.0)
        env.reset_batch([0])
        for senders in ([True, False] * 5, [False, True] * 5, [True] * 10):
            env.release(np.array([senders]))
        return env.privacy()

    assert claim().epsilon < math.inf
    honest = Laplace.events

    def events(self, sends, index):
        return honest(self, sends & (index == 0), index)

    monkeypatch.setattr(Laplace, "events", events)
    assert (claim().epsilon, claim().reason) == (math.inf, "more has been released than is in the books")


# Found by what holds of any federation.


PRIVATIZERS = {
    "gaussian": lambda env: GaussianPrivatizer(env, 0.9),
    "laplace": lambda env: LaplacePrivatizer(env, 1.0),
    "tree": lambda env: ContinualPrivatizer(env, 1.0, 0.1, "tree"),
    "sqrt_toeplitz": lambda env: ContinualPrivatizer(env, 1.0, 0.1, "sqrt_toeplitz"),
    "blt": lambda env: ContinualPrivatizer(env, 1.0, 0.1, "blt"),
}
ENVIRONMENTS = {
    "procurement": lambda: ProcurementEnv(num_agents=4, num_producers=3, max_cycles=200),
    "linear": lambda: LinearEnv(num_agents=4, num_arms=5, dim=3, max_cycles=200),
}


def play(env, rounds, seed):
    """Yields who sends and what that releases, after each round of random actions and with random senders."""
    luck = np.random.default_rng(seed)
    env.single_action_space.seed(seed)
    env.reset_batch([seed])
    for _ in range(rounds):
        env.step_batch(np.array([[env.single_action_space.sample() for _ in env.possible_agents]]))
        senders = luck.random((1, env.max_num_agents)) < 0.3
        yield senders, env.release(senders)


def all_adds_up(make_env) -> bool:
    """Whether all that is ever released is all that was observed: nothing is lost, and nothing sent twice."""
    env = Interleaved(make_env(), 3)
    released = [arrays for _, arrays in play(env, 150, seed=1)]
    released.append(env.release(np.ones((1, env.max_num_agents), np.bool_)))
    observed = env.unwrapped._observation
    return all(
        np.allclose(sum(arrays[name] for arrays in released).sum(axis=2), observed[f"total_{name}"])
        for name in released[0]
    )


@pytest.mark.parametrize("make_env", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_slots_that_are_not_emptied_any_more_are_caught(monkeypatch, make_env):
    assert all_adds_up(make_env)
    honest = Interleaved._release

    def release(self, sends):
        kept = {name: slots.copy() for name, slots in self._slots.items()}
        released = honest(self, sends)
        if self._round > 64:
            self._slots = kept
        return released

    monkeypatch.setattr(Interleaved, "_release", release)
    assert not all_adds_up(make_env)


def noise_is_everybodys_own(env) -> bool:
    """Whether no noise is that of another agent or replica, where all have the same to tell: nothing."""
    env.reset_batch([3, 4])
    released = env.release(np.ones((2, env.max_num_agents), np.bool_))
    name = env.unwrapped.statistics[0]
    rows = released[name].reshape(2 * env.max_num_agents, -1)
    return len(np.unique(np.round(rows, 9), axis=0)) == len(rows)


@pytest.mark.parametrize("privatize", PRIVATIZERS.values(), ids=PRIVATIZERS)
def test_noise_that_agents_share_is_caught(monkeypatch, privatize):
    """One stream a replica, each agent's from its start: who knows own data knows what all others' hides behind."""

    def env():
        # On one scale, so that the same noise looks the same.
        return privatize(LinearEnv(num_agents=4, num_arms=5, dim=3, max_cycles=200))

    assert noise_is_everybodys_own(env())

    def noise_streams(seeds, num_agents, entropy, episode):
        return [[stream(seed, Purpose.NOISE) for _ in range(num_agents)] for seed in seeds]

    monkeypatch.setattr(privatizer_module, "noise_streams", noise_streams)
    assert not noise_is_everybodys_own(env())


def the_silent_are_silent(env) -> bool:
    """Whether of those who do not send nothing is released."""
    return all(
        not array[~senders].any()
        for senders, released in play(env, 40, seed=2)
        for array in released.values()
    )


def release_everyone(patch, layer):
    honest = layer._release
    patch.setattr(layer, "_release", lambda self, sends: honest(self, np.ones_like(sends)))


@pytest.mark.parametrize("make_env", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_data_of_the_silent_is_caught(monkeypatch, make_env):
    assert the_silent_are_silent(make_env())
    release_everyone(monkeypatch, Problem)
    assert not the_silent_are_silent(make_env())


@pytest.mark.parametrize("make_env", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
@pytest.mark.parametrize("privatize", PRIVATIZERS.values(), ids=PRIVATIZERS)
def test_randomised_data_of_the_silent_is_caught(monkeypatch, make_env, privatize):
    assert the_silent_are_silent(privatize(make_env()))
    release_everyone(monkeypatch, Privatizer)
    assert not the_silent_are_silent(privatize(make_env()))


def no_round_tells_more_than_is_said(make_env) -> bool:
    """Whether what one round adds to the statistic, and so its presence, is within the sensitivity that is stated."""
    env = make_env()
    everyone = np.ones((1, env.max_num_agents), np.bool_)
    env.reset_batch([5])
    norm = env.sensitivity().changes["one-observation-added"].norm
    for _ in range(100):
        env.step_batch(np.zeros((1, env.max_num_agents), np.int64))
        grown = env.release(everyone)["statistic"] / env.sensitivity().scale["statistic"]
        if np.linalg.norm(grown, axis=(2, 3)).max() > norm * (1 + 1e-9):
            return False
    return True


def test_rewards_that_are_not_clipped_are_caught(monkeypatch):
    def make_env():
        return LinearEnv(num_arms=5, dim=3, contexts="unit_ball", reward="normal", reward_sd=1.0)

    assert no_round_tells_more_than_is_said(make_env)
    honest = RewardDistribution.draw

    def draw(self, active, arm, means, reward, clipped):
        bound, self._bound = self._bound, np.inf
        honest(self, active, arm, means, reward, clipped)
        self._bound = bound
        clipped[...] = np.abs(reward) > bound

    monkeypatch.setattr(RewardDistribution, "draw", draw)
    assert not no_round_tells_more_than_is_said(make_env)
