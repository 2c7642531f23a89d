"""Registered baselines for Gaussian arms: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from typing import Any

from fedbandit_envs.baselines import gaussian
from fedbandit_envs.baselines.arms import UniformArms
from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed, secure_sum
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.wrappers import Messages, Server

_FED = "Shi, Shen (AAAI 2021)"
_PF = "Shi, Shen, Yang (AISTATS 2021)"
_ANNOUNCED = {"schedule": "announced", "answers": "every_round"}
_FED2 = {"pulls": 100, "joins": 2}


def _messages(env: FederatedEnv) -> Messages:
    """Returns an environment with PF-UCB's messages, whose arrays have an entry for each arm."""
    (arms,) = env.single_release_space["pulls"].shape or (0,)
    arrays: dict[str, dict[str, Any]] = {
        "means": {"shape": [arms]},
        "arms": {"shape": [arms], "dtype": "bool", "asked": True},
        "gaps": {"shape": [arms], "asked": True},
    }
    return Messages(env, arrays, gaussian.PersonalReporter())


def _elimination(summary: str, reference: str, **server: Any) -> Baseline:
    """Returns a baseline whose agents follow the plans of the server policy ``elimination`` with these arguments."""
    planned = {"policy": {"name": "elimination", **server}, **_ANNOUNCED}
    return _baseline(gaussian.PlannedPulls, summary, f"{_FED}, {reference}", server=planned)


def _personal(summary: str, reference: str, **server: Any) -> Baseline:
    """Returns PF-UCB with these arguments of its server policy."""
    planned = {"policy": {"name": "personal", **server}, **_ANNOUNCED}
    own = f"{_PF}, {reference}"
    return _baseline(gaussian.PersonalPulls, summary, own, messages=WrapperSpec(_messages), server=planned)


_baseline = partial(listed, GaussianEnv)

BASELINES: dict[str, Baseline] = {
    "uniform-gaussian": _baseline(UniformArms, "pulls an arm uniformly at random"),
    "Gaussian-UCB": _baseline(
        gaussian.GaussianUCB,
        "no communication; pulls the arm with the largest upper confidence bound of its own mean",
    ),
    "Gaussian-UCB-shared": _baseline(
        gaussian.GaussianUCB,
        "Gaussian-UCB on the rewards of all agents, told in every round, so that all pull the same arm",
        channel={"schedule": "every_round"},
    ),
    "Gaussian-epochs": _baseline(
        gaussian.PlannedPulls,
        "Gaussian-UCB-shared with each arm kept for an epoch of half of its pulls, and one upload an epoch",
        server={"policy": {"name": "epochs"}, **_ANNOUNCED},
    ),
    "Gaussian-epochs-private": _baseline(
        gaussian.PlannedPulls,
        "Gaussian-epochs on noisy sums of clipped rewards, whose noise agents make up together (secure sum)",
        "this project",
        privatizer={"epsilon": 1.0, "delta": 1e-5, "releases": 400},
        server=WrapperSpec(Server, {"policy": "epochs", **_ANNOUNCED}, secure_sum),
    ),
    "Fed1-UCB": _elimination(
        "phases in which all agents pull each remaining arm 10 ln T times; a server drops arms",
        "Fed1-UCB with the constants of the released program",
    ),
    "Fed1-UCB-printed": _elimination(
        "Fed1-UCB with the constant 6, which others report of the paper", "Fed1-UCB", c1=6.0, c2=6.0
    ),
    "Fed2-UCB": _elimination(
        "Fed1-UCB for agents drawn from a population, more and more of whom join",
        "Fed2-UCB with the constants of the released program",
        **_FED2,
        c1=1.0,
        c2=1.0,
    ),
    "Fed2-UCB-printed": _elimination(
        "Fed2-UCB with the constants 6, which others report of the paper", "Fed2-UCB", **_FED2, c1=6.0, c2=6.0
    ),
    "PF-UCB": _personal(
        "agents explore for each other and for themselves, in phases of doubled length, and drop arms by mixed means",
        "PF-UCB with the constant of the released program",
    ),
    "PF-UCB-printed": _personal(
        "PF-UCB with the constant 4, said to be the paper's and not checked", "PF-UCB", c=4.0
    ),
    "PF-UCB-enhanced": _personal(
        "PF-UCB in which agents pull arms less that others find clearly worse", "enhanced", enhanced=True
    ),
    "PF-leader": _baseline(
        gaussian.NamedArm,
        "no phases; the server knows all rewards, and names each agent its leader or an arm that somebody needs",
        server={"schedule": "every_round", "answers": "every_round", "policy": "leader"},
    ),
}

PLACEBOS = {"Gaussian-epochs-private": "Gaussian-epochs-placebo"}
