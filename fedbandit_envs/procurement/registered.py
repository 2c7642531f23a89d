"""The registration of procurement: ids with their settings, tuning, and the leaderboard's suite."""

from fedbandit_envs.registry.problems import RADII, Preset, RegisteredProblem, SuiteSpec, TuningSpec

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
            name: {"radius_scale": RADII, "exploration_rounds": (0, 1)}
            for name in ("SS-UCB", "P-FCB", "P-FCB-weighted", "P-FCB-weighted-true")
        },
        seeds=100,
    ),
    suite=SuiteSpec(
        tasks={"uniform": ("FedProcurement-v0", {}), "normal": ("FedProcurementNormal-v0", {})},
        reference="uniform-random",
        adjacency="one-quantity",
        full=(100_000, 20),
        quick=(2_000, 10),
    ),
)
