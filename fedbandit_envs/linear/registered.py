"""What is registered of linear contextual bandits."""

from fedbandit_envs.registered import Preset, RegisteredProblem

_PARTICIPATION = "fedbandit_envs.wrappers:Participation"
_HE = {
    "num_agents": 15,
    "num_arms": 25,
    "dim": 15,
    "contexts": "signed_hypercube",
    "parameter": "diagonal",
    "reward": "normal",
    "reward_sd": 0.3,
    # Never reached: nothing is released under privacy here.
    "reward_bound": 5.0,
}

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.linear.env:LinearEnv",
    peers="fedbandit_envs.baselines.linear:LinUCB",
    listener="fedbandit_envs.baselines.linear:FedUCB",
    small={"num_arms": 7, "dim": 3},
    presets={
        "FedLinear-v0": Preset(),
        "FedLinearBall-v0": Preset({"contexts": "unit_ball", "reward": "normal"}),
        "FedLinearCube-v0": Preset({"contexts": "hypercube", "reward": "normal"}),
        "FedLinearAsync-v0": Preset(_HE, [[_PARTICIPATION, {"law": "uniform"}]]),
        "FedLinearInTurn-v0": Preset(_HE, [[_PARTICIPATION, {"law": "in_turn"}]]),
    },
)
