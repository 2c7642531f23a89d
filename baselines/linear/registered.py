"""Registered baselines for linear contextual bandits: each a policy with its wrappers, a summary and a reference."""

from functools import partial

from fedbandit_envs.baselines.baseline import Baseline, listed
from fedbandit_envs.baselines.linear.fedlinucb import AsyncLinUCB, FedLinUCB
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB, UniformArm
from fedbandit_envs.baselines.linear.per_arm import DisjointLinUCB, HybridLinUCB
from fedbandit_envs.baselines.linear.suplinucb import SupLinUCB
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.linear.env import LinearEnv

_LI = "Li, Chu, Langford, Schapire (WWW 2010)"
_DUBEY = "Dubey, Pentland (NeurIPS 2020)"
_HE = "He, Wang, Min, Gu (NeurIPS 2022)"
_CORRECTED, _WITHOUT_NOISE = f"{_DUBEY}, Algorithm 1 corrected", f"{_DUBEY}, Algorithm 1 without noise"
_TRIMMING = f"{_DUBEY}; aggregator after Blanchard, El Mhamdi, Guerraoui, Stainer (NeurIPS 2017)"
_CONTROL = "control"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_DECENTRALISED = {"topology": "ring", "delay": 1, "time_to_live": 5, "cliques": True}
_AT_ONE = {"epsilon": 1.0, "delta": 0.1}
# One mechanism is fixed for all release plans, since the default would depend on the plan: so the noise of different
# baselines differs only by the rounds in which they release.
_BLT = {**_AT_ONE, "mechanism": "blt"}
_IN_DOUBLING_ROUNDS = {**_BLT, "releases": _FROM_ONE}
_TREE_PRINTED = {**_AT_ONE, "mechanism": "tree", "sigma": "printed"}
_AT_SIX = {"name": "determinant", "growth": 6.0}
_PRINTED = {"shift": "per_agent", "bias": "printed"}
_FLOOR = {"shift": "floor", "bias": "euclidean"}
_TRIMMED = {"name": "trimmed_senders", "share": 0.4}

_baseline = partial(listed, LinearEnv)
_linucb = partial(_baseline, LinUCB)
_fed_ucb = partial(_baseline, FedUCB)
_shared = partial(_fed_ucb, channel={"schedule": _FROM_ONE})
_private = partial(_shared, privatizer=_IN_DOUBLING_ROUNDS)
_fed_linucb = partial(_baseline, FedLinUCB, server={"schedule": "on_request"})

