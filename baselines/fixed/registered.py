"""Registered baselines for linear bandits with fixed features."""

from functools import partial
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec, listed
from fedbandit_envs.baselines.fixed import LocalUCB, PhasedReporter
from fedbandit_envs.baselines.gaussian import PlannedPulls
from fedbandit_envs.baselines.linear.registered import told_everything
from fedbandit_envs.baselines.linear.served import ServedLinUCB
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers import Messages

_HUANG = "Huang, Wu, Yang, Shen (NeurIPS 2021)"


def _messages(env: FederatedEnv, lengths: bool = False) -> Messages:
    """Returns an environment with Fed-PE's messages, which hold the norms of features if ``lengths`` is true."""
    arms, dim = env.single_observation_space["contexts"].shape or (0, 0)
    arrays: dict[str, dict[str, Any]] = {
        "rewards": {"shape": [arms, dim]},
        "shortest": {"shape": []},
        **({"lengths": {"shape": [arms]}} if lengths else {}),
        "left": {"shape": [arms], "dtype": "bool", "asked": True},
        "best": {"shape": [], "dtype": "int16", "asked": True},
    }
    return Messages(env, arrays, PhasedReporter())


def _fed_pe(summary: str, lengths: bool = False, **server: Any) -> Baseline:
    """Returns Fed-PE with these arguments of its server policy."""
    messages = WrapperSpec(_messages, {"lengths": lengths})
    server = {"schedule": "announced", "answers": "every_round", "policy": {"name": "phases", **server}}
    return _baseline(PlannedPulls, summary, _HUANG, messages=messages, server=server)


_baseline = partial(listed, LinearEnv, only="FedFixed-v0")

BASELINES: dict[str, Baseline] = {
    "Local-UCB": _baseline(
        LocalUCB, "no communication; pulls the arm with the largest upper confidence bound of its own mean"
    ),
    # The radius of Abbasi-Yadkori et al. (2011) for 10^7 observations that fail with probability 0.1.
    "OFUL-disjoint-shared": _baseline(
        ServedLinUCB,
        "LinUCB with a regression for each arm on the data of all agents, which a server is told in every round",
        beta=8.5,
        **told_everything("disjoint"),
    ),
    "Fed-PE": _fed_pe(
        "phases of doubled length, in which a server divides agents' pulls by an optimal design and agents drop arms"
    ),
    "Fed-PE-enhanced": _fed_pe(
        "Fed-PE with confidence bounds from all phases, as the figures of the paper have them", enhanced=True
    ),
    "Fed-PE-collaborative": _fed_pe(
        "Fed-PE whose server knows the norms of features", lengths=True, collaborative=True
    ),
}
