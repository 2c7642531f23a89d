"""What messages say of their noise: that it is the noise's variance, and that it reaches receivers."""

import numpy as np
import pytest
from scipy.stats import chi2
from sums_env import SumsEnv

from fedbandit_envs.core.privacy import independent
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.procurement_v0 import parallel_env as procurement
from fedbandit_envs.wrappers import (
    Channel,
    ContinualPrivatizer,
    GaussianPrivatizer,
    Interleaved,
    LaplacePrivatizer,
    Placebo,
    RandomizedResponsePrivatizer,
    Server,
)

REPLICAS, RELEASES = 60, 3


def small(**kwargs):
    return procurement(num_agents=10, num_producers=8, max_cycles=50, **kwargs)


def played(env):
    """Releases of everybody after each round; yields increments and what they are without noise, by name."""
    observation = env.reset_batch(range(REPLICAS)).observation
    everyone = np.ones((REPLICAS, env.max_num_agents), np.bool_)
    names = env.unwrapped.statistics
    before = {name: np.zeros(observation[f"total_{name}"].shape) for name in names}
    for _ in range(RELEASES):
        action = observation["capacity"] if "capacity" in observation else np.zeros(everyone.shape, np.int64)
        observation = env.step_batch(action).observation
        total = {name: observation[f"total_{name}"].astype(float) for name in names}
        yield env.release(everyone), {name: total[name] - before[name] for name in names}
        before = total


def refuse_unlikely(noise, variance):
    """Holds Gaussian noise to its variance in a test that is wrong once in 10,000 times; none where it is 0."""
    assert not noise[variance == 0].any()
    noise, variance = noise[variance > 0], variance[variance > 0]
    if not noise.size:
        return
    assert noise.size > 2000
    below = chi2.cdf((noise**2 / variance).sum(), noise.size)
    assert 0.5e-4 < below < 1 - 0.5e-4


