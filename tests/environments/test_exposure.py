"""Exposure fairness: regrets, the arm drawn, merit functions, the simplex, and bad input.

Statistical tests fix their seeds and fail by chance with a probability below 1e-6 each.
"""

from functools import reduce
from operator import add

import gymnasium
import numpy as np
import pytest
from compiled import from_python
from gymnasium.vector.utils import batch_space, create_empty_array, iterate
from played import begun
from refusals import refusals

from fedbandit_envs import linear_v0
from fedbandit_envs.baselines.exposure import DeservedShares
from fedbandit_envs.core.actions import Simplex
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.exposure import merit as exposure_rounds
from fedbandit_envs.exposure.merit import CustomMerit, Exponential, Linear, make_merit
from fedbandit_envs.exposure_v0 import parallel_env
from fedbandit_envs.wrappers.observation import Reveal


def dirichlet(env, seed, replicas=2, concentration=1.0):
    shape = (replicas, env.max_num_agents)
    arms = env.single_action_space.shape[0]
    return np.random.default_rng(seed).dirichlet(np.full(arms, concentration), shape)


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


MERITS = {
    "exponential": ("exponential", lambda mu: softmax(10 * mu)),
    "mild": ({"name": "exponential", "scale": 0.5}, lambda mu: softmax(0.5 * mu)),
    "steep": ({"name": "exponential", "scale": 1000}, lambda mu: softmax(1000 * mu)),
    "linear": (
        {"name": "linear", "floor": 0.3},
        lambda mu: np.maximum(mu, 0.3) / np.maximum(mu, 0.3).sum(axis=-1, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", MERITS)
def test_regrets_are_those_of_the_definition(name):
    merit, deserved_shares = MERITS[name]
    env = parallel_env(num_agents=3, num_arms=7, dim=4, merit=merit, max_cycles=50)
    seen = env.reset_batch([4, 5]).observation
    theta = env.hidden()["parameter"]
    for t in range(50):
        means = np.einsum("rjkd,rjd->rjk", seen["contexts"], theta)
        shares = dirichlet(env, t, concentration=0.3)
        deserved = deserved_shares(means)
        info = env.step_batch(shares).info
        np.testing.assert_allclose(info["regret"], np.abs(deserved - shares).sum(axis=-1), atol=1e-12)
        np.testing.assert_allclose(
            info["reward_regret"], ((deserved - shares) * means).sum(axis=-1), atol=1e-12
        )
        assert (info["regret"] >= 0).all()
        assert (info["regret"] <= 2).all()


@pytest.mark.parametrize("scale", [0.0, 10.0, 1000.0, 1e6])
def test_the_true_parameter_regrets_nothing_and_the_worst_shares_regret_two(scale):
    merit = {"name": "exponential", "scale": scale}
    run = simulate(Reveal(parallel_env(num_agents=4, merit=merit, max_cycles=20)), DeservedShares(), range(3))
    assert run.regret.max() < 1e-12
    assert np.abs(run.info["reward_regret"]).max() < 1e-12
    # All on the worst of three arms: what it deserves is all that is not regretted.
    env = begun(parallel_env(num_agents=1, contexts=[[1.0], [0.5], [0.0]], parameter=[1.0], merit=merit))
    regret = env.step_batch(np.array([[[0.0, 0.0, 1.0]]])).info["regret"].item()
    assert regret == pytest.approx(2 - 2 * softmax(scale * np.array([1.0, 0.5, 0.0]))[2], abs=1e-12)


def test_rounding_draws_no_arm_without_a_share():
    """Taken one by one from almost all there is, these shares leave 3e-17: it is the last arm's that has a share."""
    some = [0.106, 0.035, 0.079, 0.326, 0.002, 0.018, 0.03, 0.168, 0.149, 0.087]
    # Python's own `sum` rounds once, from 3.12 on.
    rest = almost_all = np.nextafter(1.0, 0.0) * reduce(add, some)
    for share in some:
        rest -= share
    assert rest > 0
    assert from_python(exposure_rounds._arm_at)(np.array([*some, 0.0]), almost_all) == 9


def test_contexts_and_rewards_are_the_linear_problems():
    """One-hot shares make it the linear bandit, draw for draw."""
    sizes = {"num_agents": 3, "num_arms": 6, "dim": 4, "max_cycles": 40}
    shared = {**sizes, "reward_sd": 0.5, "reward_bound": 0.8}
    linear = linear_v0.parallel_env(contexts="hypercube", reward="normal", parameter="orthant", **shared)
    exposure = parallel_env(**shared)
    ours, theirs = exposure.reset_batch([1, 9]), linear.reset_batch([1, 9])
    for t in range(40):
        arm = np.random.default_rng(t).integers(6, size=(2, 3))
        for name in theirs.observation:
            np.testing.assert_array_equal(ours.observation[name], theirs.observation[name])
        ours, theirs = exposure.step_batch(np.eye(6)[arm]), linear.step_batch(arm)
        np.testing.assert_array_equal(ours.reward, theirs.reward)
        np.testing.assert_array_equal(ours.info["clipped"], theirs.info["clipped"])
        np.testing.assert_array_equal(ours.info["arm"], arm)


def test_theta_lies_in_the_orthant_and_is_uniform_on_the_scaled_cube():
    theta = begun(parallel_env(num_agents=1, dim=3), range(1000)).hidden()["parameter"][:, 0]
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1)
    assert theta.min() >= 0
    cube = np.random.default_rng(0).random((50_000, 3))
    expected = (cube / np.linalg.norm(cube, axis=1, keepdims=True)).mean(axis=0).mean()
    assert np.abs(theta.mean(axis=0) - expected).max() < 5 * theta.std() / np.sqrt(1000)


test_bad_arguments_are_named = refusals(
    lambda kwargs: parallel_env(**kwargs),
    ({"merit": "quadratic"}, ValueError, "merit name is 'quadratic'; one of"),
    ({"merit": {"name": "exponential", "steep": 1}}, TypeError, "merit 'exponential' with arguments"),
    ({"merit": {"name": "exponential", "scale": -1}}, ValueError, "scale is -1"),
    ({"merit": {"name": "linear", "floor": 0}}, ValueError, "floor is 0; a finite number > 0"),
    ({"merit": "numpy:sin"}, ValueError, "merit of means .* is from -0.84.*positive finite numbers"),
    ({"merit": "numpy:sum"}, ValueError, "merit of means"),
    ({"merit": ["linear"] * 3}, ValueError, "merit is a sequence of 3; .* num_agents = 10"),
)  # fmt: skip


def bad(change):
    shares = np.full((1, 2, 10), 0.1)
    change(shares)
    return shares


@pytest.mark.parametrize(("action", "error", "message"), [
    (bad(lambda s: s.__setitem__((0, 1, 3), -0.1)), ValueError, r"agent_1 \(replica 0\), entry 3, is -0\.1"),
    (bad(lambda s: s.__setitem__((0, 1, 3), np.nan)), ValueError, r"agent_1 \(replica 0\), entry 3, is nan"),
    (bad(lambda s: s.__setitem__((0, 1, 3), 0.1001)), ValueError, r"agent_1 \(replica 0\) is 1\.0001; a sum of 1"),
    (np.full((1, 2, 9), 1 / 9), ValueError, r"\(replicas, agents, ...\) = \(1, 2, 10\)"),
    (np.ones((1, 2, 10), np.int64), TypeError, "dtype int64; a floating-point dtype"),
])  # fmt: skip
def test_what_is_no_distribution_is_refused_and_changes_nothing(action, error, message):
    env, twin = (begun(parallel_env(num_agents=2, max_cycles=5)) for _ in range(2))
    with pytest.raises(error, match=message):
        env.step_batch(action)
    fair = np.full((1, 2, 10), 0.1)
    ours, theirs = env.step_batch(fair), twin.step_batch(fair)
    for name, array in theirs.observation.items():
        np.testing.assert_array_equal(ours.observation[name], array)
    np.testing.assert_array_equal(ours.info["regret"], theirs.info["regret"])


def test_sums_within_the_tolerance_stand_for_one():
    """Shares of float32 are let through, and regret is that of what they are shares of."""
    env = begun(parallel_env(num_agents=1, max_cycles=3))
    shares = softmax(np.random.default_rng(0).normal(size=(1, 1, 10)).astype(np.float32))
    regret = env.step_batch(shares).info["regret"].copy()
    env.reset_batch([0])
    exact = shares.astype(np.float64) / shares.astype(np.float64).sum()
    np.testing.assert_allclose(env.step_batch(exact).info["regret"], regret, atol=1e-12)
    env.reset_batch([0])
    np.testing.assert_allclose(env.step_batch(exact * (1 + 9e-7)).info["regret"], regret, atol=1e-12)
    rounded = np.eye(10)[np.newaxis, :1] * (1 + 1e-7)
    assert env.single_action_space.contains(rounded[0, 0])
    assert env.step_batch(rounded).info["regret"] < 2


def test_action_formats_say_shares():
    env = parallel_env(num_agents=2, merit=["linear", "exponential"])
    seen = env.reset_batch([0]).observation
    logits = np.random.default_rng(1).uniform(-1, 1, (1, 2, 10)).astype(np.float32)
    np.testing.assert_allclose(
        env.action_formats["logits"].to_action(logits, seen), softmax(10.0 * logits.astype(np.float64))
    )
    theta = env.hidden()["parameter"]
    shares = env.action_formats["parameter"].to_action(theta, seen)
    assert env.step_batch(shares).info["regret"].max() < 1e-12
    for name in ("logits", "parameter"):
        choice = np.zeros((1, 2, env.action_formats[name].space.shape[0]))
        choice[0, 1, 2] = np.nan
        with pytest.raises(ValueError, match=rf"action: {name}\[0, 1, 2\] is nan; finite"):
            env.action_formats[name].to_action(choice, seen)


def test_pictures_show_shares_and_deserved_shares():
    env = begun(parallel_env(num_agents=3, render_mode="ansi"))
    env.step_batch(np.full((1, 3, 10), 0.1))
    text = env.render()
    assert text.count("0.100") >= 30 + 10
    deserved = np.sort(env._deserved[0], axis=1)[:, ::-1].mean(axis=0)
    assert f"mean deserved share  {' '.join(f'{one:6.3f}' for one in deserved)}" in text


def test_totals_add_up_pulls_and_what_was_deserved():
    env = parallel_env(num_agents=2, num_arms=3, merit="linear", max_cycles=30)
    seen = env.reset_batch([0, 1]).observation
    theta = env.hidden()["parameter"]
    pulls, deserved = np.zeros((2, 2, 3)), np.zeros((2, 2, 3))
    for t in range(30):
        merits = np.maximum(np.einsum("rjkd,rjd->rjk", seen["contexts"], theta), 0.1)
        deserved += merits / merits.sum(axis=-1, keepdims=True)
        pulls += np.eye(3)[env.step_batch(dirichlet(env, t)).info["arm"]]
    np.testing.assert_array_equal(env.totals["pulls"], pulls)
    np.testing.assert_allclose(env.totals["deserved"], deserved, atol=1e-12)
    env.reset_batch([0])
    assert not env.totals["pulls"].any()


def halves(means):
    """A user's own merit function: positive, not steep."""
    return 0.5 + 0.5 * np.tanh(means) ** 2


def test_each_agent_may_have_a_merit_function_of_its_own():
    """A function, a name and a mapping, one an agent: regret is each agent's own."""
    env = parallel_env(num_agents=3, merit=[CustomMerit(halves), "linear", {"name": "exponential"}])
    seen = env.reset_batch([0, 1]).observation
    np.testing.assert_array_equal(seen["merit"][..., 0], [[0, 1, 2]] * 2)
    means = np.einsum("rjkd,rjd->rjk", seen["contexts"], env.hidden()["parameter"])
    merits = np.stack([halves(means[:, 0]), np.maximum(means[:, 1], 0.1), np.exp(10 * means[:, 2])], axis=1)
    shares = np.random.default_rng(0).dirichlet(np.ones(10), (2, 3))
    expected = np.abs(merits / merits.sum(axis=-1, keepdims=True) - shares).sum(axis=-1)
    np.testing.assert_allclose(env.step_batch(shares).info["regret"], expected, atol=1e-12)


def test_an_entry_point_names_a_users_merit_function():
    merit = make_merit("numpy:exp")
    means = np.linspace(-1, 1, 9)
    np.testing.assert_allclose(merit.logarithm(means), means, atol=1e-15)
    np.testing.assert_allclose(merit.slope(means), 1.0, atol=1e-9)


@pytest.mark.parametrize("merit", [Exponential(7.0), Linear(0.2), CustomMerit(halves)])
def test_slopes_are_derivatives(merit):
    means = np.array([-0.7, 0.1, 0.31, 0.9])
    step = 1e-6
    differences = (merit.logarithm(means + step) - merit.logarithm(means - step)) / (2 * step)
    np.testing.assert_allclose(merit.slope(means), differences, atol=1e-6)


def test_an_own_merit_that_turns_bad_while_playing_says_where():
    env = parallel_env(num_agents=1, merit=CustomMerit(lambda means: np.where(means > 0.2, means, 0.0)))
    env.reset_batch([0])
    with pytest.raises(ValueError, match="merit of means of shape"):
        env.step_batch(np.full((1, 1, 10), 0.1))


def test_what_policies_are_told_cannot_change_what_arms_deserve():
    """Neither by the merit functions that are public, nor by a merit function that works in place."""
    env = parallel_env(num_agents=1)
    merits = env.policy_spec.public["merits"]
    for change in (
        lambda: setattr(merits, "functions", (Linear(),)),
        lambda: merits.functions.__setitem__(0, Linear()),
        lambda: setattr(merits.functions[0], "scale", 0.0),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()
    env.policy_spec.public["merits"] = None
    assert env.policy_spec.public["merits"] is merits

    def in_place(means):
        means *= 0.0
        return np.exp(means)

    env = begun(parallel_env(num_agents=1, merit=CustomMerit(in_place)))
    with pytest.raises(ValueError, match="read-only"):
        env.step_batch(np.full((1, 1, 10), 0.1))


@pytest.mark.parametrize("shape", [(1,), (4,), (3, 2)])
def test_the_simplex_contains_its_samples_and_so_do_its_batches(shape):
    space = Simplex(shape, seed=3)
    samples = [space.sample() for _ in range(50)]
    assert all(space.contains(sample) and sample.shape == shape for sample in samples)
    batch = batch_space(space, 5)
    assert isinstance(batch, Simplex)
    assert batch.shape == (5, *shape)
    assert batch.contains(batch.sample())
    assert all(space.contains(row) for row in iterate(batch, batch.sample()))
    assert create_empty_array(space, 5).shape == (5, *shape)
    assert space == Simplex(shape)
    assert space != Simplex((*shape, 2))
    assert space != gymnasium.spaces.Box(0.0, 1.0, shape, np.float64)
    assert not space.contains(np.full(shape, 1.0 + 1e-5))
    assert not space.contains(np.full(shape, np.nan))


def test_samples_are_uniform_on_the_simplex():
    """Uniform on it means Dirichlet(1, ..., 1): entries have the variance (K - 1) / (K^2 (K + 1))."""
    space = Simplex((4,), seed=0)
    drawn = np.array([space.sample() for _ in range(20_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), 0.25, atol=6 * 0.2 / np.sqrt(20_000))
    np.testing.assert_allclose(drawn.var(axis=0), 3 / 80, rtol=0.05)
