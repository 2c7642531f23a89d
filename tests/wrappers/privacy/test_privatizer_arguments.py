"""What privatizers refuse: arguments, budgets and statistics that are none, each named."""

import math
import re

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from privatizers import PRIVATIZERS, small

from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import GaussianPrivatizer, RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.privacy.privatizer import Budget
from fedbandit_envs.wrappers.reveal import Reveal


@pytest.mark.parametrize("privatize", PRIVATIZERS)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon is 0.0"),
        ({"epsilon": -1.0}, ValueError, "epsilon is -1.0"),
        ({"epsilon": math.nan}, ValueError, "epsilon is nan"),
        ({"releases": 0}, ValueError, "releases is 0"),
        ({"releases": 2.5}, TypeError, "releases is 2.5"),
        ({"releases": []}, ValueError, "len(releases) is 0"),
        ({"releases": [1, 0]}, ValueError, "releases[1] is 0"),
        ({"releases": "12"}, TypeError, "releases[0] is '1'"),
        ({"budget": 1.0}, TypeError, "budget is a float"),
        ({"on_exhausted": "ignore"}, ValueError, "on_exhausted is 'ignore'"),
    ],
)
def test_bad_arguments_are_named(privatize, arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        privatize(small(), **{"epsilon": 1.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"calibration": "exact"}, "calibration is 'exact'"),
        ({"pair": "good"}, "pair is 'good'"),
    ],
)
def test_bad_gaussian_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GaussianPrivatizer(small(), 1.0, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "budget epsilon is 0.0"),
        ({"epsilon": 1.0}, "budget delta is None"),
        ({"delta": 1.0}, "budget delta is 1.0"),
        ({"composition": "best"}, "budget composition is 'best'"),
    ],
)
def test_bad_budgets_are_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Budget(**arguments)


def test_a_budget_for_an_adjacency_that_the_environment_does_not_name_is_refused():
    env = GaussianPrivatizer(small(), 1.0, budget={"adjacency": "one-user"})
    with pytest.raises(ValueError, match="budget adjacency is 'one-user'; one of 'one-quantity'"):
        env.reset_batch([0])
    env = GaussianPrivatizer(small(), 1.0)
    env.reset_batch([0])
    with pytest.raises(ValueError, match="adjacency is 'one-user'; one of 'one-quantity'"):
        env.accountant.epsilon(adjacency="one-user")


@pytest.mark.parametrize("outer", PRIVATIZERS)
@pytest.mark.parametrize("inner", PRIVATIZERS)
def test_privatizing_twice_is_refused(outer, inner):
    with pytest.raises(
        ValueError, match=f"already has a noise layer, {inner.__name__}, inside of {outer.__name__}"
    ):
        outer(Reveal(inner(small(), 1.0)), 1.0)


def test_a_horizon_too_short_for_the_papers_shares_is_refused():
    with pytest.raises(ValueError, match="max_cycles is 1"):
        GaussianPrivatizer(small(max_cycles=1), 1.0)
    GaussianPrivatizer(small(max_cycles=1), 0.5, releases=1)


class Statistic(ProcurementEnv):
    """Procurement that says something else of what it releases."""

    says: dict[str, float]

    def sensitivity(self):
        real = super().sensitivity()
        shape = real.scale["good"].shape
        return real._replace(scale={name: np.full(shape, value) for name, value in self.says.items()})


def saying(**says) -> Statistic:
    env = Statistic(num_agents=3, num_producers=4)
    env.says = says
    return env


@pytest.mark.parametrize("privatize", PRIVATIZERS)
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_useless_sensitivities_are_refused(privatize, value):
    with pytest.raises(ValueError, match="sensitivity of 'good' lies between"):
        privatize(saying(delivered=1.0, good=value), 1.0).reset_batch([0])


def test_pairs_that_are_none_are_refused():
    pair = {"epsilon": 0.5, "pair": "good_and_defective"}
    with pytest.raises(ValueError, match="pair is 'good_and_defective'"):
        GaussianPrivatizer(saying(delivered=1.0, good=2.0), **pair).reset_batch([0])
    with pytest.raises(ValueError, match=r"releases, \['gram'\], is not said to count"):
        GaussianPrivatizer(saying(gram=1.0), **pair).reset_batch([0])
    with pytest.raises(ValueError, match=r"releases, \['gram'\], is not said to count"):
        RandomizedResponsePrivatizer(saying(gram=1.0), 0.5).reset_batch([0])


def test_bad_senders_are_named():
    env = GaussianPrivatizer(small(), 1.0)
    with pytest.raises(ResetNeeded):
        env.release(np.ones((1, 3), np.bool_))
    env.reset_batch([0])
    with pytest.raises(ValueError, match=r"senders has shape \(3,\)"):
        env.release(np.ones(3, np.bool_))


def test_a_budget_can_be_given_by_its_arguments():
    limits = {"epsilon": 2.0, "delta": 1e-5, "composition": "exact", "adjacency": "one-round"}
    env = GaussianPrivatizer(ProcurementEnv(), 1.0, budget=limits)
    assert env.budget == Budget(**limits)
    with pytest.raises(TypeError, match="budget is a float"):
        GaussianPrivatizer(ProcurementEnv(), 1.0, budget=2.0)


def test_a_given_noise_has_no_proportions():
    with pytest.raises(ValueError, match=r"releases is \[1, 2\]; with noise_multiplier"):
        GaussianPrivatizer(small(), noise_multiplier=2.0, releases=[1, 2])
