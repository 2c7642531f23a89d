"""Procurement: SS-UCB, controls and Bayesian indices by their formulas, P-FCB against an independent computation."""

from functools import partial

import numpy as np
import pytest
from played import played
from scipy.stats import beta, kstest

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.procurement import PFCB, SSUCB, Clairvoyant, LaplaceIndex, ThompsonProcurement
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.procurement.oracle import procure
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.observation import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel


@pytest.mark.parametrize("oracle", ["exact", "greedy"])
@pytest.mark.parametrize("threshold", [0.4, 0.7])
@pytest.mark.parametrize("market", ["uniform", "normal"])
def test_clairvoyant_has_no_regret_with_the_same_oracle(oracle, threshold, market):
    env = parallel_env(max_cycles=20, market=market, quality_threshold=threshold, regret_oracle=oracle)
    assert (simulate(Reveal(env), Clairvoyant(oracle), range(20)).regret == 0).all()


def test_ss_ucb_follows_its_formula():
    """The first rounds by hand: exploration, then the index of the paper with t counted from 1."""
    env = parallel_env(num_agents=1, num_producers=5, instance_seed=2, max_cycles=50)
    policy = SSUCB(exploration_rounds=2, radius_scale=0.7, margin=0.05)
    for t, ([[action]], observation, _) in enumerate(played(env, policy), start=1):
        if t <= 2:
            np.testing.assert_array_equal(action, 1)
        else:
            units, good = observation["total_delivered"][0, 0], observation["total_good"][0, 0]
            bound = np.minimum(good / units + 0.7 * np.sqrt(3 * np.log(t) / (2 * units)), 1)
            pays = bound > observation["cost"][0, 0]
            everything = np.where(pays, observation["capacity"][0, 0], 0)
            assert (everything * (bound - 0.45)).sum() >= 0
            np.testing.assert_array_equal(action, everything)


def test_a_baseline_refuses_an_environment_it_does_not_play():
    for baseline in BASELINES.values():
        with pytest.raises(ValueError, match="env is a object"):
            baseline.wrap(object())


def noisy(env):
    """Messages that are worth a part of the units that they report."""
    private = GaussianPrivatizer(env, epsilon_per_release=20.0, releases=9, calibration="analytic")
    return Channel(private, schedule={"name": "fixed_gap", "gap": 2})


def known(policy, observation):
    """Units, and good ones, that a policy knew when it acted; own ones are the environment's, which has gone on."""
    counts = policy._known
    own = observation["total_delivered"], observation["total_good"]
    return own if counts.received is None else (counts.trials, counts.successes)


@pytest.mark.parametrize("carry", [lambda env: env, noisy])
def test_laplace_index_by_hand(carry):
    # A threshold so low that all that pays may be bought.
    env = carry(
        parallel_env(num_agents=2, num_producers=5, instance_seed=2, max_cycles=18, quality_threshold=0.1)
    )
    policy = LaplaceIndex(0.6, pool="precision")
    for action, observation, _ in played(env, policy):
        units, good = known(policy, observation)
        index = np.minimum((good + 1) / (units + 2) + 0.6 / np.sqrt(units + 1), 1)
        pays = np.where(index > observation["cost"], observation["capacity"], 0)
        assert (pays * (index - 0.1)).sum(axis=-1).min() >= 0
        np.testing.assert_array_equal(action, pays)
    assert ((units > observation["total_delivered"]).any()) == (carry is noisy)


@pytest.mark.parametrize("carry", [lambda env: env, noisy])
def test_thompson_draws_from_the_posterior(carry):
    """By Kolmogorov and Smirnov, at 1e-4; received units count in fractions."""
    policy = ThompsonProcurement(pool="precision")
    env = carry(parallel_env(num_agents=20, num_producers=30, max_cycles=8))
    *_, (_, observation, _) = played(env, policy, range(4), 8)
    units, good = known(policy, observation)
    assert ((units % 1 > 0).any()) == (carry is noisy)
    assert kstest(beta.cdf(policy._index, good + 1, units - good + 1).ravel(), "uniform").pvalue > 1e-4


INDICES = (
    partial(SSUCB, radius_scale=0.3, exploration_rounds=0),
    partial(LaplaceIndex, 0.3),
    ThompsonProcurement,
)


@pytest.mark.parametrize("make", INDICES)
def test_with_a_margin_the_best_quantities_keep_the_constraint_for_lowered_means(make):
    """All quantities of small capacities are tried; the index is in the revenue alone."""
    market = {"name": "uniform", "max_capacity": 3}
    env = parallel_env(
        num_agents=3, num_producers=4, max_cycles=12, market=market, quality_threshold=0.65, unit_revenue=2.0
    )
    policy, last, binds = make(margin=1.5, oracle="exact"), np.zeros((2, 3, 4)), False
    every = np.array(list(np.ndindex(4, 4, 4, 4)))
    for action, observation, _ in played(env, policy, [0, 1]):
        units, good = observation["total_delivered"], observation["total_good"]
        variance = beta.var(good + 1, units - good + 1)
        deviation = np.sqrt((last**2 * variance).sum(-1)) / np.maximum(last.sum(-1), 1)
        sure = beta.mean(good + 1, units - good + 1) - 1.5 * deviation[..., np.newaxis]
        gains = 2.0 * policy._index - observation["cost"]
        for row in np.ndindex(2, 3):
            kept = (every <= observation["capacity"][row]).all(-1) & (every @ (sure[row] - 0.65) > -1e-9)
            best = (every[kept] @ gains[row]).max()
            assert action[row] @ (sure[row] - 0.65) > -1e-9
            assert action[row] @ gains[row] == pytest.approx(best, abs=1e-9)
            binds |= best < (every @ gains[row]).max() - 0.1
        last = action
    assert binds


