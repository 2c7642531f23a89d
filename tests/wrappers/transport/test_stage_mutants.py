"""Mutants of stages: what the tests of sums must catch."""

from functools import partial
from math import sqrt

import numpy as np
import pytest
from stage_sums import AGENTS, check_sums

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.stages import Stage, make_stage


def shuffles(env_agents=4):
    """Requires that a permutation of agents changes nothing about a batch, to the bit."""
    random = np.random.default_rng(0)
    payload = {"x": random.standard_normal((1, env_agents, 3))}
    everyone = np.ones((1, env_agents), bool)
    stage = make_stage("shuffler", env_agents)
    first = stage.combined(payload, everyone)
    for _ in range(20):
        order = random.permutation(env_agents)
        other = stage.combined({"x": payload["x"][:, order]}, everyone)
        assert (other.total["x"] == first.total["x"]).all()
        assert (other.uploads()[0]["x"] == first.uploads()[0]["x"]).all()


def test_a_shuffler_removes_names_and_order():
    shuffles()


def test_a_shuffler_that_keeps_order_is_caught(monkeypatch):
    monkeypatch.setattr(np, "lexsort", lambda keys: np.arange(keys.shape[-1]))
    with pytest.raises(AssertionError):
        shuffles()


def test_a_shuffler_that_announces_each_agents_variance_is_caught(monkeypatch):
    monkeypatch.setattr(Stage, "common", lambda self, sensitivity: sensitivity)
    # Capacities, and with them scales, differ between the agents of procurement.
    with pytest.raises(AssertionError):
        check_sums(partial(ProcurementEnv, num_agents=AGENTS, num_producers=2), "channel", "shuffler", False)


def test_a_sum_that_drops_an_honest_agents_noise_is_caught(monkeypatch):
    release, inside, last = Privatizer._release, ArmsEnv._release, []

    def remembering(self, sends):
        last[:] = [inside(self, sends)]
        return last[0]

    def dropping(self, sends):
        noisy, bare = release(self, sends), last[0]
        for name, array in bare.items():
            noisy[name][:, 0] = array[:, 0]
        return noisy

    monkeypatch.setattr(ArmsEnv, "_release", remembering)
    monkeypatch.setattr(Privatizer, "_release", dropping)
    with pytest.raises(AssertionError):
        check_sums(partial(ArmsEnv, num_agents=AGENTS), "channel", "aggregator", False)


def test_a_share_of_sigma_over_h_is_caught(monkeypatch):
    start = Privatizer._start_stage

    def small_shares(self, stage, sensitivity, *rest):
        scale = {name: array / sqrt(stage.honest) for name, array in sensitivity.scale.items()}
        start(self, stage, sensitivity._replace(scale=scale), *rest)

    monkeypatch.setattr(Privatizer, "_start_stage", small_shares)
    with pytest.raises(AssertionError):
        check_sums(partial(ArmsEnv, num_agents=AGENTS), "channel", "aggregator", False)


def test_a_server_that_computes_before_it_adds_noise_is_caught(monkeypatch):
    synchronise = Privatizer.synchronise

    def late(self, combined, senders):
        synchronise(self, combined, senders)
        return combined.total

    monkeypatch.setattr(Privatizer, "synchronise", late)
    with pytest.raises(AssertionError):
        check_sums(partial(ArmsEnv, num_agents=AGENTS), "server", "server", True)
