"""Baselines of procurement."""

from functools import partial

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.baselines.procurement.bayesian import LaplaceIndex, ThompsonProcurement
from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant, OneOfEach, UniformRandom
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers import GaussianPrivatizer

_DEVA = "Deva, Abhishek, Gujar (AAMAS 2021)"
_SOLANKI = "Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)"
_TUNED = "tuned control"

_DOUBLING = {"channel": {"schedule": {"name": "doubling"}}}
_EVERY_ROUND = {"channel": {"schedule": "every_round"}}
_GAUSSIAN = WrapperSpec(GaussianPrivatizer, {"epsilon": 1.0})
_POOLED = {"check": False, "omega2": 1.0}

_baseline = partial(listed, ProcurementEnv)
_ss_ucb = partial(_baseline, SSUCB)
_pfcb = partial(_baseline, PFCB)

BASELINES: dict[str, Baseline] = {
    "uniform-random": _baseline(UniformRandom, "each quantity uniform between 0 and capacity", "placebo"),
    "one-of-each": _baseline(OneOfEach, "one unit of each producer, for ever", "placebo"),
    "clairvoyant": _baseline(Clairvoyant, "the exact oracle on the true qualities", "upper bound", reveal={}),
    "SS-UCB": _ss_ucb("silent: optimism and Greedy SSA on own data", _DEVA, oracle="greedy"),
    "SS-UCB-exact": _ss_ucb(
        "silent: optimism and the integer optimum on own data (DPSS)", _DEVA, oracle="exact"
    ),
    "SS-UCB-0.8": _ss_ucb("silent, radius times 0.8", _TUNED, radius_scale=0.8),
    "SS-UCB-0.5": _ss_ucb("silent, radius times 0.5", _TUNED, radius_scale=0.5),
    "Laplace-index": _baseline(
        LaplaceIndex, "silent: Laplace's estimate + 0.8 / sqrt(units + 1)", _TUNED, width=0.8
    ),
    "Thompson-procurement": _baseline(
        ThompsonProcurement,
        "silent: Greedy SSA on draws from posteriors of own data",
        "Thompson (Biometrika 1933)",
    ),
    "FCB": _pfcb(
        "true data in P-FCB's rounds, weighted by 10, unchecked",
        f"{_SOLANKI}, reading nearest its ratios",
        **_DOUBLING,
        check=False,
    ),
    "FCB-checked": _pfcb(
        "true data in P-FCB's rounds, weighted by 10, checked as P-FCB checks",
        f"{_SOLANKI}, FCB as its text defines it",
        **_DOUBLING,
    ),
    "FCB-median-of-means": _pfcb(
        "true data in P-FCB's rounds, unchecked, the median of five groups' means",
        f"{_SOLANKI} with a robust aggregator",
        **_DOUBLING,
        pool={"name": "median_of_means", "groups": 5},
        **_POOLED,
    ),
    "FCB-every-round": _pfcb(
        "true data every round, pooled",
        f"{_SOLANKI}, Algorithm 1 corrected",
        **_EVERY_ROUND,
        radius="federated",
        **_POOLED,
    ),
    "FCB-printed": _pfcb(
        "true data every round; radius divided by n twice",
        f"{_SOLANKI}, Algorithm 1 as printed",
        **_EVERY_ROUND,
        radius="printed",
        **_POOLED,
    ),
    "P-FCB": _pfcb(
        "noisy data in doubling rounds, checked and guarded",
        f"{_SOLANKI}, Algorithm 2 corrected",
        privatizer=_GAUSSIAN,
        **_DOUBLING,
    ),
    "P-FCB-printed": _pfcb(
        "noisy data, 16 communications, no guards: diverges",
        f"{_SOLANKI}, Algorithm 2 as printed",
        privatizer=_GAUSSIAN,
        channel={"schedule": {"name": "doubling", "mode": "printed"}},
        guards=False,
    ),
    "P-FCB-weighted": _pfcb(
        "P-FCB's messages weighed by the noise known to be in them; constants of SS-UCB-tuned",
        "this package",
        privatizer=_GAUSSIAN,
        **_DOUBLING,
        **_POOLED,
        guards=False,
        pool="precision",
        # The constants of tuned SS-UCB: the two differ by the received messages alone.
        **constants("SS-UCB-tuned"),
    ),
}

PLACEBOS = {"P-FCB": "P-FCB-placebo", "P-FCB-weighted": "P-FCB-weighted-placebo"}
ON_TRUE_DATA = {"P-FCB-weighted": "P-FCB-weighted-true"}
COMPARISON = {"silent": "SS-UCB", "paper": "P-FCB", "ours": "P-FCB-weighted"}