@pytest.mark.parametrize("make", INDICES)
def test_messages_without_noise_are_worth_their_units(make):
    env = Channel(parallel_env(num_agents=4, num_producers=6, max_cycles=60), schedule="every_round")
    regrets = [simulate(env, make(pool=pool), range(3)).regret for pool in ("precision", "sum", None)]
    np.testing.assert_array_equal(*regrets[:2])
    assert (regrets[0] != regrets[2]).any()


@pytest.mark.parametrize("market", ["uniform", "normal"])
def test_without_a_channel_or_in_silence_it_is_ss_ucb_to_the_bit(market):
    env = parallel_env(max_cycles=200, market=market)
    silent = simulate(env, SSUCB(), range(5))
    private = GaussianPrivatizer(env, epsilon_per_release=1.0)
    for quiet in (env, Channel(env, schedule="silent"), Channel(private, schedule="silent")):
        np.testing.assert_array_equal(simulate(quiet, PFCB(), range(5)).regret, silent.regret)


class Reference:
    """CheckandUpdate, index and procurement for one agent, in plain Python."""

    def __init__(self, num_agents, check, radius):
        self.n, self.check, self.radius = num_agents, check, radius
        self.heard = None

    def act(self, seen):
        m, t = len(seen["cost"]), int(seen["round"][0])
        if t == 0:
            self.heard = [[0.0, 0.0] for _ in range(m)]
            return np.minimum(seen["capacity"], 1)
        for sender in range(self.n):
            if not seen["inbox_mask"][sender]:
                continue
            for i in range(m):
                w, y = seen["inbox_delivered"][sender][i], seen["inbox_good"][sender][i]
                if not (w > 0 and 0 <= y <= w):
                    continue
                big_w = seen["total_delivered"][i] + self.heard[i][0]
                big_y = seen["total_good"][i] + self.heard[i][1]
                if self.check and big_w > 0:
                    width = 0.1 * np.sqrt(3 * np.log(self.n * t) / (2 * big_w))
                    if abs(y / w - big_y / big_w) > width:
                        continue
                self.heard[i][0] += 10 * w
                self.heard[i][1] += 10 * y
        bound = np.ones(m)
        for i in range(m):
            big_w = seen["total_delivered"][i] + self.heard[i][0]
            if big_w > 0:
                big_y = seen["total_good"][i] + self.heard[i][1]
                log = np.log(t + 1) if self.radius == "own" else np.log(self.n * (t + 1))
                scale = self.n if self.radius == "printed" else 1
                bound[i] = min(1.0, big_y / big_w + np.sqrt(3 * log / (2 * scale * big_w)))
        problem = {name: array[None, None] for name, array in seen.items()}
        return procure(bound[None, None], problem)[0, 0]


@pytest.mark.parametrize("radius", ["own", "federated", "printed"])
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.filterwarnings("ignore:calibration is 'classic'")
def test_it_follows_the_procedure(check, radius):
    """Noise of epsilon 3 a release makes some messages pass the check and others fail it, and the guards bite."""
    env = parallel_env(num_agents=3, num_producers=4, max_cycles=120, quality_threshold=0.3)
    env = GaussianPrivatizer(env, epsilon_per_release=3.0, releases=120)
    env = Channel(env, schedule={"name": "fixed_gap", "gap": 2})
    policy = PFCB(check=check, radius=radius)
    references = [Reference(3, check, radius) for _ in range(3)]
    refused = False
    for action, observation, _ in played(env, policy, [5]):
        for j, reference in enumerate(references):
            row = {name: array[0, j] for name, array in observation.items()}
            np.testing.assert_array_equal(reference.act(row), action[0, j])
        refused |= bool((observation["inbox_delivered"][observation["inbox_mask"]] < 0).any())
    assert refused
    assert sum(units for reference in references for units, _ in reference.heard) > 0


def test_the_printed_procedure_diverges_where_the_guards_do_not():
    """Unguarded, noise drives weights below zero, and regret above silence's; quantities stay valid."""

    def env():
        private = GaussianPrivatizer(parallel_env(max_cycles=2000), epsilon_per_release=0.2)
        return Channel(private, schedule={"name": "doubling", "mode": "printed"})

    printed, regret = PFCB(guards=False), 0.0
    for action, _, step in played(env(), printed, range(5)):
        assert ((action >= 0) & (action <= 50)).all()
        regret += step.info["regret"].mean()
    assert (printed._reports.totals["delivered"] < 0).any()
    guarded, silent = (
        simulate(one, policy, range(5)).regret[-1].mean()
        for one, policy in ((env(), PFCB()), (parallel_env(max_cycles=2000), SSUCB()))
    )
    assert regret > silent
    assert guarded < 1.05 * silent


@pytest.mark.parametrize(("guards", "believed"), [(True, 100.0), (False, 0.0)])
def test_first_reports_need_no_estimate_to_compare_with_behind_guards(guards, believed):
    """An agent without units of its own; as printed it divides 0 by 0, and refuses."""
    env = Channel(parallel_env(num_agents=2, num_producers=1))
    policy = PFCB(guards=guards)
    policy.reset(env.policy_spec, row_seeds([0], 2))
    seen = {name: array.copy() for name, array in env.reset_batch([0]).observation.items()}
    seen["round"][...], seen["inbox_mask"][0, :, 1] = 5, True
    seen["inbox_delivered"][0, :, 1], seen["inbox_good"][0, :, 1] = 10.0, 7.0
    policy.act(seen)
    assert (policy._reports.totals["delivered"] == believed).all()
