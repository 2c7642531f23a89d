"""Nobody but an accountant makes a claim, and only of data that have passed its noise; each of these lied once."""

import multiprocessing
import os
import subprocess
import sys
from functools import partial

import gymnasium
import numpy as np
import pytest
from arms_env import ArmsEnv
from played import begun

from fedbandit_envs import FederatedWrapper
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.core.privacy import Change, Claim
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing import check_wrapper
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer, Interleaved, Messages, Server
from fedbandit_envs.wrappers.privacy.accounting.event import Event

AGENTS = 3
EVERYONE = np.ones((1, AGENTS), np.bool_)
BUDGET = {"delta": 1e-5, "composition": "exact"}
SMALL = Claim(0.1, 0.0, "one-observation", "basic", "so I say")
STAGES = [None, "shuffler", {"name": "aggregator", "honest": 2}, "server"]
SECRET = 3**90


def private(env, **kwargs):
    given = {"noise_multiplier": 20.0, "budget": BUDGET, **kwargs}
    return GaussianPrivatizer(env, **given)


def play(env, rounds=2, asks=False):
    action = np.zeros((1, AGENTS), np.int64)
    for _ in range(rounds):
        env.step_batch({"action": action, "send": EVERYONE} if asks else action)


def claimed(env):
    """Every epsilon that can be asked for, at every level, by every composition and against every observer."""
    found = {claim.epsilon for level in layers(env) for claim in (level.privacy(), *level.privacy_claims())}
    noise = find_layer(env, "noise")
    if isinstance(noise, GaussianPrivatizer):
        for composition in ("basic", "zcdp", "exact", "parallel"):
            found |= {claim.epsilon for claim in noise.claims(composition=composition)}
    return found


def _own(self, senders):
    return self.release(senders)


def _below(self, sends):
    return self.env.env._release(sends)


# Transports' methods by which they take data inside of the noise.
TAKERS = {
    "before": {"_released": lambda self, who: (self.env.release(who), _below(self, who))[1]},
    "instead": {"_released": _below},
    "from the problem": {"_released": lambda self, who: type(self.unwrapped)._release(self.unwrapped, who)},
    "in its own release": {"_release": _below, "_released": _own},
    "besides its own release": {
        "_release": lambda self, who: (self.env._release(who), _below(self, who))[1],
        "_released": _own,
    },
    "for nobody": {
        "_release": lambda self, who: (_below(self, np.ones_like(who)), self.env._release(who))[0],
        "_released": lambda self, who: self._release(np.zeros_like(who)),
    },
    "says that it holds": {
        "_released": lambda self, who: self._ledger.carry(self, self.env.env._release, who, holds=True)
    },
}


@pytest.mark.parametrize("stage", STAGES, ids=str)
@pytest.mark.parametrize("transport", [Channel, Server])
@pytest.mark.parametrize("takes", TAKERS)
def test_a_transport_that_takes_data_inside_of_the_noise_has_no_privacy(takes, transport, stage):
    liar = type("Liar", (transport,), TAKERS[takes])
    env = liar(private(ArmsEnv(), clip=1.0), schedule="every_round", stage=stage)
    env.single_release_space = env.unwrapped.single_release_space
    env.reset_batch([0])
    assert claimed(env) == {0.0}
    env._released(EVERYONE)
    assert claimed(env) == {np.inf}


def test_data_that_are_taken_without_release_are_counted_where_there_is_no_noise():
    class Takes(Channel):
        def _arrive(self):
            self.delivered = self.env._release(self._everyone)

    env = begun(Takes(ArmsEnv(), schedule="silent"))
    assert claimed(env) == {0.0}
    play(env, 1)
    assert env.delivered["pulls"].any()
    assert claimed(env) == {np.inf}


def test_an_error_does_not_hide_what_was_taken():
    class Fails(Channel):
        def _release(self, sends):
            self.taken = self.env._release(sends)
            raise KeyError("caught outside")

    env = begun(Fails(ArmsEnv()))
    for release in (env._release, env.release):
        with pytest.raises(KeyError):
            release(EVERYONE)
        assert claimed(env) == {np.inf}
        env.reset_batch([0])


def test_what_an_honest_transport_takes_by_the_inner_method_is_booked():
    class Short(Channel):
        def _released(self, senders):
            return self.env._release(senders)

    both = [transport(private(ArmsEnv()), schedule="every_round") for transport in (Short, Channel)]
    for env in both:
        env.reset_batch([0])
        play(env)
    assert both[0].privacy_claims() == both[1].privacy_claims()
    assert 0 < both[0].privacy().epsilon < np.inf


class Shows(FederatedWrapper):
    """A data layer that takes data in every round, which it may have by saying so."""

    layer = "data"
    holds = False

    def step_batch(self, action):
        step = self.env.step_batch(action)
        everyone = np.ones(step.reward.shape, np.bool_)
        self.taken = self._ledger.carry(
            self, lambda nobody: self.env._release(everyone), np.zeros_like(everyone), self.holds
        )
        return step


