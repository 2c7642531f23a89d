"""Registered baselines for logistic bandits."""

from functools import partial
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.baselines.linear.telling import told_everything
from fedbandit_envs.baselines.logistic.fedglb import FedGLB
from fedbandit_envs.baselines.logistic.glm import UCBGLM
from fedbandit_envs.baselines.logistic.reporter import gradients
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers import Messages, Server

_LI_WANG = "Li, Wang (NeurIPS 2022)"
_LI_LU_ZHOU = "Li, Lu, Zhou (ICML 2017)"
_baseline = partial(Baseline, federation=LinearEnv, only="FedLogistic-v0")
# The slope at 1, as in the experiment of Li and Wang, although their contexts have norm sqrt(2).
_SLOPE = {"slope": 0.1966}


def _fed_glb(
    summary: str, reference: str = _LI_WANG, server: dict[str, Any] | None = None, **agents: Any
) -> Baseline:
    """Returns FedGLB-UCB with arguments of its server policy and of its agents."""
    policy = {"name": "logistic", **(server or {})}
    reporter = {"reporter": "fedbandit_envs.baselines.logistic:GradientReporter"}
    wrappers = {
        "messages": WrapperSpec(Messages, reporter, partial(gradients, policy.get("solver") == "newton")),
        "server": WrapperSpec(
            Server, {"schedule": "synchronise", "answers": "every_round", "policy": policy}
        ),
    }
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
    "FedGLB-UCB-newton": _fed_glb(
        "FedGLB-UCB whose server takes Newton steps, which need Hessians and few rounds of questions",
        "this project",
        {"solver": "newton"},
    ),
}
