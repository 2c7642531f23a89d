"""Registered baselines for Bernoulli arms: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from typing import Any

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.arms import (
    CUCB,
    UCB1,
    EpsilonDecreasing,
    EpsilonGreedy,
    FairLearn,
    Pursuit,
    Softmax,
    ThompsonSampling,
    UniformArms,
)
from fedbandit_envs.baselines.baseline import Baseline, listed
from fedbandit_envs.baselines.learned import PPO, LearnedIndex
from fedbandit_envs.baselines.tuned import constants

_AUER = "Auer, Cesa-Bianchi, Fischer (Machine Learning 2002)"
_SUTTON = "Sutton, Barto (2018), chapter 2"
_THOMPSON = "Thompson (Biometrika 1933)"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_DOUBLING = {"channel": {"schedule": _FROM_ONE}}
_SERVER = {"schedule": "every_round", "answers": "every_round", "echo": False}
_PRIVATE: dict[str, Any] = {"privatizer": {"epsilon": 1.0, "delta": 1e-5, "releases": _FROM_ONE}, **_DOUBLING}

_baseline = partial(listed, ArmsEnv)

BASELINES: dict[str, Baseline] = {
    "uniform-arms": _baseline(UniformArms, "pulls an arm uniformly at random"),
    "epsilon-greedy": _baseline(
        EpsilonGreedy,
        "no communication; pulls a random arm with probability 0.1, else the arm with the largest mean",
        _SUTTON,
    ),
    "epsilon-decreasing": _baseline(
        EpsilonDecreasing,
        "no communication; in round t a random arm with probability 1/log2(t), else the arm with the largest mean",
        _SUTTON,
    ),
    "UCB1": _baseline(UCB1, "no communication; pulls the arm with the largest upper confidence bound", _AUER),
    "Thompson": _baseline(
        ThompsonSampling,
        "no communication; pulls the arm with the largest draw from its Beta posterior",
        _THOMPSON,
    ),
    "Softmax": _baseline(
        Softmax,
        "no communication; pulls an arm with probability proportional to exp(mean / 0.1)",
        _SUTTON,
    ),
    "Pursuit": _baseline(
        Pursuit,
        "no communication; pulls arms by probabilities that move towards 1 for the arm with the largest mean",
        _SUTTON,
    ),
    "CUCB": _baseline(
        CUCB,
        "no communication; pulls the set of arms that is best for upper confidence bounds of their means",
        "Chen, Wang, Yuan (ICML 2013)",
    ),
    "FAIR-LEARN-UCB1": _baseline(
        FairLearn,
        "no communication; UCB1 with a guaranteed share of 0.05 of the pulls for every arm",
        "Patil, Ghalme, Nair, Narahari (JMLR 2021)",
        learner="UCB1",
    ),
    "UCB1-weighted": _baseline(
        UCB1,
        "UCB1-tuned that also uses noisy counts of others, weighted by their precision",
        "this project",
        **_PRIVATE,
        pool="precision",
        **constants("UCB1-tuned"),
    ),
    "PPO-arms": _baseline(LearnedIndex, *PPO, weights="PPO-arms"),
}

for _name, _policy, _paper in (("UCB1", UCB1, _AUER), ("Thompson", ThompsonSampling, _THOMPSON)):
    for _form, _summary, _wrappers in (
        ("Fed-{}", "{} on the counts of all agents, sent without noise in rounds 1, 2, 4, 8, ...", _DOUBLING),
        ("Fed-{}-server", "{} on the counts of all agents, passed on in every round", {"server": _SERVER}),
        ("Priv-{}", "Fed-{} on noisy counts (matrix mechanism, square-root factorisation)", _PRIVATE),
    ):
        BASELINES[_form.format(_name)] = _baseline(
            _policy, _summary.format(_name), f"{_paper}, federated", **_wrappers
        )

PLACEBOS = {of: f"{of}-placebo" for of in ("Priv-UCB1", "UCB1-weighted", "Priv-Thompson")}
ON_TRUE_DATA = {"UCB1-weighted": "UCB1-weighted-true"}
COMPARISON = {"silent": "UCB1", "paper": "Priv-UCB1", "ours": "UCB1-weighted"}
