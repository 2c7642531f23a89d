"""Wrappers and mechanisms that lie are caught, each by a message that names the lie; honest twins of them pass.

The docstring of a liar is a pattern of that message. Each liar passes all checks once the one that catches it is
disabled: so that no check is there in vain. Seeds are fixed. With others, an honest twin would be accused with
probability 1e-6 at most (fedbandit_envs/testing/noise.py).
"""

import re
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
from arms_env import ArmsEnv
from gymnasium import spaces
from pairs import every_fourth

from fedbandit_envs.arms.env import ArmsEnv as RegisteredArms
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.core.sensitivity import Change
from fedbandit_envs.core.wrapper import FederatedWrapper, layers
from fedbandit_envs.testing import assertions, check_wrapper, isolation, noise, wrapper
from fedbandit_envs.wrappers import Channel, Privatizer, Quota
from fedbandit_envs.wrappers.privacy.accounting.event import Event
from fedbandit_envs.wrappers.privacy.mechanisms.laplace import Laplace

EPSILON = 20.0
"""So large that clipping shows beside the noise."""


def behind(mechanism, **arguments):
    return lambda env: Privatizer(env, mechanism(EPSILON, **arguments))


# Mechanisms, each of them Laplace's but for one lie.


class NoNoise(Laplace):
    """the noise on 'pulls' in release 1 has 0 times the variance"""

    def draw(self, generator, share, out):
        out.fill(0.0)


class HalfOfTheNoise(Laplace):
    """the noise on 'pulls' in release 1 has 0.2\\d* times the variance"""

    def draw(self, generator, share, out):
        out[...] = generator.laplace(size=out.shape) / 2


class AnnouncesMore(Laplace):
    """has 0.49\\d* times the variance that 'successes_noise_variance' announces"""

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        return {**released, variance_of("successes"): 2 * released[variance_of("successes")]}


class SpendsTheFirstShareAlways(Laplace):
    """but the booked event 'laplace' of loss .* claims"""

    def noise_multiplier(self, share):
        return 1 / self._shares[0]


class DrawsTheFirstShareAlways(Laplace):
    """in release 2 has 0.\\d* times the variance"""

    def randomise(self, statistic, sends, index):
        announced = super().randomise(statistic, sends, index)
        drawn = super().randomise(statistic, sends, 0 * index)
        return {name: (announced if "variance" in name else drawn)[name] for name in announced}


class SameNoiseInAllReleases(Laplace):
    """noise in two releases of an agent is correlated"""

    def randomise(self, statistic, sends, index):
        kept, self._generators = self._generators, deepcopy(self._generators)
        released = super().randomise(statistic, sends, index)
        self._generators = kept
        return released


class SameNoiseForAllAgents(Laplace):
    """noise in two agents is correlated"""

    def start(self, sensitivity, horizon, generators):
        agents = sensitivity.scale["pulls"].shape[1]
        generators = [deepcopy(generators[row - row % agents]) for row in range(len(generators))]
        super().start(sensitivity, horizon, generators)


class SameNoiseInAllReplicas(Laplace):
    """the noise on 'pulls' is the same in two replicas"""

    def start(self, sensitivity, horizon, generators):
        agents = sensitivity.scale["pulls"].shape[1]
        generators = [np.random.default_rng(row % agents) for row in range(len(generators))]
        super().start(sensitivity, horizon, generators)


class SameNoiseForAllValues(Laplace):
    """noise in two values of a release is correlated"""

    def draw(self, generator, share, out):
        out.fill(generator.laplace())


class LargerNoiseOnMore(Laplace):
    """the size of the noise on 'pulls' in release 1 depends on the data"""

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        for name, data in statistic.items():
            # Where data are 0, nine values of sixteen at random, noise is smaller, and larger elsewhere: 1 on average.
            factor = np.where(data > 0, np.sqrt(1 + 0.5 * 9 / 7), np.sqrt(0.5))
            released[name] = data + (released[name] - data) * (factor if name == "pulls" else 1)
        return released


