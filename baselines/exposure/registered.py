"""Baselines of exposure fairness."""

from functools import partial

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.baselines.exposure.fairx import FairX
from fedbandit_envs.baselines.exposure.protocol import schedule
from fedbandit_envs.baselines.exposure.simple import BestArm, DeservedShares, EqualShares
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel

_WANG = "Wang, Bai, Sun, Joachims (ICML 2021)"
_SOLANKI = "Solanki (thesis, 2024), Algorithm 6.1"
_TUNED = "tuned control"

_AT_TWO = {"epsilon": 2.0, "delta": 0.1}
_planned = partial(WrapperSpec, ContinualPrivatizer, kwargs_from_env=lambda env: {"releases": schedule(env)})
_scheduled = partial(WrapperSpec, Channel, kwargs_from_env=lambda env: {"schedule": schedule(env)})
_TRUE = {"channel": _scheduled({})}
# With an echo, an agent learns from the noisy release of its own data, too; only unreleased data stay exact.
_ECHOED = {"channel": _scheduled({"echo": True})}
_PRIVATE = {"privatizer": _planned(_AT_TWO), **_ECHOED}
_LIFT = {"shift": "lift", "bias": "none"}
_PFCB_ROUNDS = {"name": "doubling"}
_FROM_64 = {"name": "doubling", "start": 64, "stop": None}

_baseline = partial(listed, ExposureEnv)
# Written out though they are defaults: fairness regret depends on them more than on the federation.
_fairx = partial(_baseline, FairX, solver="frank_wolfe", steps=3, beta_scale=1.0)

BASELINES: dict[str, Baseline] = {
    "equal-shares": _baseline(EqualShares, "all arms alike", "placebo"),
    "deserved-shares": _baseline(
        DeservedShares, "what arms deserve by the true parameter", "upper bound", reveal={}
    ),
    "best-arm": _baseline(BestArm, "silent: LinUCB's arm gets it all", "unfair control", noise_sd=0.1),
    "FairX-LinUCB": _fairx("silent: fair shares for an optimistic parameter (B0)", f"{_WANG}; {_SOLANKI}"),
    "FairX-LinUCB-projected": _fairx(
        "silent: FairX-LinUCB by projected gradient steps",
        f"{_WANG}; the thesis' solver",
        solver="projected_gradient",
        steps=10,
    ),
    "FairX-LinUCB-0.1": _fairx("silent, radius times 0.1", _TUNED, beta_scale=0.1),
    "FairX-LinUCB-greedy": _fairx(
        "silent: fair shares for the estimate itself, radius 0", _TUNED, beta_scale=0.0
    ),
    "Fed-FairX-LinUCB": _fairx(
        "true data, after gaps that double and then stay", f"{_SOLANKI} without noise", **_TRUE
    ),
    "Fed-FairX-LinUCB-listing": _fairx(
        "Fed-FairX-LinUCB with the ridge counted once for each agent",
        f"{_SOLANKI} without noise, as printed",
        **_TRUE,
        ridge_each=True,
    ),
    "Fed-FairX-LinUCB-greedy": _fairx(
        "true data in Fed-FairX-LinUCB's rounds, radius 0", _TUNED, **_TRUE, beta_scale=0.0
    ),
    "Priv-FairX-LinUCB": _fairx(
        "noisy data in Fed-FairX-LinUCB's rounds, eigenvalues lifted, radius as if there were no noise",
        f"{_SOLANKI} corrected, not rigorous",
        **_PRIVATE,
        **_LIFT,
    ),
    "Priv-FairX-LinUCB-on-sum": _fairx(
        "Priv-FairX-LinUCB's noise, shift on the sum, radius with its term for the noise",
        f"{_SOLANKI} corrected, rigorous",
        **_PRIVATE,
    ),
    "Priv-FairX-LinUCB-printed": _fairx(
        "printed noise, shifts and radius",
        f"{_SOLANKI} with Lemma 6.4, rigorous",
        privatizer=_planned({**_AT_TWO, "mechanism": "tree", "sigma": "printed"}),
        **_ECHOED,
        shift="per_agent",
        bias="printed",
    ),
    "B1": _fairx(
        "Priv-FairX-LinUCB's policy, sharing when FedUCB's determinant trigger asks, which reads unnoised data",
        "protocol of Dubey, Pentland (NeurIPS 2020)",
        privatizer=_AT_TWO,
        channel={"schedule": "synchronise", "echo": True},
        **_LIFT,
    ),
    "B2": _fairx(
        "Priv-FairX-LinUCB's policy, sharing in P-FCB's doubling rounds",
        "protocol of Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)",
        privatizer={**_AT_TWO, "releases": _PFCB_ROUNDS},
        channel={"schedule": _PFCB_ROUNDS, "echo": True},
        **_LIFT,
    ),
    "Priv-FairX-weighted": _fairx(
        "own data exact, noisy data in doubling rounds weighed by the noise known to be in it, radius 0",
        "this package",
        privatizer={**_AT_TWO, "releases": _FROM_64},
        channel={"schedule": _FROM_64},
        pool={"name": "precision", "reward_variance": 0.01},
        **constants("FairX-tuned"),
    ),
}

PLACEBOS = {"Priv-FairX-LinUCB": "Priv-FairX-placebo", "Priv-FairX-weighted": "Priv-FairX-weighted-placebo"}
ON_TRUE_DATA = {"Priv-FairX-weighted": "Priv-FairX-weighted-true"}
COMPARISON = {"silent": "FairX-LinUCB", "paper": "Priv-FairX-LinUCB", "ours": "Priv-FairX-weighted"}
