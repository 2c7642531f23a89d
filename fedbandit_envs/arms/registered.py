"""The registration of Bernoulli arms: ids with their settings, tuning, and the leaderboard's suite."""

from fedbandit_envs.registry.problems import RADII, Preset, RegisteredProblem, SuiteSpec, TuningSpec

_UNRELIABLE = {
    "topology": "ring",
    "schedule": {"name": "doubling", "start": 1, "stop": None},
    "delay": 1,
    "loss": 0.2,
    "duplication": 0.2,
}

# UCB1's scale is a factor under the square root in its confidence radius, and must be positive.
_SCALES = {"scale": tuple(round(2.0 * radius**2, 6) for radius in RADII if radius > 0)}
_OF_MOSS = {"scale": (0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)}

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
            **dict.fromkeys(("UCB1", "Priv-UCB1", "UCB1-weighted", "UCB1-weighted-true"), _SCALES),
            **dict.fromkeys(("MOSS", "MOSS-weighted", "MOSS-weighted-true"), _OF_MOSS),
        },
        seeds=200,
    ),
    suite=SuiteSpec(
        tasks={"uniform": ("FedArms-v0", {}), "movielens": ("FedArmsMovieLens-v1", {"num_arms": 10})},
        reference="uniform-arms",
        full=(100_000, 20),
        quick=(2_000, 10),
        version=2,
    ),
)