class NoiseOnOneArray(Laplace):
    """the noise on 'successes' in release 1 has 0 times the variance"""

    def randomise(self, statistic, sends, index):
        return {**super().randomise(statistic, sends, index), "successes": statistic["successes"] + 0.0}


class ClipsDataSilently(Laplace):
    """in release 1 has a mean that is not 0|mean of the noise .* depends on the data|times the variance"""

    def randomise(self, statistic, sends, index):
        clipped = {name: np.minimum(array, 1) for name, array in statistic.items()}
        return super().randomise(clipped, sends, index)


class ClipsWhatLeaves(Laplace):
    """times the variance|a mean that is not 0|depends on the data"""

    def randomise(self, statistic, sends, index):
        return {name: np.maximum(a, 0) for name, a in super().randomise(statistic, sends, index).items()}


class BooksHalf(Laplace):
    """but the booked event 'laplace' of loss .* claims"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share / 2, share / 2, 0.0, tuple(changes.items()))


class PromisesHalf(Laplace):
    """the booked event 'laplace' promises epsilon .* more than its loss"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share, share / 2, 0.0, tuple(changes.items()))


class BooksAnotherKind(Laplace):
    """the booked event 'gaussian' promises epsilon .* more than its loss"""

    def event(self, share, noise_multiplier, changes):
        return Event("gaussian", share / np.sqrt(2), share / 10, 1e-9, tuple(changes.items()))


class BooksOneChange(Laplace):
    """has a change of 1 under 'one-observation', where sensitivity has 2"""

    def event(self, share, noise_multiplier, changes):
        return Event("laplace", share, share, 0.0, tuple((name, Change(1, 1.0)) for name in changes))


class AnnouncesNothing(Laplace):
    """release has no '.*_noise_variance' beside '.*', but privacy\\(\\) is finite"""

    def release_space(self, released):
        return released

    def randomise(self, statistic, sends, index):
        released = super().randomise(statistic, sends, index)
        return {name: released[name] for name in statistic}


def without(module, name):
    """Disables a check."""

    def disable(liar, monkeypatch):
        monkeypatch.setattr(module, name, lambda *arguments: None)

    return disable


def lenient(module):
    """Disables those requirements of a module that accuse the liar."""

    def disable(liar, monkeypatch):
        def require(holds, message):
            if not re.search(liar.__doc__, message):
                assertions.require(holds, message)

        monkeypatch.setattr(module, "require", require)

    return disable


MECHANISMS = {
    **dict.fromkeys(
        (
            NoNoise,
            HalfOfTheNoise,
            AnnouncesMore,
            DrawsTheFirstShareAlways,
            LargerNoiseOnMore,
            NoiseOnOneArray,
            ClipsDataSilently,
            ClipsWhatLeaves,
        ),
        without(noise, "_require_mean_0"),
    ),
    **dict.fromkeys(
        (SameNoiseInAllReleases, SameNoiseForAllAgents, SameNoiseForAllValues, AnnouncesNothing),
        lenient(noise),
    ),
    SameNoiseInAllReplicas: without(noise, "_require_as_announced"),
    **dict.fromkeys((SpendsTheFirstShareAlways, BooksHalf), without(noise, "_require_booked")),
    **dict.fromkeys((PromisesHalf, BooksAnotherKind, BooksOneChange), without(noise, "_require_promise")),
}


@pytest.mark.parametrize("liar", MECHANISMS)
def test_lying_mechanisms_are_caught(liar):
    """By the check of noise, the last of all; the next test shows that they pass the others."""
    with pytest.raises(AssertionError, match=liar.__doc__):
        noise.check_noise(behind(liar), ArmsEnv)


@pytest.mark.parametrize("liar", every_fourth(MECHANISMS))
def test_lying_mechanisms_pass_without_the_check(liar, monkeypatch):
    MECHANISMS[liar](liar, monkeypatch)
    check_wrapper(behind(liar), ArmsEnv)


