"""Merit functions: of all agents or one each, slopes, a user's own, and that nobody changes them."""

import numpy as np
import pytest

from fedbandit_envs.exposure.merit import CustomMerit, Exponential, Linear, make_merit
from fedbandit_envs.exposure_v0 import parallel_env


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

    env = parallel_env(num_agents=1, merit=CustomMerit(in_place))
    env.reset_batch([0])
    with pytest.raises(ValueError, match="read-only"):
        env.step_batch(np.full((1, 1, 10), 0.1))
