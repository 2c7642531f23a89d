"""The registration of logistic bandits: one id with its settings."""

from fedbandit_envs.registry.problems import Preset, RegisteredProblem

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.logistic.env:LogisticEnv",
    peers="fedbandit_envs.baselines.linear:LinUCB",
    listener="fedbandit_envs.baselines.linear:FedUCB",
    small={"num_agents": 4, "num_arms": 5, "dim": 3, "contexts": {"name": "pool", "size": 20}},
    presets={"FedLogistic-v0": Preset({"context_bound": 2**0.5, "max_cycles": 2000})},
)
