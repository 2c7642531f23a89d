"""Registered baselines for linear bandits with fixed features."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.baselines.fixed.ucb import LocalUCB
from fedbandit_envs.baselines.gaussian.planned import PlannedPulls
from fedbandit_envs.baselines.linear.served import ServedLinUCB
from fedbandit_envs.baselines.linear.told_everything import told_everything
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.wrappers import Messages, Server

_HUANG = "Huang, Wu, Yang, Shen (NeurIPS 2021)"
_CONTROL = "control"


_baseline = partial(Baseline, federation=LinearEnv, only="FedFixed-v0")


def _message(lengths: bool, env: FederatedEnv) -> Mapping[str, Any]:
    """Returns the declaration of Fed-PE's messages, with or without the norms of features."""
    arms, dim = env.single_observation_space["contexts"].shape or (0, 0)
    return {
        "arrays": {
            "rewards": {"shape": [arms, dim]},
            "shortest": {"shape": []},
            **({"lengths": {"shape": [arms]}} if lengths else {}),
            "left": {"shape": [arms], "dtype": "bool", "asked": True},
            "best": {"shape": [], "dtype": "int16", "asked": True},
        }
    }


def _fed_pe(summary: str, lengths: bool = False, **server: Any) -> Baseline:
    """Returns Fed-PE with these arguments of its server policy."""
    reporter = {"reporter": "fedbandit_envs.baselines.fixed:PhasedReporter"}
    announced = {"schedule": "announced", "answers": "every_round", "policy": {"name": "phases", **server}}
    wrappers = {
        "messages": WrapperSpec(Messages, reporter, partial(_message, lengths)),
        "server": WrapperSpec(Server, announced),
    }
    return _baseline(summary, _HUANG, policy=PlannedPulls, wrappers=wrappers)


BASELINES: dict[str, Baseline] = {
    "Local-UCB": _baseline(
        "no communication; pulls the arm with the largest upper confidence bound of its own mean",
        _CONTROL,
        policy=LocalUCB,
    ),
    "OFUL-disjoint-shared": _baseline(
        "LinUCB with a regression for each arm on the data of all agents, which a server is told in every round",
        _CONTROL,
        policy=ServedLinUCB,
        # The radius of Abbasi-Yadkori et al. (2011) for 10^7 observations that fail with probability 0.1.
        policy_kwargs={"beta": 8.5},
        wrappers=told_everything("disjoint"),
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
