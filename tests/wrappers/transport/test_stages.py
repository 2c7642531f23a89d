"""Stages of transports: sums against an independent computation with the same noise, and every claim of the table.

Every statistical test has a fixed seed; a mean is compared with 6 standard errors, so that with other seeds one test in
5e8 would fail.
"""

import tracemalloc
from functools import partial
from math import inf, sqrt

import numpy as np
import pytest
from pairs import every_pair
from registered import PROBLEMS
from secure_sums import unknown_shares

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_policy, check_wrapper
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.testing.episodes import Trial, random_choices
from fedbandit_envs.wrappers import (
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    Quota,
    RandomizedResponsePrivatizer,
)
from fedbandit_envs.wrappers.privacy.accounting.calibration import (
    analytic_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
)
from fedbandit_envs.wrappers.privacy.accounting.shuffling import Batch, shuffled_epsilon
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.privacy.stage_claims import Shares
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server
from fedbandit_envs.wrappers.transport.stages import Combined, Stage, make_stage

AGENTS, DELTA, MULTIPLIER = 5, 1e-5, 4.0
SEEDS = (3, 8)
STAGES = {
    "shuffler": "shuffler",
    "aggregator": {"name": "aggregator", "honest": 3},
    "server": "server",
}
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


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("problem", SMALL)
def test_inboxes_are_sums_of_an_independent_computation(problem, transport, stage, echo):
    check_sums(SMALL[problem], transport, stage, echo)


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    ("noise", "stage", "transport"), every_pair(["none", "gaussian", "continual"], [*STAGES], [*TRANSPORTS])
)
def test_federations_with_stages_conform(noise, stage, transport):
    def wrap(env):
        private = {
            "none": lambda env: env,
            "gaussian": gaussian,
            "continual": lambda env: ContinualPrivatizer(env, 1.0, DELTA),
        }[noise](env)
        return TRANSPORTS[transport](private, stage=STAGES[stage])

    check_wrapper(wrap, partial(ArmsEnv, num_agents=4, num_arms=3))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("noise", [gaussian, lambda env: ContinualPrivatizer(env, 1.0, DELTA)])
def test_replicas_are_independent(noise, stage):
    def played(seeds):
        make = partial(ArmsEnv, num_agents=4, num_arms=3)
        env = Server(
            noise(make()), "every_round", "every_round", False, delay=1, loss=0.3, stage=STAGES[stage]
        )
        trial = Trial(lambda: env, seeds, 8)
        # All replicas play alike, so that a replica alone can play the same.
        alike = random_choices(env.single_action_space, (1, 4), 8)
        trial.actions = [np.repeat(action, len(seeds), axis=0) for action in alike]
        return trial.episode()

    together = played((4, 7, 9))
    for place, seed in enumerate((4, 7, 9)):
        alone = played((seed,))
        one = [
            {
                name: {key: array[place : place + 1] for key, array in part.items()}
                for name, part in each.items()
                if isinstance(part, dict)
            }
            for each in together
        ]
        assert not difference(
            one, [{name: each[name] for name in kept} for kept, each in zip(one, alone, strict=True)]
        )


# Shared noise of matrix mechanisms.


def prefixes(seed, agent, numbers, releases, deviation):
    """The noise of an agent's prefix sums by the square-root factorisation, ``(releases, numbers)``."""
    factors = np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, releases)])
    generator = stream(seed, Purpose.NOISE, agent)
    draws = np.array([generator.standard_normal(numbers) for _ in range(releases)])
    return deviation * np.array(
        [factors[: z + 1][::-1] @ draws[: z + 1] for z in range(releases)]
    ), np.cumsum(factors**2)


