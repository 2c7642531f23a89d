"""The checks of wrappers and policies catch what they should, and name it: each of these is broken in one way."""

import numpy as np
import pytest
from arms_env import ArmsEnv
from gymnasium.spaces import Discrete, MultiDiscrete
from lying_wrappers import ClaimsNothing

from fedbandit_envs.basics.arrays import Buffers, zeros
from fedbandit_envs.core.wrapper import FederatedWrapper, find_layer
from fedbandit_envs.testing import check_policy, check_wrapper
from fedbandit_envs.testing.episodes import require_in_space
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel


class DoublesReward(FederatedWrapper):
    """outside and inside of DoublesReward, reward.* is"""

    layer = "observation"

    def step_batch(self, action):
        step = self.env.step_batch(action)
        return step._replace(reward=Buffers({"reward": 2 * step.reward + 1}).views["reward"])


class ForgesRawReward(DoublesReward):
    """outside and inside of ForgesRawReward, reward"""

    def reset_batch(self, seeds):
        reset = self.env.reset_batch(seeds)
        return reset._replace(info={**reset.info, "raw_reward": reset.info["regret"]})

    def step_batch(self, action):
        step = super().step_batch(action)
        return step._replace(info={**step.info, "raw_reward": step.reward})


class BooksNothing(GaussianPrivatizer):
    """which passes noise, is .*a finite epsilon, or None and a reason"""

    def __init__(self, env):
        super().__init__(env, noise_multiplier=1.0)

    def _release(self, sends):
        return {**zeros(self.single_release_space, sends.shape), **self.env._release(sends)}


class OpensTheDoor(FederatedWrapper):
    """after an episode in which nobody sent"""

    layer = "data"

    def step_batch(self, action):
        step = self.env.step_batch(action)
        self.env.release(np.ones(step.reward.shape, np.bool_))
        return step


class OwnHorizon(FederatedWrapper):
    """max_cycles was set to 12, but ArmsEnv inside has 100"""

    layer = "observation"
    max_cycles = 100


WRAPPERS = [DoublesReward, ForgesRawReward, BooksNothing, OpensTheDoor, OwnHorizon]


@pytest.mark.parametrize("broken", WRAPPERS)
def test_broken_wrappers_are_caught(broken):
    with pytest.raises(AssertionError, match=broken.__doc__):
        check_wrapper(broken, ArmsEnv)


def test_what_is_no_wrapper_is_caught():
    with pytest.raises(AssertionError, match="returns ArmsEnv, which is not around env"):
        check_wrapper(lambda env: env, ArmsEnv)


class Greedy:
    """Pulls the arm with most successes, and any arm in every other round: what a policy is."""

    def reset(self, spec, seeds):
        self.rounds, self.generators = 0, [np.random.default_rng(seed) for seed in seeds.ravel()]

    def act(self, observation):
        self.rounds += 1
        successes = observation["total_successes"]
        anything = np.array([generator.integers(4) for generator in self.generators])
        return np.where(self.rounds % 2, anything.reshape(successes.shape[:2]), successes.argmax(axis=-1))


class Mixes(Greedy):
    r"""of agent \d of replica \d, alone and among the others, the action in round"""

    def act(self, observation):
        pooled = observation["total_successes"].sum(axis=(0, 1), keepdims=True)
        return super().act({"total_successes": np.broadcast_to(pooled, observation["total_successes"].shape)})


class KeepsCounting(Greedy):
    """after reset, the action in round"""

    all_rounds = 0

    def act(self, observation):
        self.all_rounds += 1
        return (super().act(observation) + self.all_rounds // 130) % 4


class WritesIntoObservations(Greedy):
    """destination is read-only"""

    def act(self, observation):
        observation["total_successes"][...] = 0
        return super().act(observation)


class PullsNoArm(Greedy):
    """action is [4-7] in row \\(0, 0\\)"""

    def act(self, observation):
        return super().act(observation) + 4


class PullsOnce(Greedy):
    """action is int64 \\(3,\\)"""

    def act(self, observation):
        return super().act(observation)[0]


class KeepsABuffer(Greedy):
    """copy what is to be kept of what is seen"""

    def act(self, observation):
        if self.rounds == 0:
            self.first = observation
        return super().act(self.first)


class IsNotSeeded(Greedy):
    """draw from the seeds given to reset only"""

    def act(self, observation):
        return np.random.default_rng().integers(4, size=observation["round"].shape[:2])


POLICIES = [Mixes, KeepsCounting, WritesIntoObservations, PullsNoArm, PullsOnce, KeepsABuffer, IsNotSeeded]


@pytest.mark.parametrize("broken", POLICIES)
def test_broken_policies_are_caught(broken):
    with pytest.raises((AssertionError, ValueError), match=broken.__doc__):
        check_policy(broken, ArmsEnv)


class AsksNow(Greedy):
    """Sends in every other round."""

    def act(self, observation):
        pulled = super().act(observation)
        return {"action": pulled, "send": np.full(pulled.shape, self.rounds % 2 == 0)}


def asking():
    return Channel(ArmsEnv(), schedule="on_request")


def test_sound_policies_pass():
    check_policy(Greedy, ArmsEnv)
    check_policy(AsksNow, asking)


def test_policies_that_do_not_say_when_to_send_are_caught():
    with pytest.raises(AssertionError, match=r"a mapping of \['action', 'send'\] is required"):
        check_policy(Greedy, asking)


def test_the_layer_of_a_class_is_what_counts():
    env = ClaimsNothing(ArmsEnv())
    env.layer = "data"
    assert find_layer(env, "noise") is env
    with pytest.raises(ValueError, match="ClaimsNothing, of layer"):
        ClaimsNothing(env)


@pytest.mark.parametrize("space", [Discrete(3, start=-1), MultiDiscrete([3, 3], start=[-1, -1])])
def test_integers_lie_between_the_bounds_of_their_space(space):
    array = np.ones((2, 2, *space.shape), np.int64)
    array[0] = -1
    require_in_space("it", array, space, (2, 2))
    for array[1, 1] in (-2, 2):
        with pytest.raises(AssertionError, match="in row"):
            require_in_space("it", array, space, (2, 2))
