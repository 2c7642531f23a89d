"""The vector-sum protocol: sums against users who send bits one by one, and claims against enumerated outcomes.

Samples are compared by Kolmogorov-Smirnov tests at 1e-6, 15 in a test: a right mechanism fails one of the two tests in
less than 1 in 10,000 choices of seeds.
"""

from dataclasses import replace
from functools import cache
from math import log, sqrt

import numpy as np
import pytest
from played import begun
from scipy.stats import binom, ks_2samp
from shuffled_bits import stick

from fedbandit_envs.core.privacy import Change
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.linear.rounds import of_moments
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Channel, Privatizer, VectorSumPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.event import alone, exact
from fedbandit_envs.wrappers.privacy.mechanisms.vector_sum import BinomialSums, VectorSum
from fedbandit_envs.wrappers.transport.schedule import Stage

AGENTS, GAP, EPSILON, DELTA, DIM, REPLICAS = 2, 2, 2.0, 0.1, 2, 3000
CONTEXTS = [[[0.6, -0.3]], [[0.2, 0.9]]]
ENTRIES = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2))


def small(**kwargs):
    settings = {"contexts": CONTEXTS, "reward": "normal", "reward_sd": 0.0, "parameter": [0.6, 0.8]}
    return LinearEnv(**{**settings, "max_cycles": 8, "statistic": "moments", **kwargs})


@cache
def prefix_sums(draw):
    """Returns the sums over agents of the first 1 to 3 releases, ``(releases, replicas, entries)``."""
    env = Privatizer(small(), VectorSum(None, DELTA, GAP, draw, epsilon_per_release=EPSILON))
    env.reset_batch(range(REPLICAS), Stage("aggregator", honest=AGENTS))
    sums = []
    for _ in range(3):
        for _ in range(GAP):
            env.step_batch(np.zeros((REPLICAS, AGENTS), np.int64))
        sums.append(env.release(np.ones((REPLICAS, AGENTS), np.bool_))["statistic"].sum(axis=1))
    return np.cumsum(sums, axis=0)[:, :, *np.transpose(ENTRIES)]


def simulated(draw, rng):
    """Plays the protocol user by user and node by node, as the paper states it."""
    pairs = [np.array([*x, np.dot(x, [0.6, 0.8])]) for (x,) in CONTEXTS]
    values = np.array([[pair[i] * pair[j] for i, j in ENTRIES] for pair in pairs])

    def node(level):
        users = np.repeat(values, GAP * 2**level, axis=0)
        n = len(users)
        g = max(2 * sqrt(n), DIM, 4)
        b = g**2 * log(DIM**2 / DELTA) ** 2 / (EPSILON**2 * n)
        drawn, subtracted = (int(b), b) if draw == "printed" else (int(np.ceil(b)),) * 2
        u = np.broadcast_to((users + 1) * g, (REPLICAS, *users.shape))
        bits = np.floor(u) + (rng.random(u.shape) < u - np.floor(u)) + rng.binomial(drawn, 0.25, u.shape)
        return (bits.sum(axis=1) - subtracted * n / 4) / g - n

    pair = node(1)
    return np.array([node(0), pair, pair + node(0)])


def least_likely(sums, simulation):
    # Rounded, so that equal values of a lattice are equal numbers.
    first, second = np.round(sums, 6), np.round(simulation, 6)
    return min(ks_2samp(first[z, :, k], second[z, :, k]).pvalue for z in range(3) for k in range(5))


@pytest.mark.parametrize("draw", ["exact", "printed"])
def test_sums_are_those_of_users_who_send_bits(draw):
    sums, simulation = prefix_sums(draw), simulated(draw, np.random.default_rng(1))
    assert least_likely(sums, simulation) > 1e-6
    # What no test of single sums shows: the noises of two levels are independent.
    ours, theirs = (np.corrcoef(each[0, :, 0], each[1, :, 0])[0, 1] for each in (sums, simulation))
    assert abs(ours - theirs) < 0.13  # five standard deviations