def test_the_honest_mechanism_passes():
    check_wrapper(behind(Laplace), ArmsEnv)
    check_wrapper(behind(Laplace, releases=20), ArmsEnv)


# A kind that no check knows is attacked.


class OwnKind(Laplace):
    """Laplace noise under another name."""

    def event(self, share, noise_multiplier, changes):
        return Event("two_sided_exponential", share, share, 0.0, tuple(changes.items()))


class OwnKindBookedLow(Laplace):
    """an attack on one release proves an epsilon of at least"""

    def event(self, share, noise_multiplier, changes):
        return Event("two_sided_exponential", share, share / 10, 0.0, tuple(changes.items()))


small_arms = partial(RegisteredArms, num_agents=3, num_arms=3)


def test_other_kinds_are_attacked(monkeypatch):
    check_wrapper(behind(OwnKind), small_arms)
    with pytest.raises(AssertionError, match=OwnKindBookedLow.__doc__):
        check_wrapper(behind(OwnKindBookedLow), small_arms)
    monkeypatch.setattr(noise, "_require_audit", lambda *arguments: None)
    check_wrapper(behind(OwnKindBookedLow), small_arms)


# Wrappers, each beside an honest one that does something like it.


class ClaimsWithoutNoise(FederatedWrapper):
    """release has no '.*_noise_variance' beside '.*', but privacy\\(\\) is finite"""

    layer = "noise"

    def reset_batch(self, seeds):
        reset = self.env.reset_batch(seeds)
        self._ledger.claim_fn = self._claim
        return reset

    def _claim(self):
        adjacency = next(iter(self.sensitivity().changes))
        below, above = self._ledger.left(self._height)
        return Claim(np.inf if below.any() else 0.4 * above.any(), 0.0, adjacency, "basic", "so I say")


class ClaimsNothing(ClaimsWithoutNoise):
    def _claim(self):
        adjacency = next(iter(self.sensitivity().changes))
        below, above = self._ledger.left(self._height)
        epsilon = np.inf if below.any() else None if above.any() else 0.0
        return Claim(epsilon, 0.0, adjacency, "basic", "there is no noise")


class CountsPulls(FederatedWrapper):
    """An honest one: shows each agent the number of its own pulls."""

    layer = "observation"

    def _shown(self, observation):
        return observation["total_pulls"].sum(axis=-1)

    def reset_batch(self, seeds):
        reset = self.env.reset_batch(seeds)
        return reset._replace(info=self._with(reset))

    def step_batch(self, action):
        step = self.env.step_batch(action)
        return step._replace(info=self._with(step))

    def _with(self, result):
        return {**result.info, **Buffers({"hint": 1.0 * self._shown(result.observation)}).views}


class ShowsOthersInInfo(CountsPulls):
    r"""shows agents the data of another agent in round 1\['info'\]\['hint'\]"""

    def _shown(self, observation):
        best = observation["total_successes"].sum(axis=(1, 2))
        return np.repeat(best[:, np.newaxis], self.max_num_agents, axis=1)


class OwnMean(FederatedWrapper):
    """An honest one: shows each agent its own rate of success."""

    layer = "observation"
    axes = 2

    def __init__(self, env):
        super().__init__(env)
        shown = {"rate": spaces.Box(0.0, 1.0, (1,), np.float64)}
        self.single_observation_space = spaces.Dict({**env.single_observation_space.spaces, **shown})

    def reset_batch(self, seeds):
        reset = self.env.reset_batch(seeds)
        return reset._replace(observation=self._with(reset.observation))

    def step_batch(self, action):
        step = self.env.step_batch(action)
        return step._replace(observation=self._with(step.observation))

    def _with(self, observation):
        good, pulls = (observation[f"total_{name}"].sum(axis=self.axes) for name in ("successes", "pulls"))
        rate = (good / np.maximum(pulls, 1)).reshape(len(good), -1)[..., :1]
        rates = np.broadcast_to(
            rate[:, np.newaxis] if self.axes == (1, 2) else self._own(good, pulls), self._rows(good)
        )
        return {**observation, **Buffers({"rate": rates.copy()}).views}

    def _own(self, good, pulls):
        return (good / np.maximum(pulls, 1))[..., np.newaxis]

    def _rows(self, good):
        return (len(good), self.max_num_agents, 1)


