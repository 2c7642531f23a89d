"""The registration of procurement: ids with their settings, tuning, and the leaderboard's suite."""

from fedbandit_envs.registry.problems import Preset, RegisteredProblem, SuiteSpec, TuningSpec

_MARGINS = {"margin": (3.0, 6.0, 12.0)}
_OF_SS_UCB = {"radius_scale": (0.1, 0.2, 0.3, 0.5), "exploration_rounds": (0,), **_MARGINS}
_THOMPSON = "Thompson-procurement"

PROBLEM = RegisteredProblem(
    federation="fedbandit_envs.procurement.env:ProcurementEnv",
    small={"num_producers": 5},
    presets={
        "FedProcurement-v0": Preset(),
        "FedProcurementNormal-v0": Preset({"market": "normal"}),
        "FedProcurementHomogeneous-v0": Preset({"market": {"name": "uniform", "homogeneous": True}}),
    },
    tuning=TuningSpec(
        grids={
            **dict.fromkeys(("SS-UCB", "P-FCB"), _OF_SS_UCB),
            "Laplace-index": {"width": (0.8, 1.6, 3.2), **_MARGINS},
            **dict.fromkeys((_THOMPSON, f"{_THOMPSON}-weighted", f"{_THOMPSON}-weighted-true"), _MARGINS),
        },
        seeds=100,
    ),
    suite=SuiteSpec(
        tasks={"uniform": ("FedProcurement-v0", {}), "normal": ("FedProcurementNormal-v0", {})},
        reference="uniform-random",
        adjacency="one-quantity",
        full=(100_000, 100),
        quick=(2_000, 100),
        version=2,
    ),
)
