"""The registration of exposure fairness: ids with their settings, tuning, suite, and the lab's choices."""

from math import sqrt

import numpy as np

from fedbandit_envs.registry.problems import Panel, Preset, RegisteredProblem, SuiteSpec, TuningSpec

# Contexts of ten arms, drawn once uniformly on [0, 1]^5 / sqrt(5). With fixed contexts the merit of an arm stays the
# same in all rounds.
_SAME_ARMS = (np.random.default_rng(0).random((10, 5)) / sqrt(5)).round(3).tolist()

_RADII = (0.0, 0.05)
# Silence has the same prior, so that the weighted form's regret differs by what it receives.
_WEIGHTED = {"prior_variance": (0.1,), "beta_scale": _RADII}

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.exposure.env:ExposureEnv",
    small={"num_arms": 4, "dim": 3},
    presets={
        "FedExposure-v0": Preset(),
        "FedExposureNoisy-v0": Preset({"reward_sd": 0.5, "reward_bound": 2.5}),
        "FedExposureLinear-v0": Preset({"merit": "linear"}),
    },
    tuning=TuningSpec(
        grids={
            "FairX-LinUCB": {"prior_variance": (0.03, 0.1, 0.3), "beta_scale": _RADII},
            "Priv-FairX-LinUCB": {"beta_scale": (*_RADII, 0.1)},
            "Priv-FairX-weighted": _WEIGHTED,
            "Priv-FairX-weighted-true": _WEIGHTED,
        },
        seeds=40,
        names={"FairX-LinUCB": "FairX-tuned", "Priv-FairX-LinUCB": "Priv-FairX-tuned"},
    ),
    suite=SuiteSpec(
        tasks={"exponential": ("FedExposure-v0", {}), "noisy": ("FedExposureNoisy-v0", {})},
        reference="equal-shares",
        full=(30_000, 50),
        quick=(1_000, 50),
        version=2,
    ),
    lab_choices={"The same arms in every round": {"contexts": _SAME_ARMS}},
    lab_panels=(
        Panel(
            "Shares of pulls", "arm, the most deserving first", {"deserved": "deserved", "received": "pulls"}
        ),
    ),
)