# Of randomised response a release has up to fifty outcomes a producer: nearly Gaussian, and with lighter tails.
INDEPENDENT = {
    "gaussian": lambda: GaussianPrivatizer(small(), 0.9),
    "analytic": lambda: GaussianPrivatizer(small(), 2.0, calibration="analytic", releases=3),
    "good and defective": lambda: GaussianPrivatizer(small(), 0.9, pair="good_and_defective"),
    "randomised response": lambda: RandomizedResponsePrivatizer(small(), 3.0, releases=3),
    "none": lambda: GaussianPrivatizer(small(), np.inf),
    "placebo": lambda: GaussianPrivatizer(Placebo(small()), 0.9),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_every_message_announces_the_variance_of_its_own_noise(name):
    env = INDEPENDENT[name]()
    assert independent(env.single_release_space)
    for released, true in played(env):
        if name == "placebo":
            true = dict.fromkeys(true, 0.0)
        noise = {key: released[key] - true[key] for key in true}
        variance = {key: released[f"{key}_noise_variance"] for key in true}
        if name == "none":
            assert not any(array.any() for array in variance.values())
        for key in true:
            refuse_unlikely(noise[key], variance[key])
        # What both have in common shows in the noise of defective units.
        common = released.get("noise_covariance", 0.0)
        defective = variance["delivered"] + variance["good"] - 2 * common
        refuse_unlikely(noise["delivered"] - noise["good"], defective)


def test_laplace_announces_its_variance():
    """The absolute value of a Laplace variable is exponential: twice it, in scales, is chi-squared of two degrees."""
    for released, true in played(LaplacePrivatizer(small(), 0.8)):
        for name, array in true.items():
            scale = np.sqrt(released[f"{name}_noise_variance"] / 2)
            below = chi2.cdf((2 * np.abs(released[name] - array) / scale).sum(), 2 * array.size)
            assert 0.5e-4 < below < 1 - 0.5e-4


@pytest.mark.parametrize("mechanism", ["sqrt_toeplitz", "tree", "honaker"])
@pytest.mark.parametrize(
    "make", [small, lambda: SumsEnv(10, 5), lambda: linear(num_agents=10, num_arms=3, dim=4)]
)
def test_continual_releases_announce_the_variance_of_sums(mechanism, make):
    env = ContinualPrivatizer(make(), 1.0, 0.1, mechanism, releases=5)
    assert not independent(env.single_release_space)
    noise, variance = {}, {}
    for released, true in played(env):
        for name, array in true.items():
            noise[name] = noise.get(name, 0) + released[name] - array
            variance[name] = variance.get(name, 0) + released[f"{name}_noise_variance"]
            some = noise[name], variance[name]
            if name == "statistic":
                # Halves of a symmetric matrix have the same draws.
                below = np.tril_indices(array.shape[-1])
                some = tuple(part[..., *below] for part in some)
            refuse_unlikely(*some)


def test_what_is_announced_depends_on_no_data():
    """Other quantities and outcomes, the same variances; randomised response goes by totals, which leave exactly."""
    everyone = np.ones((1, 10), np.bool_)
    for make in (GaussianPrivatizer, LaplacePrivatizer, RandomizedResponsePrivatizer):
        announced = []
        for seed in (0, 1):
            env = make(small(instance_seed=5), 0.9)
            capacity = env.reset_batch([seed]).observation["capacity"]
            env.step_batch(capacity // (1 if make is RandomizedResponsePrivatizer else seed + 1))
            released = env.release(everyone)
            announced.append({name: array for name, array in released.items() if "noise" in name})
        assert announced[0].keys() == {"delivered_noise_variance", "good_noise_variance"}
        for name, array in announced[0].items():
            np.testing.assert_array_equal(array, announced[1][name])


def test_who_is_silent_announces_nothing():
    env = GaussianPrivatizer(small(), 0.9)
    env.reset_batch([0])
    sends = np.arange(10)[np.newaxis] < 4
    for name, array in env.release(sends).items():
        assert array[sends].any() or "noise" not in name
        assert not array[~sends].any()


@pytest.mark.parametrize("delay", [0, 2])
def test_channels_carry_it_by_sender_and_servers_add_it_up(delay):
    def private():
        return GaussianPrivatizer(small(instance_seed=3), 0.9)

    bare = private()
    capacity = bare.reset_batch([7]).observation["capacity"]
    bare.step_batch(capacity)
    expected = bare.release(np.ones((1, 10), np.bool_))
    for carry, senders in ((Channel, 10), (Server, 1)):
        schedule = {"name": "doubling", "start": 1, "stop": 1}
        kwargs = {"answers": "every_round", "echo": False} if carry is Server else {}
        env = carry(private(), schedule=schedule, delay=delay, **kwargs)
        env.reset_batch([7])
        for _ in range(1 + delay * (1 if carry is Channel else 2)):
            observation = env.step_batch(capacity).observation
        assert observation["inbox_mask"].any()
        for name, array in expected.items():
            heard = observation[f"inbox_{name}"]
            assert heard.shape == (1, 10, senders, 8)
            others = array[:, np.newaxis] * ~np.eye(10, dtype=bool)[..., np.newaxis]
            if carry is Server:
                others = others.sum(axis=2, keepdims=True)
            np.testing.assert_allclose(heard, others, rtol=1e-12)


def test_interleaved_slots_have_noise_of_their_own():
    env = ContinualPrivatizer(Interleaved(linear(num_agents=2, num_arms=3, dim=4), 3), 1.0, 0.1, releases=5)
    env.reset_batch([0])
    env.step_batch(np.zeros((1, 2), np.int64))
    announced = env.release(np.ones((1, 2), np.bool_))["statistic_noise_variance"]
    assert announced.shape == (1, 2, 3, 5, 5)
    np.testing.assert_array_equal(announced, np.broadcast_to(announced[:, :, :1], announced.shape))
    assert (announced > 0).all()
