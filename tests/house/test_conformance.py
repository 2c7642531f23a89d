"""Every registered environment, wrapper and policy is what the base classes say; so is a stranger's environment."""

import inspect
from contextlib import nullcontext
from functools import partial
from itertools import count

import arms_env
import numpy as np
import pytest
from arms_env import ArmsEnv
from gymnasium import spaces
from registered import FIRST, PROBLEMS
from undrawn import undrawn

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.testing import check_federation, check_policy, check_wrapper
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.wrappers import (
    WRAPPERS,
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
)
from fedbandit_envs.wrappers.observation import Reveal
from fedbandit_envs.wrappers.privacy.accounting import event, numerical
from fedbandit_envs.wrappers.transport.channel import Channel

pytestmark = pytest.mark.usefixtures("blank_pictures")
"""Drawn are pictures of every problem's first id in test_registry.py, and of every transport in its test_viewer.py."""

SMALL = {
    "a stranger's": ArmsEnv,
    **{
        problem.__name__: partial(make_federation, next(iter(entry.presets)), **entry.small, num_agents=4)
        for problem, entry in PROBLEMS.items()
    },
}
"""A small instance of every problem's first id, and of the stranger's environment."""

EXAMPLES = [
    pytest.param(wrapper, example, id=f"{name}-{place}")
    for name, wrapper in WRAPPERS.items()
    for place, example in enumerate(wrapper.examples)
]


def by_statistic():
    """Returns the problems in lists of those that release the same kinds of arrays: dtypes and numbers of axes."""
    alike = {}
    for problem, make in SMALL.items():
        released = make().single_release_space.values()
        alike.setdefault(repr([(array.dtype.kind, len(array.shape)) for array in released]), []).append(
            problem
        )
    return list(alike.values())


STATISTICS = by_statistic()


def pairs_tried():
    """Returns the examples and problems that ordinary runs try together; what remains of all pairs is slow.

    They are every example around one problem at least, every mechanism around a problem of every kind of statistic, and
    every other wrapper around two. Wrappers take problems in turn, so that every problem is tried with data layers, a
    mechanism and both transports.
    """
    problems, mechanisms = list(SMALL), count()
    for number, wrapper in enumerate(WRAPPERS.values()):
        if wrapper.layer == "noise":
            turn = next(mechanisms)
            around = [alike[turn % len(alike)] for alike in STATISTICS]
        else:
            around = [problems[(number + pair) % len(problems)] for pair in range(2)]
        for pair in range(max(len(around), len(wrapper.examples))):
            problem = around[pair] if pair < len(around) else problems[(number + pair) % len(problems)]
            yield wrapper, pair % len(wrapper.examples), problem


TRIED = set(pairs_tried())
AROUND = [
    pytest.param(
        wrapper, example, problem, id=f"{name}-{place}-{problem}",
        marks=() if (wrapper, place, problem) in TRIED else pytest.mark.slow,
    )
    for name, wrapper in WRAPPERS.items()
    for place, example in enumerate(wrapper.examples)
    for problem in SMALL
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def wide_intervals():
    """Budgets that are composed numerically are so a hundred times as coarsely: no check looks at their digits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numerical, "_INTERVAL", 1e-2)
        event._composed.cache_clear()
        yield
    event._composed.cache_clear()


def test_registered_environments(make_federation, env_id):
    """With pictures those that are the first of their problem, since ids of one problem are drawn by the same code."""
    with nullcontext() if env_id in FIRST else undrawn():
        check_federation(make_federation)


def refused(wrap, make):
    """Returns the error by which a wrapper refuses a problem; None if it takes it."""
    try:
        wrap(make()).reset_batch([0])
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("wrapper", "example", "problem"), AROUND)
def test_wrappers_around_problems(wrapper, example, problem, request):
    """In ordinary runs with pictures where the example is the wrapper's first."""
    make, wrap = SMALL[problem], partial(wrapper, **example)
    drawn = wrapper.examples.index(example) == 0 or "slow" in request.keywords
    error = refused(wrap, make)
    if error is None:
        with nullcontext() if drawn else undrawn():
            check_wrapper(wrap, make)
        return
    # Only mechanisms may decline: a statistic that they cannot privatize, and which they name.
    assert wrapper.layer == "noise", error
    assert all(repr(name) in error for name in make().single_release_space), error
    assert "required" in error


@pytest.mark.parametrize(("wrapper", "example"), EXAMPLES)
def test_wrappers_take_some_problem(wrapper, example):
    """One at least of those that ordinary runs try them with."""
    place = wrapper.examples.index(example)
    tried = [make for problem, make in SMALL.items() if (wrapper, place, problem) in TRIED]
    assert any(refused(partial(wrapper, **example), make) is None for make in tried)


@pytest.mark.parametrize("wrapper", WRAPPERS.values(), ids=WRAPPERS.keys())
def test_wrappers_can_be_tried(wrapper):
    assert wrapper.examples, (
        f"{wrapper.__name__}.examples is empty: add the arguments of one that is to be tested"
    )
    needed = [
        name
        for name, parameter in list(inspect.signature(wrapper).parameters.items())[1:]
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]
    for example in wrapper.examples:
        assert set(needed) <= set(example), (
            f"{wrapper.__name__}.examples has {example}; {needed} are required"
        )


@pytest.mark.parametrize(("wrapper", "example"), EXAMPLES)
def test_a_horizon_set_later_is_as_good_as_one_given(wrapper, example):
    problem = next(make for make in SMALL.values() if refused(partial(wrapper, **example), make) is None)
    episodes = []
    for given in (8, 500):
        # A trial sets the horizon after the federation is made.
        make = partial(problem, max_cycles=given)
        episodes.append(Trial(lambda make=make: wrapper(make(), **example), rounds=8).episode())
    assert not difference(*episodes)


def test_wrappers_are_found_where_they_are_defined():
    assert WRAPPERS["Channel"] is Channel
    assert {"Transport", "Privatizer"}.isdisjoint(WRAPPERS)
    assert [name for name, wrapper in WRAPPERS.items() if wrapper.__name__ != name] == []


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(problem, marks=pytest.mark.slow if place else ())
        for alike in STATISTICS
        for place, problem in enumerate(alike)
    ],
)
def test_views_stand_around_views(problem):
    """In ordinary runs around a problem of every kind of statistic."""
    check_wrapper(lambda env: Reveal(Reveal(env)), SMALL[problem])


