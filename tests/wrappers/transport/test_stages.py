"""Stages of transports: sums, faults, parts without names, and what is refused.

Every statistical test has a fixed seed; a mean is compared with 6 standard errors, so that with other seeds one test in
5e8 would fail.
"""

from functools import partial
from itertools import product
from math import sqrt

import numpy as np
import pytest
from played import begun
from refusals import refusals
from registered import PROBLEMS
from stage_sums import (
    AGENTS,
    DELTA,
    MULTIPLIER,
    SEEDS,
    SMALL,
    STAGES,
    TRANSPORTS,
    captured,
    check_sums,
    flat,
    gaussian,
    growths,
    mu_of,
)

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.testing import check_policy, check_wrapper
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.wrappers import ContinualPrivatizer, Quota
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import make_stage
from fedbandit_envs.wrappers.transport.server import Server


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("problem", SMALL)
def test_inboxes_are_sums_of_an_independent_computation(problem, transport, stage, echo):
    check_sums(SMALL[problem], transport, stage, echo)


# Every noise, stage and transport is in one of these at least.
CHECKED = [
    ("none", "aggregator", "channel"),
    ("gaussian", "shuffler", "server"),
    ("gaussian", "server", "channel"),
    ("continual", "aggregator", "server"),
    ("continual", "shuffler", "channel"),
]


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    ("noise", "stage", "transport"),
    [
        pytest.param(
            *case,
            marks=pytest.mark.slow
            if case not in CHECKED
            else pytest.mark.ci
            if case[0] == "continual"
            else (),
        )
        for case in product(["none", "gaussian", "continual"], STAGES, TRANSPORTS)
    ],
)
def test_federations_with_stages_conform(noise, stage, transport):
    """Ordinary runs check some combinations, continuous integration more, slow runs all."""

    def wrap(env):
        private = {
            "none": lambda env: env,
            "gaussian": gaussian,
            "continual": lambda env: ContinualPrivatizer(env, 1.0, DELTA),
        }[noise](env)
        return TRANSPORTS[transport](private, stage=STAGES[stage])

    check_wrapper(wrap, partial(ArmsEnv, num_agents=4, num_arms=3))


# Shared noise of matrix mechanisms.


def prefixes(seed, agent, numbers, releases, deviation):
    """The noise of an agent's prefix sums by the square-root factorisation, ``(releases, numbers)``."""
    factors = np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, releases)])
    generator = stream(seed, Purpose.NOISE, agent)
    draws = np.array([generator.standard_normal(numbers) for _ in range(releases)])
    return deviation * np.array([factors[: z + 1][::-1] @ draws[: z + 1] for z in range(releases)])


@pytest.mark.parametrize("honest", [1, 2])
def test_shared_correlated_noise_is_indexed_by_the_federations_synchronisations(honest):
    """Streams are drawn while agents are absent: the sum has each agent's prefix noise of when it was last there."""
    rounds, epsilon = 6, 2.0
    presence = np.random.default_rng(1).random((rounds, 1, AGENTS)) < 0.6
    presence[:, 0, :2] = [[1, 0]] * 2 + [[1, 1]] * 4
    make = partial(ArmsEnv, num_agents=AGENTS, num_arms=3)
    private = ContinualPrivatizer(make(), epsilon, DELTA, "sqrt_toeplitz", releases=rounds)
    env = Server(private, "on_request", stage={"name": "aggregator", "honest": honest})
    bare = begun(make(), [5])
    env.reset_batch([5])
    names = list(bare.single_release_space)
    change = env.sensitivity().changes["one-observation"].norm
    squares = np.cumsum(np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, rounds)]) ** 2)
    deviation = change * sqrt(squares[-1]) * analytic_noise_multiplier(epsilon, DELTA) / sqrt(honest)
    data, last = np.zeros((AGENTS, 6)), np.zeros(AGENTS, int)
    received, variance, synchronised = 0.0, 0.0, 0
    for t in range(rounds):
        action = np.full((1, AGENTS), t % 3)
        seen = env.step_batch({"action": action, "send": presence[t]}).observation
        bare.step_batch(action)
        received = received + flat({name: seen[f"inbox_{name}"] for name in names}, names)
        variance = variance + seen["inbox_pulls_noise_variance"][..., 0, 0]
        if presence[t].sum() < honest:
            continue
        synchronised += 1
        data += flat(bare.release(presence[t]), names)[0]
        last[presence[t, 0]] = synchronised
        noise = sum(
            prefixes(5, agent, 6, rounds, deviation)[last[agent] - 1]
            for agent in range(AGENTS)
            if last[agent]
        )
        np.testing.assert_allclose(received[0, 0], data.sum(axis=0) + noise, rtol=1e-8)
        expected = deviation**2 * sum(squares[z - 1] for z in last if z)
        np.testing.assert_allclose(variance[0], expected, rtol=1e-8)


