"""Sums of stages beside an independent computation with the same noise, and what the tests of stages share."""

from functools import partial
from math import sqrt

import numpy as np
from registered import PROBLEMS

from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_delta
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server

AGENTS, DELTA, MULTIPLIER = 5, 1e-5, 4.0
SEEDS = (3, 8)
STAGES = {"shuffler": "shuffler", "aggregator": {"name": "aggregator", "honest": 3}, "server": "server"}
TRANSPORTS = {"channel": Channel, "server": partial(Server, schedule="every_round")}
SMALL = {
    problem.__name__: partial(make_federation, next(iter(entry.presets)), **entry.small, num_agents=AGENTS)
    for problem, entry in PROBLEMS.items()
}
EXACT = {"delta": DELTA, "composition": "exact"}


def gaussian(env, multiplier=MULTIPLIER, **kwargs):
    return GaussianPrivatizer(
        env, delta=DELTA, noise_multiplier=multiplier, **{"budget": EXACT, "releases": 12, **kwargs}
    )


def flat(arrays, names):
    return np.concatenate([arrays[name].reshape(*arrays[name].shape[:2], -1) for name in names], axis=-1)


def growths(make, seeds, rounds):
    """What each agent's statistic grows by in each round, ``(rounds, replicas, agents, numbers)``, and its scales."""
    trial = Trial(make, seeds, rounds)
    trial.env.reset_batch(seeds)
    names = list(trial.env.single_release_space)
    grown = []
    for action in trial.actions:
        trial.env.step_batch(action)
        grown.append(flat(trial.env.release(trial.everyone), names).astype(float))
    return np.array(grown), flat(trial.env.sensitivity().scale, names), names


def captured(env):
    """Whose uploads are in each sum that leaves the stage of ``env``, as a list that grows; None where nothing left."""
    arrived, noise = [], find_layer(env, "noise")
    synchronise = noise.synchronise

    def spied(combined, senders):
        arrived.append(combined.arrived.copy())
        return synchronise(combined, senders)

    noise.synchronise = spied
    return arrived


def check_sums(make, transport, stage, echo):
    """Compares inboxes with sums of growths and of noise drawn here, for one episode without faults."""
    grown, scale, names = growths(make, SEEDS, 4)
    env = TRANSPORTS[transport](gaussian(make()), stage=STAGES[stage], echo=echo)
    trial = Trial(lambda: env, SEEDS, 4)
    env.reset_batch(SEEDS)
    honest = 3 if stage == "aggregator" else 1
    rows = 1 if stage == "server" else AGENTS
    streams = [[stream(seed, Purpose.NOISE, agent) for agent in range(rows)] for seed in SEEDS]
    deviation = MULTIPLIER * scale.max(axis=1, keepdims=True) / sqrt(honest)
    for action, new in zip(trial.actions, grown, strict=True):
        seen = env.step_batch(action).observation
        drawn = np.array([[each.standard_normal(new.shape[-1]) for each in row] for row in streams])
        noise = deviation * drawn
        total = (new.sum(axis=1) + noise.sum(axis=1))[:, np.newaxis]
        own = new if stage == "server" else new + noise
        expected = np.broadcast_to(total, new.shape) - (0 if echo else own)
        found = flat({name: seen[f"inbox_{name}"] for name in names}, names)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        others = rows - (0 if echo or stage == "server" else 1)
        announced = flat({name: seen[f"inbox_{variance_of(name)}"] for name in names}, names)
        np.testing.assert_allclose(announced, np.broadcast_to(others * deviation**2, new.shape))
        assert seen["inbox_mask"].shape == (len(SEEDS), AGENTS, 1)
        assert seen["inbox_mask"].all()
        assert not echo or seen["sent"].all()


def mu_of(epsilon):
    """Returns the mu of Gaussian DP that has this epsilon at :data:`DELTA`, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) < DELTA else (low, middle)
    return low
