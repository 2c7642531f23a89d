"""The registration of exposure fairness: ids with their settings, tuning, suite, and the lab's choices."""

from math import sqrt

import numpy as np

from fedbandit_envs.registry.problems import RADII, Panel, Preset, RegisteredProblem, SuiteSpec, TuningSpec

# Contexts of ten arms, drawn once uniformly on [0, 1]^5 / sqrt(5). With fixed contexts the merit of an arm stays the
# same in all rounds.
_SAME_ARMS = (np.random.default_rng(0).random((10, 5)) / sqrt(5)).round(3).tolist()

_TUNED = ("FairX-LinUCB", "Priv-FairX-LinUCB", "Priv-FairX-weighted", "Priv-FairX-weighted-true")

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.exposure.env:ExposureEnv",
    small={"num_arms": 4, "dim": 3},
    presets={
        "FedExposure-v0": Preset(),
        "FedExposureNoisy-v0": Preset({"reward_sd": 0.5, "reward_bound": 2.5}),
        "FedExposureLinear-v0": Preset({"merit": "linear"}),
    },
    tuning=TuningSpec(
        grids={name: {"beta_scale": RADII} for name in _TUNED},
        seeds=40,
        names={"FairX-LinUCB": "FairX-tuned", "Priv-FairX-LinUCB": "Priv-FairX-tuned"},
    ),
    suite=SuiteSpec(
        tasks={"exponential": ("FedExposure-v0", {}), "noisy": ("FedExposureNoisy-v0", {})},
        reference="equal-shares",
    ),
    lab_choices={"The same arms in every round": {"contexts": _SAME_ARMS}},
    lab_panels=(
        Panel(
            "Shares of pulls", "arm, the most deserving first", {"deserved": "deserved", "received": "pulls"}
        ),
    ),
)
