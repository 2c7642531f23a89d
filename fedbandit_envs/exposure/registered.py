"""Exposure fairness, as registered."""

from fedbandit_envs.registry.problems import RADII, Panel, Preset, RegisteredProblem, SuiteSpec, TuningSpec

# Drawn once, uniformly on [0, 1]^5 / sqrt(5): with these contexts an arm has the same merit in every round.
_SAME_ARMS = [
    [0.285, 0.121, 0.018, 0.007, 0.364],
    [0.408, 0.271, 0.326, 0.243, 0.418],
    [0.365, 0.001, 0.383, 0.015, 0.326],
    [0.079, 0.386, 0.242, 0.134, 0.189],
    [0.013, 0.056, 0.3, 0.289, 0.275],
    [0.172, 0.446, 0.439, 0.307, 0.291],
    [0.308, 0.174, 0.06, 0.323, 0.235],
    [0.139, 0.217, 0.398, 0.418, 0.16],
    [0.256, 0.144, 0.266, 0.151, 0.175],
    [0.398, 0.102, 0.279, 0.038, 0.372],
]

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
    tuning=TuningSpec(
        env_ids=("FedExposure-v0",),
        rounds=20_000,
        seeds=3,
        grid=tuple({"beta_scale": radius} for radius in RADII),
        baselines={
            "FairX-tuned": "FairX-LinUCB",
            "Priv-FairX-tuned": "Priv-FairX-LinUCB",
            "Priv-FairX-weighted-tuned": "Priv-FairX-weighted",
        },
    ),
    suite=SuiteSpec(
        tasks={"exponential": ("FedExposure-v0", {}), "noisy": ("FedExposureNoisy-v0", {})},
        reference="equal-shares",
        adjacency="one-observation",
        full=(30_000, 20),
        quick=(1_000, 10),
    ),
    lab_choices={"The same arms in every round": {"contexts": _SAME_ARMS}},
    lab_panels=(
        Panel(
            "Shares of pulls", "arm, the most deserving first", {"deserved": "deserved", "received": "pulls"}
        ),
    ),
)