def test_the_printed_draw_is_biased_and_variances_are_announced():
    env = make_federation("FedLinearSphere-v0")
    mechanism = started(env, 1.0, "printed")
    for level, node in enumerate(mechanism._nodes):
        n = 100 * 25 * 2**level
        bias = 100 * (node.trials / 4 - node.expected) / node.fine
        assert bias == pytest.approx(-0.0885 * sqrt(n), rel=1e-3)
        # The sum over all agents has the standard deviation 14.95, and rounding at most L/4.
        assert sqrt(100 * mechanism._variance(node)) == pytest.approx(sqrt(14.9547**2 + 1 / 16), rel=1e-4)
    sums = prefix_sums("exact")
    env = Privatizer(small(), VectorSum(None, DELTA, GAP, epsilon_per_release=EPSILON))
    env.reset_batch([0], Stage("aggregator", honest=AGENTS))
    total = 0.0
    for z in range(3):
        total += env.release(np.ones((1, AGENTS), np.bool_))["statistic_noise_variance"].sum(axis=1)[0]
        # The bound on rounding is 1/4 for each user; the sampling error of a variance is 2.6 %, five of them 13 %.
        assert np.allclose(total[*np.transpose(ENTRIES)], sums[z].var(axis=0), rtol=0.14)
        assert total[-1, -1] == 0


def test_without_a_stage_each_release_has_the_whole_noise():
    env = begun(Privatizer(small(), VectorSum(None, DELTA, GAP, epsilon_per_release=EPSILON)))
    released = env.release(np.ones((1, AGENTS), np.bool_))["statistic_noise_variance"]
    # g = max(2 sqrt(M n), d, 4) = 4 units of rounding; (g ln(d^2/delta)/epsilon)^2/n = 27.2 bits a user, n = GAP users.
    np.testing.assert_allclose(released[0, :, 0, 1], (28 * GAP * 3 / 16 + GAP / 4) / 4**2)


def started(env, bound, draw="printed", agents=100):
    mechanism = VectorSum(None, 0.1, 25, draw, epsilon_per_release=0.2)
    mechanism.prepare(env)
    generators = [np.random.default_rng(k) for k in range(agents)]
    mechanism.start_share(of_moments((1, agents, 11, 11), 1.0, bound), 10_000, generators, agents)
    return mechanism


@pytest.mark.parametrize(("bound", "honest", "expected"), [(1.0, 100, 0.1893), (1.0, 50, 0.438)])
def test_claims_with_the_parameters_of_the_paper(bound, honest, expected):
    event = started(make_federation("FedLinearSphere-v0", reward_bound=bound), bound).joint_event(256)
    assert len(event.nodes) == 9
    shares = alone(event.rescaled(100 / honest))
    assert exact(shares, "one-observation", 0.1)[0, 0] == pytest.approx(expected, rel=2e-3)
    if bound == 1.0 and honest == 100:
        assert event.mu("one-observation") == pytest.approx(0.4256, abs=5e-5)
        loss = event.loss_distribution(event.change("one-observation"), 1e-4)
        assert loss.get_delta_for_epsilon(0.2) == pytest.approx(0.0967, abs=1e-4)
        # A level less would be claimed too cheaply by more than all approximations together.
        assert exact(alone(replace(event, nodes=event.nodes[:-1])), "one-observation", 0.1)[0, 0] < 0.175


def enumerated(first, second, epsilon):
    """Returns delta of two distributions over the same outcomes, in the worse direction."""
    return max(stick(epsilon, first, second), stick(epsilon, second, first))


