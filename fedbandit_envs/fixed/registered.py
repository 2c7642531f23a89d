"""The registration of linear bandits with fixed features: one id with its settings."""

from fedbandit_envs.registry.problems import Preset, RegisteredProblem

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.fixed.env:FixedEnv",
    peers="fedbandit_envs.baselines.linear:LinUCB",
    listener="fedbandit_envs.baselines.linear:FedUCB",
    small={"num_agents": 4, "num_arms": 5},
    # Rewards more than ten standard deviations from their means are clipped: practically none.
    presets={"FedFixed-v0": Preset({"reward_sd": 1.0, "reward_bound": 11.0})},
)
