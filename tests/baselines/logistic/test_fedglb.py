"""FedGLB-UCB, UCB-GLM and N-ONS: against plain numpy programs and a general solver, and what they refuse.

Regrets are compared with a twin of the released program by a t-test at 1e-4, under fixed seeds: one in 10,000 sets of
seeds would raise a false alarm.
"""

from typing import NamedTuple

import numpy as np
import pytest
from compiled import from_python
from fedglb_reference import Program, descend, gradient, into_ball, into_simplex, pool, sigmoid
from played import begun, played, refused, wrapped
from scipy import optimize, stats

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.linear import logistic as kernels
from fedbandit_envs.baselines.linear.logistic import UCBGLM, FedGLB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.servers.regressions import LogisticServer
from fedbandit_envs.linear.contexts import PoolContexts
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Participation, Server

into_the_ball, onto_the_simplex = from_python(kernels._into_ball), from_python(kernels._into_simplex)

SEEDS = (0, 1)
SMALL = {"num_agents": 6, "num_arms": 8, "dim": 4, "contexts": {"name": "pool", "size": 40}}


@pytest.fixture
def unequal(monkeypatch):
    """Vectors of the pool of many norms, so that no two arms of the first round have equal bounds."""
    drawn = PoolContexts._drawn

    def shortened(self, seed, dim):
        vectors = drawn(self, seed, dim)
        factors = np.random.default_rng(seed).uniform(0.8, 1.0, (len(vectors), 1))
        # The longest vector is as long as is announced.
        return vectors * factors / factors.max()

    monkeypatch.setattr(PoolContexts, "_drawn", shortened)


def make(name, rounds, server=None, wrap=None, **kwargs):
    """A baseline's federation and policy."""
    env = make_federation("FedLogistic-v0", max_cycles=rounds, **{**SMALL, **kwargs})
    return wrapped(name, wrap(env) if wrap else env, server), BASELINES[name].make_policy()


class Episode(NamedTuple):
    """Pools and parameters of replicas, and round by round the numbers offered, arms, contexts, rewards and regrets."""

    vectors: np.ndarray
    theta: np.ndarray
    offered: np.ndarray
    arms: np.ndarray
    pulled: np.ndarray
    rewards: np.ndarray
    regrets: np.ndarray

    def data(self, rounds=None):
        """The contexts and rewards of all agents of the first replica in the first rounds."""
        return self.pulled[:rounds, 0].reshape(-1, 4), self.rewards[:rounds, 0].ravel()


def play(env, policy, seeds=SEEDS):
    rounds = [
        (seen["pool_index"], arm, step.observation["pulled_context"].copy(), step.reward.copy(),
         step.info["regret"].copy())
        for arm, seen, step in played(env, policy, seeds)
    ]  # fmt: skip
    problem, rounds = env.unwrapped, map(np.array, zip(*rounds, strict=True))
    return Episode(problem._distribution._pool, problem._theta, *rounds)


def loss(w, x, y):
    """What the server minimises, for the ridge 2."""
    z = x @ w
    return ((np.logaddexp(0, z) - y * z).sum() + w @ w) / len(y)


def likeliest(x, y, start):
    """Its minimum by a general solver."""
    return optimize.minimize(loss, start, (x, y), jac=lambda w, x, y: gradient(x, y, 2.0, w), tol=1e-14)


# Against the twins


@pytest.mark.parametrize("threshold", [None, 0.0, 1e9])
def test_it_decides_like_the_twin(unequal, threshold):
    rounds = 50
    env, policy = make("FedGLB-UCB", rounds)
    policy._threshold = threshold
    vectors, theta, offered, arms, _, rewards, regrets = play(env, policy)
    synchronised = []
    for r in range(len(SEEDS)):
        twin = Program(6, rounds, dim=4, arms=8, size=40, threshold=threshold)
        given = theta[r], vectors[r], offered[:, r], rewards[:, r]
        regret, places, synchronisations = twin.run(0, *given)
        np.testing.assert_array_equal(arms[:, r], places)
        assert regrets[:, r].sum() == pytest.approx(regret)
        synchronised.append(synchronisations)
    assert (min(synchronised) > 10) == (threshold != 1e9)


