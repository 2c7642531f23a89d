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
_TUNED = "tuned control"

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
    "random-arm": _baseline(UniformArm, "an arm at random", "placebo"),
    "LinUCB": _linucb("silent: ridge regression and optimism on own data", _LI),
    "LinUCB-0.5": _linucb("silent, radius times 0.5", _TUNED, beta_scale=0.5),
    "LinUCB-alpha-1.5": _linucb("silent, a constant radius: the best over 500 rounds", _TUNED, alpha=1.5),
    "LinUCB-disjoint": _baseline(DisjointLinUCB, "silent, a parameter for each arm", f"{_LI}, Algorithm 1"),
    "LinUCB-hybrid": _baseline(
        HybridLinUCB, "silent, a parameter for each arm and one for all", f"{_LI}, Algorithm 2"
    ),
    "SupLinUCB": _baseline(
        SupLinUCB, "silent, observations kept apart by level", "Chu, Li, Reyzin, Schapire (AISTATS 2011)"
    ),
    "LinUCB-private": _fed_ucb(
        "silent, on noisy releases of own data alone, every round",
        "Shariff, Sheffet (NeurIPS 2018), corrected",
        privatizer=_BLT,
        channel={"topology": {"edges": []}, "schedule": "every_round", "echo": True},
    ),
    "FedUCB-nonprivate": _shared("true data in doubling rounds", _WITHOUT_NOISE),
    "FedUCB-trimmed": _shared(
        "true data in doubling rounds, without the two in five senders furthest from the median",
        _TRIMMING,
        pool=_TRIMMED,
    ),
    "FedUCB-trimmed-mean": _shared(
        "true data in doubling rounds, each number without a quarter of the senders at either end",
        f"{_DUBEY}; aggregator of Yin, Chen, Ramchandran, Bartlett (ICML 2018)",
        pool={"name": "trimmed_mean", "share": 0.25},
    ),
    "FedUCB-nonprivate-trigger": _fed_ucb(
        "true data once determinants have grown", _WITHOUT_NOISE, channel={"schedule": "synchronise"}
    ),
    "FedUCB": _private(
        "noisy data in doubling rounds: exact sigma, buffered Toeplitz noise, shift on the sum", _CORRECTED
    ),
    "FedUCB-floor": _private(
        "FedUCB with eigenvalues lifted and the error's Euclidean bound", _CORRECTED, **_FLOOR
    ),
    "FedUCB-min": _private(
        "FedUCB-floor, never more optimistic than own data alone", _CORRECTED, combine="min", **_FLOOR
    ),
    "FedUCB-min-trimmed": _private(
        "FedUCB-min, without the two in five senders furthest from the median",
        _TRIMMING,
        combine="min",
        pool=_TRIMMED,
        **_FLOOR,
    ),
    "FedUCB-printed": _fed_ucb(
        "printed noise, shifts and radius, in doubling rounds",
        f"{_DUBEY}, Algorithm 1 as printed but for its trigger",
        privatizer={**_TREE_PRINTED, "releases": _FROM_ONE},
        channel={"schedule": _FROM_ONE, "echo": True},
        **_PRINTED,
    ),
    "FedUCB-printed-trigger": _fed_ucb(
        "printed noise, shifts, radius and trigger, which reads unnoised data",
        f"{_DUBEY}, Algorithm 1 as printed",
        privatizer=_TREE_PRINTED,
        channel={"schedule": "synchronise", "echo": True},
        **_PRINTED,
    ),
    "FedUCB-weighted": _private(
        "FedUCB's messages weighed by the noise known to be in them; constants of LinUCB-tuned",
        "this package",
        # Rewards have the distribution Beta(mu, 1 - mu), whose variance mu (1 - mu) / 2 is at most 0.125; 0.12 is about
        # its average over the arms that are pulled.
        pool={"name": "precision", "reward_variance": 0.12},
        **constants("LinUCB-tuned"),
    ),
    "OFUL-shared": _fed_ucb(
        "true data of every round, through a server, to everybody",
        "lower line of He et al. (NeurIPS 2022)",
        server={"schedule": "on_request", "answers": "every_round"},
        threshold=0.0,
        alpha=0.5,
    ),
    "FedLinUCB": _fed_linucb(
        "true data to a server and back once determinants have grown, on what was downloaded alone",
        _HE,
        alpha=1.0,
        beta=0.5,
    ),
    "FedLinUCB-theory": _fed_linucb("FedLinUCB with the constants of its theory", _HE),
    "Async-LinUCB": _baseline(
        AsyncLinUCB,
        "true data to a server, and from it, once determinants have grown; own data at once",
        "Li, Wang (AISTATS 2022)",
        server={"schedule": "on_request", "answers": _AT_SIX, "echo": False},
        growth=6.0,
        beta=0.5,
    ),
    "FedUCB-decentralised": _fed_ucb(
        "true data over a ring, five hops of a round each, five estimators in turn",
        f"{_DUBEY}, Algorithm 3 without noise",
        interleaved={"period": 5},
        channel={**_DECENTRALISED, "schedule": "every_round"},
    ),
    "FedUCB-decentralised-private": _fed_ucb(
        "FedUCB-decentralised in doubling rounds, through noise, with lifted eigenvalues",
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
