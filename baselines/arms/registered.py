"""Registered baselines for Bernoulli arms: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from typing import Any

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.baselines import arms
from fedbandit_envs.baselines.baseline import Baseline, listed
from fedbandit_envs.baselines.learned import PPO, LearnedIndex
from fedbandit_envs.baselines.learned.rl2 import RL2, SUMMARY

_AUER = "Auer, Cesa-Bianchi, Fischer (Machine Learning 2002)"
_SUTTON = "Sutton, Barto (2018), chapter 2"
_THOMPSON = "Thompson (Biometrika 1933)"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_DOUBLING: dict[str, Any] = {"channel": {"schedule": _FROM_ONE}}
_SERVER = {"schedule": "every_round", "answers": "every_round", "echo": False}
_PRIVATE: dict[str, Any] = {"privatizer": {"epsilon": 1.0, "delta": 1e-5, "releases": _FROM_ONE}, **_DOUBLING}
# Windows between releases have disjoint data, so that independent noise spends epsilon in one of them only.
_INDEPENDENT = {**_PRIVATE, "privatizer": {**_PRIVATE["privatizer"], "mechanism": "independent"}}
_MOSS: dict[str, Any] = {"scale": 0.25, "logarithm": "horizon_per_pull"}

_baseline = partial(listed, ArmsEnv)

BASELINES: dict[str, Baseline] = {
    "uniform-arms": _baseline(arms.UniformArms, "pulls an arm uniformly at random"),
    "epsilon-greedy": _baseline(
        arms.EpsilonGreedy, "a random arm with probability 0.1, else the one with the largest mean", _SUTTON
    ),
    "epsilon-decreasing": _baseline(
        arms.EpsilonDecreasing,
        "in round t a random arm with probability 1/log2(t), else the arm with the largest mean",
        _SUTTON,
    ),
    "UCB1": _baseline(arms.UCB1, "pulls the arm with the largest upper confidence bound", _AUER),
    "MOSS": _baseline(
        arms.UCB1,
        "pulls the arm with the largest bound of radius sqrt(0.25 ln(T / n) / n) after n pulls, with the horizon T",
        "a variant of Audibert, Bubeck (COLT 2009)",
        **_MOSS,
    ),
    "Thompson": _baseline(
        arms.ThompsonSampling, "pulls the arm with the largest draw from its Beta posterior", _THOMPSON
    ),
    "Softmax": _baseline(
        arms.Softmax, "pulls an arm with probability proportional to exp(mean / 0.1)", _SUTTON
    ),
    "Pursuit": _baseline(
        arms.Pursuit, "probabilities move towards 1 for the arm with the largest mean", _SUTTON
    ),
    "CUCB": _baseline(
        arms.CUCB, "the set of arms that is best for upper confidence bounds", "Chen, Wang, Yuan (ICML 2013)"
    ),
    "FAIR-LEARN-UCB1": _baseline(
        arms.FairLearn,
        "UCB1 with a guaranteed share of 0.05 of the pulls for every arm",
        "Patil, Ghalme, Nair, Narahari (JMLR 2021)",
        learner="UCB1",
    ),
    "MOSS-weighted": _baseline(
        arms.UCB1,
        "MOSS with the radius sqrt(0.1 ln(T / n) / n) on own counts and noisy ones of others, weighted by precision",
        "this project",
        **_INDEPENDENT,
        pool="precision",
        **{**_MOSS, "scale": 0.1},
    ),
    "PPO-arms": _baseline(LearnedIndex, *PPO, weights="PPO-arms"),
    "RL2-arms": _baseline(RL2, *SUMMARY, weights="RL2-arms"),
    "RL2-arms-private": _baseline(RL2, *SUMMARY, **_INDEPENDENT, weights="RL2-arms-private"),
}

for _name, _policy, _paper in (("UCB1", arms.UCB1, _AUER), ("Thompson", arms.ThompsonSampling, _THOMPSON)):
    for _form, _summary, _wrappers in (
        ("Fed-{}", "{} on the counts of all agents, sent without noise in rounds 1, 2, 4, 8, ...", _DOUBLING),
        ("Fed-{}-server", "{} on the counts of all agents, passed on in every round", {"server": _SERVER}),
        ("Priv-{}", "Fed-{} on noisy counts (matrix mechanism, square-root factorisation)", _PRIVATE),
    ):
        BASELINES[_form.format(_name)] = _baseline(
            _policy, _summary.format(_name), f"{_paper}, federated", **_wrappers
        )

PLACEBOS = {of: f"{of}-placebo" for of in ("Priv-UCB1", "Priv-Thompson", "MOSS-weighted")}
ON_TRUE_DATA = {"MOSS-weighted": "MOSS-weighted-true"}
COMPARISON = {"silent": "MOSS", "paper": "Priv-UCB1", "ours": "MOSS-weighted"}
