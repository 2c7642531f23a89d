"""Registered baselines for Gaussian arms: each a policy with its wrappers, a summary and a reference."""

from functools import partial
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.baselines.gaussian import (
    GaussianUCB,
    NamedArm,
    PersonalPulls,
    PersonalReporter,
    PlannedPulls,
)
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.wrappers import Messages, Server

_FED = "Shi, Shen (AAAI 2021)"
_PF = "Shi, Shen, Yang (AISTATS 2021)"
_CONTROL = "control"
_ANNOUNCED = {"schedule": "announced", "answers": "every_round"}
_FED2 = {"pulls": 100, "joins": 2, "c1": 1.0, "c2": 1.0}


def _messages(env: FederatedEnv) -> Messages:
    """Returns an environment with PF-UCB's messages, whose arrays have an entry for each arm."""
    (arms,) = env.single_release_space["pulls"].shape or (0,)
    declared: dict[str, dict[str, Any]] = {
        "means": {"dtype": "float64"},
        "arms": {"dtype": "bool", "asked": True},
        "gaps": {"dtype": "float64", "asked": True},
    }
    arrays = {name: {"shape": [arms], **each} for name, each in declared.items()}
    return Messages(env, arrays, PersonalReporter())


def _planned(name: str, summary: str, reference: str, **server: Any) -> Baseline:
    """Returns a baseline whose agents follow the plans of a server policy with these arguments."""
    policy = {"name": name, **server}
    return _baseline(PlannedPulls, summary, reference, server={"policy": policy, **_ANNOUNCED})


def _personal(summary: str, reference: str, **server: Any) -> Baseline:
    """Returns PF-UCB with these arguments of its server policy."""
    return _baseline(
        PersonalPulls,
        summary,
        reference,
        messages=WrapperSpec(_messages),
        server={"policy": {"name": "personal", **server}, **_ANNOUNCED},
    )


_baseline = partial(listed, GaussianEnv)

BASELINES: dict[str, Baseline] = {
    "Gaussian-UCB": _baseline(
        GaussianUCB,
        "no communication; pulls the arm with the largest upper confidence bound of its own mean",
        _CONTROL,
    ),
    "Gaussian-UCB-shared": _baseline(
        GaussianUCB,
        "Gaussian-UCB on the rewards of all agents, told in every round, so that all pull the same arm",
        _CONTROL,
        channel={"schedule": "every_round"},
    ),
    "Gaussian-epochs": _planned(
        "epochs",
        "Gaussian-UCB-shared with each arm kept for an epoch of half of its pulls, and one upload an epoch",
        _CONTROL,
    ),
    "Gaussian-epochs-private": _baseline(
        PlannedPulls,
        "Gaussian-epochs on noisy sums of clipped rewards, whose noise agents make up together (secure sum)",
        "this project",
        privatizer={"epsilon": 1.0, "delta": 1e-5, "releases": 400},
        server=WrapperSpec(
            Server,
            {"policy": "epochs", **_ANNOUNCED},
            lambda env: {"stage": {"name": "aggregator", "honest": max(env.max_num_agents - 1, 1)}},
        ),
    ),
    "Fed1-UCB": _planned(
        "elimination",
        "phases in which all agents pull each remaining arm 10 ln T times; a server drops arms",
        f"{_FED}, Fed1-UCB with the constants of the released program",
    ),
    "Fed1-UCB-printed": _planned(
        "elimination",
        "Fed1-UCB with the constant 6, which others report of the paper",
        f"{_FED}, Fed1-UCB",
        c1=6.0,
        c2=6.0,
    ),
    "Fed2-UCB": _planned(
        "elimination",
        "Fed1-UCB for agents drawn from a population, more and more of whom join",
        f"{_FED}, Fed2-UCB with the constants of the released program",
        **_FED2,
    ),
    "Fed2-UCB-printed": _planned(
        "elimination",
        "Fed2-UCB with the constants 6, which others report of the paper",
        f"{_FED}, Fed2-UCB",
        **{**_FED2, "c1": 6.0, "c2": 6.0},
    ),
    "PF-UCB": _personal(
        "agents explore for each other and for themselves, in phases of doubled length, and drop arms by mixed means",
        f"{_PF}, PF-UCB with the constant of the released program",
    ),
    "PF-UCB-printed": _personal(
        "PF-UCB with the constant 4, said to be the paper's and not checked", f"{_PF}, PF-UCB", c=4.0
    ),
    "PF-UCB-enhanced": _personal(
        "PF-UCB in which agents pull arms less that others find clearly worse",
        f"{_PF}, enhanced",
        enhanced=True,
    ),
    "PF-leader": _baseline(
        NamedArm,
        "no phases; the server knows all rewards, and names each agent its leader or an arm that somebody needs",
        _CONTROL,
        server={"schedule": "every_round", "answers": "every_round", "policy": "leader"},
    ),
}

PLACEBOS = {"Gaussian-epochs-private": "Gaussian-epochs-placebo"}
