"""What is registered of linear contextual bandits."""

from fedbandit_envs.registered import Preset, RegisteredProblem

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.linear.env:LinearEnv",
    peers="fedbandit_envs.baselines.linear:LinUCB",
    listener="fedbandit_envs.baselines.linear:FedUCB",
    small={"num_arms": 7, "dim": 3},
    presets={
        "FedLinear-v0": Preset(),
        "FedLinearBall-v0": Preset({"contexts": "unit_ball", "reward": "normal"}),
        "FedLinearCube-v0": Preset({"contexts": "hypercube", "reward": "normal"}),
    },
)
