"""Baselines of Bernoulli arms."""

from functools import partial

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
from fedbandit_envs.baselines.baseline import Baseline, listed
from fedbandit_envs.baselines.tuned import constants

_AUER = "Auer, Cesa-Bianchi, Fischer (Machine Learning 2002)"
_SUTTON = "Sutton, Barto (2018), chapter 2"
_THOMPSON = "Thompson (Biometrika 1933)"
_UCB1_SHARED, _THOMPSON_SHARED = f"{_AUER}, federated", f"{_THOMPSON}, federated"
_TUNED = "tuned control"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_DOUBLING = {"channel": {"schedule": _FROM_ONE}}
_SERVER = {"server": {"schedule": "every_round", "answers": "every_round", "echo": False}}
_PRIVATE = {"privatizer": {"epsilon": 1.0, "delta": 1e-5, "releases": _FROM_ONE}, **_DOUBLING}

_baseline = partial(listed, ArmsEnv)
_ucb1, _thompson = partial(_baseline, UCB1), partial(_baseline, ThompsonSampling)

BASELINES: dict[str, Baseline] = {
    "uniform-arms": _baseline(UniformArms, "arms at random", "placebo"),
    "epsilon-greedy": _baseline(
        EpsilonGreedyPolicy, "silent: the largest mean, one time in ten an arm at random", _SUTTON
    ),
    "epsilon-decreasing": _baseline(
        EpsilonDecreasingPolicy,
        "silent: the largest mean, an arm at random with probability 1/log2(t)",
        _SUTTON,
    ),
    "UCB1": _ucb1("silent: optimism on own data", _AUER),
    "UCB1-horizon": _ucb1(
        "silent: optimism with the horizon's logarithm",
        f"{_AUER}; thesis, Algorithm 2.1",
        logarithm="horizon",
    ),
    "UCB1-0.5": _ucb1("silent, radius halved", _TUNED, scale=0.5),
    "UCB1-0.2": _ucb1("silent, a fifth of the radius: among the best over 500 rounds", _TUNED, scale=0.08),
    "Thompson": _thompson("silent: draws from posteriors of own data", _THOMPSON),
    "Softmax": _baseline(SoftmaxPolicy, "silent: in proportion to exp(mean / 0.1)", _SUTTON),
    "Pursuit": _baseline(PursuitPolicy, "silent: probabilities that pursue the largest mean", _SUTTON),
    "CUCB": _baseline(CUCB, "silent: optimism, then an oracle for superarms", "Chen, Wang, Yuan (ICML 2013)"),
    "FAIR-LEARN-UCB1": _baseline(
        FairLearn,
        "silent: UCB1, once every arm has a share of 0.05 of the pulls",
        "Patil, Ghalme, Nair, Narahari (JMLR 2021)",
        learner="UCB1",
    ),
    "Fed-UCB1": _ucb1("true data in doubling rounds", _UCB1_SHARED, **_DOUBLING),
    "Fed-UCB1-server": _ucb1("true data of every round, through a server", _UCB1_SHARED, **_SERVER),
    "Priv-UCB1": _ucb1("noisy data in doubling rounds, square-root factorisation", _UCB1_SHARED, **_PRIVATE),
    "UCB1-weighted": _ucb1(
        "Priv-UCB1's messages weighed by the noise known to be in them; constants of UCB1-tuned",
        "this package",
        **_PRIVATE,
        pool="precision",
        **constants("UCB1-tuned"),
    ),
    "Fed-Thompson": _thompson("true data in doubling rounds", _THOMPSON_SHARED, **_DOUBLING),
    "Fed-Thompson-server": _thompson(
        "true data of every round, through a server", _THOMPSON_SHARED, **_SERVER
    ),
    "Priv-Thompson": _thompson(
        "noisy data in doubling rounds, square-root factorisation", _THOMPSON_SHARED, **_PRIVATE
    ),
}

PLACEBOS = {
    "Priv-UCB1": "Priv-UCB1-placebo",
    "UCB1-weighted": "UCB1-weighted-placebo",
    "Priv-Thompson": "Priv-Thompson-placebo",
}
ON_TRUE_DATA = {"UCB1-weighted": "UCB1-weighted-true"}
COMPARISON = {"silent": "UCB1", "paper": "Priv-UCB1", "ours": "UCB1-weighted"}
