"""Nobody but an accountant makes a claim, and only of data that have passed its noise; each of these lied once."""

import multiprocessing
import os
from functools import partial

import gymnasium
import numpy as np
import pytest
from arms_env import ArmsEnv

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


class TakesBefore:
    """A transport that releases with noise, and delivers what it has taken before the noise."""

    def _released(self, senders):
        self.env.release(senders)
        return self.env.env._release(senders)


class TakesInstead:
    def _released(self, senders):
        return self.env.env._release(senders)


class TakesFromTheProblem:
    def _released(self, senders):
        return type(self.unwrapped)._release(self.unwrapped, senders)


class TakesInItsOwnRelease:
    def _release(self, sends):
        return self.env.env._release(sends)

    def _released(self, senders):
        return self.release(senders)


class TakesBoth:
    """Its own release passes the noise, and shows what has not."""

    def _release(self, sends):
        super()._release(sends)
        return self.env.env._release(sends)

    def _released(self, senders):
        return self.release(senders)


class TakesForNobody:
    """Its own release is by nobody; what it takes for it is everybody's."""

    def _release(self, sends):
        self.taken = self.env.env._release(np.ones_like(sends))
        return super()._release(sends)

    def _released(self, senders):
        self._release(np.zeros_like(senders))
        return self.taken


class SaysThatItHolds:
    def _released(self, senders):
        return self._ledger.carry(self, self.env.env._release, senders, holds=True)


TAKERS = [
    TakesBoth,
    TakesBefore,
    TakesInstead,
    TakesFromTheProblem,
    TakesInItsOwnRelease,
    TakesForNobody,
    SaysThatItHolds,
]


@pytest.mark.parametrize("stage", STAGES, ids=str)
@pytest.mark.parametrize("transport", [Channel, Server])
@pytest.mark.parametrize("takes", TAKERS)
def test_a_transport_that_takes_data_inside_of_the_noise_has_no_privacy(takes, transport, stage):
    liar = type("Liar", (takes, transport), {})
    env = liar(private(ArmsEnv(), clip=1.0), schedule="every_round", stage=stage)
    env.single_release_space = env.unwrapped.single_release_space
    env.reset_batch([0])
    assert claimed(env) == {0.0}
    env._released(EVERYONE)
    assert claimed(env) == {np.inf}


@pytest.mark.parametrize("holds", [False, True])
def test_data_that_are_taken_without_release_are_counted_where_there_is_no_noise(holds):
    """Only a data layer may hold data."""

    class Takes(Channel):
        def _arrive(self):
            take = (
                partial(self._ledger.carry, self, holds=True)
                if holds
                else lambda release, nobody: release(nobody)
            )
            taken = take(lambda nobody: self.env._release(self._everyone), np.zeros_like(self._everyone))
            self.delivered = {name: array.copy() for name, array in taken.items()}

    env = Takes(ArmsEnv(), schedule="silent")
    env.reset_batch([0])
    assert claimed(env) == {0.0}
    play(env, 1)
    assert env.delivered["pulls"].any()
    assert claimed(env) == {np.inf}


def test_an_error_does_not_hide_what_was_taken():
    class Fails(Channel):
        def _release(self, sends):
            self.taken = self.env._release(sends)
            raise KeyError("caught outside")

    env = Fails(ArmsEnv())
    env.reset_batch([0])
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
    """Noise of a standard deviation of a millionth, and no accountant."""

    layer = "noise"

    def _release(self, sends):
        noise = np.random.default_rng(0)
        return {
            name: array + 1e-6 * noise.standard_normal(array.shape)
            for name, array in self.env._release(sends).items()
        }


class SetsAClaim(FederatedWrapper):
    """Writes whatever the ledger has, or once had, for claims."""

    layer = "observation"

    def reset_batch(self, seeds):
        reset = self.env.reset_batch(seeds)
        self.write()
        return reset

    def step_batch(self, action):
        step = self.env.step_batch(action)
        self.write()
        return step

    def write(self):
        self._ledger.claim_fn = lambda: SMALL
        self._ledger.claims_fn = lambda: [SMALL]
        self._ledger.claims_of = self._ledger.accountant = self
        self._ledger.unclaimable_reason = ""

    def claims(self, **asked):
        return [SMALL]


class NamesAnother(SetsAClaim):
    """Puts another federation's privatizer, or itself, in the place of this one's."""

    other = None

    def write(self):
        self._ledger.noise = self.other or self
        self._accountant = self.accountant = self
        self._measured, self._stage = {}, None

    def epsilon(self, **asked):
        return SMALL


def test_noise_without_an_accountant_has_no_claim():
    env = SetsAClaim(Channel(type("Sets", (SetsAClaim, Thin), {"layer": "noise"})(ArmsEnv())))
    env.reset_batch([0])
    assert claimed(env) == {0.0}
    play(env)
    assert claimed(env) == {None}
    assert env.privacy().reason == "no accountant has booked the noise"
    env.unwrapped.release(EVERYONE)
    assert claimed(env) == {np.inf}


