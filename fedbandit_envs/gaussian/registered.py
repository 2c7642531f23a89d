"""The registration of Gaussian arms: ids with their settings, and tuning."""

from fedbandit_envs.registry.problems import Preset, RegisteredProblem, SuiteSpec, TuningSpec

COMMON = (0.70, 0.71, 0.72, 0.73, 0.74, 0.75, 0.76, 0.765, 0.77, 0.79)
"""The global means of Shi and Shen's experiments (AAAI 2021)."""

_GLOBAL = {"regret": "federation", "reward_sd": 0.5}
_MIXED = (
    (1.0, 0.0, 0.0, 0.0, 0.9, 0.4, 0.35, 0.35, 0.5),
    (0.0, 1.0, 0.0, 0.0, 0.3, 0.9, 0.35, 0.3, 0.5),
    (0.0, 0.0, 1.0, 0.0, 0.35, 0.35, 0.9, 0.3, 0.5),
    (0.0, 0.0, 0.0, 1.0, 0.4, 0.3, 0.35, 0.9, 0.5),
)

_TUNED = ("Gaussian-UCB", "Gaussian-epochs", "Fed1-UCB", "Fed2-UCB", "PF-UCB", "PF-UCB-enhanced")

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.gaussian.env:GaussianEnv",
    small={"reward_bound": 5.0},
    presets={
        "FedGaussian-v0": Preset({"means": list(COMMON), "law": "concentrated", "num_agents": 5, **_GLOBAL}),
        "FedGaussianSampled-v0": Preset(
            {"means": list(COMMON), "law": "approximate", "spread": 0.02, "num_agents": 62, **_GLOBAL}
        ),
        "FedMixed-v0": Preset({"means": [list(row) for row in _MIXED], "regret": 0.5}),
    },
    # Of the three ids, this is the one in which an agent's own data tell it its best arm. Constants of the baselines
    # that communicate are their servers'.
    tuning=TuningSpec(
        grids={name: {"radius_scale": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)} for name in _TUNED},
        seeds=40,
        tasks=SuiteSpec({"sampled": ("FedGaussianSampled-v0", {})}, reference="", full=(20_000, 20)),
    ),
)
