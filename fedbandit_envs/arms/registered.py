"""What is registered of Bernoulli arms."""

from fedbandit_envs.registered import Preset, RegisteredProblem

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.arms.env:ArmsEnv",
    peers="fedbandit_envs.baselines.arms:UCB1",
    listener="fedbandit_envs.baselines.arms:UCB1",
    small={"num_arms": 5},
    presets={
        "FedArms-v0": Preset(),
        "FedArmsMovieLens-v0": Preset({"means": "movielens"}),
        "FedArmsJester-v0": Preset({"means": "jester"}),
    },
)