# Claims.


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "faults", [{"loss": 0.4}, {"delay": 2, "loss": 0.3}, {"duplication": 0.5, "loss": 0.2}]
)
def test_a_lost_upload_is_an_absence_and_a_lost_download_comes_later(stage, faults, echo):
    make = partial(ProcurementEnv, num_agents=AGENTS, num_producers=2)
    rounds, quiet = 20, 40
    grown, _, names = growths(make, SEEDS, rounds)
    env = Server(
        gaussian(make(), 0.0, releases=None), {"name": "geometric", "count": rounds, "horizon": rounds},
        "every_round", echo, stage=STAGES[stage], **faults,
    )  # fmt: skip
    env.max_cycles = rounds + quiet
    arrived = captured(env)
    trial = Trial(make, SEEDS, rounds)
    env.reset_batch(SEEDS)
    heard = 0.0
    for t in range(rounds + quiet):
        seen = env.step_batch(trial.actions[min(t, rounds - 1)]).observation
        heard = heard + flat({name: seen[f"inbox_{name}"] for name in names}, names)
    there = np.array(arrived)[..., np.newaxis]
    assert not there.all()
    total = (grown * there).sum(axis=(0, 2))[:, np.newaxis]
    expected = np.broadcast_to(total, heard.shape) - (0 if echo else (grown * there).sum(axis=0))
    np.testing.assert_allclose(heard, expected)


@pytest.mark.parametrize("stage", STAGES)
def test_on_a_channel_everybody_gets_the_same_sum_or_nothing(stage):
    make = partial(ProcurementEnv, num_agents=AGENTS, num_producers=2)
    grown, _, names = growths(make, SEEDS, 15)
    env = Channel(gaussian(make(), 0.0, releases=None), loss=0.3, delay=1, echo=True, stage=STAGES[stage])
    arrived = captured(env)
    trial = Trial(lambda: env, SEEDS, 15)
    env.reset_batch(SEEDS)
    reached = []
    for t, action in enumerate(trial.actions):
        seen = env.step_batch(action).observation
        heard = flat({name: seen[f"inbox_{name}"] for name in names}, names)
        mask = seen["inbox_mask"]
        if t == 0:
            assert not mask.any()
            continue
        there = arrived[t - 1]
        total = (grown[t - 1] * there[..., np.newaxis]).sum(axis=1)[:, np.newaxis]
        np.testing.assert_allclose(heard, np.where(mask, total, 0.0))
        np.testing.assert_array_equal(seen["sent"][..., 0], mask[..., 0] & there)
        assert not (mask & ~there.any(axis=1)[:, np.newaxis, np.newaxis]).any()
        reached.append(mask.mean())
    assert 0.3 < np.mean(reached) < 1


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_below_the_honest_number_nobody_releases_anything(transport):
    inside = gaussian(Quota(ArmsEnv(num_agents=3), releases=2))
    env = TRANSPORTS[transport](inside, stage={"name": "aggregator", "honest": 3})
    present = captured(env)
    env.reset_batch([0])
    for _ in range(2):
        assert env.step_batch(np.zeros((1, 3), int)).observation["inbox_mask"].all()
    before = env.privacy_claims()
    step = env.step_batch(np.zeros((1, 3), int))
    assert not step.observation["inbox_mask"].any()
    assert not step.info["messages"].any()
    assert env.privacy_claims() == before
    assert len(present) == env._ledger.num_releases == 2


def test_below_the_honest_number_of_uploads_nothing_goes_down():
    stage = {"name": "aggregator", "honest": AGENTS}
    env = Server(gaussian(ArmsEnv(num_agents=AGENTS)), "every_round", loss=0.8, stage=stage)
    present = captured(env)
    env.reset_batch([0])
    for t in range(12):
        step = env.step_batch(np.zeros((1, AGENTS), int))
        if not present[t].all():
            assert not any(array.any() for name, array in step.observation.items() if "inbox_" in name)
    assert not np.array(present).any()
    # Only uploads that somebody has heard lower the number of shares.
    claims = {claim.observer: claim.epsilon for claim in env.privacy_claims()}
    expected = env.sensitivity().changes["one-observation"].norm * sqrt(12) / MULTIPLIER
    assert mu_of(claims["public"]) == pytest.approx(expected, rel=1e-9)


def test_inactive_agents_share_in_noise_and_add_no_data():
    make = partial(ArmsEnv, num_agents=3, num_arms=2)
    env = Channel(gaussian(make(), 0.0), stage="server", echo=True)
    env.set_active(np.array([[True, False, True]]))
    env.reset_batch([0])
    seen = env.step_batch(np.zeros((1, 3), int)).observation
    np.testing.assert_allclose(seen["inbox_pulls"][0, :, 0, 0], 2.0)


# Answers, policies and budgets.


@pytest.mark.parametrize("stage", STAGES)
def test_a_server_decides_by_what_has_left_the_stage(stage):
    seen = []

    def answers(t, uploaded, held, news):
        seen.append(({name: array.copy() for name, array in held.items()}, uploaded.copy()))
        return uploaded

    env = begun(Server(gaussian(ArmsEnv(num_agents=4)), "every_round", answers, stage=STAGES[stage]))
    seen.clear()
    heard = 0.0
    for _ in range(4):
        observation = env.step_batch(np.zeros((1, 4), int)).observation
        heard = heard + observation["inbox_pulls"][:, 0, 0]
        held, uploaded = seen[-1]
        np.testing.assert_allclose(held["pulls"], heard)
        assert uploaded.all()


