"""What continual releases cost, plan and allow."""

import math

import numpy as np
import pytest
from prefix_factors import counted
from sums_env import SumsEnv

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

MECHANISMS = list(NOISES)


def everyone(env) -> np.ndarray:
    return np.ones(env.unwrapped.total.shape[:2], np.bool_)


def procurement(**kwargs) -> ProcurementEnv:
    return ProcurementEnv(num_agents=3, num_producers=4, instance_seed=1, **{"max_cycles": 20, **kwargs})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_all_planned_releases_cost_what_was_promised(mechanism):
    env = ContinualPrivatizer(SumsEnv(3), 1.5, 0.01, mechanism, releases=13, budget={"epsilon": 1.5, **EXACT})
    env.reset_batch([0, 1])
    ones = everyone(env)
    half = ones.copy()
    half[0, 0] = False
    spent = []
    for _ in range(12):
        env.release(half)
        spent.append(env.privacy().epsilon)
    env.release(ones)
    assert env.accountant.counts.sum(axis=0).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert len(env.accountant.events) <= 2
    assert env.privacy().epsilon == pytest.approx(1.5, rel=1e-9)
    assert env.privacy().epsilon <= 1.5
    assert spent == sorted(spent)
    # One window affects one release only if noise is independent.
    assert spent[0] < 0.8 * spent[-1] or mechanism == "independent"
    with pytest.raises(BudgetExhaustedError, match=r"agent_1 \(replica 0\) has spent .* in 13 releases"):
        env.release(ones)
    # The one who was silent may go on, for as long as the plan is.
    for _ in range(12):
        env.release(~half)
    with pytest.raises(BudgetExhaustedError, match="agent_0"):
        env.release(~half)


EXACT = {"delta": 0.01, "composition": "exact", "adjacency": "one-observation"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_compositions_after_any_number_of_releases(mechanism):
    env = ContinualPrivatizer(SumsEnv(1), 1.0, 0.05, mechanism, releases=9)
    env.reset_batch([0])
    for z in range(1, 10):
        env.release(everyone(env))
        share = counted(mechanism, z, 9) / counted(mechanism, 9, 9)
        mu = math.sqrt(share) / analytic_noise_multiplier(1.0, 0.05)
        ask = env.accountant.epsilon
        for adjacency, factor in (("one-observation", 1.0), ("one-observation-added", math.sqrt(0.5))):
            zcdp = ask(1e-4, composition="zcdp", adjacency=adjacency).epsilon
            rho = (factor * mu) ** 2 / 2
            assert zcdp == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e4)))
            exact = ask(1e-4, composition="exact", adjacency=adjacency).epsilon
            assert 0 < exact < zcdp
        # Once and for all, however many releases; replacing is adding and removing.
        basic = ask(0.05, composition="basic", adjacency="one-observation")
        assert (basic.epsilon, basic.delta) == (1.0, 0.05)
        parallel = ask(1e-4, composition="parallel", adjacency="one-observation")
        assert (parallel.epsilon is None) == (z > 1)


def test_basic_composition_takes_the_promise_twice_for_a_replacement():
    env = ContinualPrivatizer(SumsEnv(1), 1.0, 0.05, releases=4, adjacency="one-observation-added")
    env.reset_batch([0])
    env.release(everyone(env))
    claim = env.accountant.epsilon(composition="basic", adjacency="one-observation")
    assert claim.epsilon == 2.0
    assert claim.delta == pytest.approx(0.1)


def test_the_plan_follows_schedule_and_horizon():
    env = SumsEnv(1, max_cycles=30)
    private = ContinualPrivatizer(env, 1.0, 0.1, "tree", releases={"name": "fixed_gap", "gap": 10})
    wide = private.single_release_space["statistic_noise_variance"].high[0, 0]
    env.max_cycles = 150
    private.reset_batch([0])
    # 3 releases have 2 levels and 2 nodes at worst; 15 have 4 and 4.
    wider = private.single_release_space["statistic_noise_variance"].high[0, 0]
    assert wider == pytest.approx(wide * (4 * 4) / (2 * 2))
    for _ in range(15):
        private.release(everyone(private))
    with pytest.raises(BudgetExhaustedError, match="releases=15"):
        private.release(everyone(private))
    silent = ContinualPrivatizer(env, 1.0, 0.1, "tree", releases={"name": "fixed_gap", "gap": 1000})
    silent.reset_batch([0])
    with pytest.raises(BudgetExhaustedError, match="releases=0"):
        silent.release(everyone(silent))
    by_rounds = ContinualPrivatizer(env, 1.0, 0.1, "tree")
    assert (
        by_rounds.single_release_space
        == ContinualPrivatizer(env, 1.0, 0.1, "tree", releases=150).single_release_space
    )


def test_silence_ends_what_the_plan_does_not_allow():
    env = ContinualPrivatizer(SumsEnv(2), 1.0, 0.1, releases=3, on_exhausted="silence")
    env.reset_batch([0])
    for _ in range(3):
        assert env.allowed_senders(everyone(env)).all()
        env.release(everyone(env))
    assert not env.allowed_senders(everyone(env)).any()
    assert not env.release(everyone(env))["statistic_noise_variance"].any()
