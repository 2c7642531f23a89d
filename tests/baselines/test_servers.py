"""Server policies of baselines keep replicas apart, and reporters rows: what is compared is equal to the bit."""

import numpy as np
import pytest
from gymnasium import spaces
from pairs import every_second

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.gaussian import PersonalReporter
from fedbandit_envs.baselines.linear import TellingReporter
from fedbandit_envs.baselines.linear.logistic import GradientReporter
from fedbandit_envs.baselines.linear.served import PhasedReporter
from fedbandit_envs.testing import check_reporter, check_server_policy

SMALL = {
    "FedFixed-v0": {"num_agents": 3, "num_arms": 4, "max_cycles": 40},
    "FedLogistic-v0": {"num_agents": 3, "num_arms": 4, "dim": 4, "max_cycles": 12},
    "FedMixed-v0": {"num_agents": 3, "means": [0.3, 0.5, 0.6]},
}
# With pulls of one round, so that phases end in a short episode.
SHORT = {"elimination": {"pulls": 1}, "epochs": {"shortest": 1}}
# Derived baselines have the servers of those that they derive from; printed ones differ by a constant, and the private
# form of epochs by its noise alone.
COMPUTING = [
    name
    for name, baseline in BASELINES.own.items()
    if "policy" in getattr(baseline.wrappers.get("server"), "kwargs", ())
    and not name.endswith(("-placebo", "-true", "-tuned", "-printed", "epochs-private"))
]


def inside(baseline):
    env_id = baseline.only or "FedMixed-v0"
    env = make_federation(env_id, **SMALL[env_id])
    for part, wrapper in baseline.wrappers.items():
        if part not in ("server", "privatizer"):
            env = wrapper.make(env, **{**wrapper.kwargs, **wrapper.kwargs_from_env(env)})
    return env


@pytest.mark.parametrize("name", every_second(COMPUTING))
def test_servers_keep_replicas_apart(name, monkeypatch):
    """In 10 rounds, each with as many questions as a model takes."""
    if BASELINES[name].only == "FedLogistic-v0":
        monkeypatch.setattr("fedbandit_envs.testing.policy.SERVER_HORIZON", 10)
    policy = BASELINES[name].wrappers["server"].kwargs["policy"]
    policy = {"name": policy} if isinstance(policy, str) else policy
    check_server_policy({**policy, **SHORT.get(policy["name"], {})}, lambda: inside(BASELINES[name]))


def box(*shape):
    return spaces.Box(0.0, 1.0, shape, np.float64)


ARMS, THREE = spaces.MultiBinary(4), spaces.MultiBinary(3)
ESTIMATES = {"estimate": box(4, 3), "spread": box(4, 3, 3), "radius": box(3), "left": ARMS}


@pytest.mark.parametrize(("name", "reporter", "question"), [
    ("FedGLB-UCB-private", GradientReporter, {"model": box(4)}),
    ("UCB-GLM-shared", TellingReporter, None),
    ("Fed-PE-collaborative", PhasedReporter, ESTIMATES),
    ("PF-UCB", PersonalReporter, {"mean": box(3), "arms": THREE, "radius": box()}),
])  # fmt: skip
def test_reporters_keep_rows_apart(name, reporter, question, monkeypatch):
    monkeypatch.setattr("fedbandit_envs.testing.policy.HORIZON", 30)
    if question is not None:
        check_reporter(reporter, lambda: inside(BASELINES[name]), spaces.Dict(question))
    check_reporter(reporter, lambda: inside(BASELINES[name]))