@pytest.mark.parametrize("stage", STAGES)
def test_server_policies_get_parts_without_names(stage):
    captured_uploads = []

    def mean(uploads, mask):
        captured_uploads.append(({name: array.copy() for name, array in uploads.items()}, mask.copy()))
        return {"mean": uploads["pulls"].sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, np.newaxis]}

    make = partial(ArmsEnv, num_agents=4, num_arms=3)
    env = begun(Server(gaussian(make(), 0.0), "every_round", policy=mean, stage=STAGES[stage]))
    captured_uploads.clear()
    observation = env.step_batch(np.array([[0, 2, 0, 1]])).observation
    np.testing.assert_allclose(observation["server_mean"], np.broadcast_to([0.5, 0.25, 0.25], (1, 4, 3)))
    uploads, mask = captured_uploads[-1]
    assert mask.all()
    pulls = uploads["pulls"][0]
    if stage == "shuffler":
        assert pulls.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0]]
    else:
        np.testing.assert_allclose(pulls, np.broadcast_to([0.5, 0.25, 0.25], (4, 3)))


@pytest.mark.parametrize("stage", STAGES)
def test_announced_variances_are_those_of_samples(stage):
    """Noise of 1,000 replicas: its squares over the announced variance have mean 1, within 6 standard errors.

    These are 0.14 of the variance, and one of three agents' noise is a third of it, which is found out with certainty.
    """
    replicas, make = 1000, partial(ProcurementEnv, num_agents=4, num_producers=2)
    given = {"name": "aggregator", "honest": 2} if stage == "aggregator" else stage
    env = Channel(gaussian(make()), stage=given)
    grown, _, names = growths(make, range(replicas), 1)
    trial = Trial(lambda: env, range(replicas), 1)
    env.reset_batch(range(replicas))
    seen = env.step_batch(trial.actions[0]).observation
    found = flat({name: seen[f"inbox_{name}"] for name in names}, names)
    variance = flat({name: seen[f"inbox_{variance_of(name)}"] for name in names}, names)
    others = grown[0].sum(axis=1, keepdims=True) - grown[0]
    # One agent a replica: the noise that agents receive is not independent.
    square = ((found - others) ** 2 / variance)[:, 0]
    assert abs(square.mean() - 1) < 6 * square.std() / sqrt(square.size)


@pytest.mark.parametrize(
    ("stage", "baseline"),
    [
        ("shuffler", "MOSS-weighted"), ("aggregator", "FedUCB-weighted"), ("server", "Thompson-procurement-weighted"),
        ("aggregator", "Priv-FairX-weighted"),
    ],
)  # fmt: skip
def test_policies_that_weigh_by_noise_run_on_every_stage(baseline, stage, monkeypatch):
    """Received sums announce the variance of their noise, so that policies weigh them as they weigh messages."""
    monkeypatch.setattr("fedbandit_envs.testing.policy.HORIZON", 40)
    registered = BASELINES[baseline]
    make = partial(registered.federation, **PROBLEMS[registered.federation].small)
    check_policy(
        registered.make_policy,
        lambda: Channel(ContinualPrivatizer(make(), 1.0, DELTA), schedule="every_round", stage=STAGES[stage]),
    )


def test_a_shuffler_removes_names_and_order():
    """A permutation of agents changes nothing about a batch, to the bit."""
    random = np.random.default_rng(0)
    payload, everyone = {"x": random.standard_normal((1, 4, 3))}, np.ones((1, 4), bool)
    stage = make_stage("shuffler", 4)
    first = stage.combined(payload, everyone)
    for _ in range(20):
        order = random.permutation(4)
        other = stage.combined({"x": payload["x"][:, order]}, everyone)
        assert (other.total["x"] == first.total["x"]).all()
        assert (other.uploads()[0]["x"] == first.uploads()[0]["x"]).all()
    uploads, mask = stage.combined(payload, np.array([[True, False, True, True]])).uploads()
    assert mask.tolist() == [[True, True, True, False]]
    np.testing.assert_allclose(uploads["x"].sum(axis=1), payload["x"][:, [0, 2, 3]].sum(axis=1))


# Arguments.


test_wrong_stages_are_refused_by_name = refusals(
    lambda make: make(ArmsEnv(num_agents=4)),
    (lambda env: Channel(env, stage="mixer"), ValueError, "stage name is 'mixer'"),
    (lambda env: Channel(env, stage="aggregator"), TypeError, "honest"),
    (lambda env: Channel(env, stage={"name": "aggregator", "honest": 0}), ValueError, "honest is 0"),
    (lambda env: Channel(env, stage={"name": "aggregator", "honest": 5}), ValueError, "honest is 5; an"),
    (lambda env: Server(env, stage={"name": "shuffler", "colluders": 4}), ValueError, r"in \[0, 3\]"),
    (lambda env: Server(env, stage={"name": "server", "honest": 2}), TypeError, "server"),
    (lambda env: Channel(env, "ring", stage="server"), ValueError, "'complete' is required"),
)
