"""Baselines of exposure fairness."""

from collections.abc import Callable, Mapping
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, Wrapping
from fedbandit_envs.baselines.exposure.fairx import FairX
from fedbandit_envs.baselines.exposure.protocol import planned, scheduled
from fedbandit_envs.baselines.exposure.simple import BestArm, Clairvoyant, EqualShares
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel

_WANG = "Wang, Bai, Sun, Joachims (ICML 2021)"
_SOLANKI = "Solanki (thesis, 2024), Algorithm 6.1"

_AT_TWO = {"epsilon": 2.0, "delta": 0.1}
_PRIVATIZER = Wrapping(ContinualPrivatizer, _AT_TWO, planned)
# Echoed: an agent learns from the noisy release of its own data as well, and keeps what it has not released exact.
_CHANNEL = Wrapping(Channel, {"echo": True}, scheduled)
_TRUE = {"channel": Wrapping(Channel, {}, scheduled)}
_LIFT = {"shift": "lift", "bias": "none"}
_PFCB_ROUNDS = {"name": "doubling"}
_FROM_64 = {"name": "doubling", "start": 64, "stop": None}
_FEW = {
    "privatizer": Wrapping(ContinualPrivatizer, {**_AT_TWO, "releases": _FROM_64}),
    "channel": Wrapping(Channel, {"schedule": _FROM_64}),
}
# Said, though they are defaults: they change fairness regret more than the federation does, so results must have them.
_SOLVED = {"solver": "frank_wolfe", "steps": 3, "beta_scale": 1.0}
_PLACEBO = {"placebo": Wrapping(Placebo)}
_WEIGHTED = {"pool": {"name": "precision", "reward_variance": 0.01}, **constants("FairX-tuned")}


def _baseline(
    summary: str, reference: str, policy: Callable[..., Policy], /, *, wrappers: Mapping[str, Wrapping] = {},
    **policy_kwargs: Any,
) -> Baseline:  # fmt: skip
    said = _SOLVED if policy is FairX else {}
    return Baseline(summary, reference, ExposureEnv, policy, {**said, **policy_kwargs}, wrappers)


BASELINES: dict[str, Baseline] = {
    "equal-shares": _baseline("all arms alike", "placebo", EqualShares),
    "deserved-shares": _baseline(
        "what arms deserve by the true parameter",
        "upper bound",
        Clairvoyant,
        wrappers={"reveal": Wrapping(Reveal)},
    ),
    "best-arm": _baseline("silent: LinUCB's arm gets it all", "unfair control", BestArm, noise_sd=0.1),
    "FairX-LinUCB": _baseline(
        "silent: fair shares for an optimistic parameter (B0)", f"{_WANG}; {_SOLANKI}", FairX
    ),
    "FairX-LinUCB-projected": _baseline(
        "silent: the same by projected gradient steps",
        f"{_WANG}; the thesis' solver",
        FairX,
        solver="projected_gradient",
        steps=10,
    ),
    "FairX-LinUCB-0.1": _baseline("silent, radius times 0.1", "tuned control", FairX, beta_scale=0.1),
    "FairX-LinUCB-greedy": _baseline(
        "silent: fair shares for the estimate itself, radius 0", "tuned control", FairX, beta_scale=0.0
    ),
    "Fed-FairX-LinUCB": _baseline(
        "true data, after gaps that double and then stay",
        f"{_SOLANKI} without noise",
        FairX,
        wrappers=_TRUE,
    ),
    "Fed-FairX-LinUCB-listing": _baseline(
        "the same with the ridge counted once for each agent",
        f"{_SOLANKI} without noise, as printed",
        FairX,
        wrappers=_TRUE,
        ridge_each=True,
    ),
    "Fed-FairX-LinUCB-greedy": _baseline(
        "true data in the same rounds, radius 0",
        "tuned control",
        FairX,
        wrappers=_TRUE,
        beta_scale=0.0,
    ),
    "Priv-FairX-LinUCB": _baseline(
        "noisy data in the same rounds, eigenvalues lifted, radius as if there were no noise",
        f"{_SOLANKI} mended, not rigorous",
        FairX,
        wrappers={"privatizer": _PRIVATIZER, "channel": _CHANNEL},
        **_LIFT,
    ),
    "Priv-FairX-LinUCB-on-sum": _baseline(
        "the same noise, shift on the sum, radius with its term for the noise",
        f"{_SOLANKI} mended, rigorous",
        FairX,
        wrappers={"privatizer": _PRIVATIZER, "channel": _CHANNEL},
    ),
    "Priv-FairX-LinUCB-printed": _baseline(
        "printed noise, shifts and radius",
        f"{_SOLANKI} with Lemma 6.4, rigorous",
        FairX,
        wrappers={
            "privatizer": Wrapping(
                ContinualPrivatizer, {**_AT_TWO, "mechanism": "tree", "sigma": "printed"}, planned
            ),
            "channel": _CHANNEL,
        },
        shift="per_agent",
        bias="printed",
    ),
    "Priv-FairX-placebo": _baseline(
        "Priv-FairX-LinUCB on messages that are noise alone",
        "placebo",
        FairX,
        wrappers={**_PLACEBO, "privatizer": _PRIVATIZER, "channel": _CHANNEL},
        **_LIFT,
    ),
    "B1": _baseline(
        "Priv-FairX-LinUCB's policy, sharing when FedUCB's determinant trigger asks, which reads unnoised data",
        "protocol of Dubey, Pentland (NeurIPS 2020)",
        FairX,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, _AT_TWO),
            "channel": Wrapping(Channel, {"schedule": "synchronise", "echo": True}),
        },
        **_LIFT,
    ),
    "B2": _baseline(
        "Priv-FairX-LinUCB's policy, sharing in P-FCB's doubling rounds",
        "protocol of Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)",
        FairX,
        wrappers={
            "privatizer": Wrapping(ContinualPrivatizer, {**_AT_TWO, "releases": _PFCB_ROUNDS}),
            "channel": Wrapping(Channel, {"schedule": _PFCB_ROUNDS, "echo": True}),
        },
        **_LIFT,
    ),
    "Priv-FairX-weighted": _baseline(
        "own data exact, noisy data in doubling rounds weighed by the noise known to be in it, radius 0",
        "this package",
        FairX,
        wrappers=_FEW,
        **_WEIGHTED,
    ),
    "Priv-FairX-weighted-placebo": _baseline(
        "the same on messages that are noise alone",
        "placebo",
        FairX,
        wrappers={**_PLACEBO, **_FEW},
        **_WEIGHTED,
    ),
    "Priv-FairX-weighted-true": _baseline(
        "the same on true data",
        "tuned control",
        FairX,
        wrappers={"channel": Wrapping(Channel, {"schedule": _FROM_64})},
        **_WEIGHTED,
    ),
}
