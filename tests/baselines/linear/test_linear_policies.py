"""Single-agent linear policies and the kernels below them, against plain numpy with explicit inverses.

All seeds are fixed: a test that passes once passes always. Where another seed could alarm falsely, its rate is stated.
"""

from math import log, sqrt

import numpy as np
import pytest
from compiled import from_python
from linear_references import OFUL, Disjoint, Hybrid, Stacked, Sup
from played import played, refused

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.linear import linucb
from fedbandit_envs.baselines.linear.linucb import HybridLinUCB, LinUCB, SupLinUCB
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds

predict_hybrid = from_python(linucb._predict_hybrid)

POLICIES = {
    "shared": LinUCB,
    "constant": lambda: LinUCB(alpha=0.5),
    "disjoint": BASELINES["LinUCB-disjoint"].make_policy,
    "hybrid": HybridLinUCB,
    "hybrid-2": lambda: HybridLinUCB(shared=2),
    "sup": SupLinUCB,
    "sup-0.3": lambda: SupLinUCB(alpha=0.3),
}


@pytest.fixture(params=sorted(POLICIES))
def make_policy(request):
    return POLICIES[request.param]


def fixed_features(arms, dim, seed=0):
    """Features of norms between 0.7 and 1; equal ones would make ties that rounding breaks, here or in a reference."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((arms, dim))
    return features * (rng.uniform(0.7, 1, (arms, 1)) / np.linalg.norm(features, axis=1, keepdims=True))


def follow(policy, env, seeds, references):
    """Plays an episode; the references, by (replica, agent), must choose the same arms in every round."""
    for t, (action, observation, step) in enumerate(played(env, policy, seeds)):
        for row, reference in references.items():
            assert action[row] == reference.choose(observation["contexts"][row]), f"round {t}, row {row}"
            x, y = step.observation["pulled_context"][row].copy(), step.observation["last_reward"][row][0]
            reference.learn(action[row], x, y)


ROWS = [(0, 0), (1, 2)]


@pytest.mark.parametrize("ridge", [1.0, 0.3])
@pytest.mark.parametrize("contexts", ["band", "unit_ball"])
def test_linucb_is_oful(contexts, ridge):
    env = parallel_env(
        num_agents=3, num_arms=20, dim=5, max_cycles=300, contexts=contexts,
        reward="beta" if contexts == "band" else "normal",
    )  # fmt: skip
    policy = LinUCB(ridge=ridge, noise_sd=0.4, parameter_bound=1.5, failure=0.05, beta_scale=0.5)
    follow(policy, env, [3, 4], {row: OFUL(5, ridge, 0.4, 1.5, 0.05, 0.5) for row in ROWS})


def features_or_ball(kind, arms, dim):
    if kind == "features":
        return {"contexts": fixed_features(arms, dim), "num_agents": 3, "reward": "normal"}
    return {"contexts": kind, "num_agents": 3, "num_arms": arms, "dim": dim, "reward": "normal"}


@pytest.mark.parametrize("kind", ["features", "unit_ball"])
@pytest.mark.parametrize(("alpha", "ridge"), [(1.0, 1.0), (0.2, 0.4)])
def test_disjoint_is_algorithm_1(kind, alpha, ridge):
    env = parallel_env(max_cycles=300, **features_or_ball(kind, 7, 4))
    policy = BASELINES["LinUCB-disjoint"].make_policy(alpha=alpha, ridge=ridge)
    follow(policy, env, [0, 1], {row: Disjoint(7, 4, alpha, ridge) for row in ROWS})


@pytest.mark.parametrize("kind", ["features", "unit_ball"])
@pytest.mark.parametrize(("shared", "alpha", "ridge"), [(None, 1.0, 1.0), (4, 0.2, 0.4), (2, 0.3, 1.0)])
def test_hybrid_is_algorithm_2(kind, shared, alpha, ridge):
    env = parallel_env(max_cycles=120, **features_or_ball(kind, 7, 4))
    policy = HybridLinUCB(alpha=alpha, ridge=ridge, shared=shared)
    follow(policy, env, [0, 1], {row: Hybrid(7, 4, shared or 4, alpha, ridge) for row in ROWS})


@pytest.mark.parametrize("collinear", [False, True])
@pytest.mark.parametrize(("shared", "ridge"), [(0, 1.0), (5, 1.0), (2, 0.3)])
def test_estimates_and_variances_step_by_step(shared, ridge, collinear):
    """Disjoint (0 shared) and hybrid predictions of all arms in each of 150 rounds; hybrid ones by both references."""
    arms, dim = 6, 5
    rng = np.random.default_rng(shared)
    contexts = rng.standard_normal((151, arms, dim)) / sqrt(dim)
    if collinear:
        contexts = 0.5 + 1e-3 * contexts
    pulls, rewards = rng.integers(0, arms, 150), rng.standard_normal(150)
    policy = HybridLinUCB(ridge=ridge, shared=shared)
    policy.reset(parallel_env(num_agents=1, num_arms=arms, dim=dim).policy_spec, row_seeds([0], 1))
    state = policy._ridges
    if shared:
        references = [kind(arms, dim, shared, 1.0, ridge) for kind in (Hybrid, Stacked)]
    else:
        references = [Disjoint(arms, dim, 1.0, ridge)]
    product, mean, variance = np.empty((3, arms))
    residual = np.empty((shared, arms))
    for t in range(151):
        row = [array[0, 0] for array in state]
        across = contexts[t].T.copy()
        across.setflags(write=False)
        predict_hybrid(across, *row, residual, product, mean, variance)
        for reference in references:
            expected_mean, expected_variance = reference.predict(contexts[t])
            np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-9)
            np.testing.assert_allclose(variance, expected_variance, rtol=0, atol=1e-9)
        if t < 150:
            x, y = contexts[t, pulls[t]], rewards[t]
            seen = np.full((1, 1, 1), t + 1), x[None, None], np.full((1, 1, 1), y)
            # As environments show them: kernels are compiled anew for arrays that can be written to.
            for array in seen:
                array.setflags(write=False)
            linucb._observe_hybrid(*seen, pulls[t].reshape(1, 1), *state)
            for reference in references:
                reference.learn(pulls[t], x, y)


@pytest.mark.parametrize(("alpha", "horizon"), [(None, 100), (0.3, 400), (0.1, 100), (0.05, 200), (0.3, 2)])
def test_suplinucb_is_algorithm_2_7(alpha, horizon):
    arms, dim = 8, 3
    env = parallel_env(max_cycles=horizon, **features_or_ball("unit_ball", arms, dim))
    used = 0.1 * sqrt(2 * log(2 * horizon * arms / 0.05)) if alpha is None else alpha
    references = {row: Sup(dim, horizon, used) for row in ROWS}
    follow(SupLinUCB(alpha=alpha, failure=0.05), env, [5, 6], references)
    steps = [step for reference in references.values() for step in reference.steps]
    if alpha == 0.3 and horizon == 400:
        # All that can happen has happened: upper bounds that decide, learning on four levels, arms given up.
        seen = {(what, s) for what, s, _ in steps}
        assert seen >= {("exploit", 5), *(("explore", s) for s in (2, 3, 4, 5))}
        assert min(alive for _, _, alive in steps) < arms / 2


@pytest.mark.parametrize(("horizon", "arms", "dim"), [(1, 3, 2), (2, 1, 2), (3, 3, 2), (3, 1, 5)])
def test_small_problems(make_policy, horizon, arms, dim):
    env = parallel_env(num_agents=2, num_arms=arms, dim=dim, max_cycles=horizon)
    regret = simulate(env, make_policy(), [0]).regret
    assert np.isfinite(regret).all()
    if arms == 1:
        assert (regret == 0).all()


@pytest.mark.parametrize("arms", [2, 7, 103])
def test_ties_go_to_the_lowest_index(make_policy, arms):
    """Whatever lane of a vector register an arm falls into."""
    env = parallel_env(num_agents=1, contexts=np.tile(fixed_features(1, 5), (arms, 1)), reward="normal")
    [(arm, *_)] = played(env, make_policy(), rounds=1)
    assert arm[0, 0] == 0


def test_more_shared_dimensions_than_there_are_are_refused():
    small = parallel_env(num_agents=1, num_arms=4, dim=2, max_cycles=20)
    refused(HybridLinUCB(shared=3), small, "shared is 3; at most 2, the dimension of contexts,", ValueError)
