"""Registered baselines for Bernoulli arms: each a policy with its wrappers, a summary and a reference."""

from functools import partial

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines.arms.policies import (
    CUCB,
    UCB1,
    EpsilonDecreasingPolicy,
    EpsilonGreedyPolicy,
    FairLearn,
    PursuitPolicy,
    SoftmaxPolicy,
    ThompsonSampling,
    UniformArms,
)
from fedbandit_envs.baselines.baseline import Baseline, listed
from fedbandit_envs.baselines.learned.network import PPO, LearnedIndex
from fedbandit_envs.baselines.tuned import constants

_AUER = "Auer, Cesa-Bianchi, Fischer (Machine Learning 2002)"
_SUTTON = "Sutton, Barto (2018), chapter 2"
_THOMPSON = "Thompson (Biometrika 1933)"
_UCB1_SHARED, _THOMPSON_SHARED = f"{_AUER}, federated", f"{_THOMPSON}, federated"
_CONTROL = "control"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_DOUBLING = {"channel": {"schedule": _FROM_ONE}}
_SERVER = {"server": {"schedule": "every_round", "answers": "every_round", "echo": False}}
_PRIVATE = {"privatizer": {"epsilon": 1.0, "delta": 1e-5, "releases": _FROM_ONE}, **_DOUBLING}

_baseline = partial(listed, ArmsEnv)
_ucb1, _thompson = partial(_baseline, UCB1), partial(_baseline, ThompsonSampling)

BASELINES: dict[str, Baseline] = {
    "uniform-arms": _baseline(UniformArms, "pulls an arm uniformly at random", "control"),
    "epsilon-greedy": _baseline(
        EpsilonGreedyPolicy,
        "no communication; pulls a random arm with probability 0.1, else the arm with the largest mean",
        _SUTTON,
    ),
    "epsilon-decreasing": _baseline(
        EpsilonDecreasingPolicy,
        "no communication; in round t a random arm with probability 1/log2(t), else the arm with the largest mean",
        _SUTTON,
    ),
    "UCB1": _ucb1("no communication; pulls the arm with the largest upper confidence bound", _AUER),
    "Thompson": _thompson(
        "no communication; pulls the arm with the largest draw from its Beta posterior", _THOMPSON
    ),
    "Softmax": _baseline(
        SoftmaxPolicy,
        "no communication; pulls an arm with probability proportional to exp(mean / 0.1)",
        _SUTTON,
    ),
    "Pursuit": _baseline(
        PursuitPolicy,
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
    "Fed-UCB1": _ucb1(
        "UCB1 on the counts of all agents, sent without noise in rounds 1, 2, 4, 8, ...",
        _UCB1_SHARED,
        **_DOUBLING,
    ),
    "Fed-UCB1-server": _ucb1(
        "UCB1 on the counts of all agents, which a server passes on in every round without noise",
        _UCB1_SHARED,
        **_SERVER,
    ),
    "Priv-UCB1": _ucb1(
        "Fed-UCB1 on noisy counts (matrix mechanism with the square-root factorisation)",
        _UCB1_SHARED,
        **_PRIVATE,
    ),
    "UCB1-weighted": _ucb1(
        "UCB1-tuned that also uses noisy counts of others, weighted by their precision",
        "this project",
        **_PRIVATE,
        pool="precision",
        **constants("UCB1-tuned"),
    ),
    "Fed-Thompson": _thompson(
        "Thompson sampling on the counts of all agents, sent without noise in rounds 1, 2, 4, 8, ...",
        _THOMPSON_SHARED,
        **_DOUBLING,
    ),
    "Fed-Thompson-server": _thompson(
        "Thompson sampling on the counts of all agents, which a server passes on in every round",
        _THOMPSON_SHARED,
        **_SERVER,
    ),
    "Priv-Thompson": _thompson(
        "Fed-Thompson on noisy counts (matrix mechanism with the square-root factorisation)",
        _THOMPSON_SHARED,
        **_PRIVATE,
    ),
    "PPO-arms": _baseline(LearnedIndex, *PPO, weights="PPO-arms"),
}

PLACEBOS = {
    "Priv-UCB1": "Priv-UCB1-placebo",
    "UCB1-weighted": "UCB1-weighted-placebo",
    "Priv-Thompson": "Priv-Thompson-placebo",
}
ON_TRUE_DATA = {"UCB1-weighted": "UCB1-weighted-true"}
COMPARISON = {"silent": "UCB1", "paper": "Priv-UCB1", "ours": "UCB1-weighted"}