@pytest.mark.parametrize("honest", [1, 2])
def test_shared_correlated_noise_is_indexed_by_the_federations_synchronisations(honest):
    """Streams are drawn while agents are absent: the sum has each agent's prefix noise of when it was last there."""
    rounds, epsilon = 6, 2.0
    presence = np.random.default_rng(1).random((rounds, 1, AGENTS)) < 0.6
    presence[:, 0, :2] = [[1, 0]] * 2 + [[1, 1]] * 4
    make = partial(ArmsEnv, num_agents=AGENTS, num_arms=3)
    private = ContinualPrivatizer(make(), epsilon, DELTA, "sqrt_toeplitz", releases=rounds)
    env = Server(private, "on_request", stage={"name": "aggregator", "honest": honest})
    bare = make()
    bare.reset_batch([5])
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
            prefixes(5, agent, 6, rounds, deviation)[0][last[agent] - 1]
            for agent in range(AGENTS)
            if last[agent]
        )
        np.testing.assert_allclose(received[0, 0], data.sum(axis=0) + noise, rtol=1e-8)
        np.testing.assert_allclose(
            variance[0], deviation**2 * sum(squares[z - 1] for z in last if z), rtol=1e-8
        )


# Claims.


def claims_of(env, rounds=3, seeds=SEEDS):
    trial = Trial(lambda: env, seeds, rounds)
    trial.episode()
    return {(claim.trust, claim.observer): claim for claim in env.privacy_claims()}


