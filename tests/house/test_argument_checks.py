"""Wrong arguments that were taken once without a word, or refused by another name."""

from functools import partial

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.linear import AsyncLinUCB, FedLinUCB
from fedbandit_envs.baselines.procurement import PFCB
from fedbandit_envs.experiments.spec import RunSpec, SettingsError
from fedbandit_envs.views.gymnasium_env import FederationEnv
from fedbandit_envs.wrappers import GaussianPrivatizer, Server
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace
from fedbandit_envs.wrappers.privacy.privatizer import Budget

FEDERATION = FederationEnv("fedbandit_envs.arms.env:ArmsEnv", joint=True)
NUMBER = "a finite number > 0"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (partial(PFCB, check="no"), TypeError, "check is 'no'; True or False"),
        (partial(PFCB, guards="off"), TypeError, "guards is 'off'; True or False"),
        (partial(FedLinUCB, beta=-1), ValueError, "beta is -1; a finite number >= 0"),
        (partial(AsyncLinUCB, beta=-1), ValueError, "beta is -1; a finite number >= 0"),
        (partial(GaussianPrivatizer, ArmsEnv(), epsilon=True), TypeError, f"epsilon is True; {NUMBER}"),
        (partial(GaussianPrivatizer, ArmsEnv(), epsilon="1"), TypeError, f"epsilon is '1'; {NUMBER}"),
        (partial(GaussianPrivatizer, ArmsEnv(), epsilon=-1), ValueError, f"epsilon is -1; {NUMBER}"),
        (partial(Laplace, True, 3), TypeError, "epsilon is True"),
        (partial(Budget, epsilon=True, delta=0.1), TypeError, "epsilon is True"),
        (partial(Budget, epsilon="1", delta=0.1), TypeError, "epsilon is '1'"),
        (partial(Budget, epsilon=1.0, delta="0.1"), TypeError, "budget delta is '0.1'"),
        (partial(Budget, epsilon=1.0, delta=1), ValueError, r"budget delta is 1; a number in \[0, 1\)"),
        (partial(Server, ArmsEnv(), "every_round", answers="announced"), ValueError, "a schedule fixed in advance"),
        (partial(RunSpec, "UCB1", "FedArms-v0", 5, 1, delta=2), SettingsError, r"delta is 2; a number in \[0, 1\)"),
        (partial(FEDERATION.step, 0), ResetNeeded, "before reset"),
        (partial(ArmsEnv().reset_batch, [0.5]), ValueError, r"seeds is \[0.5\]; integers >= 0"),
        (partial(ArmsEnv().reset_batch, ["7"]), ValueError, r"seeds is \['7'\]; integers >= 0"),
        (partial(ArmsEnv(num_agents=3).set_active, np.ones((1, 5))), ValueError, r"active has shape \(1, 5\)"),
    ],
)  # fmt: skip
def test_it_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_half_a_sender_is_refused_and_releases_nothing():
    env = ArmsEnv(num_agents=3)
    env.reset_batch([0])
    env.step_batch(np.zeros((1, 3), np.int64))
    with pytest.raises(
        ValueError, match=r"senders is array\(\[\[0.5, 0. , 1. \]\]\); bool of shape .* is required"
    ):
        env.release(np.array([[0.5, 0.0, 1.0]]))
    released = env.release(np.array([[0, 0, 1]]))
    assert released["pulls"].sum(axis=-1).tolist() == [[0, 0, 1]]