class MeanOfAll(OwnMean):
    r"""shows agents the data of another agent in round 1\['observation'\]\['rate'\]"""

    axes = (1, 2)


class SendsByTheClock(Channel):
    """An honest one: sends in every other round only, and drops other releases."""

    def _when(self):
        return np.full(self._everyone.shape, self._round % 2 == 0)

    def _send(self, statistic, senders):
        if (senders & self._when()).any():
            super()._send(statistic, senders & self._when())


class SendsWhenItWins(SendsByTheClock):
    r"""though releases hold no data: by the times at which something happens"""

    def _when(self):
        return list(layers(self))[-1]._reward > 0


class SaysThatItSendsWhenItWins(SendsWhenItWins):
    def reset_batch(self, seeds):
        reset = super().reset_batch(seeds)
        self._ledger.unclaimable_reason = "agents send when they have won"
        return reset


class TakesWithoutTheLedger(Channel):
    """shows agents the data .* before the ledger counted a release of it"""

    def _arrive(self):
        taken = self.env._release(self._everyone)
        flat = {name: array.astype(float).reshape(*array.shape[:2], -1) for name, array in taken.items()}
        self._deliver(flat, self._everyone[:, :, np.newaxis] & ~np.eye(self.max_num_agents, dtype=bool))
        self._book(self._everyone.astype(np.int64))


class DeliversPastRelease(Channel):
    r"""\['inbox_pulls'\].* though releases hold no data: .* or past release"""

    def _arrive(self):
        raw = list(layers(self))[-1]._observation["total_pulls"]
        others = raw.sum(axis=1, keepdims=True) - raw
        self._inbox["inbox_pulls"] += others[:, :, np.newaxis] * self._inbox["inbox_mask"][..., np.newaxis]


class DeliversToItself(Channel):
    """contains the agent's own data, and there is no 'sent'"""

    def _send(self, statistic, senders):
        super()._send(statistic, senders)
        self._deliver(statistic, senders[:, np.newaxis] & np.eye(self.max_num_agents, dtype=bool))


class DeliversAsData(FederatedWrapper):
    """a release must not change what agents live through"""

    layer = "data"

    def __init__(self, env):
        super().__init__(env)
        inbox = {"inbox_pulls": spaces.Box(0, np.inf, (1,), np.float64)}
        self.single_observation_space = spaces.Dict({**env.single_observation_space.spaces, **inbox})

    def reset_batch(self, seeds):
        reset = self.env.reset_batch(seeds)
        self._shown = Buffers({"inbox_pulls": np.zeros((len(seeds), self.max_num_agents, 1))})
        return reset._replace(observation={**reset.observation, **self._shown.views})

    def step_batch(self, action):
        step = self.env.step_batch(action)
        return step._replace(observation={**step.observation, **self._shown.views})

    def _release(self, sends):
        released = self.env._release(sends)
        # The largest number of pulls of arm 0 that anybody has sent.
        self._shown.arrays["inbox_pulls"][...] = released["pulls"][:, :, 0].max(axis=1)[
            :, np.newaxis, np.newaxis
        ]
        return released


class ReleasesMore(FederatedWrapper):
    """outside and inside of ReleasesMore, release"""

    layer = "observation"

    def _release(self, sends):
        return {name: 2 * array for name, array in self.env._release(sends).items()}


class UnderstatesSensitivity(FederatedWrapper):
    """sensitivity of UnderstatesSensitivity and of what it stands around"""

    layer = "observation"

    def sensitivity(self):
        told = self.env.sensitivity()
        return told._replace(scale={name: array / 10 for name, array in told.scale.items()})