BASELINES: dict[str, Baseline] = {
    "random-arm": _baseline(UniformArm, "pulls an arm uniformly at random", "control"),
    "LinUCB": _linucb(
        "no communication; pulls the arm with the largest upper confidence bound from ridge regression", _LI
    ),
    "LinUCB-0.5": _linucb("LinUCB with its confidence radius multiplied by 0.5", _CONTROL, beta_scale=0.5),
    "LinUCB-alpha-1.5": _linucb(
        "LinUCB with the constant confidence radius 1.5, the best over 500 rounds", _CONTROL, alpha=1.5
    ),
    "LinUCB-disjoint": _baseline(
        DisjointLinUCB, "LinUCB with a regression for each arm", f"{_LI}, Algorithm 1"
    ),
    "LinUCB-hybrid": _baseline(
        HybridLinUCB,
        "LinUCB with a regression for each arm and one that all arms share",
        f"{_LI}, Algorithm 2",
    ),
    "SupLinUCB": _baseline(
        SupLinUCB,
        "no communication; LinUCB with several regressions, each on independent observations",
        "Chu, Li, Reyzin, Schapire (AISTATS 2011)",
    ),
    "LinUCB-private": _fed_ucb(
        "no communication; LinUCB on noisy releases of its own data, one in every round",
        "Shariff, Sheffet (NeurIPS 2018), corrected",
        privatizer=_BLT,
        channel={"topology": {"edges": []}, "schedule": "every_round", "echo": True},
    ),
    "FedUCB-nonprivate": _shared(
        "LinUCB on the data of all agents, sent without noise in rounds 1, 2, 4, 8, ...", _WITHOUT_NOISE
    ),
    "FedUCB-trimmed": _shared(
        "FedUCB-nonprivate without the two fifths of the senders whose messages are furthest from the median",
        _TRIMMING,
        pool=_TRIMMED,
    ),
    "FedUCB-trimmed-mean": _shared(
        "FedUCB-nonprivate with trimmed means: of each number, a quarter of the senders is left out at either end",
        f"{_DUBEY}; aggregator of Yin, Chen, Ramchandran, Bartlett (ICML 2018)",
        pool={"name": "trimmed_mean", "share": 0.25},
    ),
    "FedUCB-nonprivate-trigger": _fed_ucb(
        "FedUCB-nonprivate, sending when the determinant of the Gram matrix has grown enough",
        _WITHOUT_NOISE,
        channel={"schedule": "synchronise"},
    ),
    "FedUCB": _private(
        "LinUCB on own data and noisy data of others, sent in rounds 1, 2, 4, 8, ...; a larger ridge keeps the noisy "
        "Gram matrix positive definite",
        _CORRECTED,
    ),
    "FedUCB-floor": _private(
        "FedUCB that raises small eigenvalues to the ridge instead, with a bound of the noise in the Euclidean norm",
        _CORRECTED,
        **_FLOOR,
    ),
    "FedUCB-min": _private(
        "FedUCB-floor with the smaller of two upper confidence bounds, from own data and from all data",
        _CORRECTED,
        combine="min",
        **_FLOOR,
    ),
    "FedUCB-min-trimmed": _private(
        "FedUCB-min without the two fifths of the senders whose messages are furthest from the median",
        _TRIMMING,
        combine="min",
        pool=_TRIMMED,
        **_FLOOR,
    ),
    "FedUCB-printed": _fed_ucb(
        "FedUCB with noise, ridge and confidence radius as printed",
        f"{_DUBEY}, Algorithm 1 as printed but for its trigger",
        privatizer={**_TREE_PRINTED, "releases": _FROM_ONE},
        channel={"schedule": _FROM_ONE, "echo": True},
        **_PRINTED,
    ),
    "FedUCB-printed-trigger": _fed_ucb(
        "FedUCB-printed, sending when a determinant has grown enough, which is computed from data without noise",
        f"{_DUBEY}, Algorithm 1 as printed",
        privatizer=_TREE_PRINTED,
        channel={"schedule": "synchronise", "echo": True},
        **_PRINTED,
    ),
    "FedUCB-weighted": _private(
        "LinUCB-tuned that also uses noisy data of others, weighted by their precision",
        "this project",
        # Rewards have the distribution Beta(mu, 1 - mu), whose variance mu (1 - mu) / 2 is at most 0.125; 0.12 is about
        # its average over the arms that are pulled.
        pool={"name": "precision", "reward_variance": 0.12},
        **constants("LinUCB-tuned"),
    ),
    "OFUL-shared": _fed_ucb(
        "LinUCB on the data of all agents, which a server passes on in every round without noise",
        "comparison of He et al. (NeurIPS 2022)",
        server={"schedule": "on_request", "answers": "every_round"},
        threshold=0.0,
        alpha=0.5,
    ),
    "FedLinUCB": _fed_linucb(
        "LinUCB on data downloaded from a server; an agent uploads its own and downloads when its determinant doubles",
        _HE,
        alpha=1.0,
        beta=0.5,
    ),
    "FedLinUCB-theory": _fed_linucb("FedLinUCB with the constants of its regret bound", _HE),
    "Async-LinUCB": _baseline(
        AsyncLinUCB,
        "LinUCB on own data and a server's; they are exchanged when a determinant has grown by the factor 6",
        "Li, Wang (AISTATS 2022)",
        server={"schedule": "on_request", "answers": _AT_SIX, "echo": False},
        growth=6.0,
        beta=0.5,
    ),
    "FedUCB-decentralised": _fed_ucb(
        "LinUCB on data that agents pass on along a ring, one edge a round and at most five; five regressions in turn",
        f"{_DUBEY}, Algorithm 3 without noise",
        interleaved={"period": 5},
        channel={**_DECENTRALISED, "schedule": "every_round"},
    ),
    "FedUCB-decentralised-private": _fed_ucb(
        "FedUCB-decentralised with noisy data, sent in rounds 1, 2, 4, 8, ...; small eigenvalues are raised",
        f"{_DUBEY}, Algorithm 3 corrected",
        interleaved={"period": 5},
        privatizer=_IN_DOUBLING_ROUNDS,
        channel={**_DECENTRALISED, "schedule": _FROM_ONE},
        **_FLOOR,
    ),
}

PLACEBOS = {"FedUCB-min": "FedUCB-placebo", "FedUCB-weighted": "FedUCB-weighted-placebo"}
ON_TRUE_DATA = {"FedUCB-weighted": "FedUCB-weighted-true"}
COMPARISON = {"silent": "LinUCB", "paper": "FedUCB-min", "ours": "FedUCB-weighted"}
