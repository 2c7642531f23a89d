"""What is claimed of a stage's releases, in every case of the table, and what budgets and mutants make of it."""

from functools import partial
from math import inf, sqrt

import numpy as np
import pytest
from played import begun
from stage_sums import AGENTS, DELTA, EXACT, MULTIPLIER, SEEDS, STAGES, TRANSPORTS, captured, gaussian, mu_of

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.wrappers import ContinualPrivatizer, LaplacePrivatizer, RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError
from fedbandit_envs.wrappers.privacy.stage_claims import Shares, shuffled_epsilon
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import Combined
from fedbandit_envs.wrappers.transport.server import Server


def unknown_shares(present: np.ndarray, known: int = 0, every_release: bool = False) -> np.ndarray:
    """Returns how many agents' noise protects each agent in secure sums: the shares that an observer does not know.

    A share is the noise that one agent has added to a sum. ``present`` says whose data and noise were in each sum, bool
    ``(sums, agents)``; of their shares the observer knows ``known``. Counted are those of the sum with the fewest; or,
    with ``every_release``, of agents that were in every sum: for a change of all data under a matrix mechanism.
    """
    agents = present.shape[1]
    if every_release:
        # For each pair of agents, how often the first one was in a sum without the second one.
        alone = present.T.astype(np.float64) @ ~present
        shares = (alone == 0).sum(axis=1)
    else:
        sizes = np.where(present, present.sum(axis=1, keepdims=True), agents)
        shares = sizes.min(axis=0, initial=agents)
    return np.maximum(shares - known, 1).astype(np.int64)


def claims_of(env, rounds=3, seeds=SEEDS):
    trial = Trial(lambda: env, seeds, rounds)
    trial.episode()
    return {(claim.trust, claim.observer): claim for claim in env.privacy_claims()}


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
        claim, mu = claims[trust, observer], nominal * sqrt(honest / shares)
        assert claim.epsilon == pytest.approx(gaussian_epsilon(DELTA, mu), rel=1e-10)
        assert mu_of(claim.epsilon) == pytest.approx(mu, rel=1e-9)
        assert ("idealised" in claim.reason) == (trust == "aggregator")
    assert claims["cryptography", "wire"].epsilon == 0
    assert env.privacy() == claims["aggregator", "fellow"]
    assert env.env.privacy() == env.privacy()


@pytest.mark.parametrize("noise", ["independent", "correlated"])
def test_claims_with_drop_outs_count_the_least_number_of_shares(noise):
    make = partial(ArmsEnv, num_agents=8)
    add = (
        gaussian
        if noise == "independent"
        else partial(ContinualPrivatizer, epsilon=1.0, delta=DELTA, releases=12)
    )
    env = Server(
        add(make()), "every_round", loss=0.4, stage={"name": "aggregator", "honest": 2, "colluders": 1}
    )
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
            exact = unknown_shares(drawn[:, 0], known, every_release=True)
            assert (shares.unknown(known, True)[0] <= exact).all()


@pytest.mark.parametrize(
    "noise", [gaussian, lambda env: LaplacePrivatizer(env, epsilon_per_release=1.0 / 12, releases=12)]
)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_claims_of_a_trusted_server(transport, noise):
    make = partial(ArmsEnv, num_agents=AGENTS)
    local = begun(noise(make()), SEEDS)
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
    private = gaussian(ArmsEnv(num_agents=agents), multiplier, clip=1.0, budget=budget)
    env = TRANSPORTS[transport](private, stage="shuffler")
    claims = claims_of(env, rounds, (1,))
    local = claims["local", "everybody"].epsilon
    for observer, messages in (("server", agents), ("fellow", agents - 1), ("public", agents)):
        expected = shuffled_epsilon(DELTA, [(messages, 2 / multiplier)] * rounds)
        claim = claims["shuffler" if expected < local else "local", observer]
        assert claim.epsilon == min(local, expected)
    assert env.privacy().observer == "fellow"


def test_a_shuffler_amplifies_and_colluders_take_away():
    def epsilon(colluders):
        budget = {**EXACT, "adjacency": "agent"}
        private = gaussian(ArmsEnv(num_agents=300), 40.0, clip=1.0, budget=budget)
        env = Channel(private, stage={"name": "shuffler", "colluders": colluders})
        return {key: claim.epsilon for key, claim in claims_of(env, 1, (1,)).items()}

    honest, colluding = epsilon(0), epsilon(200)
    assert honest["shuffler", "fellow"] < colluding["shuffler", "fellow"] < honest["local", "everybody"]
    assert honest["shuffler", "server"] < honest["shuffler", "fellow"]


@pytest.mark.parametrize(
    ("noise", "stage", "reason"),
    [
        (gaussian, "shuffler", "which must have a clip"),
        (lambda env: ContinualPrivatizer(env, 1.0, DELTA), "shuffler", "is correlated"),
        (lambda env: LaplacePrivatizer(env, epsilon_per_release=1.0), "shuffler", "Gaussian noise only"),
        (partial(RandomizedResponsePrivatizer, epsilon_per_release=1.0), "shuffler", "Gaussian noise only"),
        (lambda env: LaplacePrivatizer(env, epsilon_per_release=1.0), "aggregator", "Gaussian noise only"),
        (partial(RandomizedResponsePrivatizer, epsilon_per_release=1.0), "aggregator", "Gaussian noise only"),
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
    env = begun(Channel(ArmsEnv(num_agents=AGENTS), stage=STAGES[stage]))
    assert [claim.epsilon for claim in env.privacy_claims()] == [0.0]
    assert [claim.epsilon for claim in claims_of(env).values()] == [inf]


@pytest.mark.parametrize("stage", STAGES)
def test_agents_that_choose_when_to_send_have_no_claim(stage):
    env = begun(Server(gaussian(ArmsEnv(num_agents=AGENTS), clip=1.0), "on_request", stage=STAGES[stage]))
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


def test_budgets_are_measured_for_a_fellow_of_the_smallest_sum():
    def spent(stage, **budget):
        env = begun(Channel(gaussian(ArmsEnv(num_agents=AGENTS), budget={**EXACT, **budget}), stage=stage))
        for _ in range(3):
            step = env.step_batch(np.zeros((1, AGENTS), int))
        return step.info["epsilon_spent"]

    bare = begun(ArmsEnv())
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
