"""FairX-LinUCB: against plain numpy, its optimisation, its protocols, and what it claims.

Statistical statements use fixed seeds and hold with wide margins.
"""

import fairx_reference
import numpy as np
import pytest
from played import played, refused
from scipy.optimize import minimize

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.exposure import SOLVERS, FairX, _centre, _project
from fedbandit_envs.baselines.exposure.registered import schedule
from fedbandit_envs.exposure.merit import Exponential, Linear, Merits
from fedbandit_envs.exposure_v0 import parallel_env
from fedbandit_envs.linear_v0 import parallel_env as linear_env

TWINS = {
    "FairX-LinUCB": (150, {}),
    "FairX-tuned": (200, {"beta_scale": 0.0, "sd": 0.5, "prior_variance": 0.1}),
    "Fed-FairX-LinUCB": (200, {"hear": fairx_reference.added}),
    "Priv-FairX-LinUCB": (200, {"hear": fairx_reference.lifted, "echo": True}),
    "B2": (400, {"hear": fairx_reference.lifted, "echo": True}),
    "Priv-FairX-weighted": (
        600,
        {"hear": fairx_reference.weighed, "beta_scale": 0.0, "sd": 0.5, "prior_variance": 0.1},
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_it_does_what_plain_numpy_does(name):
    rounds, kind = TWINS[name]
    baseline = BASELINES[name]
    env = baseline.wrap(
        parallel_env(num_agents=2, max_cycles=rounds, reward_sd=kind.get("sd", 0.1), reward_bound=2.5)
    )
    constants = {name: kind[name] for name in ("beta_scale", "prior_variance") if name in kind}
    twins = [fairx_reference.Agent(5, **kind) for _ in range(2)]
    heard = 0
    for shares, seen, _ in played(env, baseline.make_policy(**constants), [11]):
        for j, twin in enumerate(twins):
            row = {key: array[0, j] for key, array in seen.items()}
            heard += int(row.get("inbox_mask", np.zeros(1)).any())
            np.testing.assert_allclose(shares[0, j], twin.act(row), rtol=0, atol=1e-9)
    assert (heard > 0) == ("hear" in kind)


def instances(count, seed, observations=60, arms=10, dim=5):
    """Rows in the midst of learning: contexts, V^-1, estimates and radii, ``(1, count, ...)``."""
    draws = np.random.default_rng(seed)
    contexts = draws.random((1, count, arms, dim)) / np.sqrt(dim)
    pulled = draws.random((count, observations, dim)) / np.sqrt(dim)
    seen = draws.integers(1, observations + 1, count)
    gram = np.stack([np.eye(dim) + x[:n].T @ x[:n] for x, n in zip(pulled, seen, strict=True)])
    theta = draws.random((count, dim))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    growth = np.linalg.slogdet(gram)[1]
    radius = 0.1 * np.sqrt(2 * np.log(20) + growth) + 1.0
    middle = theta + 0.1 * draws.normal(size=theta.shape)
    inverse = np.linalg.inv(gram)[np.newaxis, :, np.newaxis]
    return contexts, gram, inverse, middle[np.newaxis], radius[np.newaxis]


def solve(solver, steps, contexts, inverse, middle, radius, merit=None):
    policy = FairX(solver, steps)
    policy._merits = Merits((merit or Exponential(10.0),), one_each=False)
    policy._parameter, policy._radius, policy._means = middle, radius, np.zeros(contexts.shape[:3])
    rounds = np.zeros((*contexts.shape[:2], 1), np.int64)
    return policy._optimise(rounds, contexts, inverse, None)[0]


@pytest.mark.parametrize("merit", [Exponential(10.0), Exponential(1000.0), Linear(0.1)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_optimistic_parameter_lies_in_the_ellipsoid(solver, merit):
    contexts, gram, inverse, middle, radius = instances(300, 1)
    theta = solve(solver, SOLVERS[solver], contexts, inverse, middle, radius, merit)
    away = (theta - middle)[0]
    length = np.sqrt(np.einsum("nd,nde,ne->n", away, gram, away))
    assert (length <= radius[0] * (1 + 1e-9)).all()
    assert (length > 0).all()


@pytest.mark.parametrize("tilt", [0.0, 0.7])
def test_the_ellipsoid_is_as_wide_as_its_bounds_say(tilt):
    """Centre and radius from numpy's determinants and norms; an error of Euclidean length e adds e ||V^-1||^(1/2)."""
    _, gram, inverse, middle, _ = instances(6, 5)
    shape, moment = (1, 6, 1), np.einsum("nde,ne->nd", gram, middle[0])[np.newaxis, :, np.newaxis]
    found, radius = np.zeros((1, 6, 5)), np.zeros((1, 6))
    log_det, floor = np.linalg.slogdet(gram)[1].reshape(shape), np.full(shape, 5 * np.log(0.5))
    inflation, bias, tilts = np.full(shape, 1.3), np.full(shape, 0.4), np.full(shape, tilt)
    _centre(
        np.zeros((1, 6, 1), np.int64), inverse, moment, log_det, floor, inflation, bias, tilts,
        0.2, np.log(20), 0.9, found, radius,
    )  # fmt: skip
    np.testing.assert_allclose(found, middle, atol=1e-9)
    width = 1.3 * 0.2 * np.sqrt(2 * np.log(20) + log_det[0, :, 0] - 5 * np.log(0.5)) + 0.4
    least = 0.9 * (width + tilt * np.sqrt(np.linalg.norm(inverse[0, :, 0], 2, axis=(1, 2))))
    most = 0.9 * (width + tilt * np.sqrt(np.linalg.norm(inverse[0, :, 0], axis=(1, 2))))
    assert (radius[0] >= least - 1e-12).all()
    np.testing.assert_allclose(radius[0], most)


def distance(gram, middle, radius, point, start):
    """How far a point is from an ellipsoid, by scipy, in coordinates in which that is a ball."""
    root = np.linalg.cholesky(np.linalg.inv(gram))
    nearest = minimize(
        lambda z: ((middle + root @ z - point) ** 2).sum(),
        np.linalg.solve(root, start),
        jac=lambda z: 2 * root.T @ (middle + root @ z - point),
        constraints={"type": "ineq", "fun": lambda z: radius**2 - z @ z},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.sqrt(nearest.fun)


@pytest.mark.parametrize("size", [0.3, 3.0, 300.0])
def test_the_projection_is_the_euclidean_one(size):
    _, gram, inverse, middle, radius = instances(20, 3)
    for n in range(20):
        point = middle[0, n] + size * np.random.default_rng(n).normal(size=5)
        moved = point.copy()
        _project(inverse[0, n, 0], middle[0, n], radius[0, n], moved)
        away = moved - middle[0, n]
        length = np.sqrt(away @ gram[n] @ away)
        if np.array_equal(moved, point):
            assert length <= radius[0, n]
            continue
        assert length == pytest.approx(radius[0, n], rel=1e-9)
        best = distance(gram[n], middle[0, n], radius[0, n], point, away)
        assert np.linalg.norm(moved - point) == pytest.approx(best, rel=1e-6)


def test_a_step_along_the_gradient_is_a_tenth_of_it():
    """In ellipsoids that are wide enough; the gradient is that of the module's docstring."""
    contexts, _, inverse, middle, radius = instances(20, 6)
    theta = solve("projected_gradient", 1, contexts, inverse, middle, 1e6 * radius)
    means = np.einsum("nkd,nd->nk", contexts[0], middle[0])
    shares = np.exp(10 * (means - means.max(axis=1, keepdims=True)))
    shares /= shares.sum(axis=1, keepdims=True)
    value = (shares * means).sum(axis=1, keepdims=True)
    gradient = np.einsum("nk,nkd->nd", shares * (1 + 10 * (means - value)), contexts[0])
    np.testing.assert_allclose(theta[0], middle[0] + 0.1 * gradient, rtol=1e-9)


def test_where_no_direction_is_better_the_estimate_stays():
    middle = np.ones((1, 1, 3))
    found = solve(
        "frank_wolfe", 3, np.zeros((1, 1, 4, 3)), np.eye(3)[None, None, None], middle, np.ones((1, 1))
    )
    np.testing.assert_array_equal(found, middle)


def test_gaps_double_and_then_stay():
    """T = 1e5, ten agents, d = 5: G = 5, and 20,002 releases."""
    env = BASELINES["Fed-FairX-LinUCB"].wrap(parallel_env(max_cycles=100_000))
    assert schedule(env) == {"name": "growing_then_fixed", "limit": 5}
    assert env._schedule.count(100_000) == 20_002


def test_ridges_may_be_counted_once_an_agent():
    """As the listing has it: once something was heard V is larger by (m - 1) lambda I."""
    kinds = {}
    for name in ("Fed-FairX-LinUCB", "Fed-FairX-LinUCB-listing"):
        policy = BASELINES[name].make_policy()
        list(played(BASELINES[name].wrap(parallel_env(num_agents=3, max_cycles=2)), policy))
        kinds[name] = np.linalg.inv(policy._ridges.inverse[:, :, 0])
    first, second = kinds.values()
    np.testing.assert_allclose(second - first, np.broadcast_to(2 * np.eye(5), first.shape), atol=1e-9)


def test_b1_asks_by_the_determinant_and_claims_nothing():
    baseline = BASELINES["B1"]
    env = baseline.wrap(parallel_env(num_agents=3, max_cycles=400))
    policy = baseline.make_policy()
    due = 2 * 400 * 5 / (np.log(1 + 400 * 3 / 5) + 1)
    synchronised, waited, times = np.zeros(3), 0, 0
    for t, (_, seen, _) in enumerate(played(env, policy, [1])):
        log_det = policy._ridges.log_det[0, :, 0]
        if t and seen["inbox_mask"].any():
            synchronised, waited, times = log_det.copy(), 0, times + 1
        elif t:
            waited += 1
        np.testing.assert_array_equal(policy._send[0], log_det - synchronised >= due / (waited + 1))
    assert policy._due == pytest.approx(due)
    assert times > 0
    claim = env.privacy()
    assert claim.epsilon is None
    assert "times" in claim.reason or "when" in claim.reason


def test_it_needs_merit_functions():
    refused(FairX(), linear_env(), "public has no 'merits'")
