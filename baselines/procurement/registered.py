"""Registered baselines for procurement: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from typing import Any

from fedbandit_envs.baselines import procurement
from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.baselines.learned import PPO, LearnedIndex
from fedbandit_envs.baselines.learned.rl2 import RL2, SUMMARY
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import GaussianPrivatizer

_DEVA = "Deva, Abhishek, Gujar (AAMAS 2021)"
_SOLANKI = "Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)"

_DOUBLING = {"schedule": {"name": "doubling"}}
_GAUSSIAN = WrapperSpec(GaussianPrivatizer, {"epsilon_per_release": 1.0})
# Windows between releases have disjoint data, so that independent noise spends epsilon in one of them only.
_FROM_16 = {"name": "doubling", "start": 16, "stop": None}
_PRIVATE: dict[str, Any] = {
    "privatizer": {"epsilon": 1.0, "delta": 1e-5, "releases": _FROM_16, "mechanism": "independent"},
    "channel": {"schedule": _FROM_16},
}
_POOLED = {"check": False, "omega2": 1.0}

_baseline = partial(listed, ProcurementEnv)
_pfcb = partial(_baseline, procurement.PFCB)

BASELINES: dict[str, Baseline] = {
    "uniform-random": _baseline(
        procurement.UniformRandom,
        "buys from each producer a uniformly random number of units up to its capacity",
    ),
    "one-of-each": _baseline(procurement.OneOfEach, "buys one unit from each producer in every round"),
    "clairvoyant": _baseline(
        procurement.Clairvoyant, "buys what is optimal for the true qualities", "oracle", reveal={}
    ),
    "SS-UCB": _baseline(
        procurement.SSUCB,
        "buys what the greedy solver finds best for upper confidence bounds of the qualities",
        _DEVA,
        oracle="greedy",
    ),
    "Laplace-index": _baseline(
        procurement.LaplaceIndex,
        "SS-UCB with (good units + 1) / (units + 2) + 0.8 / sqrt(units + 1) in place of its confidence bounds",
        width=0.8,
    ),
    "Thompson-procurement": _baseline(
        procurement.ThompsonProcurement,
        "buys what the greedy solver finds best for draws from Beta posteriors of the qualities",
        "Thompson (Biometrika 1933)",
    ),
    "FCB": _pfcb(
        "SS-UCB on own counts and 10 times those of others, sent without noise in rounds 256, 512, 1,024, ...",
        f"{_SOLANKI}, the reading of the text that comes closest to its results",
        channel=_DOUBLING,
        check=False,
    ),
    "FCB-every-round": _pfcb(
        "SS-UCB on the counts of all agents, sent without noise in every round",
        f"{_SOLANKI}, Algorithm 1 corrected",
        channel={"schedule": "every_round"},
        radius="federated",
        **_POOLED,
    ),
    "FCB-printed": _pfcb(
        "FCB-every-round with the printed confidence bounds, which are too narrow",
        f"{_SOLANKI}, Algorithm 1 as printed",
        channel={"schedule": "every_round"},
        radius="printed",
        **_POOLED,
    ),
    "P-FCB": _pfcb(
        "FCB on noisy counts; an agent ignores impossible ones, and those that differ too much from its own estimate",
        f"{_SOLANKI}, Algorithm 2 corrected",
        privatizer=_GAUSSIAN,
        channel=_DOUBLING,
    ),
    "P-FCB-printed": _pfcb(
        "P-FCB with 16 rounds of communication and with impossible counts, so that its estimates diverge",
        f"{_SOLANKI}, Algorithm 2 as printed",
        privatizer=_GAUSSIAN,
        channel={"schedule": {"name": "doubling", "mode": "printed"}},
        guards=False,
    ),
    "P-FCB-weighted": _baseline(
        procurement.SSUCB,
        "SS-UCB-tuned that also uses noisy counts of others, sent in FCB's rounds and weighted by their precision",
        "this project",
        privatizer=_GAUSSIAN,
        channel=_DOUBLING,
        pool="precision",
        **constants("SS-UCB-tuned"),
    ),
    "Thompson-procurement-weighted": _baseline(
        procurement.ThompsonProcurement,
        "Thompson-procurement on own counts and noisy ones of others, weighted by their precision, with a margin of 3",
        "this project",
        **_PRIVATE,
        pool="precision",
        margin=3.0,
    ),
    "PPO-procurement": _baseline(LearnedIndex, *PPO, weights="PPO-procurement"),
    "RL2-procurement": _baseline(RL2, *SUMMARY, weights="RL2-procurement"),
}

_WEIGHTED = ("P-FCB-weighted", "Thompson-procurement-weighted")
PLACEBOS = {name: f"{name}-placebo" for name in ("P-FCB", *_WEIGHTED)}
ON_TRUE_DATA = {name: f"{name}-true" for name in _WEIGHTED}
COMPARISON = {"silent": "Thompson-procurement", "paper": "P-FCB", "ours": "Thompson-procurement-weighted"}
