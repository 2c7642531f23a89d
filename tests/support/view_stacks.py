"""Stacks of wrappers by the names that views take."""

FEDERATION = "fedbandit_envs.procurement.env:ProcurementEnv"
GAUSSIAN = "fedbandit_envs.wrappers:GaussianPrivatizer"
CHANNEL = "fedbandit_envs.wrappers.transport.channel:Channel"
PFCB = "fedbandit_envs.baselines.procurement:PFCB"
SS_UCB = "fedbandit_envs.baselines.procurement:SSUCB"


def stack(schedule):
    return [
        [GAUSSIAN, {"epsilon_per_release": 1.0}],
        [CHANNEL, {"schedule": schedule, "delay": 1, "loss": 0.1}],
    ]
