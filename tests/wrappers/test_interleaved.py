"""Statistics by round modulo a period: nothing is lost, nothing is counted twice, nothing leaves unasked."""

from functools import partial

import channels
import numpy as np
import pytest
from channels import PRODUCERS
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from played import begun
from regression_env import Regression

from fedbandit_envs.wrappers import RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.releases import Interleaved
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES

small = partial(channels.small, 3)


@settings(max_examples=150)
@given(data=st.data())
@pytest.mark.ci
def test_whoever_sends_hands_out_what_was_not_yet_sent_by_slot(data):
    """Against a ledger of single observations: what was seen when, by whom, and whether it has been sent."""
    period = data.draw(st.integers(1, 5))
    replicas, agents = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    # Between two rounds nobody, or one wave of senders after another.
    senders = st.lists(st.booleans(), min_size=replicas * agents, max_size=replicas * agents)
    waves = data.draw(st.lists(st.lists(senders, max_size=3), min_size=1, max_size=14))
    luck = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    env = begun(Interleaved(Regression(agents), period), range(replicas))
    ledger: list[tuple[int, int, int, np.ndarray]] = []
    for t, sendings in enumerate([[], *waves]):
        if t > 0:
            # Whole numbers, so that sums are exact in whatever order.
            action = luck.integers(-9, 10, (replicas, agents, 2)).astype(float)
            env.step_batch(action)
            ledger += [
                (r, j, (t - 1) % period, np.outer(action[r, j], action[r, j]))
                for r in range(replicas)
                for j in range(agents)
            ]
        for flags in sendings:
            sends = np.reshape(flags, (replicas, agents))
            released = env.release(sends)
            expected = np.zeros((replicas, agents, period, 2, 2))
            count = np.zeros((replicas, agents, period, 1), np.int64)
            kept = []
            for entry in ledger:
                r, j, slot, outer = entry
                if sends[r, j]:
                    expected[r, j, slot] += outer
                    count[r, j, slot] += 1
                else:
                    kept.append(entry)
            ledger = kept
            np.testing.assert_array_equal(released["statistic"], expected)
            np.testing.assert_array_equal(released["count"], count)
            assert released["count"].dtype == np.int64


@pytest.mark.parametrize("make", [small, Regression], ids=["procurement", "floats"])
def test_a_period_of_1_changes_nothing_but_the_axis(make):
    wrapped, plain = begun(Interleaved(make(), 1), [3, 4]), begun(make(), [3, 4])
    luck = np.random.default_rng(0)
    for _ in range(60):
        action = luck.integers(0, 9, (2, 3, PRODUCERS)) if make is small else luck.normal(size=(2, 2, 2))
        first, second = wrapped.step_batch(action), plain.step_batch(action)
        np.testing.assert_array_equal(first.reward, second.reward)
        for name, array in second.observation.items():
            np.testing.assert_array_equal(first.observation[name], array)
        sends = luck.random(first.reward.shape) < 0.3
        released, expected = wrapped.release(sends), plain.release(sends)
        assert released.keys() == expected.keys()
        for name, array in expected.items():
            assert released[name].dtype == array.dtype
            # Sums of increments, and a difference of sums: floats may be rounded differently.
            np.testing.assert_allclose(released[name], array[:, :, np.newaxis], rtol=0, atol=1e-13)
    assert wrapped.privacy() == plain.privacy()


def test_slots_are_the_rounds_modulo_the_period():
    env = begun(Interleaved(Regression(), 3))
    everyone = np.ones((1, 2), bool)
    for t in range(7):
        env.step_batch(np.full((1, 2, 2), t + 1.0))
    # Rounds 0, 3, 6 saw 1, 4, 7; rounds 1, 4 saw 2, 5; rounds 2, 5 saw 3, 6.
    released = env.release(everyone)
    assert released["statistic"][0, 1, :, 0, 1].tolist() == [1 + 16 + 49, 4 + 25, 9 + 36]
    assert released["count"][0, 1, :, 0].tolist() == [3, 2, 2]
    # The count of rounds goes on after a release: round 7 belongs to slot 1.
    env.step_batch(np.full((1, 2, 2), 8.0))
    assert env.release(everyone)["count"][0, 0, :, 0].tolist() == [0, 1, 0]
    assert not env.release(everyone)["statistic"].any()
    # And starts anew with an episode, which finds nothing of the last one.
    env.step_batch(np.ones((1, 2, 2)))
    env.reset_batch([0])
    assert not env.release(everyone)["count"].any()
    env.step_batch(np.ones((1, 2, 2)))
    assert env.release(everyone)["count"][0, 0, :, 0].tolist() == [1, 0, 0]


