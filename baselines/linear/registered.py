"""Baselines of linear contextual bandits."""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, Wrapping
from fedbandit_envs.baselines.linear.fedlinucb import AsyncLinUCB, FedLinUCB
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB, UniformArm
from fedbandit_envs.baselines.linear.per_arm import DisjointLinUCB, HybridLinUCB
from fedbandit_envs.baselines.linear.suplinucb import SupLinUCB
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server

_LI = "Li, Chu, Langford, Schapire (WWW 2010)"
_DUBEY = "Dubey, Pentland (NeurIPS 2020)"

_BLANCHARD = "Blanchard, El Mhamdi, Guerraoui, Stainer (NeurIPS 2017)"
_YIN = "Yin, Chen, Ramchandran, Bartlett (ICML 2018)"

_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_SYNCHRONISED = {"schedule": _FROM_ONE}
_RING = {"topology": "ring", "delay": 1, "time_to_live": 5, "cliques": True}
_AT_ONE = {"epsilon": 1.0, "delta": 0.1}
# One mechanism whatever is planned, a release a round included: where plans are compared, noise differs by them alone.
_BLT = {**_AT_ONE, "mechanism": "blt"}
_IN_DOUBLING_ROUNDS = Wrapping(ContinualPrivatizer, {**_BLT, "releases": _FROM_ONE})
_TREE_PRINTED = {**_AT_ONE, "mechanism": "tree", "sigma": "printed"}
_AT_SIX = {"name": "determinant", "growth": 6.0}
_PRINTED = {"shift": "per_agent", "bias": "printed"}
_FLOOR = {"shift": "floor", "bias": "euclidean"}
_PLACEBO = {"placebo": Wrapping(Placebo)}
_PRIVATE = {"privatizer": _IN_DOUBLING_ROUNDS, "channel": Wrapping(Channel, _SYNCHRONISED)}
# Of a reward from Beta(mu, 1 - mu), averaged over what is played; the most there can be is 0.125.
_WEIGHTED = {"pool": {"name": "precision", "reward_variance": 0.12}, **constants("LinUCB-tuned")}
_TRIMMED = {"name": "trimmed_senders", "share": 0.4}


def _baseline(
    summary: str, reference: str, policy: Callable[..., Policy], /, *, wrappers: Mapping[str, Wrapping] = {},
    **policy_kwargs: Any,
) -> Baseline:  # fmt: skip
    return Baseline(summary, reference, LinearEnv, policy, policy_kwargs, wrappers)


