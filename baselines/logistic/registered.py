"""Registered baselines for logistic bandits."""

from functools import partial
from math import sqrt
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed, secure_sum
from fedbandit_envs.baselines.linear.registered import told_everything
from fedbandit_envs.baselines.logistic.fedglb import UCBGLM, FedGLB, GradientReporter
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers import ContinualPrivatizer, Messages, Server

_LI_WANG = "Li, Wang (NeurIPS 2022)"
# The slope at 1, as in the experiment of Li and Wang, although their contexts have norm sqrt(2).
_SLOPE = 0.1966
_AGENT = {"composition": "exact", "delta": 1e-5, "adjacency": "agent"}
_WEIGHT = {"gradient_weight": 7.0}


def _messages(env: FederatedEnv, gradient_weight: float = 1.0) -> Messages:
    """Returns an environment with FedGLB-UCB's messages."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    gram: dict[str, Any] = {"shape": [dim, dim]}
    arrays = {"gram": gram, "count": {"shape": []}, "gradient": {"shape": [dim], "asked": True}}
    return Messages(env, arrays, GradientReporter(gradient_weight))


def _once(env: FederatedEnv) -> dict[str, Any]:
    """Returns the one synchronisation of the private form, in round sqrt(T), behind a secure sum."""
    return {"schedule": {"name": "geometric", "count": 1, "horizon": env.max_cycles}, **secure_sum(env)}


def _noise(env: FederatedEnv) -> dict[str, Any]:
    """Returns the clip of the private form, which few Gram matrices of sqrt(T) contexts of norm sqrt(2) exceed."""
    return {"clip": 1.5 * sqrt(env.max_cycles)}


def _server(**solver: Any) -> dict[str, Any]:
    return {
        "schedule": "synchronise",
        "answers": "every_round",
        "policy": {"name": "logistic", **solver},
    }


_baseline = partial(listed, LinearEnv, only="FedLogistic-v0")
_fed_glb = partial(_baseline, FedGLB, messages=WrapperSpec(_messages))

BASELINES: dict[str, Baseline] = {
    "UCB-GLM": _baseline(
        UCBGLM,
        "no communication; pulls the arm with the largest upper confidence bound around the likeliest model",
        "Li, Lu, Zhou (ICML 2017)",
        slope=_SLOPE,
    ),
    "UCB-GLM-shared": _baseline(
        UCBGLM,
        "UCB-GLM on the data of all agents, which a server is told in every round",
        f"comparison of {_LI_WANG}",
        slope=_SLOPE,
        **told_everything("glm"),
    ),
    "N-ONS": _baseline(
        FedGLB,
        "FedGLB-UCB without communication: online Newton steps on own data",
        f"comparison of {_LI_WANG}",
    ),
    "FedGLB-UCB": _fed_glb(
        "online Newton steps on own data; now and then a server asks all agents for gradients and sends a model",
        _LI_WANG,
        server=_server(),
    ),
    "FedGLB-UCB-released": _fed_glb(
        "FedGLB-UCB as its authors' program has it: models on a simplex, small steps from 0, a larger radius",
        f"{_LI_WANG}, the released program",
        server=_server(released=True),
        released=True,
    ),
    "FedGLB-UCB-private": _fed_glb(
        "FedGLB-UCB with a quasi-Newton server, asked once through clips and noise that protect all data of an agent",
        "this project",
        messages=WrapperSpec(_messages, _WEIGHT),
        privatizer=WrapperSpec(
            ContinualPrivatizer,
            {"epsilon": 10.0, "delta": 1e-5, "mechanism": "independent", "releases": 4, "budget": _AGENT},
            _noise,
        ),
        server=WrapperSpec(Server, _server(solver="quasi_newton", gradient_rounds=3, **_WEIGHT), _once),
        alpha=0.3,
    ),
}

PLACEBOS = {"FedGLB-UCB-private": "FedGLB-UCB-placebo"}
ON_TRUE_DATA = {"FedGLB-UCB-private": "FedGLB-UCB-true"}