@pytest.mark.parametrize("inside", [ArmsEnv, lambda: Interleaved(ArmsEnv(), 2)])
@pytest.mark.parametrize("outside", [private, lambda env: env])
def test_a_data_layer_that_takes_data_says_that_it_keeps_them(outside, inside):
    for holds, epsilon in ((True, 0.0), (False, np.inf)):
        env = outside(Shows(inside()))
        env.env.holds = env.holds = holds
        env.reset_batch([0])
        play(env)
        assert env.privacy().epsilon == epsilon


class Thin(FederatedWrapper):
    """Hardly any noise, and no accountant."""

    layer = "noise"


class Writes(FederatedWrapper):
    """Writes itself, or another federation's privatizer, where this one's belongs, and takes reasons back."""

    layer = "observation"
    other = None

    def step_batch(self, action):
        step = self.env.step_batch(action)
        self._ledger.noise = self.other or self
        self._ledger.unclaimable_reason = ""
        self._accountant = self.accountant = self
        self._measured, self._stage = {}, None
        return step

    def claims(self, **asked):
        return [SMALL]


def test_noise_without_an_accountant_has_no_claim():
    env = begun(Channel(Thin(ArmsEnv())))
    assert claimed(env) == {0.0}
    play(env)
    assert claimed(env) == {None}
    assert env.privacy().reason == "no accountant has booked the noise"
    env.unwrapped.release(EVERYONE)
    assert claimed(env) == {np.inf}


@pytest.mark.parametrize("itself", [False, True])
@pytest.mark.parametrize("schedule", ["on_request", "every_round"])
def test_whatever_is_written_makes_no_claim(itself, schedule):
    quiet = begun(private(ArmsEnv()))
    for inside in (ArmsEnv(), Channel(private(ArmsEnv()), schedule=schedule)):
        env = Writes(inside)
        env.other = None if itself else quiet
        env.reset_batch([0])
        inside.release(EVERYONE)
        play(env, 2, isinstance(inside, Channel) and schedule == "on_request")
        assert env.privacy().epsilon in (None, np.inf)


def test_a_reason_stays_until_the_episode_ends():
    ledger = ReleaseLedger()
    ledger.begin((1, 2), "one-observation")
    ledger.unclaimable_reason = "first"
    ledger.unclaimable_reason = ""
    ledger.unclaimable_reason = "second"
    assert ledger.claims()[0].reason == "first"
    ledger.begin((1, 2), "one-observation")
    assert ledger.claims() == [Claim(0.0, 0.0, "one-observation", "basic", "nothing has been released")]


@pytest.mark.parametrize("final", ["release", "privacy", "privacy_claims", "_ledger"])
def test_what_is_final_is_not_set_on_an_instance(final):
    env = Channel(private(ArmsEnv()))
    for level in layers(env):
        with pytest.raises(AttributeError, match=f"{final} is final"):
            setattr(level, final, lambda: SMALL)


def test_a_subclass_of_a_privatizer_does_not_say_what_is_claimed():
    class Says(GaussianPrivatizer):
        def claims(self, **asked):
            return [SMALL]

    env = begun(Channel(Says(ArmsEnv(), noise_multiplier=1e-6, budget=BUDGET)))
    play(env)
    assert env.privacy().epsilon > 1e6


def test_books_are_written_only_while_data_pass():
    env = begun(private(ArmsEnv()))
    env.release(EVERYONE)
    accounts, before = env.accountant, env.privacy()
    [real] = accounts.events
    small = Event("gaussian", 1e-3, 1e-3, 0.0, (("one-observation", Change(1, 1.0)),))
    for event, times in ((real, -1), (small, 1)):
        with pytest.raises(ValueError, match="events are booked while data pass the layer of noise"):
            accounts.record(event, times * np.ones((1, AGENTS), np.int64))
    assert env.privacy() == before
    assert accounts.after({real: EVERYONE}).epsilon(**BUDGET).epsilon > before.epsilon


class Crowds(ArmsEnv):
    """An arm that two agents pull pays half."""

    interacting = True

    def _play_round(self, action):
        super()._play_round(action)
        self._reward /= np.maximum((action[..., np.newaxis] == action[:, np.newaxis]).sum(axis=-1), 1)


class Envy(FederatedWrapper):
    """A data layer that pays what the best agent gets."""

    layer = "data"
    interacting = True


