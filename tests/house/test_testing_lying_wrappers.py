"""Wrappers and mechanisms that lie are caught, each by a message that names the lie; honest twins of them pass.

The docstring of a liar is a pattern of that message. Seeds are fixed. With others, an honest twin would be accused with
probability 1e-6 at most (fedbandit_envs/testing/noise.py).
"""

from functools import partial

import pytest
from arms_env import ArmsEnv
from lying_data_layers import DATA_LAYERS, PROBLEMS, Quota
from lying_mechanisms import MECHANISMS, Bell, Matrix, OwnKind, OwnKindBookedLow, behind
from lying_wrappers import WRAPPERS, HalvesRegret, SendsWhenItWins

from fedbandit_envs.arms.env import ArmsEnv as RegisteredArms
from fedbandit_envs.testing import check_wrapper, ledger, noise, problem
from fedbandit_envs.testing.episodes import Trial
from fedbandit_envs.wrappers import Channel, Privatizer
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace

small_arms = partial(RegisteredArms, num_agents=3, num_arms=3)
SHARE_OF_ONE = {"releases": 20}
"""Of an epsilon of 20."""


@pytest.mark.parametrize("liar", MECHANISMS)
def test_lying_mechanisms_are_caught(liar):
    """By the check of noise, the last of all."""
    with pytest.raises(AssertionError, match=liar.__doc__):
        noise.check_noise(behind(liar), ArmsEnv)


@pytest.mark.parametrize(
    ("honest", "arguments", "make"),
    [(one, {}, ArmsEnv) for one in (Laplace, Bell, Matrix)]
    + [(Laplace, SHARE_OF_ONE, ArmsEnv), (OwnKind, SHARE_OF_ONE, small_arms)],
)
def test_honest_mechanisms_pass(honest, arguments, make):
    """That of another kind is attacked."""
    noise.check_noise(behind(honest, **arguments), make)


def test_mechanisms_of_others_are_attacked(monkeypatch):
    with pytest.raises(AssertionError, match="an attack on one release proves an epsilon of at least"):
        noise.check_noise(behind(OwnKindBookedLow, **SHARE_OF_ONE), small_arms)
    monkeypatch.setattr(noise, "_require_audit", lambda *arguments: None)
    noise.check_noise(behind(OwnKindBookedLow, **SHARE_OF_ONE), small_arms)


def test_a_warning_says_what_is_not_attacked():
    with pytest.warns(
        UserWarning, match="attacked by what one agent releases, which is refused: honest is 2"
    ):
        noise.check_noise(
            lambda env: Channel(behind(Bell)(env), stage={"name": "aggregator", "honest": 2}), ArmsEnv
        )


@pytest.mark.parametrize("liar", WRAPPERS)
def test_lying_wrappers_are_caught(liar):
    with pytest.raises(AssertionError, match=f"(?s){liar.__doc__}"):
        check_wrapper(WRAPPERS[liar][0], ArmsEnv)


@pytest.mark.parametrize("twin", dict.fromkeys(twin for _, twin in WRAPPERS.values()))
def test_honest_twins_pass(twin):
    check_wrapper(twin, ArmsEnv)


@pytest.mark.parametrize("liar", DATA_LAYERS)
def test_data_layers_that_release_more_than_they_declare_are_caught(liar):
    wrap = partial(liar, releases=20) if issubclass(liar, Quota) else liar
    with pytest.raises(AssertionError, match=f"sensitivity is too small.*{liar.__doc__}"):
        ledger.check_data_layers(Trial(lambda: wrap(ArmsEnv())))


@pytest.mark.parametrize("liar", PROBLEMS)
def test_problems_with_rare_outcomes_and_late_releases_are_caught(liar):
    with pytest.raises(AssertionError, match=f"sensitivity is too small.*{liar.__doc__}"):
        problem.check_worse_neighbours(Trial(liar))


def private():
    return Privatizer(ArmsEnv(), Laplace(20.0, releases=20), clip=3.0)


@pytest.mark.parametrize("honest", [Channel, partial(Channel, stage={"name": "aggregator", "honest": 2})])
def test_honest_wrappers_around_a_privatizer_pass(honest):
    check_wrapper(honest, private)


@pytest.mark.parametrize("liar", [SendsWhenItWins, HalvesRegret])
def test_liars_around_a_privatizer_are_caught(liar):
    with pytest.raises(AssertionError, match=f"(?s){liar.__doc__}"):
        check_wrapper(liar, private)
