"""Baselines of procurement."""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, Wrapping
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.procurement.bayesian import LaplaceIndex, ThompsonProcurement
from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB, Clairvoyant, OneOfEach, UniformRandom
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel

_DEVA = "Deva, Abhishek, Gujar (AAMAS 2021)"
_SOLANKI = "Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)"

_DOUBLING = Wrapping(Channel, {"schedule": {"name": "doubling"}})
_DOUBLING_PRINTED = Wrapping(Channel, {"schedule": {"name": "doubling", "mode": "printed"}})
_EVERY_ROUND = Wrapping(Channel, {"schedule": "every_round"})
_GAUSSIAN = Wrapping(GaussianPrivatizer, {"epsilon": 1.0})
_POOLED = {"check": False, "omega2": 1.0}
_PLACEBO = {"placebo": Wrapping(Placebo)}
_PRIVATE = {"privatizer": _GAUSSIAN, "channel": _DOUBLING}
_WEIGHTED = {
    **_POOLED,
    "guards": False,
    "pool": "precision",
    # Silence's: so it is silence but for what it hears.
    **constants("SS-UCB-tuned"),
}


def _baseline(
    summary: str, reference: str, policy: Callable[..., Policy], /, *, wrappers: Mapping[str, Wrapping] = {},
    **policy_kwargs: Any,
) -> Baseline:  # fmt: skip
    return Baseline(summary, reference, ProcurementEnv, policy, policy_kwargs, wrappers)


BASELINES: dict[str, Baseline] = {
    "uniform-random": _baseline("each quantity uniform between 0 and capacity", "placebo", UniformRandom),
    "one-of-each": _baseline("one unit of each producer, for ever", "placebo", OneOfEach),
    "clairvoyant": _baseline(
        "the exact oracle on the true qualities",
        "upper bound",
        Clairvoyant,
        wrappers={"reveal": Wrapping(Reveal)},
    ),
    "SS-UCB": _baseline("silent: optimism and Greedy SSA on own data", _DEVA, SSUCB, oracle="greedy"),
    "SS-UCB-exact": _baseline(
        "silent: optimism and the integer optimum on own data (DPSS)", _DEVA, SSUCB, oracle="exact"
    ),
    "SS-UCB-0.8": _baseline("silent, radius times 0.8", "tuned control", SSUCB, radius_scale=0.8),
    "SS-UCB-0.5": _baseline("silent, radius times 0.5", "tuned control", SSUCB, radius_scale=0.5),
    "Laplace-index": _baseline(
        "silent: Laplace's estimate + 0.8 / sqrt(units + 1)", "tuned control", LaplaceIndex, width=0.8
    ),
    "Thompson-procurement": _baseline(
        "silent: Greedy SSA on draws from posteriors of own data",
        "Thompson (Biometrika 1933)",
        ThompsonProcurement,
    ),
    "FCB": _baseline(
        "true data in P-FCB's rounds, weighted by 10, unchecked",
        f"{_SOLANKI}, reading nearest its ratios",
        PFCB,
        wrappers={"channel": _DOUBLING},
        check=False,
    ),
    "FCB-checked": _baseline(
        "true data in P-FCB's rounds, weighted by 10, checked as P-FCB checks",
        f"{_SOLANKI}, FCB as its text defines it",
        PFCB,
        wrappers={"channel": _DOUBLING},
    ),
    "FCB-median-of-means": _baseline(
        "true data in P-FCB's rounds, unchecked, the median of five groups' means",
        f"{_SOLANKI} with a pool that withstands liars",
        PFCB,
        wrappers={"channel": _DOUBLING},
        pool={"name": "median_of_means", "groups": 5},
        **_POOLED,
    ),
    "FCB-every-round": _baseline(
        "true data every round, pooled",
        f"{_SOLANKI}, Algorithm 1 mended",
        PFCB,
        wrappers={"channel": _EVERY_ROUND},
        radius="federated",
        **_POOLED,
    ),
    "FCB-printed": _baseline(
        "true data every round; radius divided by n twice",
        f"{_SOLANKI}, Algorithm 1 as printed",
        PFCB,
        wrappers={"channel": _EVERY_ROUND},
        radius="printed",
        **_POOLED,
    ),
    "P-FCB": _baseline(
        "noisy data in doubling rounds, checked and guarded",
        f"{_SOLANKI}, Algorithm 2 mended",
        PFCB,
        wrappers=_PRIVATE,
    ),
    "P-FCB-printed": _baseline(
        "noisy data, 16 communications, no guards: diverges",
        f"{_SOLANKI}, Algorithm 2 as printed",
        PFCB,
        wrappers={"privatizer": _GAUSSIAN, "channel": _DOUBLING_PRINTED},
        guards=False,
    ),
    "P-FCB-placebo": _baseline(
        "P-FCB on messages that are noise alone",
        "placebo",
        PFCB,
        wrappers={**_PLACEBO, **_PRIVATE},
    ),
    "P-FCB-weighted": _baseline(
        "P-FCB's messages weighed by the noise known to be in them; constants of SS-UCB-tuned",
        "this package",
        PFCB,
        wrappers=_PRIVATE,
        **_WEIGHTED,
    ),
    "P-FCB-weighted-placebo": _baseline(
        "the same on messages that are noise alone",
        "placebo",
        PFCB,
        wrappers={**_PLACEBO, **_PRIVATE},
        **_WEIGHTED,
    ),
    "P-FCB-weighted-true": _baseline(
        "the same on true data",
        "tuned control",
        PFCB,
        wrappers={"channel": _DOUBLING},
        **_WEIGHTED,
    ),
}
