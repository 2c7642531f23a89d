"""Baselines of Bernoulli arms."""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.arms.classics import (
    CUCB,
    UCB1,
    EpsilonDecreasingPolicy,
    EpsilonGreedyPolicy,
    PursuitPolicy,
    SoftmaxPolicy,
    ThompsonSampling,
    UniformArms,
)
from fedbandit_envs.baselines.arms.fair import FairLearn
from fedbandit_envs.baselines.baseline import Baseline, Wrapping
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server

_AUER = "Auer, Cesa-Bianchi, Fischer (Machine Learning 2002)"
_SUTTON = "Sutton, Barto (2018), chapter 2"
_THOMPSON = "Thompson (Biometrika 1933)"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_DOUBLING = Wrapping(Channel, {"schedule": _FROM_ONE})
_EVERY_ROUND = Wrapping(Server, {"schedule": "every_round", "answers": "every_round", "echo": False})
_NOISE = Wrapping(ContinualPrivatizer, {"epsilon": 1.0, "delta": 1e-5, "releases": _FROM_ONE})
_SHARED = {"channel": _DOUBLING}
_PRIVATE = {"privatizer": _NOISE, "channel": _DOUBLING}
_PLACEBO = {"placebo": Wrapping(Placebo), **_PRIVATE}
_WEIGHTED = {"pool": "precision", **constants("UCB1-tuned")}


def _baseline(
    summary: str, reference: str, policy: Callable[..., Policy], /, *, wrappers: Mapping[str, Wrapping] = {},
    **policy_kwargs: Any,
) -> Baseline:  # fmt: skip
    return Baseline(summary, reference, ArmsEnv, policy, policy_kwargs, wrappers)


BASELINES: dict[str, Baseline] = {
    "uniform-arms": _baseline("arms at random", "placebo", UniformArms),
    "epsilon-greedy": _baseline(
        "silent: the largest mean, one time in ten an arm at random", _SUTTON, EpsilonGreedyPolicy
    ),
    "epsilon-decreasing": _baseline(
        "silent: the same, at random with probability 1/log2(t)", _SUTTON, EpsilonDecreasingPolicy
    ),
    "UCB1": _baseline("silent: optimism on own data", _AUER, UCB1),
    "UCB1-horizon": _baseline(
        "silent: optimism with the horizon's logarithm",
        f"{_AUER}; thesis, Algorithm 2.1",
        UCB1,
        logarithm="horizon",
    ),
    "UCB1-0.5": _baseline("silent, radius halved", "tuned control", UCB1, scale=0.5),
    "UCB1-0.2": _baseline(
        "silent, a fifth of the radius: among the best over 500 rounds", "tuned control", UCB1, scale=0.08
    ),
    "Thompson": _baseline("silent: draws from posteriors of own data", _THOMPSON, ThompsonSampling),
    "Softmax": _baseline("silent: in proportion to exp(mean / 0.1)", _SUTTON, SoftmaxPolicy),
    "Pursuit": _baseline("silent: probabilities that pursue the largest mean", _SUTTON, PursuitPolicy),
    "CUCB": _baseline("silent: optimism, then an oracle for superarms", "Chen, Wang, Yuan (ICML 2013)", CUCB),
    "FAIR-LEARN-UCB1": _baseline(
        "silent: UCB1, once every arm has a share of 0.05 of the pulls",
        "Patil, Ghalme, Nair, Narahari (JMLR 2021)",
        FairLearn,
        learner="UCB1",
    ),
    "Fed-UCB1": _baseline("true data in doubling rounds", f"{_AUER}, federated", UCB1, wrappers=_SHARED),
    "Fed-UCB1-server": _baseline(
        "true data of every round, through a server",
        f"{_AUER}, federated",
        UCB1,
        wrappers={"server": _EVERY_ROUND},
    ),
    "Priv-UCB1": _baseline(
        "noisy data in doubling rounds, square-root factorisation",
        f"{_AUER}, federated",
        UCB1,
        wrappers=_PRIVATE,
    ),
    "Priv-UCB1-placebo": _baseline(
        "Priv-UCB1 on messages that are noise alone", "placebo", UCB1, wrappers=_PLACEBO
    ),
    "UCB1-weighted": _baseline(
        "Priv-UCB1's messages weighed by the noise known to be in them; constants of UCB1-tuned",
        "this package",
        UCB1,
        wrappers=_PRIVATE,
        **_WEIGHTED,
    ),
    "UCB1-weighted-placebo": _baseline(
        "the same on messages that are noise alone", "placebo", UCB1, wrappers=_PLACEBO, **_WEIGHTED
    ),
    "UCB1-weighted-true": _baseline(
        "the same on true data", "tuned control", UCB1, wrappers=_SHARED, **_WEIGHTED
    ),
    "Fed-Thompson": _baseline(
        "true data in doubling rounds", f"{_THOMPSON}, federated", ThompsonSampling, wrappers=_SHARED
    ),
    "Fed-Thompson-server": _baseline(
        "true data of every round, through a server",
        f"{_THOMPSON}, federated",
        ThompsonSampling,
        wrappers={"server": _EVERY_ROUND},
    ),
    "Priv-Thompson": _baseline(
        "noisy data in doubling rounds, square-root factorisation",
        f"{_THOMPSON}, federated",
        ThompsonSampling,
        wrappers=_PRIVATE,
    ),
    "Priv-Thompson-placebo": _baseline(
        "Priv-Thompson on messages that are noise alone", "placebo", ThompsonSampling, wrappers=_PLACEBO
    ),
}