def shifted(trials, chances, size):
    """Returns the distribution of Bin(trials, 1/4) plus an integer that has the given chances."""
    noise = binom.pmf(np.arange(trials + 1), trials, 0.25)
    total = np.zeros(size)
    for shift, chance in chances.items():
        total[shift : shift + trials + 1] += chance * noise
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("nodes", [((30, 3.0),), ((60, 2.0), (40, 3.0)), ((5, 7.0),)])
def test_delta_is_that_of_all_outcomes(nodes, epsilon):
    first, second = np.ones(1), np.ones(1)
    for trials, shift in nodes:
        first = np.outer(first, shifted(trials, {0: 1.0}, trials + 8)).ravel()
        second = np.outer(second, shifted(trials, {int(shift): 1.0}, trials + 8)).ravel()
    event = BinomialSums("binomial", 1.0, np.inf, 0.0, (), nodes=nodes)
    claimed = event.loss_distribution(Change(0, 1.0), 5e-5).get_delta_for_epsilon(epsilon)
    exact = enumerated(first, second, epsilon)
    assert exact - 1e-12 <= claimed <= exact + 1e-4
    if len(nodes) > 1:
        fewer = replace(event, nodes=nodes[1:]).loss_distribution(Change(0, 1.0), 5e-5)
        assert fewer.get_delta_for_epsilon(epsilon) < exact - 1e-3


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6])
@pytest.mark.parametrize(
    "change", [[(0.3, -0.45)], [(1.0, -1.0)], [(0.3, -0.45), (0.9, 0.37)], [(0.9, -0.1), (-0.5, 0.77)]]
)
def test_the_claim_covers_rounding_and_several_numbers(change, epsilon):
    trials, fine = 300, 8.0
    outcomes = [np.ones(1), np.ones(1)]
    for values in change:
        for side, value in enumerate(values):
            low = int((value + 1) * fine)
            part = (value + 1) * fine - low
            chances = {low: 1 - part, low + 1: part}
            outcomes[side] = np.outer(outcomes[side], shifted(trials, chances, trials + 20)).ravel()
    norm = sqrt(sum((v - w) ** 2 for v, w in change))
    event = BinomialSums("binomial", 1.0, np.inf, 0.0, (), nodes=((trials, fine),))
    claimed = event.loss_distribution(Change(len(change), norm), 1e-4).get_delta_for_epsilon(epsilon)
    assert enumerated(*outcomes, epsilon) <= claimed


def staged(stage, **kwargs):
    env = VectorSumPrivatizer(small(), None, DELTA, GAP, epsilon_per_release=0.2)
    env = begun(Channel(env, schedule={"name": "fixed_gap", "gap": GAP}, stage=stage, **kwargs))
    for _ in range(2 * GAP):
        env.step_batch(np.zeros((1, AGENTS), np.int64))
    return env, {(claim.trust, claim.observer): claim for claim in env.privacy_claims()}


def test_a_sum_has_the_claim_of_all_agents_noise_and_a_release_that_of_its_own():
    _, alone = staged(None)
    _, claims = staged({"name": "aggregator", "honest": AGENTS})
    summed, own = claims["aggregator", "public"], claims["local", "everybody"]
    # Two agents' sum has the noise that without a stage each release has.
    assert summed.epsilon == alone["local", "everybody"].epsilon
    assert summed.reason == ""
    assert claims["aggregator", "fellow"].epsilon == own.epsilon > summed.epsilon


def test_absent_agents_leave_no_claim_for_sums():
    claims = staged({"name": "aggregator", "honest": 1}, loss=0.5)[1]
    assert claims["aggregator", "public"].epsilon is None
    assert "absent" in claims["aggregator", "public"].reason
    assert claims["local", "everybody"].epsilon > 0


def test_hardly_any_noise_gives_no_finite_epsilon():
    env = begun(VectorSumPrivatizer(small(), None, DELTA, GAP, epsilon_per_release=30.0))
    for _ in range(3):
        env.release(np.ones((1, AGENTS), np.bool_))
    assert env.privacy().epsilon == np.inf


def test_what_is_refused():
    with pytest.raises(ValueError, match="stage is 'server'"):
        staged("server")
    with pytest.raises(ValueError, match=r"'delivered'.*is required"):
        VectorSumPrivatizer(make_federation("FedProcurement-v0"), 1.0, 0.1, 5)
    with pytest.raises(ValueError, match="does not randomise clipped"):
        Privatizer(small(), VectorSum(1.0, 0.1, 2), clip=1.0)
    for name, value in {"epsilon": 0.0, "delta": 1.0, "gap": 0, "draw": "other", "bound": 0.0}.items():
        arguments = {"epsilon": 1.0, "delta": 0.1, "gap": 2, name: value}
        with pytest.raises(ValueError, match=f"{name} is"):
            VectorSum(**arguments)
