"""Wrappers and mechanisms that lie are caught, each by a message that names the lie; honest twins of them pass.

The docstring of a liar is a pattern of that message. Each liar passes all checks once the one that catches it is
disabled: so that no check is there in vain. Seeds are fixed. With others, an honest twin would be accused with
probability 1e-6 at most (fedbandit_envs/testing/noise.py).
"""

from functools import partial

import pytest
from arms_env import ArmsEnv
from lying_mechanisms import MECHANISMS, OwnKind, OwnKindBookedLow, behind
from lying_wrappers import LIARS, WRAPPERS
from pairs import every_fourth

from fedbandit_envs.arms.env import ArmsEnv as RegisteredArms
from fedbandit_envs.testing import check_wrapper, noise
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace


@pytest.mark.parametrize("liar", MECHANISMS)
def test_lying_mechanisms_are_caught(liar):
    """By the check of noise, the last of all; the next test shows that they pass the others."""
    with pytest.raises(AssertionError, match=liar.__doc__):
        noise.check_noise(behind(liar), ArmsEnv)


@pytest.mark.parametrize("liar", every_fourth(MECHANISMS))
def test_lying_mechanisms_pass_without_the_check(liar, monkeypatch):
    MECHANISMS[liar](liar, monkeypatch)
    check_wrapper(behind(liar), ArmsEnv)


def test_the_honest_mechanism_passes():
    check_wrapper(behind(Laplace), ArmsEnv)
    check_wrapper(behind(Laplace, releases=20), ArmsEnv)


small_arms = partial(RegisteredArms, num_agents=3, num_arms=3)


@pytest.mark.ci
def test_other_kinds_are_attacked(monkeypatch):
    check_wrapper(behind(OwnKind), small_arms)
    with pytest.raises(AssertionError, match=OwnKindBookedLow.__doc__):
        check_wrapper(behind(OwnKindBookedLow), small_arms)
    monkeypatch.setattr(noise, "_require_audit", lambda *arguments: None)
    check_wrapper(behind(OwnKindBookedLow), small_arms)


@pytest.mark.parametrize("liar", LIARS)
def test_lying_wrappers_are_caught(liar):
    with pytest.raises(AssertionError, match=f"(?s){liar.__doc__}"):
        check_wrapper(LIARS[liar][0], ArmsEnv)


@pytest.mark.parametrize("twin", dict.fromkeys(twin for _, twin, _ in WRAPPERS.values()))
def test_honest_twins_pass(twin):
    check_wrapper(twin, ArmsEnv)


@pytest.mark.parametrize("liar", every_fourth(liar for liar, case in LIARS.items() if case[2]))
def test_lying_wrappers_pass_without_the_check(liar, monkeypatch):
    """All but those that several checks catch."""
    wrap, _, disable = LIARS[liar]
    disable(liar, monkeypatch)
    check_wrapper(wrap, ArmsEnv)