def mu_of(epsilon):
    """Returns the mu of Gaussian DP that has this epsilon at :data:`DELTA`, by bisection."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) < DELTA else (low, middle)
    return low


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("honest", "colluders"), [(1, 0), (3, 1), (5, 2)])
def test_claims_of_a_secure_sum(transport, honest, colluders):
    stage = {"name": "aggregator", "honest": honest, "colluders": colluders}
    env = TRANSPORTS[transport](gaussian(ArmsEnv(num_agents=AGENTS)), stage=stage)
    claims = claims_of(env)
    assert list(claims) == [
        ("local", "everybody"),
        ("cryptography", "wire"),
        ("aggregator", "server"),
        ("aggregator", "fellow"),
        ("aggregator", "public"),
    ]
    nominal = env.sensitivity().changes["one-observation"].norm * sqrt(3) / MULTIPLIER
    for (trust, observer), shares in {
        ("local", "everybody"): 1,
        ("aggregator", "server"): AGENTS - colluders,
        ("aggregator", "fellow"): AGENTS - 1 - colluders,
        ("aggregator", "public"): AGENTS,
    }.items():
        claim = claims[trust, observer]
        assert claim.epsilon == pytest.approx(
            gaussian_epsilon(DELTA, nominal * sqrt(honest / shares)), rel=1e-10
        )
        assert mu_of(claim.epsilon) == pytest.approx(nominal * sqrt(honest / shares), rel=1e-9)
        assert ("idealised" in claim.reason) == (trust == "aggregator")
    assert claims["cryptography", "wire"].epsilon == 0
    assert env.privacy() == claims["aggregator", "fellow"]
    assert env.env.privacy() == env.privacy()


@pytest.mark.parametrize("noise", ["independent", "correlated"])
def test_claims_with_drop_outs_count_the_least_number_of_shares(noise):
    make = partial(ArmsEnv, num_agents=8)
    private = (
        gaussian(make()) if noise == "independent" else ContinualPrivatizer(make(), 1.0, DELTA, releases=12)
    )
    env = Server(private, "every_round", loss=0.4, stage={"name": "aggregator", "honest": 2, "colluders": 1})
    present = captured(env)
    claims = claims_of(env, rounds=8, seeds=(1,))
    sums = np.array(present)[:, 0]
    assert not sums.all()
    sums = sums[sums.any(axis=1)]
    local = mu_of(claims["local", "everybody"].epsilon)
    for observer, known in (("server", 1), ("fellow", 2), ("public", 0)):
        shares = unknown_shares(sums, known).min()
        expected = gaussian_epsilon(DELTA, local / sqrt(shares))
        assert claims["aggregator", observer].epsilon == pytest.approx(expected, rel=1e-6)


def test_shares_are_those_of_the_whole_history():
    """The running counts are those from all sums; for all releases of an agent they are a lower bound."""
    for seed in range(20):
        drawn = np.random.default_rng(seed).random((6, 1, 7)) < 0.8
        shares = Shares((1, 7))
        for arrived in drawn:
            went = arrived.any(axis=1)
            shares.pass_on(went, Combined(went, arrived, {}, {}))
        for known in (0, 1, 2):
            np.testing.assert_array_equal(shares.unknown(known, False)[0], unknown_shares(drawn[:, 0], known))
            bound, exact = (
                shares.unknown(known, True)[0],
                unknown_shares(drawn[:, 0], known, every_release=True),
            )
            assert (bound <= exact).all()


@pytest.mark.parametrize("noise", [gaussian, lambda env: LaplacePrivatizer(env, 1.0, releases=12)])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_claims_of_a_trusted_server(transport, noise):
    make = partial(ArmsEnv, num_agents=AGENTS)
    local = noise(make())
    local.reset_batch(SEEDS)
    for _ in range(3):
        local.release(np.ones((2, AGENTS), bool))
    env = TRANSPORTS[transport](noise(make()), stage="server")
    claims = claims_of(env)
    assert {each: claim.epsilon for each, claim in claims.items()} == {
        ("local", "wire"): inf,
        ("local", "server"): inf,
        ("server", "fellow"): local.privacy().epsilon,
        ("server", "public"): local.privacy().epsilon,
    }
    assert claims["local", "wire"].reason == "released without noise"
    # The accounts are those of the server's noise, and say so.
    assert env.env.accountant.epsilon().trust == "server"
    assert env.privacy() == claims["server", "fellow"]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("adjacency", ["agent", "one-observation"])
def test_claims_of_a_shuffler_with_a_clip(transport, adjacency):
    agents, multiplier, rounds = 60, 20.0, 2
    budget = {**EXACT, "adjacency": adjacency}
    env = TRANSPORTS[transport](
        gaussian(ArmsEnv(num_agents=agents), multiplier, clip=1.0, budget=budget), stage="shuffler"
    )
    claims = claims_of(env, rounds, (1,))
    local = claims["local", "everybody"].epsilon
    for observer, messages in (("server", agents), ("fellow", agents - 1), ("public", agents)):
        expected = shuffled_epsilon(DELTA, [Batch(messages, 2 / multiplier)] * rounds)
        claim = claims["shuffler" if expected < local else "local", observer]
        assert claim.epsilon == min(local, expected)
    assert env.privacy().observer == "fellow"


def test_a_shuffler_amplifies_and_colluders_take_away():
    def epsilon(colluders):
        stage = {"name": "shuffler", "colluders": colluders}
        env = Channel(
            gaussian(ArmsEnv(num_agents=300), 40.0, clip=1.0, budget={**EXACT, "adjacency": "agent"}),
            stage=stage,
        )
        return {key: claim.epsilon for key, claim in claims_of(env, 1, (1,)).items()}

    honest, colluding = epsilon(0), epsilon(200)
    assert honest["shuffler", "fellow"] < colluding["shuffler", "fellow"] < honest["local", "everybody"]
    assert honest["shuffler", "server"] < honest["shuffler", "fellow"]


@pytest.mark.parametrize(
    ("noise", "stage", "reason"),
    [
        (gaussian, "shuffler", "which must have a clip"),
        (lambda env: ContinualPrivatizer(env, 1.0, DELTA), "shuffler", "is correlated"),
        (lambda env: LaplacePrivatizer(env, 1.0), "shuffler", "Gaussian noise only"),
        (lambda env: RandomizedResponsePrivatizer(env, 1.0), "shuffler", "Gaussian noise only"),
        (lambda env: LaplacePrivatizer(env, 1.0), "aggregator", "Gaussian noise only"),
        (lambda env: RandomizedResponsePrivatizer(env, 1.0), "aggregator", "Gaussian noise only"),
        (partial(gaussian, clip=1.0, budget={"adjacency": "agent"}), "shuffler", None),
    ],
)
def test_where_a_stage_claims_nothing_the_local_claim_stands(noise, stage, reason):
    make = partial(ArmsEnv, num_agents=AGENTS)
    plain = Channel(noise(make()))
    env = Channel(noise(make()), stage=STAGES[stage])
    local = next(iter(claims_of(plain).values()))
    claims = claims_of(env)
    assert claims["local", "everybody"] == local
    if reason is not None:
        for observer in ("server", "fellow", "public"):
            assert claims[stage, observer].epsilon is None
            assert reason in claims[stage, observer].reason
        assert env.privacy() == local


def test_a_stack_without_a_stage_has_its_one_claim():
    env = Channel(gaussian(ArmsEnv(num_agents=AGENTS)))
    assert list(claims_of(env)) == [("local", "everybody")]
    assert env.privacy_claims() == [env.privacy()]
    assert "observer" not in env.privacy().as_json()


@pytest.mark.parametrize("stage", STAGES)
def test_without_a_privatizer_nothing_is_protected(stage):
    env = Channel(ArmsEnv(num_agents=AGENTS), stage=STAGES[stage])
    env.reset_batch([0])
    assert [claim.epsilon for claim in env.privacy_claims()] == [0.0]
    assert [claim.epsilon for claim in claims_of(env).values()] == [inf]


@pytest.mark.parametrize("stage", STAGES)
def test_agents_that_choose_when_to_send_have_no_claim(stage):
    env = Server(gaussian(ArmsEnv(num_agents=AGENTS), clip=1.0), "on_request", stage=STAGES[stage])
    env.reset_batch([0])
    for _ in range(3):
        env.step_batch({"action": np.zeros((1, AGENTS), int), "send": np.ones((1, AGENTS), bool)})
    for claim in env.privacy_claims():
        assert claim.epsilon == (inf if stage == "server" and claim.trust == "local" else None), claim


@pytest.mark.parametrize("stage", STAGES)
def test_releases_past_the_stage_are_not_covered_by_it(stage):
    env = Channel(gaussian(ArmsEnv(num_agents=AGENTS)), stage=STAGES[stage])
    claims_of(env)
    env.release(np.ones((2, AGENTS), bool))
    claims = env.privacy_claims()
    local = claims[0].epsilon
    assert (local == inf) == (stage == "server")
    for claim in claims:
        assert claim.epsilon == local
        if claim.observer in ("fellow", "public"):
            assert "past the" in claim.reason


def test_an_episode_without_the_transport_has_no_stage():
    private, plain = gaussian(ArmsEnv(num_agents=3)), gaussian(ArmsEnv(num_agents=3))
    Channel(private, stage="server").reset_batch([0])
    for env in (private, plain):
        env.reset_batch([0])
        env.step_batch(np.zeros((1, 3), int))
    everyone = np.ones((1, 3), bool)
    np.testing.assert_array_equal(private.release(everyone)["pulls"], plain.release(everyone)["pulls"])
    assert private.privacy() == plain.privacy()
    assert private.privacy().trust == "local"


# Faults, absence and thresholds.


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
    env = Server(
        gaussian(ArmsEnv(num_agents=AGENTS)),
        "every_round",
        loss=0.8,
        stage={"name": "aggregator", "honest": AGENTS},
    )
    present = captured(env)
    env.reset_batch([0])
    for t in range(12):
        step = env.step_batch(np.zeros((1, AGENTS), int))
        if not present[t].all():
            assert not any(
                array.any() for name, array in step.observation.items() if name.startswith("inbox_")
            )
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

    env = Server(gaussian(ArmsEnv(num_agents=4)), "every_round", answers, stage=STAGES[stage])
    env.reset_batch([0])
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
    env = Server(gaussian(make(), 0.0), "every_round", policy=mean, stage=STAGES[stage])
    env.reset_batch([0])
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


def test_budgets_are_measured_for_a_fellow_of_the_smallest_sum():
    def spent(stage, **budget):
        env = Channel(gaussian(ArmsEnv(num_agents=AGENTS), budget={**EXACT, **budget}), stage=stage)
        env.reset_batch([0])
        for _ in range(3):
            step = env.step_batch(np.zeros((1, AGENTS), int))
        return step.info["epsilon_spent"]

    bare = ArmsEnv()
    bare.reset_batch([0])
    mu = bare.sensitivity().changes["one-observation"].norm * sqrt(3) / MULTIPLIER
    nominal = gaussian_epsilon(DELTA, mu)
    local = spent(None)
    np.testing.assert_allclose(local, nominal)
    np.testing.assert_allclose(spent("server"), local)
    np.testing.assert_allclose(spent("shuffler"), local)
    aggregator = {"name": "aggregator", "honest": 4, "colluders": 1}
    expected = gaussian_epsilon(DELTA, mu * sqrt(4 / 2))
    np.testing.assert_allclose(spent(aggregator), expected)
    spent(aggregator, epsilon=float(expected) * 1.0001)
    with pytest.raises(BudgetExhaustedError):
        spent(aggregator, epsilon=float(expected) * 0.9999)


@pytest.mark.parametrize("stage", STAGES)
def test_announced_variances_are_those_of_samples(stage):
    """Noise of 1,000 replicas: its squares over the announced variance have mean 1, within 6 standard errors.

    These are 0.14 of the variance, and one of three agents' noise is a third of it, which is found out with certainty.
    """
    replicas, make = 1000, partial(ProcurementEnv, num_agents=4, num_producers=2)
    env = Channel(
        gaussian(make()), stage={"name": "aggregator", "honest": 2} if stage == "aggregator" else stage
    )
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


def test_memory_of_a_server_grows_linearly_with_agents():
    def peak(agents):
        env = Server(
            gaussian(ArmsEnv(num_agents=agents), releases=None), "every_round", stage="server", echo=False
        )
        tracemalloc.start()
        env.reset_batch([0])
        for _ in range(2):
            env.step_batch(np.zeros((1, agents), int))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(1000) < 6 * peak(250)


@pytest.mark.parametrize(
    ("stage", "baseline"),
    every_pair([*STAGES], ["UCB1-weighted", "FedUCB-weighted", "P-FCB-weighted", "Priv-FairX-weighted"]),
)
def test_policies_that_weigh_by_noise_run_on_every_stage(baseline, stage):
    """Received sums announce the variance of their noise, so that policies weigh them as they weigh messages."""
    registered = BASELINES[baseline]
    make = partial(registered.federation, **PROBLEMS[registered.federation].small)
    check_policy(
        registered.make_policy,
        lambda: Channel(ContinualPrivatizer(make(), 1.0, DELTA), schedule="every_round", stage=STAGES[stage]),
    )


# Arguments.


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda env: Channel(env, stage="mixer"), ValueError, "stage name is 'mixer'"),
        (lambda env: Channel(env, stage=3), TypeError, "stage is 3"),
        (lambda env: Channel(env, stage="aggregator"), TypeError, "honest"),
        (lambda env: Channel(env, stage={"name": "aggregator", "honest": 0}), ValueError, "honest is 0"),
        (lambda env: Channel(env, stage={"name": "aggregator", "honest": 5}), ValueError, "at most 4"),
        (lambda env: Server(env, stage={"name": "shuffler", "colluders": 4}), ValueError, "at most 3"),
        (lambda env: Server(env, stage={"name": "shuffler", "colluders": 1.5}), TypeError, "colluders"),
        (lambda env: Server(env, stage={"name": "server", "honest": 2}), TypeError, "server"),
        (lambda env: Channel(env, "ring", stage="server"), ValueError, "'complete' is required"),
        (lambda env: Channel(env, "star", stage="server"), ValueError, "'complete' is required"),
    ],
)
def test_wrong_stages_are_refused_by_name(make, error, message):
    with pytest.raises(error, match=message):
        make(ArmsEnv(num_agents=4))


def test_a_stage_may_be_given_as_an_object():
    stage = Stage("aggregator", 2, 1)
    assert make_stage(stage, 4) is stage
    assert Channel(ArmsEnv(num_agents=4), stage=stage).reset_batch([0])


# Mutants: what the tests above must catch.


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


def test_a_fellows_own_share_that_is_not_subtracted_is_caught(monkeypatch):
    unknown = Shares.unknown
    monkeypatch.setattr(Shares, "unknown", lambda self, known, every: unknown(self, max(known - 1, 0), every))
    with pytest.raises(AssertionError):
        test_claims_of_a_secure_sum("channel", 3, 1)