@pytest.mark.parametrize("writes", [SetsAClaim, NamesAnother, "another"])
@pytest.mark.parametrize("asks", [False, True])
def test_whatever_is_written_makes_no_claim(writes, asks):
    schedule = "on_request" if asks else "every_round"
    quiet = private(ArmsEnv(num_agents=AGENTS))
    quiet.reset_batch([0])
    liar = NamesAnother if writes == "another" else writes
    env = liar(Channel(private(ArmsEnv()), schedule=schedule))
    env.other = quiet if writes == "another" else None
    honest = Channel(private(ArmsEnv()), schedule=schedule)
    for each in (env, honest):
        each.reset_batch([0])
        play(each, 2, asks)
    told, true = env.privacy().epsilon, honest.privacy().epsilon
    assert told == true or (told in (None, np.inf) and writes is not SetsAClaim)
    raw = liar(ArmsEnv())
    raw.other = env.other
    raw.reset_batch([0])
    raw.env.release(EVERYONE)
    play(raw)
    assert claimed(raw) <= {np.inf, None}


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

    env = Channel(Says(ArmsEnv(), noise_multiplier=1e-6, budget=BUDGET))
    env.reset_batch([0])
    play(env)
    assert env.privacy().epsilon > 1e6


def test_books_are_written_only_while_data_pass():
    env = private(ArmsEnv())
    env.reset_batch([0])
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


@pytest.mark.parametrize("make", [Crowds, lambda: Envy(ArmsEnv()), lambda: Interleaved(Envy(ArmsEnv()), 2)])
@pytest.mark.parametrize("stage", STAGES, ids=str)
@pytest.mark.parametrize("clip", [None, 1.0])
def test_where_agents_interact_nothing_is_claimed(make, stage, clip):
    for transport in (Channel, Server):
        env = transport(private(make(), clip=clip), schedule="every_round", stage=stage)
        env.reset_batch([0])
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
    for env in (Crowds(), Channel(Crowds(), schedule="silent")):
        env.reset_batch([0])
        play(env)
        assert claimed(env) == {None}
        env.release(EVERYONE)
        assert claimed(env) == {np.inf}


@pytest.mark.parametrize("joint", [False, True])
def test_a_controller_of_all_agents_sees_data_that_nobody_released(joint):
    kwargs = {"joint": joint, "num_agents": 2, "num_arms": 3}
    one, many = gymnasium.make("FedArms-v0", **kwargs), gymnasium.make_vec("FedArms-v0", num_envs=2, **kwargs)
    for env in (one, many):
        env.reset(seed=0)
        claim = env.unwrapped.privacy()
        assert (claim.epsilon, claim.reason) == (
            (None, "one controller acts on the data of all agents")
            if joint
            else (0.0, "nothing has been released")
        )


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
@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("wrap", [lambda env: env, partial(Channel, schedule="doubling")])
def test_another_process_repeats_secret_noise(wrap, resets):
    """Two workers draw the same noise, so that the difference of their releases is that of their data."""
    fork = multiprocessing.get_context("fork")
    env = wrap(private(ArmsEnv(), noise_seed=SECRET))
    apart = private(ArmsEnv(), noise_seed=SECRET + 1)
    for each in (env, apart):
        each.reset_batch([4])
    play(env, 1)
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
    for each in (env, apart):
        assert each.privacy().noise == "repeatable", "the child has its seed"
        each.reset_batch([4])
        assert each.privacy().noise == "repeatable", "for good"
    later = private(ArmsEnv(), noise_seed=SECRET + 2)
    later.reset_batch([4])
    assert later.privacy().noise == "secret"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_bare_fork_is_noticed_before_the_first_episode():
    env = private(ArmsEnv(), noise_seed=SECRET)
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    env.reset_batch([0])
    assert env.privacy().noise == "repeatable"


def test_a_program_that_is_started_is_no_copy():
    env = private(ArmsEnv(), noise_seed=SECRET)
    env.reset_batch([0])
    worker = multiprocessing.get_context("spawn").Process(target=len, args=("",))
    worker.start()
    worker.join()
    assert env.privacy().noise == "secret"


def test_messages_are_counted_like_statistics():
    """And what any other layer writes, wherever it has the method from."""

    class Writes:
        def _release(self, sends):
            return {"pulls": self.unwrapped._observation["total_pulls"] * sends[..., np.newaxis]}

    env = Channel(type("Own", (Writes, FederatedWrapper), {"layer": "data"})(ArmsEnv()), schedule="silent")
    env.reset_batch([0])
    env.env._release(EVERYONE)
    assert claimed(env) == {np.inf}
    env = Channel(private(Messages(ArmsEnv(), {"bit": {"shape": [1]}}), clip=1.0))
    env.reset_batch([0])
    env.env.env.env._release(EVERYONE)
    assert claimed(env) == {np.inf}