def test_its_gradient_steps_are_the_twins(unequal, monkeypatch):
    asked, answer = [], LogisticServer.answer

    def spy(self, uploads, mask):
        reply = answer(self, uploads, mask)
        if hasattr(reply, "question"):
            asked.append((int(self._counts.sum()), reply.question["model"][0, 0].copy()))
        return reply

    monkeypatch.setattr(LogisticServer, "answer", spy)
    env, policy = make("FedGLB-UCB", 40)
    ours = play(env, policy, (3,))
    start, at = np.zeros(4), 0
    while at < len(asked):
        models, start = descend(*ours.data(asked[at][0] // 6), 2.0, start, np.sqrt(2))
        found = np.array([model for _, model in asked[at : at + len(models)]])
        np.testing.assert_allclose(found, models, rtol=0, atol=1e-10)
        at += len(models)
    assert at > 60


@pytest.mark.parametrize("solver", ["accelerated", "quasi_newton"])
def test_its_models_are_as_near_to_the_minimum_as_is_said(solver, monkeypatch):
    found, finish = [], LogisticServer._finish

    def spy(self, some):
        if len(some):
            found.append((int(self._counts.sum()), self._model[0].copy()))
        return finish(self, some)

    monkeypatch.setattr(LogisticServer, "_finish", spy)
    env, policy = make("FedGLB-UCB", 60, {"solver": solver})
    episode = play(env, policy, (4,))
    assert len(found) > 5
    for n, model in found:
        best = likeliest(*episode.data(n // 6), model)
        assert loss(model, *episode.data(n // 6)) - best.fun <= 1 / n**2


@pytest.mark.slow
def test_the_released_form_has_the_regret_of_the_released_program():
    """Agents act in turn and synchronise at once; a pull of each of 10 agents is one round of the program."""
    sizes = {"num_agents": 10, "num_arms": 25, "dim": 10, "contexts": "pool"}
    env, policy = make("FedGLB-UCB-released", 600, wrap=lambda env: Participation(env, "in_turn"), **sizes)
    policy._threshold = 60 / (10 * 10 * np.log(600))
    ours = play(env, policy, range(20)).regrets.sum(axis=(0, 2))
    theirs = [Program(10, 60, released=True).run(seed)[0] for seed in range(20)]
    assert stats.ttest_ind(ours, theirs, equal_var=False).pvalue > 1e-4
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.2)


def test_the_pool_is_the_one_of_the_paper():
    vectors = begun(make_federation("FedLogistic-v0", num_agents=2), [5])._distribution._pool[0]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.sqrt(2))
    expected = pool(np.random.default_rng(0), 1000, 10)
    expected *= np.sqrt(2) / np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors[:10], expected[:10])
    np.testing.assert_allclose(vectors[10:, -1], 1.0)


# Its parts


@pytest.mark.parametrize("seed", range(5))
def test_projections_are_the_nearest_points(seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, 5))
    matrix, w = root @ root.T + 0.1 * np.eye(5), 3 * rng.standard_normal(5)
    ball, simplex = w.copy(), w.copy()
    into_the_ball(matrix, ball, 1.0, np.zeros((5, 5)), np.empty((4, 5)))
    onto_the_simplex(matrix, simplex, np.empty((4, 5)))
    np.testing.assert_allclose(ball, into_ball(w, matrix, 1.0), atol=1e-9)
    np.testing.assert_allclose(simplex, into_simplex(w, matrix), atol=1e-7)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_likeliest_model_is_that_of_a_general_solver(scale):
    rng = np.random.default_rng(3)
    features = scale * rng.standard_normal((1, 30, 4))
    pulls = rng.integers(0, 4, (1, 2, 30))
    rewards = rng.binomial(pulls, sigmoid(features @ rng.standard_normal(4))[:, np.newaxis]).astype(float)
    model = rng.standard_normal((1, 2, 4))
    kernels.maximise(features, pulls, rewards, 0.5, model)
    for j in range(2):

        def penalised(w, j=j):
            z = features[0] @ w
            return (pulls[0, j] * np.logaddexp(0, z) - rewards[0, j] * z).sum() + 0.25 * w @ w

        best = optimize.minimize(penalised, np.zeros(4), tol=1e-12)
        np.testing.assert_allclose(model[0, j], best.x, atol=2e-5)


def test_ucb_glm_pulls_what_its_formula_says():
    """Decisions from the likeliest model and V, computed again in plain numpy."""
    env, policy = make("UCB-GLM", 25)
    vectors, _, offered, arms, pulled, rewards, _ = play(env, policy, (1,))
    radius = 0.5 / 0.1966 * np.sqrt(2 * np.log(1 + 2 * 25 / 4) + np.log(100))
    for j in range(3):
        w = np.zeros(4)
        for t in range(1, 25):
            known, x = pulled[:t, 0, j], vectors[0][offered[t, 0, j]]
            w = likeliest(known, rewards[:t, 0, j], w).x
            inverse = np.linalg.inv(2 * np.eye(4) + known.T @ known)
            bounds = x @ w + radius * np.sqrt(((x @ inverse) * x).sum(axis=1))
            assert bounds[arms[t, 0, j]] >= bounds.max() - 1e-4


def test_shared_ucb_glm_is_that_of_one_agent_with_all_data():
    """Behind a server that is told everything the model is the likeliest one of all data."""
    env, policy = make("UCB-GLM-shared", 30)
    (x, y), server = play(env, policy, (2,)).data(), env._policy
    assert np.linalg.norm(len(y) * gradient(x, y, 2.0, server._model[0, 0])) < 1e-8
    np.testing.assert_allclose(server._gram[0], 2 * np.eye(4) + x.T @ x, rtol=1e-9)


@pytest.mark.parametrize("name", ["FedGLB-UCB", "FedGLB-UCB-released"])
def test_with_a_fixed_number_of_questions_it_asks_as_often(name):
    env, policy = make(name, 12, {"gradient_rounds": 4})
    policy._threshold = 0.0
    play(env, policy, (0,))
    # In each round an upload, four questions with their replies, and an answer.
    assert (env.traffic["messages"] == 12 * 10).all()


# What is refused


def test_other_rewards_and_contexts_are_refused():
    for policy in (FedGLB(), UCBGLM()):
        refused(policy, parallel_env(), r"reward is 'beta'; 'logistic' is required|drawn anew")
    ball = {"contexts": "unit_ball", "context_bound": 1.0}
    env, policy = make("FedGLB-UCB", 5, **ball)
    with pytest.raises(UnfitError, match="contexts are drawn anew in every round"):
        env.reset_batch([0])
    # Without questions the agents need no pool.
    env, policy = make("N-ONS", 5, **ball)
    reset = env.reset_batch([0])
    policy.reset(env.policy_spec, np.zeros((1, 6), np.uint64))
    assert policy.act(reset.observation).shape == (1, 6)


def test_agents_that_have_not_acted_leave_the_pool_as_it_is():
    """They are shown zeros under the number 0, and tell nothing."""
    env, policy = make("UCB-GLM-shared", 15, wrap=lambda env: Participation(env, "in_turn"))
    vectors, server = play(env, policy, (0,)).vectors, env._policy
    assert server._pulls.sum() == 15
    known = server._pool[0]
    told = known.any(axis=-1)
    np.testing.assert_array_equal(known[told], vectors[0][told])
    env, policy = make("UCB-GLM", 15, wrap=lambda env: Participation(env, "in_turn"))
    play(env, policy, (0,))
    known = policy._pool[0]
    assert known[0].any() == (known[0] == vectors[0][0]).all()


def test_pools_that_differ_between_agents_are_refused():
    env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=3, contexts="separated")
    for name in ("UCB-GLM", "FedGLB-UCB"):
        wrapped, policy = BASELINES[name].wrap(env), BASELINES[name].make_policy()
        with pytest.raises(UnfitError, match="contexts of one number differ between agents"):
            play(wrapped, policy, (0,))


def test_after_a_number_of_questions_the_radius_is_that_of_the_model(monkeypatch):
    env, policy = make("FedGLB-UCB", 4, {"gradient_rounds": 3})
    policy._threshold = 0.0
    (x, y), server = play(env, policy, (0,)).data(), env._policy
    np.testing.assert_allclose(server._gradient[0], gradient(x, y, 2.0, server._model[0]), atol=1e-12)


def test_messages_that_may_be_lost_and_other_servers_are_refused():
    for name in ("FedGLB-UCB", "UCB-GLM-shared"):
        with pytest.raises(ValueError, match=r"loss is 0\.2; 0 is required with a policy"):
            BASELINES[name].wrap(make_federation("FedLogistic-v0", **SMALL), {"server": {"loss": 0.2}})
    plain = make_federation("FedLogistic-v0", **SMALL)
    for policy in ("logistic", "glm"):
        with pytest.raises(UnfitError, match=r"agents release .*'statistic'.*; Messages with .* are"):
            Server(plain, "every_round", policy=policy)
    other = Server(plain, "every_round", policy="ridge")
    refused(UCBGLM(), other, "a Server with policy='glm', or none")


# The private form


@pytest.mark.parametrize(
    ("stage", "unknown"), [({"name": "aggregator", "honest": 5}, 5 / 6), ({"name": "server"}, 1.0)]
)
def test_its_claim_is_that_of_four_clipped_releases(stage, unknown, monkeypatch):
    """Four Gaussian releases that move by two clips each have mu = 2 sqrt(4) clip / sd together.

    The noise is that of the sums which the server sees, without the share that a fellow agent has added itself.
    """
    variances, answer = [], LogisticServer.answer

    def spy(self, uploads, mask):
        variances.append(uploads["gradient_noise_variance"].sum(axis=1))
        return answer(self, uploads, mask)

    monkeypatch.setattr(LogisticServer, "answer", spy)
    baseline = BASELINES["FedGLB-UCB-private"]
    env = make_federation("FedLogistic-v0", max_cycles=100, **SMALL)
    env = baseline.wrap(env, {"server": {"stage": stage}})
    play(env, baseline.make_policy())
    assert len(variances) == 4
    deviation = np.sqrt(unknown * np.unique(np.round(variances, 6)).item())
    mu = 2 * np.sqrt(4) * 15.0 / deviation
    (claim,) = [claim for claim in env.privacy_claims() if claim.observer == "fellow"]
    assert (claim.adjacency, claim.epsilon) == ("agent", pytest.approx(10, rel=1e-6))
    above, below = stats.norm.cdf([mu / 2 - 10 / mu, -mu / 2 - 10 / mu])
    assert above - np.exp(10) * below == pytest.approx(1e-5, rel=1e-4)


def test_little_noise_leaves_nearly_the_models_without_noise():
    """But for norms above 1, which are cut; and much noise leaves no model."""
    models = {}
    for epsilon in (1e-3, 1e12, None):
        baseline = BASELINES["FedGLB-UCB-true" if epsilon is None else "FedGLB-UCB-private"]
        given = {} if epsilon is None else {"privatizer": {"epsilon": epsilon, "clip": 1e3}}
        env = baseline.wrap(make_federation("FedLogistic-v0", max_cycles=101, **SMALL), given)
        play(env, baseline.make_policy())
        models[epsilon] = env._policy._model, env._policy._trusted
    short = np.linalg.norm(models[None][0], axis=1) < 0.95
    assert short.any()
    for found, expected in zip(models[1e12], models[None], strict=True):
        np.testing.assert_allclose(found[short], expected[short], rtol=2e-3, atol=2e-3)
    assert not models[1e-3][0].any()
    assert not models[1e-3][1].any()


def test_noise_is_refused_where_the_server_cannot_use_it():
    for wrong in ({"solver": "accelerated"}, {"gradient_rounds": None}):
        with pytest.raises(UnfitError, match="solver='quasi_newton' and gradient_rounds are required"):
            make("FedGLB-UCB-private", 5, wrong)
