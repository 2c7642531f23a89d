"""Registered baselines for logistic bandits."""

from functools import partial
from math import sqrt
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.baselines.linear.told_everything import told_everything
from fedbandit_envs.baselines.logistic.fedglb import FedGLB
from fedbandit_envs.baselines.logistic.glm import UCBGLM
from fedbandit_envs.baselines.logistic.reporter import gradients
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers import ContinualPrivatizer, Messages, Server

_LI_WANG = "Li, Wang (NeurIPS 2022)"
_LI_LU_ZHOU = "Li, Lu, Zhou (ICML 2017)"
_baseline = partial(Baseline, federation=LinearEnv, only="FedLogistic-v0")
# The slope at 1, as in the experiment of Li and Wang, although their contexts have norm sqrt(2).
_SLOPE = {"slope": 0.1966}
_AGENT = {"composition": "exact", "delta": 1e-5, "adjacency": "agent"}


def _once(env: FederatedEnv) -> dict[str, Any]:
    """Returns the one synchronisation of the private form, in round sqrt(T), behind a secure sum."""
    stage = {"name": "aggregator", "honest": max(env.max_num_agents - 1, 1)}
    return {"schedule": {"name": "geometric", "count": 1, "horizon": env.max_cycles}, "stage": stage}


def _noise(env: FederatedEnv) -> dict[str, Any]:
    """Returns the clip of the private form, which few Gram matrices of sqrt(T) contexts of norm sqrt(2) exceed."""
    return {"clip": 1.5 * sqrt(env.max_cycles)}


def _fed_glb(
    summary: str,
    reference: str = _LI_WANG,
    solver: dict[str, Any] | None = None,
    noise: dict[str, Any] | None = None,
    **agents: Any,
) -> Baseline:
    """Returns FedGLB-UCB with arguments of its server policy, its privatizer (None for none) and its agents."""
    policy = {"name": "logistic", **(solver or {})}
    reporter = {"name": "fedbandit_envs.baselines.logistic:GradientReporter"}
    answers = {"answers": "every_round", "policy": policy}
    wrappers = {"server": WrapperSpec(Server, {"schedule": "synchronise", **answers})}
    if noise is not None:
        reporter |= {"gradient_weight": policy["gradient_weight"]}
        privatizer = WrapperSpec(ContinualPrivatizer, noise, _noise)
        wrappers = {"privatizer": privatizer, "server": WrapperSpec(Server, answers, _once)}
    wrappers = {"messages": WrapperSpec(Messages, {"reporter": reporter}, gradients), **wrappers}
    return _baseline(summary, reference, policy=FedGLB, policy_kwargs=agents, wrappers=wrappers)


BASELINES: dict[str, Baseline] = {
    "UCB-GLM": _baseline(
        "no communication; pulls the arm with the largest upper confidence bound around the likeliest model",
        _LI_LU_ZHOU,
        policy=UCBGLM,
        policy_kwargs=_SLOPE,
    ),
    "UCB-GLM-shared": _baseline(
        "UCB-GLM on the data of all agents, which a server is told in every round",
        f"comparison of {_LI_WANG}",
        policy=UCBGLM,
        policy_kwargs=_SLOPE,
        wrappers=told_everything("glm"),
    ),
    "N-ONS": _baseline(
        "FedGLB-UCB without communication: online Newton steps on own data",
        f"comparison of {_LI_WANG}",
        policy=FedGLB,
    ),
    "FedGLB-UCB": _fed_glb(
        "online Newton steps on own data; now and then a server asks all agents for gradients and sends a model"
    ),
    "FedGLB-UCB-released": _fed_glb(
        "FedGLB-UCB as its authors' program has it: models on a simplex, small steps from 0, a larger radius",
        f"{_LI_WANG}, the released program",
        {"released": True},
        released=True,
    ),
    "FedGLB-UCB-quasi-newton": _fed_glb(
        "FedGLB-UCB whose server steps with a bound of the Hessian, and asks for few gradients",
        "this project",
        {"solver": "quasi_newton"},
    ),
    "FedGLB-UCB-private": _fed_glb(
        "FedGLB-UCB-quasi-newton with one synchronisation of clipped, noisy messages; it protects all data of an agent",
        "this project",
        {"solver": "quasi_newton", "gradient_rounds": 3, "gradient_weight": 7.0},
        {"epsilon": 10.0, "delta": 1e-5, "mechanism": "independent", "releases": 4, "budget": _AGENT},
        alpha=0.3,
    ),
}

PLACEBOS = {"FedGLB-UCB-private": "FedGLB-UCB-placebo"}
ON_TRUE_DATA = {"FedGLB-UCB-private": "FedGLB-UCB-true"}
