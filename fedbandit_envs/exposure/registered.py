"""What is registered of exposure fairness."""

from fedbandit_envs.registered import Preset, RegisteredProblem

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.exposure.env:ExposureEnv",
    peers="fedbandit_envs.baselines.exposure:FairX",
    listener="fedbandit_envs.baselines.exposure:FairX",
    small={"num_arms": 4, "dim": 3},
    presets={
        "FedExposure-v0": Preset(),
        "FedExposureNoisy-v0": Preset({"reward_sd": 0.5, "reward_bound": 2.5}),
        "FedExposureLinear-v0": Preset({"merit": "linear"}),
    },
)