MAKES = [Crowds, lambda: Envy(ArmsEnv()), lambda: Interleaved(Envy(ArmsEnv()), 2)]


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("stage", STAGES, ids=str)
@pytest.mark.parametrize(("clip", "transport"), [(None, Channel), (1.0, Server)])
def test_where_agents_interact_nothing_is_claimed(make, stage, clip, transport):
    env = begun(transport(private(make(), clip=clip), schedule="every_round", stage=stage))
    assert claimed(env) == {None}
    play(env)
    # A trusted server, and who sees what is on its way, has data without noise.
    assert claimed(env) == ({None, np.inf} if stage == "server" else {None})
    assert env.privacy().epsilon is None
    reasons = {claim.reason for claim in env.privacy_claims() if claim.epsilon is None}
    assert reasons == {"what agents do changes what others experience, whatever they release"}
    private_to_the_end = env.env.accountant
    env.reset_batch([1])
    assert private_to_the_end.epsilon().epsilon is None


def test_where_agents_interact_silence_is_no_privacy():
    env = begun(Channel(Crowds(), schedule="silent"))
    assert claimed(env) == {None}
    env.release(EVERYONE)
    assert claimed(env) == {np.inf}


@pytest.mark.parametrize(
    ("joint", "epsilon", "reason"),
    [
        (False, 0.0, "nothing has been released"),
        (True, None, "one controller acts on the data of all agents"),
    ],
)
def test_a_controller_of_all_agents_sees_data_that_nobody_released(joint, epsilon, reason):
    for make in (gymnasium.make, partial(gymnasium.make_vec, num_envs=2)):
        env = make("FedArms-v0", joint=joint, num_agents=2, num_arms=3)
        env.reset(seed=0)
        claim = env.unwrapped.privacy()
        assert (claim.epsilon, claim.reason) == (epsilon, reason)


def test_a_wrapper_may_declare_that_agents_interact():
    with pytest.warns(UserWarning, match="declares interacting = True"):
        check_wrapper(Envy, ArmsEnv)


class WearsOut(ArmsEnv):
    """An arm pays less, the more often the agent has pulled it."""

    stateful = True


def test_one_event_of_a_stateful_problem_may_change_all_later_releases():
    plain, worn = private(ArmsEnv(), clip=9.0), private(WearsOut(), clip=9.0)
    bare = private(WearsOut())
    for env in (plain, worn, bare):
        env.reset_batch([0])
        for _ in range(3):
            play(env, 1)
            env.release(EVERYONE)
    event, agent = (
        [env.claims(adjacency=name)[0] for env in (plain, worn)] for name in ("one-observation", "agent")
    )
    assert event[0].epsilon < event[1].epsilon == agent[1].epsilon == agent[0].epsilon
    assert "one event may change all later rounds" in event[1].reason
    assert worn.privacy().epsilon == event[1].epsilon
    assert bare.privacy().epsilon is None
    assert "not clipped" in bare.privacy().reason


def _said(pipe, env, resets):
    if resets:
        env.reset_batch([5])
    play(env, 1)
    released = find_layer(env, "noise").release(EVERYONE)["pulls"]
    pipe.send((released, env.privacy().noise, find_layer(env, "noise").accountant.epsilon().noise))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    ("resets", "wrap"), [(False, lambda env: env), (True, partial(Channel, schedule="doubling"))]
)
def test_another_process_repeats_secret_noise(wrap, resets):
    """Two workers draw the same noise, so that the difference of their releases is that of their data."""
    fork = multiprocessing.get_context("fork")
    env, apart, unplayed = (wrap(private(ArmsEnv(), noise_seed=SECRET + i)) for i in range(3))
    for each in (env, apart):
        each.reset_batch([4])
    play(env, 1)
    # A program that is started has no copy.
    subprocess.run([sys.executable, "--version"], check=True)
    assert env.privacy().noise == "secret"
    said = []
    for _ in range(2):
        here, there = fork.Pipe()
        worker = fork.Process(target=_said, args=(there, env, resets))
        worker.start()
        said.append(here.recv())
        worker.join()
    np.testing.assert_array_equal(said[0][0], said[1][0])
    assert {noise for _, *noises in said for noise in noises} == {"repeatable"}
    assert {each.privacy().noise for each in (env, apart)} == {"repeatable"}, "the child has its seed"
    for each in (env, apart, unplayed):
        each.reset_batch([4])
        assert each.privacy().noise == "repeatable", "for good"
    assert begun(private(ArmsEnv(), noise_seed=SECRET + 3), [4]).privacy().noise == "secret"


def test_messages_are_counted_like_statistics():
    """And what any other layer writes, wherever it has the method from."""

    class Own:
        def _release(self, sends):
            return {"pulls": self.unwrapped._observation["total_pulls"] * sends[..., np.newaxis]}

    own = type("Layer", (Own, FederatedWrapper), {"layer": "data"})(ArmsEnv())
    messages = Messages(ArmsEnv(), {"bit": {"shape": [1]}})
    for env, inside in (
        (Channel(own, schedule="silent"), own),
        (Channel(private(messages, clip=1.0)), messages),
    ):
        env.reset_batch([0])
        inside._release(EVERYONE)
        assert claimed(env) == {np.inf}
