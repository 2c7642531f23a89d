"""Server policies, which compute what a :class:`~fedbandit_envs.wrappers.Server` answers, by name.

The interface is :class:`~fedbandit_envs.wrappers.transport.server_policy.ServerPolicy`.
"""

from fedbandit_envs.baselines.servers import phases, plans, regressions

SERVERS = {
    "average": regressions.AverageServer,
    "ridge": regressions.RidgeServer,
    "disjoint": regressions.DisjointServer,
    "elimination": plans.EliminationServer,
    "epochs": plans.EpochServer,
    "personal": plans.PersonalServer,
    "leader": plans.LeaderServer,
    "phases": phases.PhasedServer,
    "logistic": regressions.LogisticServer,
    "glm": regressions.GLMServer,
}
"""The server policies by the names that ``Server(policy=...)`` accepts."""