def test_spaces_and_sensitivity_gain_the_axis():
    env, plain = begun(Interleaved(Regression(), 4), [0, 1]), begun(Regression(), [0, 1])
    assert env.single_release_space["statistic"] == spaces.Box(-np.inf, np.inf, (4, 2, 2), np.float64)
    assert env.single_release_space["count"] == spaces.Box(0, 2**53, (4, 1), np.int64)
    assert env.single_observation_space == plain.single_observation_space
    inner, outer = plain.sensitivity(), env.sensitivity()
    assert outer.changes == inner.changes
    assert outer.symmetric == inner.symmetric
    for name, array in inner.scale.items():
        assert outer.scale[name].shape == (2, 2, 4, *array.shape[2:])
        for slot in range(4):
            np.testing.assert_array_equal(outer.scale[name][:, :, slot], array)
    env.step_batch(np.ones((2, 2, 2)))
    released = env.release(np.ones((2, 2), bool))
    for name, array in outer.scale.items():
        assert released[name].shape == array.shape
        assert released[name][0, 0] in env.single_release_space[name]


def test_inboxes_get_all_slots_and_traffic_counts_them():
    over = "line", {"name": "fixed_gap", "gap": 6}, 1
    split, whole = (begun(Channel(env, *over), [0, 1]) for env in (Interleaved(small(), 4), small()))
    assert split.policy_spec.observation["inbox_good"].shape == (3, 4, PRODUCERS)
    luck, heard = np.random.default_rng(0), 0
    for _ in range(60):
        action = luck.integers(0, 9, (2, 3, PRODUCERS))
        by_slot, summed = split.step_batch(action), whole.step_batch(action)
        mask = summed.observation["inbox_mask"]
        np.testing.assert_array_equal(by_slot.observation["inbox_mask"], mask)
        for name in ("inbox_delivered", "inbox_good"):
            np.testing.assert_array_equal(by_slot.observation[name].sum(axis=3), summed.observation[name])
        np.testing.assert_array_equal(by_slot.info["messages"], summed.info["messages"])
        heard += mask.sum()
    assert heard > 0
    numbers = 2 * 4 * PRODUCERS
    per_message = HEADER_BYTES + 8 * numbers
    np.testing.assert_array_equal(split.traffic["bytes"], split.traffic["messages"] * per_message)


@pytest.mark.parametrize("shares", [4.0, [1.0] * 4])
def test_randomised_response_is_unbiased_slot_by_slot(shares):
    """Counts of 700 replicas come out right in each slot: 5 standard errors, false alarm 6e-7 a value.

    Counts that are wrong by a fifteenth are off by more than 6.
    """
    wrapped = Interleaved(small(), 3)
    env = RandomizedResponsePrivatizer(wrapped, epsilon_per_release=shares)
    seeds = range(700)
    env.reset_batch(seeds)
    truth = begun(Interleaved(small(), 3), seeds)
    luck = np.random.default_rng(0)
    for z in range(3):
        for _ in range(4):
            action = luck.integers(0, 20, (700, 3, PRODUCERS))
            env.step_batch(action)
            truth.step_batch(action)
        # Agents release at different times, so that they are at different shares.
        sends = np.broadcast_to(np.arange(3) >= z, (700, 3))
        released, true = env.release(sends), truth.release(sends)
        np.testing.assert_array_equal(released["delivered"], true["delivered"])
        error = released["good"] - true["good"]
        spread = error.std(axis=0) / np.sqrt(700)
        assert (np.abs(error.mean(axis=0)) <= 5 * spread + 1e-12).all()
        assert np.abs(error).max() > 0
    with np.errstate(all="raise"):
        assert RandomizedResponsePrivatizer(Interleaved(small(), 2), epsilon_per_release=np.inf).reset_batch(
            [0]
        )