BASELINES: dict[str, Baseline] = {
    "random-arm": _baseline("an arm at random", "placebo", UniformArm),
    "LinUCB": _baseline("silent: ridge regression and optimism on own data", _LI, LinUCB),
    "LinUCB-0.5": _baseline("silent, radius times 0.5", "tuned control", LinUCB, beta_scale=0.5),
    "LinUCB-alpha-1.5": _baseline(
        "silent, a constant radius: the best over 500 rounds", "tuned control", LinUCB, alpha=1.5
    ),
    "LinUCB-disjoint": _baseline("silent, a parameter for each arm", f"{_LI}, Algorithm 1", DisjointLinUCB),
    "LinUCB-hybrid": _baseline(
        "silent, a parameter for each arm and one for all", f"{_LI}, Algorithm 2", HybridLinUCB
    ),
    "SupLinUCB": _baseline(
        "silent, observations kept apart by level", "Chu, Li, Reyzin, Schapire (AISTATS 2011)", SupLinUCB
    ),
    "LinUCB-private": _baseline(
        "silent, on noisy releases of own data alone, every round",
        "Shariff, Sheffet (NeurIPS 2018), mended",
        FedUCB,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, _BLT),
            "channel": Wrapping(
                Channel, {"topology": {"edges": []}, "schedule": "every_round", "echo": True}
            ),
        },
    ),
    "FedUCB-nonprivate": _baseline(
        "true data in doubling rounds",
        f"{_DUBEY}, Algorithm 1 without noise",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, _SYNCHRONISED)},
    ),
    "FedUCB-trimmed": _baseline(
        "true data in doubling rounds, without the two in five senders furthest from the median",
        f"{_DUBEY}; pool after {_BLANCHARD}",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, _SYNCHRONISED)},
        pool=_TRIMMED,
    ),
    "FedUCB-trimmed-mean": _baseline(
        "true data in doubling rounds, each number without a quarter of the senders at either end",
        f"{_DUBEY}; pool of {_YIN}",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, _SYNCHRONISED)},
        pool={"name": "trimmed_mean", "share": 0.25},
    ),
    "FedUCB-nonprivate-trigger": _baseline(
        "true data once determinants have grown",
        f"{_DUBEY}, Algorithm 1 without noise",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, {"schedule": "synchronise"})},
    ),
    "FedUCB": _baseline(
        "noisy data in doubling rounds: exact sigma, buffered Toeplitz noise, shift on the sum",
        f"{_DUBEY}, Algorithm 1 mended",
        FedUCB,
        wrappers=_PRIVATE,
    ),
    "FedUCB-floor": _baseline(
        "the same noise, eigenvalues lifted, the error's Euclidean bound",
        f"{_DUBEY}, Algorithm 1 mended",
        FedUCB,
        wrappers=_PRIVATE,
        **_FLOOR,
    ),
    "FedUCB-min": _baseline(
        "FedUCB-floor, never more optimistic than own data alone",
        f"{_DUBEY}, Algorithm 1 mended",
        FedUCB,
        wrappers=_PRIVATE,
        combine="min",
        **_FLOOR,
    ),
    "FedUCB-min-trimmed": _baseline(
        "FedUCB-min, without the two in five senders furthest from the median",
        f"{_DUBEY}; pool after {_BLANCHARD}",
        FedUCB,
        wrappers=_PRIVATE,
        combine="min",
        pool=_TRIMMED,
        **_FLOOR,
    ),
    "FedUCB-printed": _baseline(
        "printed noise, shifts and radius, in doubling rounds",
        f"{_DUBEY}, Algorithm 1 as printed but for its trigger",
        FedUCB,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, {**_TREE_PRINTED, "releases": _FROM_ONE}),
            "channel": Wrapping(Channel, {**_SYNCHRONISED, "echo": True}),
        },
        **_PRINTED,
    ),
    "FedUCB-printed-trigger": _baseline(
        "printed noise, shifts, radius and trigger, which reads unnoised data",
        f"{_DUBEY}, Algorithm 1 as printed",
        FedUCB,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, _TREE_PRINTED),
            "channel": Wrapping(Channel, {"schedule": "synchronise", "echo": True}),
        },
        **_PRINTED,
    ),
    "FedUCB-placebo": _baseline(
        "FedUCB-min on messages that are noise alone",
        "placebo",
        FedUCB,
        wrappers={**_PLACEBO, **_PRIVATE},
        combine="min",
        **_FLOOR,
    ),
    "FedUCB-weighted": _baseline(
        "FedUCB's messages weighed by the noise known to be in them; constants of LinUCB-tuned",
        "this package",
        FedUCB,
        wrappers=_PRIVATE,
        **_WEIGHTED,
    ),
    "FedUCB-weighted-placebo": _baseline(
        "the same on messages that are noise alone",
        "placebo",
        FedUCB,
        wrappers={**_PLACEBO, **_PRIVATE},
        **_WEIGHTED,
    ),
    "FedUCB-weighted-true": _baseline(
        "the same on true data",
        "tuned control",
        FedUCB,
        wrappers={"channel": Wrapping(Channel, _SYNCHRONISED)},
        **_WEIGHTED,
    ),
    "OFUL-shared": _baseline(
        "true data of every round, through a server, to everybody",
        "lower line of He et al. (NeurIPS 2022)",
        FedUCB,
        wrappers={"server": Wrapping(Server, {"schedule": "on_request", "answers": "every_round"})},
        threshold=0.0,
        alpha=0.5,
    ),
    "FedLinUCB": _baseline(
        "true data to a server and back once determinants have grown, on what was downloaded alone",
        "He, Wang, Min, Gu (NeurIPS 2022)",
        FedLinUCB,
        wrappers={"server": Wrapping(Server, {"schedule": "on_request"})},
        alpha=1.0,
        beta=0.5,
    ),
    "FedLinUCB-theory": _baseline(
        "the same with the constants of its theory",
        "He, Wang, Min, Gu (NeurIPS 2022)",
        FedLinUCB,
        wrappers={"server": Wrapping(Server, {"schedule": "on_request"})},
    ),
    "Async-LinUCB": _baseline(
        "true data to a server, and from it, once determinants have grown; own data at once",
        "Li, Wang (AISTATS 2022)",
        AsyncLinUCB,
        wrappers={"server": Wrapping(Server, {"schedule": "on_request", "answers": _AT_SIX, "echo": False})},
        growth=6.0,
        beta=0.5,
    ),
    "FedUCB-decentralised": _baseline(
        "true data over a ring, five hops of a round each, five estimators in turn",
        f"{_DUBEY}, Algorithm 3 without noise",
        FedUCB,
        wrappers={
            "interleaved": Wrapping(Interleaved, {"period": 5}),
            "channel": Wrapping(Channel, {**_RING, "schedule": "every_round"}),
        },
    ),
    "FedUCB-decentralised-private": _baseline(
        "the same in doubling rounds, through noise, with lifted eigenvalues",
        f"{_DUBEY}, Algorithm 3 mended",
        FedUCB,
        wrappers={
            "interleaved": Wrapping(Interleaved, {"period": 5}),
            "privatizer": _IN_DOUBLING_ROUNDS,
            "channel": Wrapping(Channel, {**_RING, "schedule": _FROM_ONE}),
        },
        **_FLOOR,
    ),
}
