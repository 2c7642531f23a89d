"""The registration of Bernoulli arms: ids with their settings, tuning, and the leaderboard's suite."""

from fedbandit_envs.registry.problems import Preset, RegisteredProblem, SuiteSpec, TuningSpec

_UNRELIABLE = {
    "topology": "ring",
    "schedule": {"name": "doubling", "start": 1, "stop": None},
    "delay": 1,
    "loss": 0.2,
    "duplication": 0.2,
}

# UCB1's scale is a factor under the square root in its confidence radius, and must be positive.
_WITH_MESSAGES = {"scale": (0.00625, 0.0125, 0.025, 0.05)}

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.arms.env:ArmsEnv",
    small={"num_arms": 5},
    presets={
        "FedArms-v0": Preset(),
        "FedArmsMovieLens-v0": Preset({"means": "movielens"}),
        "FedArmsJester-v0": Preset({"means": "jester"}),
        "FedArmsMovieLens-v1": Preset({"means": "movielens", "permuted": True}),
        "FedArmsJester-v1": Preset({"means": "jester", "permuted": True}),
        "FedArmsSleeping-v0": Preset({"awake": 0.7}),
        "FedArmsSuper-v0": Preset({"slots": 3}),
        "FedArmsSpread-v0": Preset({"spread": 0.2}),
        "FedArmsUnreliable-v0": Preset(stack=[["Channel", _UNRELIABLE]]),
    },
    tuning=TuningSpec(
        grids={
            "UCB1": {"scale": (0.02, 0.08, 0.18, 0.5)},
            "Priv-UCB1": {"scale": (0.005, 0.02, 0.08, 0.18)},
            "MOSS": {"scale": (0.1, 0.15, 0.2, 0.25, 0.3)},
            **dict.fromkeys(("MOSS-weighted", "MOSS-weighted-true"), _WITH_MESSAGES),
        },
        seeds=200,
    ),
    suite=SuiteSpec(
        tasks={"uniform": ("FedArms-v0", {}), "movielens": ("FedArmsMovieLens-v1", {"num_arms": 10})},
        reference="uniform-arms",
        full=(100_000, 200),
        quick=(2_000, 200),
        version=3,
    ),
)