class WritesIntoArrays(FederatedWrapper):
    """outside and inside of WritesIntoArrays, release"""

    layer = "observation"

    def step_batch(self, action):
        step = self.env.step_batch(action)
        step.observation["total_pulls"].base[...] += 1
        return step


class HalvesRegret(FederatedWrapper):
    r"""outside and inside of HalvesRegret, info\['regret'\]"""

    layer = "observation"

    def step_batch(self, action):
        step = self.env.step_batch(action)
        return step._replace(info={**step.info, **Buffers({"regret": step.info["regret"] / 2}).views})


class QuotaThatDoesNotBind(Quota):
    """releases data of agents that allowed_senders inside of it does not allow"""

    def allowed_senders(self, senders):
        return np.asarray(senders, bool) & (self._left > 0)


class ReleasesWhatIsNotAllowed(FederatedWrapper):
    """and for all whom allowed_senders leaves out, is required"""

    layer = "data"

    def allowed_senders(self, senders):
        return np.zeros_like(self.env.allowed_senders(senders))

    def _release(self, sends):
        return self.env._release(np.ones_like(sends))


class SendsForTheSilent(FederatedWrapper):
    """allowed_senders lets agents send that do not want to"""

    layer = "data"

    def allowed_senders(self, senders):
        return np.ones_like(self.env.allowed_senders(senders))


class Nothing(FederatedWrapper):
    layer = "observation"


def seldom(channel):
    return partial(channel, schedule={"name": "fixed_gap", "gap": 50})


no_isolation = without(wrapper, "check_isolation")
no_passing = without(wrapper, "_check_what_passes")
WRAPPERS = {
    ClaimsWithoutNoise: (ClaimsWithoutNoise, ClaimsNothing, lenient(noise)),
    ShowsOthersInInfo: (ShowsOthersInInfo, CountsPulls, no_isolation),
    MeanOfAll: (MeanOfAll, OwnMean, no_isolation),
    SendsWhenItWins: (SendsWhenItWins, SaysThatItSendsWhenItWins, no_isolation),
    SendsByTheClock: (None, SendsByTheClock, None),
    TakesWithoutTheLedger: (seldom(TakesWithoutTheLedger), seldom(Channel), no_isolation),
    DeliversPastRelease: (DeliversPastRelease, Channel, no_isolation),
    DeliversToItself: (DeliversToItself, partial(Channel, echo=True), lenient(isolation)),
    DeliversAsData: (DeliversAsData, Channel, None),
    ReleasesMore: (ReleasesMore, Nothing, no_passing),
    UnderstatesSensitivity: (UnderstatesSensitivity, Nothing, no_passing),
    WritesIntoArrays: (WritesIntoArrays, Nothing, None),
    HalvesRegret: (HalvesRegret, Nothing, no_passing),
    QuotaThatDoesNotBind: (
        partial(QuotaThatDoesNotBind, releases=20),
        partial(Quota, releases=20),
        lenient(isolation),
    ),
    ReleasesWhatIsNotAllowed: (ReleasesWhatIsNotAllowed, partial(Quota, releases=20), None),
    SendsForTheSilent: (SendsForTheSilent, Nothing, None),
}
LIARS = {liar: case for liar, case in WRAPPERS.items() if case[0]}


@pytest.mark.parametrize("liar", LIARS)
def test_lying_wrappers_are_caught(liar):
    with pytest.raises(AssertionError, match=f"(?s){liar.__doc__}"):
        check_wrapper(LIARS[liar][0], ArmsEnv)


@pytest.mark.parametrize("twin", dict.fromkeys(twin for _, twin, _ in WRAPPERS.values()))
def test_honest_twins_pass(twin):
    check_wrapper(twin, ArmsEnv)


@pytest.mark.parametrize("liar", every_fourth(liar for liar, case in LIARS.items() if case[2]))
def test_lying_wrappers_pass_without_the_check(liar, monkeypatch):
    """All but those that several checks catch."""
    wrap, _, disable = LIARS[liar]
    disable(liar, monkeypatch)
    check_wrapper(wrap, ArmsEnv)
