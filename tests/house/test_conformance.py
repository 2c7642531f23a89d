"""Every registered environment, wrapper and policy is what the base classes say; so is a stranger's environment."""

from contextlib import nullcontext
from functools import partial
from itertools import count, groupby

import pytest
from arms_env import ArmsEnv
from gymnasium import spaces
from registered import FIRST, PROBLEMS
from undrawn import undrawn
from wide_intervals import wide_intervals as wide_intervals

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.testing import check_federation, check_policy, check_wrapper, policy
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.wrappers import WRAPPERS
from fedbandit_envs.wrappers.transport.channel import Channel

pytestmark = pytest.mark.usefixtures("blank_pictures", "wide_intervals")
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


def kind_of_statistic(problem):
    released = SMALL[problem]().single_release_space.values()
    return repr([(array.dtype.kind, len(array.shape)) for array in released])


STATISTICS = [list(alike) for _, alike in groupby(sorted(SMALL, key=kind_of_statistic), kind_of_statistic)]
"""The problems, in lists of those that release the same kinds of arrays: dtypes and numbers of axes."""


def pairs_tried():
    """Returns the examples and problems that continuous integration tries together; other pairs are slow.

    Ordinary runs try those with the wrapper's first example.

    They are every example around one problem at least, every mechanism around a problem of every kind of statistic, and
    every other wrapper around two. Wrappers take problems in turn, so that every problem is tried with data layers, a
    mechanism and both transports.
    """
    problems, mechanisms = list(SMALL), count()
    for number, wrapper in enumerate(WRAPPERS.values()):
        turn = next(mechanisms) if wrapper.layer == "noise" else None
        around = [] if turn is None else [alike[turn % len(alike)] for alike in STATISTICS]
        for pair in range(max(2, len(around), len(wrapper.examples))):
            problem = around[pair] if pair < len(around) else problems[(number + pair) % len(problems)]
            yield wrapper, pair % len(wrapper.examples), problem


TRIED = set(pairs_tried())
AROUND = [
    pytest.param(
        wrapper, example, problem, id=f"{name}-{place}-{problem}",
        marks=pytest.mark.slow if (wrapper, place, problem) not in TRIED else pytest.mark.ci if place else (),
    )
    for name, wrapper in WRAPPERS.items()
    for place, example in enumerate(wrapper.examples)
    for problem in SMALL
]  # fmt: skip


@pytest.mark.parametrize(
    "env_id",
    [pytest.param(env_id, marks=() if env_id in FIRST else pytest.mark.ci) for env_id in REGISTRY],
    indirect=True,
)
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
def test_a_horizon_set_later_is_as_good_as_one_given(wrapper, example):
    problem = next(make for make in SMALL.values() if refused(partial(wrapper, **example), make) is None)
    episodes = []
    for given in (8, 500):
        # A trial sets the horizon after the federation is made.
        make = partial(problem, max_cycles=given)
        episodes.append(Trial(lambda make=make: wrapper(make(), **example), rounds=8).episode())
    assert not difference(*episodes)


# The first baseline of every policy with constants and wrappers of these names.
LONG = {
    (baseline.policy, *baseline.policy_kwargs, *baseline.wrappers): name
    for name, baseline in sorted(BASELINES.items(), reverse=True)
}.values()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.slow
            if name.endswith(("-placebo", "-true", "-tuned"))
            else ()
            if name in LONG
            else pytest.mark.ci,
        )
        for name in sorted(BASELINES)
    ],
)
def test_baselines(name, monkeypatch):
    """What is an earlier baseline with other values of constants plays fewer rounds."""
    if name not in LONG:
        monkeypatch.setattr(policy, "HORIZON", 40)
    baseline = BASELINES[name]
    problem = baseline.federation
    make = partial(make_federation, baseline.only) if baseline.only else problem
    check_policy(baseline.make_policy, lambda: baseline.wrap(make(**PROBLEMS[problem].small, num_agents=4)))


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
