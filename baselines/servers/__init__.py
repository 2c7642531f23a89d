"""Server policies, which compute what a :class:`~fedbandit_envs.wrappers.Server` answers, by name.

The interface is :class:`~fedbandit_envs.wrappers.transport.server_policy.ServerPolicy`.
"""

from fedbandit_envs.baselines.servers.phases import PhasedServer
from fedbandit_envs.baselines.servers.plans import (
    EliminationServer,
    EpochServer,
    LeaderServer,
    PersonalServer,
)
from fedbandit_envs.baselines.servers.regressions import (
    AverageServer,
    DisjointServer,
    GLMServer,
    LogisticServer,
    RidgeServer,
)

SERVERS = {
    "average": AverageServer,
    "ridge": RidgeServer,
    "disjoint": DisjointServer,
    "elimination": EliminationServer,
    "epochs": EpochServer,
    "personal": PersonalServer,
    "leader": LeaderServer,
    "phases": PhasedServer,
    "logistic": LogisticServer,
    "glm": GLMServer,
}
"""The server policies by the names that ``Server(policy=...)`` accepts."""

__all__ = ["SERVERS"]