@pytest.mark.parametrize(
    "baseline",
    [
        pytest.param(name, marks=pytest.mark.slow if name.endswith(("-placebo", "-true", "-tuned")) else ())
        for name in sorted(BASELINES)
    ],
    indirect=True,
)
def test_baselines(baseline):
    problem = baseline.federation
    make = partial(make_federation, baseline.only) if baseline.only else problem
    check_policy(baseline.make_policy, lambda: baseline.wrap(make(**PROBLEMS[problem].small, num_agents=4)))


PRIVATIZERS = {
    "Gaussian": partial(GaussianPrivatizer, epsilon=0.9),
    "Gaussian pair": partial(GaussianPrivatizer, epsilon=0.9, pair="good_and_defective"),
    "Laplace": partial(LaplacePrivatizer, epsilon=1.0),
    "randomised response": partial(RandomizedResponsePrivatizer, epsilon=1.0),
    "continual": partial(ContinualPrivatizer, epsilon=1.0, delta=0.1),
}


@pytest.mark.parametrize(
    ("privatizer", "schedule"),
    [
        pytest.param(privatizer, schedule, marks=() if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, privatizer in enumerate(PRIVATIZERS)
        for j, schedule in enumerate(["every_round", "on_request", None])
    ],
)
def test_a_strangers_environment_behind_every_mechanism(privatizer, schedule):
    """In ordinary runs with one schedule each, in turn; in slow ones with all."""

    def wrap(env):
        private = PRIVATIZERS[privatizer](env)
        return private if schedule is None else Channel(private, schedule=schedule)

    check_wrapper(wrap, ArmsEnv)


def test_a_strangers_environment_is_short():
    assert len(inspect.getsource(arms_env).splitlines()) <= 90


def test_a_strangers_sensitivity_by_enumeration():
    """One pull and outcome in place of any other, and one outcome in place of the other."""
    env = ArmsEnv(num_arms=3)
    env.reset_batch([0])
    told = env.sensitivity()
    pull = np.eye(3)
    # (pulls, successes) of one observation, by arm and outcome, and (good, defective) of the same.
    counts = {(arm, good): np.array([pull[arm], pull[arm] * good]) for arm in range(3) for good in (0, 1)}
    outcomes = {key: np.array([good, total - good]) for key, (total, good) in counts.items()}
    for changes, observations in ((told.changes, counts), (told.pair.changes, outcomes)):
        for adjacency, same_arm in (("one-observation", False), ("one-outcome", True)):
            differences = [
                observations[a] - observations[b]
                for a in counts
                for b in counts
                if a[0] == b[0] or not same_arm
            ]
            values, norm = changes[adjacency]
            assert max(np.count_nonzero(difference) for difference in differences) == values
            assert max(np.linalg.norm(difference) for difference in differences) == pytest.approx(norm)


@pytest.mark.parametrize("privatizer", ["Gaussian", "Laplace", "randomised response"])
def test_every_release_is_in_the_books(privatizer):
    """Late shares of epsilon are alike up to rounding: agents that are at different ones release the same event."""
    private = PRIVATIZERS[privatizer](ArmsEnv(num_agents=2))
    private.reset_batch([0])
    first = np.array([[True, False]])
    for sends, times in ((first, 60), (~first, 57), (first | True, 1)):
        for _ in range(times):
            private.release(sends)
    np.testing.assert_array_equal(private.accountant.counts.sum(axis=0), [[61, 58]])
    assert private.privacy().epsilon != np.inf


def test_randomised_response_protects_a_strangers_outcomes_alone():
    private = PRIVATIZERS["randomised response"](ArmsEnv())
    env = Channel(private)
    env.reset_batch([0])
    for _ in range(3):
        env.step_batch(np.zeros((1, 3), np.int64))
    assert 0 < env.privacy().epsilon < np.inf
    assert private.accountant.epsilon(adjacency="one-observation").epsilon == np.inf


class LastArmEnv(ArmsEnv):
    """Observations need not have axes."""

    def __init__(self):
        super().__init__()
        self.single_observation_space = spaces.Dict(
            {
                **self.single_observation_space,
                "last_arm": spaces.Discrete(4),
                "luck": spaces.Box(0.0, 1.0, ()),
            }
        )

    def _play_round(self, action):
        super()._play_round(action)
        self._observation["last_arm"][...] = action
        self._observation["luck"][...] = self._reward


def test_observations_may_be_single_numbers():
    check_federation(LastArmEnv)
    check_wrapper(Channel, LastArmEnv)
