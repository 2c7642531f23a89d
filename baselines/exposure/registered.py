"""Registered baselines for exposure fairness: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from math import ceil, log
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.baselines.exposure import BestArm, DeservedShares, EqualShares, FairX
from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.wrappers import Channel, ContinualPrivatizer

_WANG = "Wang, Bai, Sun, Joachims (ICML 2021)"
_SOLANKI = "Solanki (thesis, 2024), Algorithm 6.1"


def schedule(env: FederatedEnv) -> dict[str, Any]:
    """Returns the schedule of Algorithm 6.1: gaps between messages double up to a limit, then stay the same.

    With horizon T, m agents and d-dimensional contexts the longest gap is ceil(T / (m d^2 ln^2(1 + T / d))) rounds
    (lines 12 to 15).
    """
    dim = (env.single_observation_space["pulled_context"].shape or (1,))[0]
    limit = ceil(env.max_cycles / (env.max_num_agents * dim**2 * log(1 + env.max_cycles / dim) ** 2))
    return {"name": "growing_then_fixed", "limit": limit}


_AT_TWO = {"epsilon": 2.0, "delta": 0.1}
_planned = partial(WrapperSpec, ContinualPrivatizer, kwargs_from_env=lambda env: {"releases": schedule(env)})
_scheduled = partial(WrapperSpec, Channel, kwargs_from_env=lambda env: {"schedule": schedule(env)})
# With an echo, agents receive their own messages, and replace the exact data in them by the noisy release; only data
# that were not released yet stay exact.
_ECHOED = _scheduled({"echo": True})
_LIFT = {"shift": "lift", "bias": "none"}
_PFCB_ROUNDS = {"name": "doubling"}
_FROM_512 = {"name": "doubling", "start": 512, "stop": None}

_baseline = partial(listed, ExposureEnv)
# Solver, steps and beta_scale are written out, though they are defaults, because fairness regret depends on them more
# than on what agents exchange.
_fairx = partial(_baseline, FairX, solver="frank_wolfe", steps=3, beta_scale=1.0)

BASELINES: dict[str, Baseline] = {
    "equal-shares": _baseline(EqualShares, "gives all arms the same share"),
    "deserved-shares": _baseline(
        DeservedShares, "gives the shares that arms deserve by the true parameter", "oracle", reveal={}
    ),
    "best-arm": _baseline(BestArm, "no communication; gives all exposure to LinUCB's arm, which is unfair"),
    "FairX-LinUCB": _fairx(
        "gives the fair shares of that parameter of the confidence ellipsoid with most reward",
        f"{_WANG}; {_SOLANKI}",
    ),
    "Fed-FairX-LinUCB": _fairx(
        "FairX-LinUCB on the data of all agents, sent without noise at gaps that double up to a limit",
        f"{_SOLANKI} without noise",
        channel=_scheduled({}),
    ),
    "Fed-FairX-LinUCB-listing": _fairx(
        "Fed-FairX-LinUCB with a ridge that is multiplied by the number of agents",
        f"{_SOLANKI} without noise, as printed",
        channel=_scheduled({}),
        ridge_each=True,
    ),
    "Priv-FairX-LinUCB": _fairx(
        "Fed-FairX-LinUCB on noisy data; small eigenvalues are raised, and the confidence radius ignores the noise",
        f"{_SOLANKI} corrected, without a regret bound",
        privatizer=_planned(_AT_TWO),
        channel=_ECHOED,
        **_LIFT,
    ),
    "Priv-FairX-LinUCB-printed": _fairx(
        "Priv-FairX-LinUCB with noise, ridge and confidence radius as printed",
        f"{_SOLANKI} with Lemma 6.4, with valid confidence bounds",
        privatizer=_planned({**_AT_TWO, "mechanism": "tree", "sigma": "printed"}),
        channel=_ECHOED,
        shift="per_agent",
        bias="printed",
    ),
    "B1": _fairx(
        "Priv-FairX-LinUCB, sending when a determinant has grown enough, which is computed from data without noise",
        "protocol of Dubey, Pentland (NeurIPS 2020)",
        privatizer=_AT_TWO,
        channel={"schedule": "synchronise", "echo": True},
        **_LIFT,
    ),
    "B2": _fairx(
        "Priv-FairX-LinUCB, sending in rounds 256, 512, 1,024, ...",
        "protocol of Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)",
        privatizer={**_AT_TWO, "releases": _PFCB_ROUNDS},
        channel={"schedule": _PFCB_ROUNDS, "echo": True},
        **_LIFT,
    ),
    "Priv-FairX-weighted": _fairx(
        "FairX-tuned that also uses noisy data of others, sent in rounds 512, 1,024, ... and weighted by precision",
        "this project",
        privatizer={**_AT_TWO, "releases": _FROM_512, "mechanism": "blt"},
        channel={"schedule": _FROM_512},
        pool="precision",
        **constants("FairX-tuned"),
    ),
}

PLACEBOS = {"Priv-FairX-LinUCB": "Priv-FairX-placebo", "Priv-FairX-weighted": "Priv-FairX-weighted-placebo"}
ON_TRUE_DATA = {"Priv-FairX-weighted": "Priv-FairX-weighted-true"}
COMPARISON = {"silent": "FairX-LinUCB", "paper": "Priv-FairX-LinUCB", "ours": "Priv-FairX-weighted"}
