"""The registration of linear bandits: ids with their settings, tuning, and the leaderboard's suite."""

from fedbandit_envs.registry.problems import Preset, RegisteredProblem, SuiteSpec, TuningSpec

_HE = {
    "num_agents": 15,
    "num_arms": 25,
    "dim": 15,
    "contexts": "signed_hypercube",
    "parameter": "diagonal",
    "reward": "normal",
    "reward_sd": 0.3,
    # A bound on rewards is needed only for privacy, and the paper adds no noise. So the bound is so large that
    # practically no reward reaches it.
    "reward_bound": 5.0,
}
# Zhou and Chowdhury (ICLR 2024). Rewards are reported as differences from 1/2, in which the model is exactly linear.
_ZHOU = {
    "num_agents": 100,
    "num_arms": 100,
    "dim": 10,
    "contexts": "sphere_and_bias",
    "parameter": "sphere_without_bias",
    "reward": "normal",
    "reward_sd": 0.5,
    "reward_bound": 1.5,
    "statistic": "moments",
}

# Li and Wang (NeurIPS 2022). Their vectors have norm sqrt(2).
_LI_WANG = {
    "num_agents": 200,
    "num_arms": 25,
    "max_cycles": 2000,
    "contexts": "pool",
    "context_bound": 2**0.5,
    "reward": "logistic",
}
# Huang, Wu, Yang and Shen (NeurIPS 2021). Rewards that are more than ten standard deviations from their means are
# clipped: practically none.
_HUANG = {
    "num_agents": 100,
    "num_arms": 10,
    "dim": 3,
    "contexts": "separated",
    "parameter": "first_axis",
    "reward": "normal",
    "reward_sd": 1.0,
    "reward_bound": 11.0,
}

# Dirichlet(0.5) is usual where agents have unlike data. In suites every seed scrambles the table anew, so that no entry
# gains by knowing the digits.
_DIGITS = {"name": "classification", "data": "digits"}
_WINE = {"name": "classification", "data": "wine", "scrambled": True}
_UNLIKE_DIGITS = {**_DIGITS, "components": 10, "alpha": 0.5, "scrambled": True}
# A small table in place of the digits, so that tests need no further package.
_SMALL_TABLE = {
    "name": "classification",
    "data": [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]],
    "labels": ["a", "a", "b", "b", "c", "c"],
}

# The ridge matters little.
_RADII = {"ridge": (0.1,), "beta_scale": (0.05, 0.1, 0.2, 0.3, 0.4)}

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.linear.env:LinearEnv",
    small={"num_arms": 7, "dim": 3},
    presets={
        "FedLinear-v0": Preset(),
        "FedLinearBall-v0": Preset({"contexts": "unit_ball", "reward": "normal"}),
        "FedLinearCube-v0": Preset({"contexts": "hypercube", "reward": "normal"}),
        "FedLinearAsync-v0": Preset(_HE, [["Participation", {"law": "uniform"}]]),
        "FedLinearSphere-v0": Preset(_ZHOU),
        # As in the paper's experiment, rewards are not centred. They are normal there, and no bound is named; this one
        # is ten standard deviations of the noise beyond 0, so that practically no reward reaches it.
        "FedLinearSpherePrinted-v0": Preset({**_ZHOU, "reward_offset": 0.5, "reward_bound": 5.0}),
        "FedLogistic-v0": Preset(_LI_WANG),
        "FedFixed-v0": Preset(_HUANG),
        "FedClassification-v0": Preset(
            {"contexts": {**_DIGITS, "components": 10}, "reward": "bernoulli"},
            small={"contexts": _SMALL_TABLE},
        ),
        "FedLinearInTurn-v0": Preset(_HE, [["Participation", {"law": "in_turn"}]]),
    },
    tuning=TuningSpec(
        grids={
            **dict.fromkeys(("LinUCB", "FedUCB-weighted", "FedUCB-weighted-true"), _RADII),
            "FedUCB-min": {"beta_scale": (0.05, 0.1, 0.2, 0.3)},
        },
        seeds=40,
    ),
    suite=SuiteSpec(
        tasks={"band": ("FedLinear-v0", {}), "ball": ("FedLinearBall-v0", {})},
        reference="random-arm",
        full=(30_000, 50),
        quick=(1_000, 50),
        version=2,
    ),
    more_suites={
        "classification": SuiteSpec(
            tasks={
                "wine": ("FedClassification-v0", {"contexts": _WINE}),
                "digits": ("FedClassification-v0", {"contexts": _UNLIKE_DIGITS, "num_agents": 5}),
            },
            reference="random-arm",
        )
    },
)
